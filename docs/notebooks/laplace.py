# %% [markdown]
# # Laplace noise
#
# Differential privacy asks that nobody can tell from what was released whether your row was in the table or somebody else's.
# The oldest way to keep that promise: add noise with density proportional to e^(−ε|x|/Δ), where Δ is the most that one row can change.

# %% [markdown]
# **Theorem** (Dwork, McSherry, Nissim, Smith 2006). Let f change by at most Δ when one row is replaced. Telling f(S) plus Laplace
# noise of scale Δ/ε is ε-differentially private: any set of outcomes is at most e^ε times as likely on one table as on its neighbour.
# The error exceeds t with probability at most e^(−εt/Δ).
#
# Two consequences need no mechanism. *Post-processing*: whatever is computed from the answer is as private as the answer.
# *Groups*: replacing g rows changes the chances by at most e^(gε).

# %%
import numpy as np

from holdfast.mechanisms import laplace
from holdfast.privacy import group

epsilon, draws = 0.5, 200_000
here = np.asarray(laplace([100] * draws, epsilon=epsilon))  # a count of 100
there = np.asarray(laplace([101] * draws, epsilon=epsilon))  # the same table with one row replaced
outcomes = np.arange(96, 106)
ratio = np.array([np.mean(here == k) / np.mean(there == k) for k in outcomes])
print("at", outcomes[0], "the ratio is", ratio[0].round(3), "and e^epsilon is", np.exp(epsilon).round(3))
assert np.all(np.abs(np.log(ratio)) < epsilon + 0.15)  # 0.15 for the luck of the draws
far = np.mean(np.abs(here - 100) > 6)
print(f"more than 6 away: {far:.4f}, and at most {np.exp(-6 * epsilon):.4f} by the theorem")
assert far < np.exp(-6 * epsilon)
print("five rows at once: epsilon", group(epsilon, 5))

# %% [markdown]
# The package draws from the *discrete* Laplace law, exactly, from whole random bits: the floating-point version of the textbook leaks
# through the digits that it cannot produce. The bars are what was drawn; their ratio stays between the two red lines everywhere.

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2, figsize=(8, 3))
axes[0].bar(outcomes - 0.2, [np.mean(here == k) for k in outcomes], 0.4, label="count 100")
axes[0].bar(outcomes + 0.2, [np.mean(there == k) for k in outcomes], 0.4, label="count 101")
axes[0].set(xlabel="what is told", ylabel="how often", title="two neighbouring tables")
axes[0].legend()
axes[1].plot(outcomes, np.log(ratio), "o-")
axes[1].axhline(epsilon, color="red", linestyle=":")
axes[1].axhline(-epsilon, color="red", linestyle=":")
axes[1].set(xlabel="what is told", ylabel="log of the ratio", title="the privacy loss")
figure.tight_layout()

# %% [markdown]
# **Try it.** Replace `laplace` by `np.round(100 + np.random.uniform(-3, 3, draws))`. Which outcomes give the table away for certain?
