# %% [markdown]
# # A synthetic table from measured pairs
#
# Measure the counts of each column and of those pairs of columns that matter, with noise; fit the distribution with the largest entropy that agrees with what was measured; draw rows from it.
# Every question about a measured pair can then be asked for nothing, and of many others the answer is near.

# %% [markdown]
# **Theorem** (docs/theorems.md, Theorems 95 and 96; the approach: Zhang et al. 2017; McKenna, Miklau, Sheldon 2021). Choosing the next pair by smoothed errors, and telling its
# noisy counts, can both be charged like answers of a session: for the chosen pairs there is an interval for every count, of the table and of the population, all together, and later answers
# of the session stay valid.

# %%
import itertools

import numpy as np

import holdfast as hf

chance, rows = np.random.default_rng(22), 50_000
a = chance.integers(0, 8, rows)
b = np.where(chance.random(rows) < 0.7, a, chance.integers(0, 8, rows))  # b follows a, c follows b
c = np.where(chance.random(rows) < 0.7, b, chance.integers(0, 8, rows))
d = chance.integers(0, 8, rows)  # alone
columns = {"a": a, "b": b, "c": c, "d": d}
schema = hf.Schema(**{name: hf.Integer(0, 7) for name in columns})
pairs = list(itertools.combinations(columns, 2))


def table_of(x, y):
    return np.histogram2d(x, y, bins=(range(9), range(9)))[0] / len(x)


errors = {}
table = hf.open(columns, schema)
for rho in (1e-5, 1e-4, 1e-3, 1e-2):
    made = table.session(rho=0.5, delta=1e-6, queries=10, target="table").synthesize(rho=rho)
    drawn = made.rows(50_000)
    errors[rho] = [
        0.5 * np.abs(table_of(columns[x], columns[y]) - table_of(*(np.array(drawn[n]) for n in (x, y)))).sum()
        for x, y in pairs
    ]
    print(f"rho {rho:<6}: mean distance of the pairs {np.mean(errors[rho]):.4f}")
apart = [0.5 * np.abs(table_of(columns[x], columns[y]) - 1 / 64).sum() for x, y in pairs]
assert np.mean(errors[1e-2]) < 0.03 < np.mean(apart)

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6.5, 3))
for rho, found in errors.items():
    axes.plot(["-".join(pair) for pair in pairs], found, "o-", label=f"rho {rho}")
axes.plot(["-".join(pair) for pair in pairs], apart, "k:", label="uniform rows")
axes.set(ylabel="total variation", title="pairs of columns, synthetic rows against the table")
axes.legend(fontsize=8)

# %% [markdown]
# **Try it.** Make `d` depend on all three others. Which of its pairs are chosen at the smallest budget?
