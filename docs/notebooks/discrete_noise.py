# %% [markdown]
# # Noise on whole numbers
#
# Totals are whole numbers, and so is the noise: floating point noise leaves traces in its last digits. Discrete laws need their own proofs, and
# half a step matters.

# %% [markdown]
# **Theorem** (docs/theorems.md, Lemma 7, Theorems 100, 101, 102 and 103). The discrete Gaussian law of variance s² is as private as continuous noise of variance s² − 4 up to a
# factor of 10^−33, and Pr[N ≥ j] ≤ Q((j − ½)/s) for j ≥ 1: the continuous tail *half a step earlier* (Lemma 7). Discrete logistic noise of scale t is purely
# 1/t-private and, in zero-concentrated privacy, as good as Gaussian noise of variance 2t² (100); it tells as little (101), its intervals are as short (102), so that pure sessions
# can be planned like others (103).

# %%
from math import erfc, sqrt

import numpy as np

import holdfast as hf

s = 2.5
places = np.arange(-60, 61)
law = np.exp(-(places**2) / (2 * s * s))
law /= law.sum()
tail = {j: float(law[places >= j].sum()) for j in range(1, 11)}


def normal_tail(x):
    return erfc(x / sqrt(2)) / 2


assert all(tail[j] <= normal_tail((j - 0.5) / s) for j in tail)
assert all(tail[j] > normal_tail(j / s) for j in range(1, 7))  # without the half step it is false
assert law[places >= 0].sum() > normal_tail(-0.5 / s)  # and at j = 0 it would be false

t = 4.0
bell = 1 / np.cosh(places / (2 * t)) ** 2
bell /= bell.sum()
loss = np.log(bell[:-1] / bell[1:])
print(
    f"logistic noise of scale {t}: one row moves the log of a chance by {np.abs(loss).max():.4f}, at most 1/t = {1 / t}"
)
assert np.abs(loss).max() <= 1 / t
renyi = {
    order: float(np.log(np.sum(bell[1:] ** order * bell[:-1] ** (1 - order))) / (order - 1))
    for order in (1.5, 2, 5, 20)
}
assert all(divergence <= order / (4 * t * t) for order, divergence in renyi.items())

# %%
import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4))
left.semilogy(list(tail), list(tail.values()), "o", label="discrete Gaussian, exact")
left.semilogy(list(tail), [normal_tail((j - 0.5) / s) for j in tail], label="half a step earlier: a bound")
left.semilogy(list(tail), [normal_tail(j / s) for j in tail], "--", label="without it: false")
left.set(xlabel="j", ylabel="Pr[N ≥ j]", title=f"s = {s}")
left.legend(fontsize=8)
plans = {"epsilon and delta": [], "pure epsilon": []}
asked = [10, 30, 100, 300]
for k in asked:
    for name, terms in (("epsilon and delta", {"delta": 1e-6}), ("pure epsilon", {})):
        rows = {"x": np.zeros(100_000, dtype=int)}
        session = hf.open(rows, hf.Schema(x=hf.Integer(0, 1))).session(epsilon=1.0, queries=k, **terms)
        plans[name].append(session.estimate.fraction("x = 1").width)
for name, widths in plans.items():
    right.loglog(asked, widths, label=name)
right.set(xlabel="planned answers, 100,000 rows, epsilon 1", ylabel="half-width of each")
right.legend(fontsize=8)
assert all(a < b < 3 * a for a, b in zip(*plans.values(), strict=True))
figure.tight_layout()

# %% [markdown]
# **Try it.** Take `s = 1.0`. Does the tail bound still hold? (It is proved for s > 2, and sessions never use less.)
