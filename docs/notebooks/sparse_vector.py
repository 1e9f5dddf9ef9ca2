# %% [markdown]
# # The sparse vector technique
#
# Ask thousands of yes-or-no questions, "is this value above the threshold?", and pay only for the answers that are *yes*.
# The trick is one secret noise on the threshold for all questions, and fresh noise on each value.

# %% [markdown]
# **Theorem** (Dwork, Naor, Reingold, Rothblum, Vadhan 2009; Theorem 3.24 in Dwork and Roth 2014). Let neighbouring tables move
# each value by at most one. Stopped after c alarms, the sparse vector is ε-differentially private, however many questions were
# asked. With probability 1 − β every alarm of k questions is for a value above T − α and every silence for one below T + α,
# with α = 8c(ln k + ln(2c/β))/ε.

# %%
import numpy as np

from holdfast.mechanisms import SparseVector

chance = np.random.default_rng(1)
values = chance.integers(0, 400, 2000)  # counts of a table: 2000 questions
values[[300, 900, 1500]] = 2000  # three of them are large

vector = SparseVector(1000, epsilon=1.0, hits=3)
found = []
for place, value in enumerate(values):
    if vector.above(int(value)):
        found.append(place)
    if vector.halted:
        break
print("alarms at", found, "after", vector.asked, "questions; epsilon", vector.event.epsilon)
assert found == [300, 900, 1500]

# %% [markdown]
# The privacy loss is that of three alarms, not of 1501 questions: a quiet answer is free. To see why, draw the chance of an
# alarm for two neighbouring tables, whose counts differ by one. With the secret threshold noise fixed, moving *all* values
# up by one is the same as moving the threshold down by one. So one change of the threshold's noise, by one, hides the change
# in all quiet answers at once.

# %%
import matplotlib.pyplot as plt

runs = 600
counts = np.arange(700, 1301, 50)
rates = [
    np.mean([SparseVector(1000, epsilon=0.1, hits=1).above(int(c)) for _ in range(runs)]) for c in counts
]
figure, axes = plt.subplots(figsize=(6, 3))
axes.plot(counts, rates, "o-")
axes.axvline(1000, color="grey", linestyle=":")
axes.set(xlabel="true count (threshold 1000)", ylabel="chance of an alarm", title="epsilon 0.1")
assert rates[0] < 0.05 and rates[-1] > 0.95

# %% [markdown]
# **Two ways to get it wrong.** Drawing the threshold's noise anew after an alarm *and charging nothing for it*, or telling the
# noisy value of an alarm without paying for it, are the mistakes that published versions have made. The auditor of this
# package plants both and catches them: `holdfast audit`.
#
# In a session the same technique is `session.sparse_vector(threshold=0.3, hits=10)`, and its answers come with an interval
# for the population (Theorem 32).

# %% [markdown]
# **Try it.** Ask for `hits=30` with the same epsilon. Each alarm now has a thirtieth of the budget: at which threshold do the three alarms still stand out?
