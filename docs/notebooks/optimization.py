# %% [markdown]
# # Optimisation queries
#
# Some answers are not numbers but minimisers: the line that fits best, the rule that classifies best. Gradient descent asks for one
# mean gradient after another, each at a point that the earlier ones led to. That is an adaptive analyst, and the same noise covers it.

# %% [markdown]
# **Theorem** (Bassily, Smith, Thakurta 2014; sub-linear: Fish, Reyzin, Rubinstein 2018; constants: docs/learn.md). T descent steps over a set of
# diameter D with gradients of norm at most G and Gaussian noise of size σ in each coordinate have an average loss within about (3/2)DG′/√T + Dσ√(2 ln(2/β)/T) of the least one,
# G′ = G + σ(√d + √(2 ln(2T/β))). If the loss is strongly convex, it is O(G′²(1 + ln T)/T). More steps mean more noise at the same budget: there is a best T.

# %%
import numpy as np

import holdfast as hf
from holdfast import learn

chance = np.random.default_rng(15)
schema = hf.Schema(age=hf.Integer(18, 99), income=hf.Real(0, 200_000), insured=hf.Boolean())


def people(rows):
    age, income = chance.integers(18, 100, rows), chance.uniform(0, 200_000, rows)
    return {
        "age": age,
        "income": income,
        "insured": chance.random(rows) < 1 / (1 + np.exp(-(income - 80_000) / 20_000)),
    }


loss = learn.logistic(schema, ["age", "income"], "insured = true", radius=6.0)
rows = people(60_000)
session = hf.open(rows, schema).session(epsilon=1.0, delta=1e-6, queries=10)
steps = [5, 20, 80, 320]
promised = [learn.plan_minimize(session, loss, rho=0.01, iterations=t).excess for t in steps]
found = learn.minimize(session, loss, rho=0.01, iterations=80)
coefficients, intercept = loss.coefficients(found.theta)
print("certified excess by steps:", dict(zip(steps, np.round(promised, 4).tolist(), strict=True)))
print("coefficients", coefficients, "intercept", intercept)
right = np.mean(
    ((coefficients[0] * rows["age"] + coefficients[1] * rows["income"] + intercept) > 0) == rows["insured"]
)
print(f"right for {right:.3f} of the rows, rho {session.spent:.4f} of 0.01 spent")
assert right > 0.75 and session.spent <= 0.01

# %% [markdown]
# What is certified is for the worst loss of this kind, and falls with the number of rows like 1/√n until noise no longer matters.

# %%
import matplotlib.pyplot as plt

sizes, excess = [3000, 10_000, 30_000, 100_000, 300_000], []
for n in sizes:
    opened = hf.open(people(n), schema).session(epsilon=1.0, delta=1e-6, queries=10)
    excess.append(learn.plan_minimize(opened, loss, rho=0.01).excess)
figure, axes = plt.subplots(1, 2, figsize=(9, 3))
axes[0].semilogx(steps, promised, "o-")
axes[0].set(xlabel="steps", ylabel="certified excess", title="60,000 rows, rho 0.01")
axes[1].loglog(sizes, excess, "o-")
axes[1].set(xlabel="rows", ylabel="certified excess", title="at the best number of steps")
figure.tight_layout()
assert excess[-1] < excess[0] / 3

# %% [markdown]
# **Try it.** `mechanism="votes"` reads a few rows for each coordinate of each step. How many rows does `plan_minimize` then read of 300,000?
