# %% [markdown]
# # Randomized response
#
# Nobody has to be trusted if each person adds the noise. Warner's idea of 1965: answer a sensitive question truthfully with
# a chance p above one half, otherwise lie. A single report says little, many together say a lot.

# %% [markdown]
# **Theorem** (Warner 1965; Dwork et al. 2006). Telling the truth with chance p > 1/2 is ln(p/(1 − p))-differentially private for each person,
# whoever collects the reports. From n reports with a share r of "yes", (r − (1 − p))/(2p − 1) is an unbiased estimate of the true
# share, and its standard deviation is at most 1/(2(2p − 1)√n).

# %%
import numpy as np

from holdfast.local import RandomizedResponse

oracle = RandomizedResponse(truth=0.75)
print("epsilon", round(oracle.epsilon, 4), "= ln(0.75/0.25) =", round(float(np.log(3)), 4))
chance = np.random.default_rng(3)
people = (chance.random(50_000) < 0.12).astype(int)  # 12% would say yes
reports = oracle.randomize(people)
estimate = oracle.estimate(reports)
print(f"share of 'yes' among reports {np.mean(reports):.3f}, estimate {estimate}")

# %% [markdown]
# The price: the error falls as 1/√n of *people*, where a curator's falls as 1/n. Draw both.

# %%
import matplotlib.pyplot as plt

from holdfast.mechanisms import laplace

sizes = [1000, 4000, 16_000, 64_000]
local, central = [], []
for n in sizes:
    bits = (chance.random(n) < 0.12).astype(int)
    truth = bits.mean()
    told = [np.mean(oracle.randomize(bits)) for _ in range(30)]
    local.append(np.mean([abs((t - 0.25) / 0.5 - truth) for t in told]))
    central.append(
        np.mean([abs(int(laplace(int(bits.sum()), epsilon=1.0986)) / n - truth) for _ in range(30)])
    )
figure, axes = plt.subplots(figsize=(6, 3))
axes.loglog(sizes, local, "o-", label="each person adds noise")
axes.loglog(sizes, central, "s-", label="a curator adds noise")
axes.set(xlabel="people", ylabel="mean error of the share", title="epsilon 1.1 both")
axes.legend()
assert local[-1] > 5 * central[-1]

# %% [markdown]
# `holdfast.local` has the stronger oracles for many items (local hashing, Hadamard response, subset selection, sketches) and
# finds heavy hitters; docs/local.md compares them.

# %% [markdown]
# **Try it.** Take `truth=0.55`. Everybody is safer; how many more people does the same error need? The formula says 25 times as many.
