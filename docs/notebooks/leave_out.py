# %% [markdown]
# # Leaving rows out
#
# How far can an analyst who has seen noisy answers lead the next one away from the population? The leave-out theorem compares the
# answers with those that would have come from fewer rows: of the rows that were left out nothing was told.
# [One page](../leave-out.md) has the proof; this one has pictures.

# %% [markdown]
# **Theorem** (docs/theorems.md, Theorems 22 and 23). Let m of n rows be left out, κ = m/(2(n − m)(n − 1)), and let D be the distance between table and
# population of a query that was chosen after the answers. Then E exp(bD − κ Σ vᵢ/σᵢ² − b²/(8m)) ≤ 1 for every b ≥ 0, where vᵢ is the
# variance of query i over the rows.

# %% [markdown]
# **The inequality itself.** Take 40 fair coins as rows and one answer, the share of heads plus noise. The analyst then bets on
# whichever side the answer favours. Everything can be integrated numerically, for every m. Without the term for what the answer told
# (κ…), the inequality fails.

# %%
import math

import numpy as np

n, sigma, b = 40, 0.2, 8.0
heads = np.arange(n + 1)
law = np.array([math.comb(n, int(h)) / 2**n for h in heads])
share = heads / n
over = np.array(
    [math.erfc((0.5 - q) / sigma / math.sqrt(2)) / 2 for q in share]
)  # chance that it favours heads
variance = share * (1 - share)


def mean(m, price=1.0):
    kappa = m / (2 * (n - m) * (n - 1))
    gain = over * np.exp(b * (share - 0.5)) + (1 - over) * np.exp(b * (0.5 - share))
    return float(np.sum(law * gain * np.exp(-price * kappa * variance / sigma**2 - b**2 / (8 * m))))


left_out = np.arange(1, n)
with_price = [mean(int(m)) for m in left_out]
without = [mean(int(m), price=0.0) for m in left_out]
print(f"largest mean {max(with_price):.3f}; without the price of what was told {max(without):.3f}")
assert max(with_price) <= 1 < max(without)

# %% [markdown]
# **Half-widths, and an attack.** A session of k answers that are all within one common width; the attack asks
# about k − 1 coin-flip features and then about their vote. Ours holds; the interval that ignores adaptivity does not; and the
# best published bound that we know of (Rogers et al. 2020) needs several times the width.

# %%
import matplotlib.pyplot as plt

import holdfast as hf

chance, rows = np.random.default_rng(9), 2000
counts = [10, 30, 100, 300]
widths = {name: [] for name in ("rogers", "leave-out", "hoeffding")}
for k in counts:
    for name, found in widths.items():
        found.append(hf.validity.width(name, rows=rows, queries=k, confidence=0.95))


def bias(k, noise, games=10):
    """How far a vote of k - 1 features is from one half on these rows, on average over games."""
    found = []
    for _ in range(games):
        agree = 2.0 * chance.integers(0, 2, (rows, k - 1)) - 1
        told = agree.mean(axis=0) / 2 + noise * chance.normal(size=k - 1)
        found.append(np.mean(agree @ np.sign(told) > 0) - 0.5)
    return float(np.mean(found))


ours = widths["leave-out"]
exact = [bias(k, 0.0) for k in counts]
noisy = [bias(k, w / 2) for k, w in zip(counts, ours, strict=True)]
assert max(noisy) < ours[0] and exact[-1] > widths["hoeffding"][-1]

figure, axes = plt.subplots(1, 2, figsize=(10, 3.5))
axes[0].plot(left_out, with_price, label="the theorem")
axes[0].plot(left_out, without, label="without what was told")
axes[0].axhline(1, color="grey", linestyle=":")
axes[0].set(
    xlabel="rows left out, of 40",
    ylabel="mean of the exponential",
    title="at most 1, for every m",
    ylim=(0, 1.3),
)
axes[0].legend()
for name, values, style in (
    ("best published", widths["rogers"], "s-"),
    ("leave-out", ours, "o-"),
    ("not adaptive (invalid)", widths["hoeffding"], "^-"),
    ("attack on exact answers", exact, "r--"),
    ("attack on noisy answers", noisy, "k--"),
):
    axes[1].semilogx(counts, values, style, label=name)
axes[1].set(
    xlabel="answers from 2000 rows",
    ylabel="half-width, or bias",
    title="what is certified, what an attack reaches",
)
axes[1].legend(fontsize=7)
figure.tight_layout()

# %% [markdown]
# **Try it.** Raise `counts` to 3000. Does the attack on exact answers ever leave the leave-out interval of the noisy ones?
