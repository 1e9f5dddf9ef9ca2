"""The tables on which learners are compared, all from scikit-learn, and the peers' recipes. No import of holdfast.

python benchmarks/learn_sets.py 30    accuracy and seconds, as JSON, of diffprivlib and jax-privacy if installed
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

EPSILON, DELTA = 1.0, 1e-6
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def sets(largest: int = 10**5) -> Iterator[tuple[str, Any, Any, Any, Any, float | int]]:
    """(name, features, labels, low, high, test size); bounds of small sets from their own ranges, for all alike.

    The constants of our rule were chosen on the sets that are not called unseen.
    """
    x, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer", x, y, x.min(axis=0) * 0.9, x.max(axis=0) * 1.1 + 1e-9, 0.3
    x, y = load_digits(return_X_y=True)
    yield "digits, even or odd", x, y % 2, 0.0, 16.0, 0.3
    x, y = load_wine(return_X_y=True)
    yield "wine, second kind", x, y == 1, x.min(axis=0) * 0.9, x.max(axis=0) * 1.1, 0.3
    x, y = make_classification(7000, 50, n_informative=10, flip_y=0.05, random_state=2)
    yield "generated, 50 features", x, y, -8.0, 8.0, 2000
    x, y = make_classification(30_000, 10, n_informative=6, flip_y=0.02, weights=[0.8], random_state=3)
    yield "generated, one in five", x, y, -8.0, 8.0, 10_000
    x, y = load_digits(return_X_y=True)
    yield "unseen: digits below five", x, y < 5, 0.0, 16.0, 0.3
    x, y = make_classification(1500, 8, n_informative=4, flip_y=0.05, random_state=13)
    yield "unseen: 8 features", x, y, -8.0, 8.0, 500
    x, y = make_classification(4000, 30, n_informative=8, flip_y=0.05, random_state=11)
    yield "unseen: 30 features", x, y, -8.0, 8.0, 1000
    x, y = make_classification(40_000, 15, n_informative=8, flip_y=0.05, weights=[0.7], random_state=12)
    yield "unseen: 15 features", x, y, -8.0, 8.0, 10_000
    if largest >= 10**5:
        x, y = make_classification(120_000, 20, n_informative=10, flip_y=0.05, random_state=1)
        yield "generated, 20 features", x, y, -8.0, 8.0, 20_000


def splits(x: Any, y: Any, low: Any, high: Any, held: float | int, count: int) -> Iterator[Split]:
    """(rows to fit, rows to test, labels of both), scaled to [-1, 1] and cut there."""
    scaled = np.clip(2 * (x - low) / (high - low) - 1, -1, 1)
    for seed in range(count):
        yield tuple(train_test_split(scaled, np.asarray(y).astype(int), test_size=held, random_state=seed))


def timed(fit_and_score: Callable[[], float]) -> tuple[float, float]:
    """(accuracy, seconds of the processor with one thread): what others do on the machine does not count."""
    with threadpool_limits(1):
        start = time.process_time()
        return float(fit_and_score()), time.process_time() - start


@lru_cache
def budget() -> float:
    """The mu of Gaussian DP that (EPSILON, DELTA) is, exactly."""
    return float(
        brentq(
            lambda m: (
                norm.cdf(-EPSILON / m + m / 2) - math.exp(EPSILON) * norm.cdf(-EPSILON / m - m / 2) - DELTA
            ),
            1e-3,
            5,
        )
    )


def descent(
    rows: np.ndarray, labels: np.ndarray, seed: int, steps: int = 100, rate: float = 2.0
) -> np.ndarray:
    """DP gradient descent as with jax-privacy's clipped_grad: per-row gradients cut at norm 1, full batch, replace-one,
    exact Gaussian accounting, the average of the second half. Noise from a seeded generator of floats."""
    n, mu, draw = len(labels), budget(), np.random.default_rng(1000 + seed)
    design, sign = np.hstack([rows, np.ones((n, 1))]), 2.0 * labels - 1
    cap = 1 / np.linalg.norm(design, axis=1)
    theta, average = np.zeros(design.shape[1]), np.zeros(design.shape[1])
    for t in range(steps):
        slopes = np.minimum(1 / (1 + np.exp(np.clip(sign * (design @ theta), -500, 500))), cap)
        noise = draw.normal(0, 2 * math.sqrt(steps) / mu, len(theta))
        theta = theta + rate * ((slopes * sign) @ design - noise) / n
        if t >= steps // 2:
            average += theta / (steps - steps // 2)
    return average


TUNED = ((20, 2.0), (20, 8.0), (20, 32.0), (100, 2.0), (100, 8.0))
"""What `descent` is tried with where its best on the test rows is told, which no private learner could know."""


@lru_cache(maxsize=2)
def _clipped_step(rate: float) -> Callable[..., Any]:
    """One compiled step of jax-privacy's clipped gradients."""
    import jax
    import jax.numpy as jnp
    import jax_privacy

    gradient = jax_privacy.clipped_grad(
        lambda theta, x, sign: jnp.logaddexp(0.0, -sign * (x @ theta)).mean(),
        l2_clip_norm=1.0,
        batch_argnums=(1, 2),
    )

    @jax.jit
    def step(theta: Any, design: Any, sign: Any, noise: Any) -> Any:
        return theta - rate * (gradient(theta, design, sign) + noise) / len(sign)

    return step


def jax_descent(
    rows: np.ndarray, labels: np.ndarray, seed: int, steps: int = 100, rate: float = 2.0
) -> np.ndarray:
    """`descent` with jax-privacy itself."""
    import jax.numpy as jnp

    draw, step = np.random.default_rng(1000 + seed), _clipped_step(rate)
    design = jnp.asarray(np.hstack([rows, np.ones((len(rows), 1))]), jnp.float32)
    sign, width = jnp.asarray(2.0 * labels - 1, jnp.float32), rows.shape[1] + 1
    theta = average = jnp.zeros(width)
    for t in range(steps):
        noise = jnp.asarray(draw.normal(0, 2 * math.sqrt(steps) / budget(), width), jnp.float32)
        theta = step(theta, design, sign, noise)
        if t >= steps // 2:
            average = average + theta / (steps - steps // 2)
    return np.asarray(average, np.float64)


def right(theta: np.ndarray, rows: np.ndarray, labels: np.ndarray) -> float:
    return float(((rows @ theta[:-1] + theta[-1] > 0) == (labels == 1)).mean())


Scores = list[tuple[float, float]]


def diffprivlib(parts: list[Split]) -> Scores:
    """Its logistic regression, pure epsilon: (accuracy, seconds) of each split, rows cut at norm 1 or not at all,
    whichever is better on the average."""
    import warnings

    from diffprivlib.models import LogisticRegression

    warnings.simplefilter("ignore")
    ways: list[Scores] = [[], []]
    for seed, (rows, fresh, labels, truth) in enumerate(parts):
        for way, cut in enumerate((math.sqrt(rows.shape[1]), 1.0)):
            short, new = (
                x / np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True) / cut) for x in (rows, fresh)
            )
            model = LogisticRegression(epsilon=EPSILON, data_norm=cut, max_iter=1000, random_state=seed)
            ways[way].append(
                timed(lambda m=model, a=short, b=new, y=labels, t=truth: m.fit(a, y).score(b, t))
            )
    return max(ways, key=lambda found: float(np.mean([one for one, _ in found])))


def jax_privacy(parts: list[Split]) -> Scores:
    """DP gradient descent with its clipped gradients: (accuracy, seconds) of each split."""
    return [
        timed(lambda x=x, y=y, f=fresh, t=truth, s=seed: right(jax_descent(x, y, s), f, t))
        for seed, (x, fresh, y, truth) in enumerate(parts)
    ]


PEERS = {"diffprivlib": diffprivlib, "jax-privacy": jax_privacy}


def peers(count: int, largest: int) -> dict[str, dict[str, Scores]]:
    """What each peer that is installed here finds on each set, with its version."""
    from importlib.metadata import version
    from importlib.util import find_spec

    here = [name for name in PEERS if find_spec(name.replace("-", "_"))]
    out: dict[str, dict[str, Scores]] = {}
    for name, *given in sets(largest):
        parts = list(splits(*given, count))
        out[name] = {f"{peer} {version(peer)}": PEERS[peer](parts) for peer in here}
    return out


if __name__ == "__main__":
    print(json.dumps(peers(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10**5)))
