# %% [markdown]
# # The exponential mechanism, and learning from a finite class
#
# To choose among candidates privately, draw candidate c with chance proportional to exp(ε·score(c)/(2Δ)). Good candidates
# become exponentially more likely, and one row can shift every score by at most Δ, hence every chance by at most e^ε.

# %% [markdown]
# **Theorem** (McSherry, Talwar 2007). The draw is ε-differentially private, and with probability 1 − β its score is at least
# the best one less (2Δ/ε)(ln|C| + ln(1/β)), where C are the candidates.

# %%
import numpy as np

from holdfast.mechanisms import exponential

scores = np.array([40, 55, 60, 58, 30])
wins = np.bincount([exponential(scores, sensitivity=1, epsilon=0.5) for _ in range(4000)], minlength=5) / 4000
law = np.exp(0.5 * scores / 2)
print("drawn  ", wins.round(3))
print("formula", (law / law.sum()).round(3))
assert np.abs(wins - law / law.sum()).max() < 0.06

# %% [markdown]
# **A private learner for free.** Let the candidates be the hypotheses of a finite class and the score the number of rows that a
# hypothesis gets right. A drawn hypothesis is almost as good as the best one once there are about (ln |H| + ln 1/β)/(αε) rows:
# the class may be exponentially large.

# %%
import matplotlib.pyplot as plt

from holdfast.learn import realisable_rows

print(
    "rows for |H| = 1000, error 0.05, epsilon 1:",
    realisable_rows(1000, epsilon=1.0, within=0.05, confidence=0.95),
)

chance = np.random.default_rng(2)
sizes, errors = [100, 200, 400, 800, 1600, 3200], []
for rows in sizes:
    wrong = []
    for _ in range(20):
        x = chance.random(rows)
        hypotheses = np.linspace(0, 1, 201)
        right = ((x[:, None] > hypotheses) == (x > 0.37)[:, None]).sum(axis=0)
        wrong.append(abs(hypotheses[exponential(right, sensitivity=1, epsilon=0.2)] - 0.37))
    errors.append(np.mean(wrong))
figure, axes = plt.subplots(figsize=(6, 3))
axes.loglog(sizes, errors, "o-")
axes.set(xlabel="rows", ylabel="mean error on new data", title="a threshold learnt with epsilon 0.2")
assert errors[-1] < errors[0] / 4

# %% [markdown]
# `holdfast.learn.FiniteClass` does this with certificates, also for classes that earlier answers chose (docs/theorems.md, Theorem 43).

# %% [markdown]
# **Try it.** Draw from the same scores with `permute_and_flip` (Laplace noise replaced by a better race). It is never worse; by how much does it raise the chance of 60?
