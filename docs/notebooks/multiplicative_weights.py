# %% [markdown]
# # Private multiplicative weights
#
# Answer exponentially many counting questions with one budget. Keep a public guess of the whole table, a weight for each cell.
# For each question, compare privately: is the guess near the truth? If it is, answer with the guess, for nothing. If not, pay
# for a noisy answer and tilt the weights towards it. The relative entropy between table and guess falls with every update, so there are at most about
# ln|X|/α² of them, however many questions there are.

# %% [markdown]
# **Theorem** (Hardt, Rothblum 2010). A guess that is wrong by more than α on a question loses at least α²/4 of its relative entropy
# to the table when it is tilted against the error. The entropy begins at most at ln|X|, so there are at most 4 ln|X|/α² updates,
# and only updates are paid for. The error falls with n like (ln|X|)^(1/4)·√(ln k)/√n, for any number k of questions.
# In a session for the population, docs/theorems.md, Theorems 30, 60, 150 and 280 say what its answers are worth.
# Weights may begin at a synthetic table and stop when the budget is spent (150), and be kept as factors where the cells are too many to list (280).

# %%
import numpy as np

import holdfast as hf

chance = np.random.default_rng(4)
rows = 200_000
a = chance.integers(0, 16, rows)
b = np.clip(a + chance.integers(-3, 4, rows), 0, 15)  # b follows a
table = hf.open({"a": a, "b": b}, hf.Schema(a=hf.Integer(0, 15), b=hf.Integer(0, 15)))
session = table.session(epsilon=2.0, delta=1e-6, target="table")
weights = session.multiplicative_weights(["a", "b"], queries=1000, rho=0.08)

cells = np.histogram2d(a, b, bins=(range(17), range(17)))[0].ravel() / rows  # the truth, to look on
errors, updates, entropy, left = [], [], [], []
for _ in range(300):
    low_a, low_b = chance.integers(0, 12, 2)
    where = f"a >= {low_a} AND b >= {low_b}"
    told = weights.fraction(where)
    truth = np.mean((a >= low_a) & (b >= low_b))
    errors.append(abs(told.value - truth))
    updates.append(weights.updates)
    guess = weights.weights.probabilities()[0].reshape(17, 17)[:16, :16].ravel()  # without NULL
    entropy.append(np.sum(cells[cells > 0] * np.log(cells[cells > 0] / guess[cells > 0])))
    left.append(weights.potential)
print(
    f"300 questions, {weights.updates} updates paid for, largest error {max(errors):.4f}, promised {weights.within:.4f}"
)
assert max(errors) <= weights.within and weights.updates < 60
assert all(e <= p for e, p in zip(entropy, left, strict=True))

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 3, figsize=(11, 3))
axes[0].step(range(300), updates)
axes[0].set(xlabel="question", ylabel="updates so far", title="most answers are free")
axes[1].plot(errors, ".", alpha=0.6)
axes[1].axhline(weights.within, color="red", linestyle=":")
axes[1].set(xlabel="question", ylabel="error", title="and within what was promised")
axes[2].plot(entropy, label="relative entropy (secret)")
axes[2].step(range(300), left, label="what is proved of it (public)")
axes[2].set(xlabel="question", ylabel="nats", title="each update lowers the potential", ylim=(0, None))
axes[2].legend()
figure.tight_layout()

# %% [markdown]
# **A start that was fitted, and a table too wide for cells** (Theorems 150 and 280). From a released synthetic table fewer updates are needed; and 16 columns of 16 values
# are 16^16 cells, of which only the factors of the updates are kept.

# %%
fitted = session.synthesize(["a", "b"], rho=0.01)
begun = session.multiplicative_weights(
    ["a", "b"], queries=1000, within=0.05, start=fitted, stop="when spent", name="begun"
)
wide = {f"c{i}": np.where(chance.random(rows) < 0.5, a, chance.integers(0, 16, rows)) for i in range(16)}
many = hf.open(wide, hf.Schema(**{name: hf.Integer(0, 15) for name in wide}))
factored = many.session(epsilon=2.0, delta=1e-6, target="table").multiplicative_weights(
    list(wide), queries=1000, within=0.08, memory=2**24, stop="when spent"
)
for low in range(2, 14):
    assert (
        abs(begun.fraction(f"a >= {low} AND b >= {low}").value - np.mean((a >= low) & (b >= low)))
        <= begun.within
    )
    told = factored.fraction(f"c0 >= {low} AND c7 >= {low}")
    assert abs(told.value - np.mean((wide["c0"] >= low) & (wide["c7"] >= low))) <= factored.within
print(
    f"updates from a fitted start: {begun.updates}; on {factored.universe.size:.0e} cells: {factored.updates}"
)
assert begun.updates <= weights.updates and factored.universe.size > 2**60

# %% [markdown]
# **Try it.** Make `b` independent of `a`. The uniform guess is nearly right from the beginning: how many updates are left?
