# %% [markdown]
# # Rare events
#
# If one person in a thousand has a disease, an answer "within 0.01" is useless. For events that are rare in the rows the luck of the draw is
# small too: its variance is p(1 − p)/n. Intervals should follow it, also for adaptive questions.

# %% [markdown]
# **Theorem** (docs/theorems.md, Theorems 25, 28 and 38). What an answer near 0 tells can be charged by its own released value a,
# as a(1 − a) in the place of 1/4. The luck of the draw, and what earlier answers may have told of it, then follow p(1 − p) for an event of
# share p; what is left is the noise. All intervals still hold together, with the same confidence.

# %%
import numpy as np

import holdfast as hf

chance, rows = np.random.default_rng(14), 1_000_000
shares = [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3]
columns = {f"e{i}": chance.random(rows) < p for i, p in enumerate(shares)}
table = hf.open(columns, hf.Schema(**{name: hf.Boolean() for name in columns}))
plain = table.session(epsilon=1.0, delta=1e-6, queries=1000)
widths = {"plain": [], "rare": []}
for i, p in enumerate(shares):
    answer = plain.fraction(f"e{i} = true")
    widths["plain"].append(answer.width)
    assert answer.low <= p <= answer.high
rare = hf.open(
    {k: v.copy() for k, v in columns.items()}, hf.Schema(**{name: hf.Boolean() for name in columns})
).session(epsilon=1.0, delta=1e-6, queries=1000, intervals="rare")
for i, p in enumerate(shares):
    answer = rare.fraction(f"e{i} = true")
    widths["rare"].append((answer.high - answer.low) / 2)
    assert answer.low <= p <= answer.high
for p, a, b in zip(shares, *widths.values(), strict=True):
    print(f"p = {p:<7} plain +-{a:.5f}   rare +-{b:.5f}")
assert widths["rare"][0] < widths["plain"][0] / 2

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6, 3.2))
axes.loglog(shares, widths["plain"], "o-", label="plain plan")
axes.loglog(shares, widths["rare"], "s-", label='intervals="rare"')
axes.loglog(
    shares,
    [1.96 * np.sqrt(p * (1 - p) / rows) for p in shares],
    ":",
    color="grey",
    label="luck of the draw alone, one question",
)
axes.set(xlabel="share of the event", ylabel="half-width", title="1000 answers, a million rows")
axes.legend()

# %% [markdown]
# **Try it.** Ask with `queries=10`. Which of the two is narrower at p = 0.3 now, and why is the plain plan the default?
