# %% [markdown]
# # Is B better than A?
#
# Two models that agree on almost all rows can differ by little, whatever their scores are. A score has the luck of all rows in it, a difference only that of the rows on
# which the two disagree. Asked for as one question, it is much sharper than two scores.

# %% [markdown]
# **Theorem** (docs/theorems.md, Theorems 28, 37 and 53). Let f be the difference of two indicators, which is not 0 on a share d of the rows only. The half-width of an answer about
# the mean of f follows √d, also for adaptive questions: what the pair tells, and what its interval has to allow for, are both in proportion to d.

# %%
import numpy as np

from holdfast.holdout import ReusableHoldout

chance = np.random.default_rng(21)
rows = 100_000
labels = chance.integers(0, 2, rows)
first = np.where(chance.random(rows) < 0.8, labels, 1 - labels)
shares = [0.003, 0.01, 0.02, 0.03, 0.05]
widths, truths, told = [], [], []
for share in shares:
    differ = chance.random(rows) < share
    second = np.where(differ, labels, first)  # right wherever they differ
    holdout = ReusableHoldout(labels, queries=1000, expect=share)  # planned for models that differ on so few
    answer = holdout.compare(second, first)
    told.append(answer)
    widths.append((answer.high - answer.low) / 2)
    truths.append(0.2 * share)
    print(
        f"differ on {share:.1%}: {answer.value:.4f} in [{answer.low:.4f}, {answer.high:.4f}], true {truths[-1]:.4f}"
    )
score = ReusableHoldout(labels, queries=1000).score(first)
by_scores = score.high - score.low  # two half-widths
print(f"by two scores the difference would be known within {by_scores:.4f}")
assert all(a.low <= t <= a.high for a, t in zip(told, truths, strict=True)) and max(widths) < by_scores / 3

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6, 3))
axes.plot(shares, widths, "o-", label="one comparison")
axes.axhline(by_scores, color="tab:red", linestyle=":", label="two scores")
axes.set(
    xlabel="share of rows on which they differ",
    ylabel="half-width",
    title="1000 looks at 100,000 rows",
    ylim=(0, None),
)
axes.legend()

# %% [markdown]
# **Try it.** Compare models that differ on ten times the share that was planned for. How many looks does `holdout.looks_left` say that it took?
