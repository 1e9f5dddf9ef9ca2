# %% [markdown]
# # A holdout that lasts
#
# Tune a model on the score of a holdout, and the score becomes one more training set. A reusable holdout adds a planned amount of noise to each look and widens its intervals
# only as the leave-out theorem says. The last of its looks is as true as the first.

# %% [markdown]
# **Theorem** (docs/theorems.md, Theorems 31, 52 and 54; the idea: Dwork et al. 2015). Plan k looks before the first, with noise that falls in epochs. Every score,
# of a model that was chosen after all scores before it, is within one common half-width of the accuracy on new data, with probability 1 − β for all looks together.

# %%
import numpy as np

from holdfast.holdout import ReusableHoldout

chance = np.random.default_rng(20)
rows, features, looks = 2000, 60, 400
design = chance.normal(size=(rows, features))
labels = chance.integers(0, 2, rows)  # coins: nobody can be better than one half


def climb(score):
    """Every tenth look tries the sum of all directions, each weighted by how well it did."""
    weights, told = np.zeros(features), []
    for look in range(looks):
        step = weights if look % 10 == 9 else chance.normal(size=features)
        seen = score((design @ step > 0).astype(int))
        if look % 10 < 9:
            weights = weights + (seen - 0.5) * step
        told.append(seen)
    return told


ordinary = climb(lambda guess: float(np.mean(guess == labels)))
holdout = ReusableHoldout(labels, queries=looks)
answers = []


def guarded(guess):
    answers.append(holdout.score(guess))
    return answers[-1].value


climb(guarded)
print(holdout.design)
print(f"ordinary holdout: the best score told is {max(ordinary):.3f}; the truth is 0.500")
missed = sum(
    not answer.low <= 0.5 <= answer.high for answer in answers
)  # any at all in one run of twenty at most
print(f"reusable holdout: {missed} of {looks} intervals miss the truth")
assert missed <= 3 and holdout.looks_left == 0

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7, 3.2))
axes.fill_between(
    range(looks), [a.low for a in answers], [a.high for a in answers], alpha=0.25, label="interval"
)
axes.plot([a.value for a in answers], ".", markersize=3, label="reusable holdout")
axes.plot(np.maximum.accumulate(ordinary), color="tab:red", label="best of an ordinary holdout")
axes.axhline(0.5, color="grey", linestyle=":")
axes.set(xlabel="look", ylabel="accuracy told")
axes.legend(loc="lower right")

# %% [markdown]
# **Metrics of a whole table** (Theorem 54). Balanced accuracy and the calibration of chances are functions of a few cells that are told together, and the interval is what those sums leave possible.

# %%
truth = chance.integers(0, 10, 100_000) == 0  # a tenth are ones
chances = np.clip(np.where(truth, 0.7, 0.1) + chance.normal(0, 0.05, 100_000), 0, 1)
wide = ReusableHoldout(truth.astype(int), queries=40)
for metric, true in (("balanced-accuracy", 1.0), ("accuracy", 1.0)):
    answer = wide.score((chances > 0.4).astype(int), metric=metric)
    print(f"{metric}: {answer.low:.3f} to {answer.high:.3f}")
    assert answer.low <= true <= answer.high

# %% [markdown]
# **Try it.** Give the holdout 30,000 rows. Which becomes narrower faster: the interval, or the climb of the ordinary holdout?
