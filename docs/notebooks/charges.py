# %% [markdown]
# # What each kind of answer tells
#
# The leave-out theorem counts what answers tell of the rows, in one unit for all of them. Some answers tell as much as Gaussian ones of the same privacy, some less,
# one nothing at all, and some have no such number.

# %% [markdown]
# **Theorem** (docs/theorems.md, Theorems 24, 26, 27, 29, 31, 54 and 101). A release may stand among the answers of the leave-out theorem with a charge g, if some
# reference law that knows only the rows that were *not* left out predicts it, on average over what is left out, with at most g less in the logarithm (24; 26 for laws that do so on average
# over the answer; 54 for sums of numbers told together). The charges add up over all sessions of a table (31). For a comparison silence is free, and what silence and an alarm say of the population is Theorem 29.

# %%
from math import comb, exp, log

from holdfast.validity import leave_out_charges, leave_out_losses, leave_out_votes, told

# Lemma E of Theorem 24, exactly: of n coins with h heads, n - m stay; how far can the mean of those that stay be from the mean of all?
n, m, rate = 40, 15, 9.0
theta = leave_out_charges.comparison_charge(n, m, rate)
moment = []
for h in range(n + 1):
    chances = {
        x: comb(h, x) * comb(n - h, n - m - x) / comb(n, m) for x in range(max(0, h - m), min(h, n - m) + 1)
    }
    moment.append(log(sum(p * exp(rate * (x / (n - m) - h / n)) for x, p in chances.items())))
assert max(moment) <= theta < 2 * max(moment)

# One answer of each kind with the same zero-concentrated privacy, from 100,000 rows, in Gaussian answers.
n, rho = 100_000, 1e-5
sigma = 1 / (n * (2 * rho) ** 0.5)
gaussian = told.gaussian_told(0.25, sigma)
pure = 2 * rho**0.5  # logistic noise of scale 1/pure has rho = pure^2/4
selection = (8 * rho) ** 0.5  # a selection with range pure has rho = pure^2/8
flip = 1 / 16
votes = round(sigma**-2 / (4 * (1 - 2 * flip) ** 2))  # of the same variance
kinds = {
    "comparison: silence": 0.0,
    "comparison: alarm": told.comparison_told(n, n * selection / 2) / gaussian,
    "logistic noise": 0.5 / (1 / (n * pure)) ** 2 / gaussian,
    "Gaussian noise": 1.0,
    "choice (select)": told.selection_told(n, selection) / gaussian,
    "votes, same variance": told.votes_told(n, votes, flip) / gaussian,
    "quantile (one of its choices)": told.quantile_told(n, selection) / gaussian,
    "histogram of 100 groups": told.gaussian_told(1 - 1 / 100, sigma) / gaussian,
}
for name, much in kinds.items():
    print(f"{name:30} {much:.3f}")
assert kinds["comparison: silence"] == 0 and kinds["histogram of 100 groups"] < 4
assert abs(kinds["logistic noise"] - 1) < 0.01 and 0.9 < kinds["votes, same variance"] < 1.1

# %%
import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4), width_ratios=(1, 1.2))
left.plot(moment, label="exact, for each number of heads")
left.axhline(theta, color="red", linestyle=":", label="charged: θ")
left.set(xlabel="heads among 40 coins, 15 left out", ylabel="ln E exp(λ(mean kept − mean))")
left.legend(fontsize=8)
right.barh(list(kinds), list(kinds.values()))
right.set(xlabel="told, in Gaussian answers of the same privacy")
figure.tight_layout()

# %% [markdown]
# A hundred groups tell less than four numbers do, because a row is in one group only. The logarithm of Laplace noise has a corner, so it has
# no charge of this kind; Theorem 26 covers it on average, at a higher price, and sessions use logistic noise instead.

# %%
scale = 1 / (n * pure)
left_out = 30_000
laplace = leave_out_losses.laplace_loss(n, left_out, scale, hoelder=2.0)
print(
    f"Laplace noise: {laplace * 2 / leave_out_charges.gaussian_charge(n, left_out, sigma):.1f} Gaussian answers"
)
assert laplace * 2 > leave_out_charges.gaussian_charge(n, left_out, sigma)
assert leave_out_votes.vote_charge(n, left_out, flip) * votes < 1.1 * leave_out_charges.gaussian_charge(
    n, left_out, sigma
)

# %% [markdown]
# **Try it.** Set `flip = 1/4`. The votes become many more; does what they tell change?
