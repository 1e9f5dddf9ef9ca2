# %% [markdown]
# # What a learner may claim
#
# A learner in a session is an analyst like any other: its class, its loss and its features may have been chosen by earlier answers. A union bound over the class is
# then false, and what it may claim is a statement about one chosen statistic.

# %% [markdown]
# **Theorem** (docs/theorems.md, Theorems 21, 43, 44, 45 and 260). Whoever chose the class and by which answers, the error that a learner reports is within the noise and the width of *one* adaptive answer of
# the population's (21 by transfer, 43 by leaving rows out), and no union over the class is needed. A noisy gradient bounds how far a convex fit is from the best (44), the mean of all gradients on the way
# does so better (260), and noisy second moments bound the distance to the least squares fit (45).

# %%
import numpy as np

import holdfast as hf
from holdfast import learn

chance = np.random.default_rng(43)


def attacked(n=4000, features=300):
    """Ask how often each coin agrees with a label that is a coin; then put the vote of all of them into a class of one."""
    coins, label = chance.integers(0, 2, (n, features)), chance.integers(0, 2, n)
    exact = np.sign((coins == label[:, None]).mean(axis=0) - 0.5)
    vote = ((2 * coins - 1) @ exact > 0).astype(int)
    return float(np.mean(vote != label)), n


found = [attacked() for _ in range(20)]
union = [
    error + np.sqrt(np.log(40) / (2 * n)) for error, n in found
]  # Hoeffding for one rule, as if it were fixed
print(f"after exact answers a bound for a fixed rule says at most {max(union):.3f}; the truth is 0.500")
assert max(union) < 0.5  # false in every run

rows = 50_000
x = chance.random(rows)
sick = (x >= 0.37) ^ (chance.random(rows) < 0.05)
session = hf.open({"x": x, "sick": sick}, hf.Schema(x=hf.Real(0, 1), sick=hf.Boolean())).session(
    rho=0.2, delta=1e-6, queries=60
)
edges = [session.fraction(f"sick AND x < {t / 10}") for t in range(1, 10)]  # answers that choose the class
near = max(range(1, 9), key=lambda t: edges[t].value - 2 * edges[t - 1].value if t > 2 else -1.0) / 10
rules = learn.FiniteClass(learn.Thresholds(np.linspace(max(near - 0.2, 0), near + 0.2, 81)))
told = rules.learn_in(session, ["x"], "sick", epsilon=0.3)
print(told)
assert told.error_bound > 0.05  # the true error of the best rule

# %% [markdown]
# **Certificates of fits** (Theorems 44, 45 and 260). They are computed from what was released alone. Here they stand beside what they bound, which only the owner can see.

# %%
import matplotlib.pyplot as plt
from scipy.optimize import minimize

steps, beta, sizes, fits, squares = 60, 0.05, [5_000, 20_000, 80_000], [], []
for n in sizes:
    points = np.c_[chance.uniform(-1, 1, (n, 3)), np.ones(n)]
    sign = np.where(chance.random(n) < 1 / (1 + np.exp(-2 * points.sum(axis=1))), 1, -1)
    sigma, theta, ways, gradients = 40 / n, np.zeros(4), [], []  # noise on each coordinate of a mean gradient
    for _ in range(steps):
        gradient = -(points.T @ (sign / (1 + np.exp(sign * (points @ theta))))) / n + chance.normal(
            0, sigma, 4
        )
        ways.append(theta)
        gradients.append(gradient)
        theta = theta - 2 * gradient
    fit, mean = np.mean(ways[steps // 2 :], axis=0), np.mean(gradients[steps // 2 :], axis=0)
    length, reach, log_miss, told = (
        2 * np.linalg.norm(fit),
        4**0.5 + (2 * np.log(2 / beta)) ** 0.5,
        np.log(2 / beta),
        steps // 2,
    )
    squared = sum(way @ way for way in ways[told:])
    inner = sum(g @ way for g, way in zip(gradients[told:], ways[told:], strict=True)) / told
    by_all = inner + length * (np.linalg.norm(mean) + sigma * reach / told**0.5)
    by_all += (
        sigma / told * np.sqrt((squared + told) * (2 * log_miss + np.log(1 + squared / told)))
    )  # Theorem 260
    by_last = (
        (np.linalg.norm(gradients[-1]) + sigma * reach) * 3 * np.linalg.norm(ways[-1])
    )  # Theorem 44, of the last point

    def loss(theta, points=points, sign=sign):
        return np.logaddexp(0, -sign * (points @ theta)).mean()

    least = minimize(loss, fit).fun
    assert loss(ways[-1]) - least <= by_last
    fits.append((loss(fit) - least, by_all, by_last))
    target = np.clip(points[:, :3] @ [0.5, -0.3, 0.1] + chance.normal(0, 0.1, n), -2, 2)
    line = learn.PrivateLinearRegression(epsilon=1.0, bounds=([-1] * 3, [1] * 3), target_bounds=(-2, 2))
    line.fit(points[:, :3], target)
    best = np.linalg.lstsq(points, target, rcond=None)[0][:3]
    squares.append((np.abs(line.coef_ - best).max(), float(np.max(line.coef_certified_))))
print([" <= ".join(f"{number:.4f}" for number in row) for row in (*fits, *squares)])
assert all(0 <= true <= by_all <= by_last for true, by_all, by_last in fits)
assert all(true <= certified for true, certified in squares)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.2))
for place, rows_of, names, title in (
    (
        left,
        fits,
        ("true", "from all gradients (260)", "from the last one (44)"),
        "logistic fit: loss above the best",
    ),
    (right, squares, ("true", "certified (45)"), "least squares: largest error of a slope"),
):
    for name, numbers in zip(names, zip(*rows_of, strict=True), strict=True):
        place.loglog(sizes, np.maximum(numbers, 1e-6), "o-", label=name)
    place.set(xlabel="rows", title=title)
    place.legend(fontsize=8)
figure.tight_layout()

# %% [markdown]
# **Try it.** Make the noise ten times smaller. Which part of the certificate is left, and is it true that the loss could still fall?
