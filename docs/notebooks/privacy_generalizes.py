# %% [markdown]
# # Differential privacy implies generalization
#
# If an answer hardly depends on any single row, it cannot fit the luck of the rows. Play the strongest simple attack
# against exact answers and against private ones: ask for the correlation of each of k coin-flip features with the label,
# then ask about the vote of all features, each with the sign of its answer. The truth is one half, always.

# %% [markdown]
# **Theorem** (Dwork, Feldman, Hardt, Pitassi, Reingold, Roth 2015; Bassily et al. 2016). If all answers together are
# (ε, δ)-differentially private and each is within α of the rows, then each is within about α + ε of the population, up to a small
# probability, *for any adaptive analyst*. The transfer theorems of this package (docs/theorems.md, Theorems 5 and 8) have
# sharper constants; the leave-out theorem (docs/leave-out.md) measures the same without the detour over ε, and gives narrower intervals.

# %%
import numpy as np

import holdfast as hf

chance = np.random.default_rng(7)
rows, features = 2000, 400
x = chance.integers(0, 2, (rows, features))
label = chance.integers(0, 2, rows)
agree = x == label[:, None]


def attack(answer):
    signs = np.sign([answer(agree[:, j]) - 0.5 for j in range(features)])
    vote = ((2 * x - 1) @ signs > 0).astype(int)
    return float(np.mean(vote == label)), answer(vote == label)


exact_bias, exact_told = attack(lambda hits: float(hits.mean()))
_, counts = hf.validity.gaussian_noise(rows, features + 1, 0.05)  # the best noise, in rows
sigma = counts / rows
noisy_bias, noisy_told = attack(lambda hits: float(hits.mean() + sigma * chance.normal()))
print(f"exact answers: the vote is right on {exact_bias:.3f} of these rows, on 0.500 of new ones")
print(f"noisy answers (sigma {sigma:.3f}): on {noisy_bias:.3f}")
assert exact_bias > 0.62 and noisy_bias < exact_bias

# %% [markdown]
# Less was learnt about the rows, so less could be fitted. The certified half-width is what the strongest analyst could do;
# the attack stays below it.

# %%
import matplotlib.pyplot as plt

widths = {
    "not adaptive (invalid here)": hf.validity.width(
        "hoeffding", rows=rows, queries=features + 1, confidence=0.95
    ),
    "leave-out": hf.validity.width("leave-out", rows=rows, queries=features + 1, confidence=0.95),
    "transfer": hf.validity.width("gaussian", rows=rows, queries=features + 1, confidence=0.95),
}
figure, axes = plt.subplots(figsize=(6, 3))
axes.barh(list(widths), list(widths.values()))
axes.axvline(exact_bias - 0.5, color="red", linestyle=":", label="bias of exact answers")
axes.set(xlabel="half-width, 401 answers from 2000 rows")
axes.legend()
figure.tight_layout()
assert widths["not adaptive (invalid here)"] < exact_bias - 0.5 < widths["leave-out"]

# %% [markdown]
# **Try it.** Multiply `sigma` by a tenth. The answers are more exact for these rows, and the vote is right more often on them: which of the two errors is larger now?
