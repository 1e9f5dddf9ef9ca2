# %% [markdown]
# # Private quantiles
#
# A median is a number that no noise can simply be added to: one row may move it far. But the *rank* of a candidate moves by at most one,
# so a candidate can be chosen by its rank, with more chance for those whose rank is nearly right.

# %% [markdown]
# **Theorem** (docs/theorems.md, Theorem 33). Let rows lie in bins. For a bin e let x be λ times the share of rows by which e lies too low for the
# rank r, and y by which it lies too high. Choosing e with chance proportional to 1/(1 + e^x + e^y) has the loss ρ = λ²/(2n²); and if it is
# done once below and once above the rank, the two bins enclose the quantile *of the population*, also after adaptive answers.

# %%
import numpy as np

import holdfast as hf

chance = np.random.default_rng(12)
income = np.clip(chance.lognormal(10.3, 0.6, 100_000), 0, 200_000)
true = {r: float(np.exp(10.3 + 0.6 * z)) for r, z in ((0.1, -1.2816), (0.5, 0.0), (0.9, 1.2816))}
table = hf.open({"income": income}, hf.Schema(income=hf.Real(0, 200_000)))
session = table.session(epsilon=1.0, delta=1e-6, queries=100)
told = {r: session.quantile("income", r) for r in true}
for r, answer in told.items():
    print(
        f"rank {r}: {answer.value:9.0f} in [{answer.low:.0f}, {answer.high:.0f}], of the population {true[r]:.0f}"
    )
    assert answer.low <= true[r] <= answer.high

# %% [markdown]
# The law of one choice can be written down. Here it is on ten thousand rows and 200 bins, at three strengths λ: what is nearly of
# the right rank is chosen, and a smaller λ (more private) spreads further.

# %%
import matplotlib.pyplot as plt

rows, edges = income[:10_000], np.linspace(0, 100_000, 201)
counts = np.histogram(np.clip(rows, 0, 99_999), edges)[0]
below, upto = (np.cumsum(counts) - counts) / len(rows), np.cumsum(counts) / len(rows)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.2))
spread = []
for strength in (20, 60, 200):
    weight = 1 / (1 + np.exp(strength * (0.5 - upto)) + np.exp(strength * (below - 0.5)))
    law = weight / weight.sum()
    spread.append(float(np.sum(law * np.abs(edges[:-1] - np.median(rows)))))
    axes[0].plot(edges[:-1], law, label=f"lambda {strength}: rho {strength**2 / 2 / len(rows) ** 2:.1e}")
axes[0].axvline(np.median(rows), color="grey", linestyle=":")
axes[0].set(xlabel="income", ylabel="chance of the bin", title="one choice of a median")
axes[0].legend(fontsize=8)
assert spread[0] > spread[1] > spread[2]

levels = np.sort(income)[:: len(income) // 200]
axes[1].plot(levels, np.linspace(0, 1, len(levels)), label="rows")
for r, answer in told.items():
    axes[1].plot([answer.low, answer.high], [r, r], "r|-")
axes[1].set(xlabel="income", ylabel="rank", title="three answers and their intervals", xlim=(0, 100_000))
figure.tight_layout()

# %% [markdown]
# **Try it.** Make a tenth of the incomes equal to zero and ask for the rank 0.05. What is the quantile of the population, and what does the interval say?
