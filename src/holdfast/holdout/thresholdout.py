"""Thresholdout: the training score stands while the holdout agrees with it, by a sparse vector."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from holdfast.check import positive, probability, whole
from holdfast.holdout.left import Left
from holdfast.holdout.metric import GRID
from holdfast.mechanisms.accuracy import gaussian_reach, laplace_reach
from holdfast.mechanisms.gaussian import add_gaussian
from holdfast.mechanisms.sparse_vector import SparseVector
from holdfast.mechanisms.values import round_down
from holdfast.privacy import event, rule
from holdfast.privacy.rounding import up
from holdfast.validity.search import least
from holdfast.validity.transfer import concentrated_term

_SLACK = 1 / 20


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The noise of a Thresholdout, fixed beforehand. `bar` and the noises are in steps of the grid's sum."""

    bar: int
    hits: int
    search_rho: str
    """The loss of the sparse vector, a fraction as text."""
    variance: str
    """Of the Gaussian noise on the holdout values that are released."""
    width: float
    population: float
    rho: float


@lru_cache(maxsize=256)
def thresholds(
    rows: int,
    queries: int,
    beta: float,
    *,
    threshold: float | None = None,
    tolerance: float | None = None,
    hits: int | None = None,
) -> Thresholds:
    """The noise at which the certified width is least, or the noise that `tolerance` asks for.

    Guarantee: with probability 1 - beta, however the models were chosen, every training score that was called
    fine and every holdout value that was released is within `width` of the population's.
    width = max(T + h1 + h2, h3) + slack + alpha_*, where alpha_* is T1° at the loss of everything released,
    and the expected overshoots E(|noise| - h)_+ of all thresholds, questions and values sum to at most
    beta * slack (the common step of docs/theorems.md, with X bounded by h plus its overshoot).
    Requires: T = `threshold` (2/sqrt(n) on the scale of [0,1]), `hits` (10) disagreements at most.
    Reference: Dwork et al. 2015 (Science); docs/theorems.md, Theorem 4. Cost: some 50 allocations, cached.
    """
    mean = 2.0 / math.sqrt(rows) if threshold is None else probability("threshold", threshold)
    bar = math.ceil(mean * rows * GRID)
    most = min(queries, 10) if hits is None else min(queries, whole("hits", hits))
    if tolerance is not None:
        scale = positive("tolerance", tolerance) * rows * GRID
        _, place = least(
            lambda x: abs(math.log(_vector(bar, most, math.exp(x)).allocation.question / scale)),
            -30.0,
            10.0,
            60,
        )
        return _planned(rows, queries, beta, bar, most, math.exp(place), scale * scale)

    def width(log_rho: float) -> float:
        rho = math.exp(log_rho)
        return _planned(rows, queries, beta, bar, most, rho, _share(rho, most)).width

    _, place = least(width, math.log(1e-9), math.log(10.0), 40)
    return _planned(rows, queries, beta, bar, most, math.exp(place), _share(math.exp(place), most))


def open_vector(found: Thresholds) -> str:
    """The secret state of a fresh run, as JSON text."""
    return json.dumps(_vector(found.bar, found.hits, Fraction(found.search_rho)).to_json())


class Asker:
    """Asks a sparse vector whose truth is the secret text; the object is kept only to save its set-up."""

    def __init__(self, found: Thresholds) -> None:
        self._found = found
        self._kept: tuple[str, SparseVector] | None = None

    def ask(self, secret: str, held: int, guess: int) -> tuple[str, int | None]:
        """(the secret state afterwards, None if the guess stands or else the holdout's sum with noise)."""
        if self._kept is not None and self._kept[0] == secret:
            vector = self._kept[1]
        else:
            vector = SparseVector.from_json(json.loads(secret))
        self._kept = None
        above = vector.above(abs(held - guess))
        after = json.dumps(vector.to_json())
        self._kept = after, vector
        if not above:
            return after, None
        noisy = add_gaussian(held, Fraction(self._found.variance))
        assert isinstance(noisy, int)
        return after, noisy


def hits_left(secret: str) -> int:
    """How many more disagreements can be told."""
    return int(json.loads(secret)["secret"]["left"])


def left(secret: str, planned: int) -> Left:
    """What is left of `planned` looks: each may be a disagreement, and after the last of those none is answered."""
    hits = hits_left(secret)
    return Left(min(planned, hits), planned if hits else 0, max(0, hits - 1))


def _share(rho: float, hits: int) -> float:
    """The variance that spends a quarter of the sparse vector's loss on the values."""
    return hits * GRID * GRID / (2.0 * rho / 4.0)


def _vector(bar: int, hits: int, rho: float | Fraction) -> SparseVector:
    return SparseVector(bar, sensitivity=GRID, rho=rho, hits=hits)


def _planned(
    rows: int, queries: int, beta: float, bar: int, hits: int, search_rho: float, variance: float
) -> Thresholds:
    rho, noise = round_down(search_rho), round_down(variance)
    vector = _vector(bar, hits, rho)
    value = rule.zcdp(event.Repeat(event.Gaussian(GRID**2, noise), hits)).rho
    total = float(rule.zcdp(vector.event).rho) + float(value)
    population = concentrated_term(beta, up(total))
    slack = population * _SLACK
    allowance = beta * slack * rows * GRID / 3.0
    redrawn = hits if vector.allocation.redraw else 1
    reach = bar + 1 + laplace_reach(vector.allocation.threshold, allowance / redrawn, True)
    reach += laplace_reach(vector.allocation.question, allowance / queries, True)
    reach = max(reach, gaussian_reach(noise, allowance / hits, True))
    width = up(reach / (rows * GRID) + slack + population)
    return Thresholds(bar, hits, str(rho), str(noise), width, population, total)
