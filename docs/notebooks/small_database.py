# %% [markdown]
# # Synthetic data by a small database (BLR)
#
# Blum, Ligett and Roth: for any list of counting questions there is a *small* database, of about ln|Q|/α² rows, that answers all
# of them within α: a random sample of the true one does. So choose a small database by the exponential mechanism, with the
# largest error over the list as the (negative) score. It takes exponential time, and on a small universe it can be run.

# %% [markdown]
# **Theorem** (Blum, Ligett, Roth 2008). Draw a database of m = ⌈ln|Q|/α²⌉ rows with chance proportional to e^(−ε·n·error/2), where
# the error is the largest over the questions in Q. That is ε-differentially private. With probability 1 − β the error is at most
# 2α once n is at least about (m·ln|X| + ln(1/β))/(εα): logarithmic in the number of questions.

# %%
import numpy as np

import holdfast as hf

chance = np.random.default_rng(5)
rows = 50_000
columns = {
    "smoker": chance.choice(["no", "yes"], rows, p=[0.8, 0.2]),
    "old": chance.choice(["no", "yes"], rows, p=[0.6, 0.4]),
}
schema = hf.Schema(smoker=hf.Category("no", "yes"), old=hf.Category("no", "yes"))
session = hf.open(columns, schema).session(epsilon=2.0, target="table")
questions = [
    "smoker = 'yes'",
    "old = 'yes'",
    "smoker = 'yes' AND old = 'yes'",
    "smoker = 'no' AND old = 'no'",
]
made = session.synthesize(["smoker", "old"], questions, method="small-database", epsilon=1.0, size=14)
print(made.explanation)

smoker, old = columns["smoker"] == "yes", columns["old"] == "yes"
truths = [smoker.mean(), old.mean(), (smoker & old).mean(), (~smoker & ~old).mean()]
told = [float(made.fraction(question)) for question in questions]
for question, truth, value in zip(questions, truths, told, strict=True):
    print(f"{question:32} true {truth:.3f}  made {value:.3f}")
assert max(abs(t - v) for t, v in zip(truths, told, strict=True)) < 0.1

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6, 3))
axes.bar(np.arange(4) - 0.2, truths, 0.4, label="50,000 rows")
axes.bar(np.arange(4) + 0.2, told, 0.4, label="14 made rows")
axes.set(xticks=range(4), xticklabels=["s", "o", "s and o", "neither"], ylabel="share")
axes.legend()

# %% [markdown]
# **Try it.** Set `size=3`. Which share can three rows not show? Then `size=14` with `epsilon=0.001`: what does the mechanism choose when privacy leaves it nothing to go by?
