"""A lower bound on epsilon, from running a mechanism many times on two neighbouring inputs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.audit.binomial import loss_bound
from holdfast.audit.outputs import Outputs
from holdfast.audit.score import Score, scores
from holdfast.check import between, integer, probability, refusal
from holdfast.errors import InputError

LEAST_RUNS = 40
_THRESHOLDS = 400


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found.

    `epsilon_lower` is below the true epsilon (at this delta) with probability `confidence`. `event` is what
    told the inputs apart; of `tested` runs on each input that were not used to find it, it happened `hits`
    times on the input under which it is likelier (`likelier`, "first" or "second") and `other_hits` times on
    the other. `runs` counts all runs on each input.
    """

    epsilon_lower: float
    delta: float
    confidence: float
    event: str
    likelier: str
    hits: int
    other_hits: int
    tested: int
    runs: int

    def violates(self, epsilon: float) -> bool:
        """Whether a claim of this epsilon is refuted."""
        return self.epsilon_lower > epsilon

    def __str__(self) -> str:
        extra = f" at delta {self.delta:g}" if self.delta else ""
        miss = 1.0 - self.confidence
        sure = f"{self.confidence:g}" if miss > 1e-4 else f"1 - {miss:.0e}"
        return (
            f"epsilon >= {self.epsilon_lower:.4f}{extra} (confidence {sure}): {self.event}, "
            f"{self.hits} against {self.other_hits} of {self.tested} runs, likelier on the "
            f"{self.likelier} input"
        )


@dataclass(frozen=True, slots=True)
class _Event:
    score: Score
    threshold: float
    likelier: str
    promise: float

    def hits(self, outputs: Outputs) -> int:
        return int(np.count_nonzero(self.score.apply(outputs) >= self.threshold))

    def __str__(self) -> str:
        return f"{self.score.name} >= {self.threshold + 0.0:.6g}"


def epsilon_lower_bound(
    mechanism: Callable[[Any], Hashable] | None,
    first: Any,
    second: Any,
    *,
    runs: int,
    confidence: float = 0.95,
    delta: float = 0.0,
    many: Callable[[Any, int], Sequence[Any] | NDArray[Any]] | None = None,
) -> Audit:
    """Run a mechanism `runs` times on each of two neighbouring inputs and bound its epsilon from below.

    `mechanism` gives one hashable output (a number, a string, a tuple) for an input; `many(input, runs)`
    gives all of them at once, in a list, a vector, or a matrix with one output in each row.

    Guarantee: with probability at least `confidence`, no (epsilon, delta)-DP mechanism has
    epsilon < epsilon_lower. Events are learnt on the first quarter of the runs, one is chosen on the second
    quarter, and only that one is tested on the other half: Pr[E] >= p and Pr'[E] <= q, each by an exact
    binomial limit, give epsilon >= ln((p - delta)/q).
    Requires: the runs are independent; `mechanism` draws fresh noise each time.
    Reference: Clopper and Pearson 1934; Ding et al. 2018 and Bichsel et al. 2021 (DP-Sniper) for the method.
    Cost: 2 * runs calls of the mechanism.
    """
    _check(mechanism, many, runs, confidence, delta)
    here = _run(mechanism, many, first, runs)
    there = _run(mechanism, many, second, runs)
    fitted, chosen = runs // 4, runs // 2
    miss = (1.0 - confidence) / 2.0
    event = _best(
        scores(here.part(0, fitted), there.part(0, fitted)),
        scores(there.part(0, fitted), here.part(0, fitted)),
        here.part(fitted, chosen),
        there.part(fitted, chosen),
        miss,
        delta,
    )
    tested = runs - chosen
    pair = here.part(chosen, runs), there.part(chosen, runs)
    likely, unlikely = pair if event.likelier == "first" else pair[::-1]
    hits, other_hits = event.hits(likely), event.hits(unlikely)
    bound = float(loss_bound(hits, other_hits, tested, miss, delta))
    return Audit(
        max(0.0, bound), delta, confidence, str(event), event.likelier, hits, other_hits, tested, runs
    )


def _best(
    forward: Iterable[Score],
    backward: Iterable[Score],
    here: Outputs,
    there: Outputs,
    miss: float,
    delta: float,
) -> _Event:
    """The event that promises most on runs which the scores have not seen."""
    candidates = [_threshold(score, here, there, "first", miss, delta) for score in forward]
    candidates += [_threshold(score, there, here, "second", miss, delta) for score in backward]
    return max(candidates, key=lambda event: event.promise)


def _threshold(
    score: Score, likely: Outputs, unlikely: Outputs, likelier: str, miss: float, delta: float
) -> _Event:
    high, low = np.sort(score.apply(likely)), np.sort(score.apply(unlikely))
    levels = np.unique(np.concatenate([high, low]))
    if len(levels) > _THRESHOLDS:
        # Half of the candidates lie in the upper tail, where the ratio of a private mechanism is decided.
        ranks = np.concatenate(
            [np.linspace(0, 1, _THRESHOLDS // 2), 1 - np.geomspace(1 / len(levels), 1, _THRESHOLDS // 2)]
        )
        levels = levels[np.unique((np.clip(ranks, 0, 1) * (len(levels) - 1)).astype(int))]
    hits = len(high) - np.searchsorted(high, levels)
    other_hits = len(low) - np.searchsorted(low, levels)
    promises = loss_bound(hits, other_hits, len(high), miss, delta)
    best = int(np.argmax(promises))
    return _Event(score, float(levels[best]), likelier, float(promises[best]))


def _run(
    mechanism: Callable[[Any], Hashable] | None,
    many: Callable[[Any, int], Sequence[Any] | NDArray[Any]] | None,
    value: Any,
    runs: int,
) -> Outputs:
    if many is not None:
        outputs = Outputs.of(many(value, runs))
    else:
        assert mechanism is not None
        outputs = Outputs.of([mechanism(value) for _ in range(runs)])
    if len(outputs) != runs:
        raise InputError(
            f"expected {runs} outputs, got {len(outputs)}; many(input, runs) returns one for each run"
        )
    return outputs


def _check(mechanism: object, many: object, runs: object, confidence: object, delta: object) -> None:
    if not callable(many if mechanism is None else mechanism) or (many is not None and not callable(many)):
        raise InputError("expected a function input -> output, or many=(input, runs) -> outputs, got neither")
    integer("runs", runs, LEAST_RUNS, hint="ten thousand are usual")
    probability("confidence", confidence, hint="0.95 is usual")
    if between("delta", delta, 0.0, 1.0) == 1.0:
        raise refusal("less than 1", "delta", delta, "leave it out for pure epsilon")
