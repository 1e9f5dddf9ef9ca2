# %% [markdown]
# # The secrecy of the sample
#
# If an answer reads a random part of the rows, and nobody knows which part, your row is most likely not even in it. Privacy then
# comes for free: this is why answers from samples can be both quick and private.

# %% [markdown]
# **Theorem** (Kasiviswanathan et al. 2008; sharp form: Balle, Barthe, Gaboardi 2018). An ε-differentially private mechanism that is run on m rows,
# drawn at random from n without replacement and kept secret, is ln(1 + (m/n)(e^ε − 1))-differentially private: about (m/n)ε for
# small ε.

# %%
import numpy as np

from holdfast.privacy import subsampled, subsampled_with_replacement

rows = 1000
sizes = np.unique(np.geomspace(1, rows, 30).astype(int))
losses = {eps: [subsampled(eps, int(m), rows) for m in sizes] for eps in (0.5, 1.0, 3.0)}
print("one row of 1000 at epsilon 1:", subsampled(1.0, 1, rows))
print(
    "drawn with replacement, 500 of 1000 at epsilon 1:", round(subsampled_with_replacement(1.0, 500, rows), 3)
)
print("without replacement:                             ", round(subsampled(1.0, 500, rows), 3))

# %% [markdown]
# **It cannot be improved.** A *vote* draws one row, reads one bit and flips it with chance a. On two tables that differ in one row,
# the share of ones differs by 1/n, so the exact loss of a vote can be computed. It *is* the formula, at ε = ln((1 − a)/a).

# %%
flip = 0.1
epsilon = float(np.log((1 - flip) / flip))
exact = np.log(flip + (1 - 2 * flip) * 1 / rows) - np.log(flip)  # nobody says yes, or one of n does
print("exact loss of a vote", exact, " by the theorem", subsampled(epsilon, 1, rows))
assert exact <= subsampled(epsilon, 1, rows) < exact * (1 + 1e-9)

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6, 3))
for eps, values in losses.items():
    axes.loglog(sizes / rows, values, label=f"epsilon {eps} on the sample")
axes.plot([1 / rows], [exact], "k*", markersize=12, label="a vote, exactly")
axes.set(xlabel="share of the rows that is read", ylabel="epsilon for the table")
axes.legend()

# %% [markdown]
# Rows drawn *with* replacement cost more, because one row may be drawn twice. A formula in circulation overlooks this; the package uses
# m·ln(1 + (e^ε − 1)/n), which Laplace noise attains.

# %% [markdown]
# **Try it.** Print `exact` for `flip = 0.4` and `flip = 0.01`. Which of the two votes tells more, and which is the more private?
