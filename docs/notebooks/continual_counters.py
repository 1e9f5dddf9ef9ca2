# %% [markdown]
# # Counting while the data arrive
#
# How many visits so far? Asked after every arrival, a counter that adds fresh noise each time pays for every arrival again. Two
# old ideas make the price grow only with the *logarithm* of the time.

# %% [markdown]
# **Theorem** (tree: Dwork, Naor, Pitassi, Rothblum 2010 and Chan, Shi, Song 2010; square root: Fichtenberger, Henzinger, Upadhyay 2023; whole numbers: docs/stream.md).
# Every arrival lies in ⌈log₂ T⌉ + 1 blocks of a binary tree and every total is a sum of as many: noise on the blocks is enough. Noise that is
# shared among the totals in proportion to (1 − y)^(−1/2) has at worst a
# standard deviation of about ((ln T)/π + 1.07)/√(2ρ), a third or less of the tree's.

# %%
import numpy as np

from holdfast.stream import Counter

arrivals = (np.random.default_rng(3).random(4096) < 0.3).astype(int).tolist()
errors = {}
for method in ("tree", "sqrt"):
    counter, truth, error = Counter(4096, rho=0.5, method=method), 0, []
    for time, bit in enumerate(arrivals):
        counter.add(bit)
        truth += bit
        error.append(counter.total() - truth)
        if time % 256 == 0:
            assert abs(error[-1]) < counter.half_width(1e-9)
    errors[method] = np.array(error)
    print(
        f"{method}: the errors have a standard deviation of {errors[method].std():.1f}, the largest is {np.abs(error).max()}"
    )
fresh = np.sqrt(4096 / (2 * 0.5))  # rho 0.5 shared among 4096 totals
print(f"fresh noise for every total would have the standard deviation {fresh:.0f}")
assert max(error.std() for error in errors.values()) < fresh / 2

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2, figsize=(9, 3))
for name, error in errors.items():
    axes[0].plot(error, label=name, linewidth=0.8)
axes[0].set(xlabel="arrivals", ylabel="error of the total", title="4096 arrivals, rho 0.5")
axes[0].legend()
powers = np.arange(4, 17)
f = np.cumprod([1.0, *(1 - 1 / (2 * np.arange(1, 2**16)))])  # f(k) of docs/stream.md
worst = {
    "tree": np.sqrt((powers + 1) * powers),
    "sqrt": np.cumsum(f**2)[2**powers - 1],
    "fresh noise": np.sqrt(2.0**powers),
}
assert worst["sqrt"][-1] < worst["tree"][-1] / 3 < worst["fresh noise"][-1] / 30
for name, values in worst.items():
    axes[1].semilogx(2.0**powers, values, "o-", label=name, base=2)
axes[1].set(
    xlabel="arrivals at most", ylabel="standard deviation", title="the worst total, rho 0.5", ylim=(0, 30)
)
axes[1].legend()
figure.tight_layout()

# %% [markdown]
# **Try it.** The square-root counter draws its noise once and keeps it. Draw fresh noise for each total instead and average neighbouring
# totals over a stretch without arrivals: what is left of the noise?
