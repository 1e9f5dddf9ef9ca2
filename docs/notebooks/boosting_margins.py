# %% [markdown]
# # Boosting and margins
#
# AdaBoost goes on improving on new data long after it makes no mistake on the training rows. The count of mistakes cannot
# explain that; the *margins* can: the share of the vote for the right label keeps growing.

# %% [markdown]
# **Theorem** (Schapire, Freund, Bartlett, Lee 1998). For n independent rows, with probability 1 − δ, *all* weighted votes f over
# a class H and all θ > 0 satisfy: P[f is wrong] ≤ P_S[margin ≤ θ] + O(√(ln n·ln|H|/(nθ²) + ln(1/δ)/n)). The number of
# rounds does not appear. `holdfast.learn.margins` computes it with its constants (docs/learn.md).

# %%
import numpy as np

from holdfast.learn import Stumps, adaboost, margins

chance = np.random.default_rng(6)


def drawn(rows):
    x = chance.normal(size=(rows, 10))
    return x, x.sum(axis=1) + 0.3 * chance.normal(size=rows) > 0


rows, truth = drawn(300)
new, new_truth = drawn(20_000)
stumps = Stumps([np.linspace(-3, 3, 61)] * 10)  # fixed before the rows are seen
errors = {}
for rounds in (5, 20, 100, 1000):
    boosted = adaboost(stumps, rows, truth, rounds=rounds)
    wrong = np.mean(boosted.predict(rows) != truth), np.mean(boosted.predict(new) != new_truth)
    errors[rounds] = wrong
    print(f"{rounds:>5} rounds: {wrong[0]:.3f} wrong on the training rows, {wrong[1]:.3f} on new ones")
assert errors[1000][0] == 0 and errors[1000][1] < errors[5][1]

# %% [markdown]
# The distribution of the margins at 5, 100 and 1000 rounds, with the certified bounds on the error. At 300 rows they are
# vacuous, and the package says so instead of hiding it; they explain the shape.

# %%
found = margins(boosted, rows, truth)
print(found)
found.plot()

# %% [markdown]
# **Try it.** Flip a tenth of the labels. The training error still reaches zero: what happens to the smallest margins, and to the error on new rows?
