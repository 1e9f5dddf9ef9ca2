# %% [markdown]
# # Answers in time that does not grow with the table
#
# A *vote*: draw a row at random, compute one bit, flip it with a known chance, tell it. A few thousand votes answer a question
# within a percent, whether the table has a million rows or a billion, and they are private *and* accurate for the population.

# %% [markdown]
# **Theorem** (docs/theorems.md, Theorems 9 and 27). m votes on rows drawn uniformly from n, each flipped with chance a, have a loss of
# about √m(1 − 2a)/(n√(a(1 − a))) standard deviations, hence next to nothing for large n; and they tell the share within
# √(ln(2/β)/(2m))/(1 − 2a). Neither the rows read nor the width of the sample depends on n.

# %%
import time

import numpy as np

import holdfast as hf

schema = hf.Schema(age=hf.Integer(0, 120))
times, read = [], []
sizes = [100_000, 1_000_000, 4_000_000]
for rows in sizes:
    ages = np.random.default_rng(rows).integers(0, 100, rows, dtype=np.uint8)
    session = hf.open({"age": ages}, schema).session(epsilon=1.0, delta=1e-6, queries=1000, rows=20_000)
    session.fraction("age > 1")  # warm
    start = time.perf_counter()
    for cut in range(20, 40):
        answer = session.fraction(f"age > {cut}")
    times.append((time.perf_counter() - start) / 20)
    read.append(answer.rows_read)
    print(
        f"{rows:>12,} rows: {answer.rows_read:,} read, value {answer.value:.3f} in [{answer.low:.3f}, {answer.high:.3f}]"
    )
assert max(read) <= 20_000

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6, 3))
axes.loglog(sizes, [1e3 * t for t in times], "o-")
axes.set(
    xlabel="rows of the table",
    ylabel="milliseconds an answer",
    title="the time follows the rows read, not the rows",
)

# %% [markdown]
# **Try it.** Leave out `rows=20_000`. All rows are then read, the interval is narrower, and the time follows the table.
