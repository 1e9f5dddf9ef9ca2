# %% [markdown]
# # The leaderboard attack, and the Ladder
#
# Blum and Hardt: a board that tells a team its exact score is climbed by random submissions that are combined with the sign
# of what they scored. The Ladder tells a new score only when it is better than the best so far by a clear step.

# %% [markdown]
# **Theorem** (Blum, Hardt 2015). k submissions chosen adaptively, on n rows: the best score that the Ladder tells is within
# O((ln(kn)/n)^(1/3)) of that submission's score on new data. On a board that tells exact scores the error grows like √(k/n)
# under the attack below. For the Ladder, docs/theorems.md, Theorem 17 counts transcripts exactly.

# %%
import numpy as np

from holdfast.holdout import Leaderboard

chance = np.random.default_rng(8)
rows, looks = 2000, 500
labels = chance.integers(0, 2, rows)


def climb(score):
    """The best score told so far, look by look, for an attacker who combines what did well."""
    votes, told = np.zeros(rows), []
    for look in range(looks):
        if look % 10 == 9:
            guess = (votes > 0).astype(int)
        else:
            guess = chance.integers(0, 2, rows)
        seen = score(guess)
        votes += (2 * guess - 1) * np.sign(seen - 0.5)
        told.append(max([seen, *told[-1:]]))
    return told


ordinary = climb(lambda guess: float(np.mean(guess == labels)))
board = Leaderboard(labels, queries=looks, mode="ladder")
ladder = climb(lambda guess: board.submit("mallory", guess).value)
print(f"ordinary board {ordinary[-1]:.3f}, Ladder {ladder[-1]:.3f}; on new data 0.500")
assert ordinary[-1] > ladder[-1]

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6, 3))
axes.plot(ordinary, label="ordinary")
axes.plot(ladder, label="Ladder")
axes.axhline(0.5, color="grey", linestyle=":")
axes.set(xlabel="submission", ylabel="best score told")
axes.legend()

# %% [markdown]
# The Ladder's *scores* are safe, but they are not private, and say nothing between its steps. The default board of this package
# answers every look with an interval that holds for new data, and is differentially private for the labels.

# %% [markdown]
# **Try it.** Let the attacker use `np.sign(seen - told[-1])` instead, a hill climber. Does the ordinary board climb faster? Does the Ladder notice?
