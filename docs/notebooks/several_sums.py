# %% [markdown]
# # Functions of several sums
#
# A variance is a function of two sums, a correlation of five, a regression line of as many as its coefficients need. If all those sums are told
# together, with one interval for each, then whatever is computed from them has an interval as well.

# %% [markdown]
# **Theorem** (docs/theorems.md, Theorems 75, 76 and 78). Tell the sums of a question as one vector with Gaussian noise. With probability 1 − β all true sums lie in a box around
# the noisy ones. The largest and the least value of a function over that box enclose the true value: of a ratio, a variance, a correlation,
# or the coefficients of a least-squares fit, where an inverse has to be bounded as well (78).

# %%
import numpy as np

import holdfast as hf

chance, rows = np.random.default_rng(19), 300_000
slopes = np.linspace(0, 0.9, 10)
x = chance.uniform(0, 1, rows)
columns = {"x": x} | {
    f"y{i}": np.clip(s * x + (1 - s) * chance.random(rows), 0, 1) for i, s in enumerate(slopes)
}
schema = hf.Schema(**{name: hf.Real(0, 1) for name in columns})
session = hf.open(columns, schema).session(epsilon=1.0, delta=1e-6, queries=100)
truths = slopes / np.sqrt(slopes**2 + (1 - slopes) ** 2)  # of the population
told = [session.correlation("x", f"y{i}") for i in range(len(slopes))]
for slope, truth, answer in zip(slopes, truths, told, strict=True):
    print(f"slope {slope:.1f}: {answer.value:.3f} in [{answer.low:.3f}, {answer.high:.3f}], true {truth:.3f}")
    assert answer.low <= truth <= answer.high

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6, 3))
axes.plot(slopes, truths, color="grey", label="population")
middle = np.array([(answer.low + answer.high) / 2 for answer in told])
half = np.array([(answer.high - answer.low) / 2 for answer in told])
axes.errorbar(slopes, middle, half, fmt="none", capsize=3, label="interval")
axes.plot(slopes, [answer.value for answer in told], "o", markersize=3, label="told")
axes.set(xlabel="slope", ylabel="correlation", title="ten correlations of a session of 100")
axes.legend()

# %% [markdown]
# **A regression** (Theorem 78). All coefficients have an interval from one charge, and hold together.

# %%
line = session.regression("y5", ["x", "y2"], rho=0.02)
print(line)
for name, low, high, truth in zip(line.labels, line.low, line.high, (0.25, 0.5, 0.0), strict=True):
    assert low <= truth <= high, name

# %% [markdown]
# The box is the price of generality: it does not know that the errors of the sums are related, so these intervals are wider than those of a textbook, which
# hold for one correlation that was fixed beforehand.

# %% [markdown]
# **Try it.** Open the session with `queries=10`. By how much do the intervals shrink?
