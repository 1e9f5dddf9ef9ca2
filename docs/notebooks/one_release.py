# %% [markdown]
# # Many statements from one release
#
# Totals that were told once say more than themselves: running totals, every quantile, whether two columns depend on each other, which groups are the largest.
# All of it follows from the same noisy numbers, at no further charge.

# %% [markdown]
# **Theorem** (docs/theorems.md, Theorems 77, 79, 135, 136, 137, 138 and 139). A weighted sum of d noisy totals with weights w is within |w|√(2v ln(2K/β)) of the exact one, for K sums at
# once (135). Told through a square root of the running sum, T running totals have little more noise than one total, not √T times as much (136); all quantiles are read off them (137). A bound on the
# distance from independence is a test of it (77, 138), the largest groups come with a histogram (79), and the number of distinct values moves by at most one (139).

# %%
import numpy as np

import holdfast as hf

chance = np.random.default_rng(136)
rows, days = 100_000, 200
arrived = np.minimum(chance.gamma(3.0, 25.0, rows).astype(int), days - 1)
delay = np.clip(chance.gamma(2.0, 10.0, rows) + arrived / 20, 0, 120)
late = delay > 40
table = hf.open(
    {
        "day": arrived,
        "delay": delay,
        "late": late,
        "carrier": chance.choice(["AA", "DL", "UA"], rows, p=[0.5, 0.3, 0.2]),
    },
    hf.Schema(
        day=hf.Integer(0, days - 1),
        delay=hf.Real(0, 120),
        late=hf.Boolean(),
        carrier=hf.Category("AA", "DL", "UA"),
    ),
)
session = table.session(epsilon=1.0, delta=1e-6, target="table", queries=100)

running = session.count(by="day", cumulative=True)
single = session.histogram("day")
truth = np.cumsum(np.bincount(arrived, minlength=days))
added = np.cumsum(single.value)  # the same charge, added up by hand
print(
    f"largest error: {np.abs(running.value - truth).max():.0f} by the root, {np.abs(added - truth).max():.0f} by adding up"
)
assert np.all((running.low <= truth) & (truth <= running.high))

ranks = [0.1, 0.25, 0.5, 0.75, 0.9]
quantiles = session.quantile("delay", ranks)
exact = np.quantile(delay, ranks)
assert np.all((quantiles.low - 0.5 <= exact) & (exact <= quantiles.high + 0.5))

related = session.independence("late", "floor(day / 50)")
unrelated = session.independence("late", "carrier")
print(
    f"late and day: {related.low:.4f} to {related.high:.4f}; late and carrier: {unrelated.low:.4f} to {unrelated.high:.4f}"
)
assert related.differs and not unrelated.differs

largest = session.top("carrier", 2)
kinds = session.distinct("carrier")
print("the largest groups:", largest.labels, "; different carriers:", kinds.value)
assert list(largest.labels) == ["AA", "DL"] and kinds.low <= 3 <= kinds.high

# %%
import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4))
left.plot(added - truth, label="noisy days, added up")
left.plot(running.value - truth, label="by a square root of the sum (136)")
left.fill_between(
    range(days), running.low - truth, running.high - truth, alpha=0.2, label="its intervals, all at once"
)
left.set(xlabel="day", ylabel="error of the running total, rows")
left.legend(fontsize=8)
right.plot(np.sort(delay)[::100], np.linspace(0, 1, rows // 100), color="grey", label="the delays")
for place, (rank, low, high) in enumerate(zip(ranks, quantiles.low, quantiles.high, strict=True)):
    right.plot(
        [low, high],
        [rank, rank],
        "r",
        linewidth=4,
        label="quantiles, one charge (137)" if place == 0 else None,
    )
right.set(xlabel="delay", ylabel="share at most", xlim=(0, 80))
right.legend(fontsize=8)
figure.tight_layout()

# %% [markdown]
# **Try it.** Ask for two ranks more. What does the list cost now?
