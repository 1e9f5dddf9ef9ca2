"""How a holdout will be asked: one mechanism and its noise, fixed beforehand from public numbers."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from fractions import Fraction

from holdfast.errors import InputError, MechanismError
from holdfast.holdout.metric import GRID
from holdfast.holdout.thresholdout import Thresholds, thresholds
from holdfast.mechanisms.values import round_down
from holdfast.mechanisms.votes import FLIP
from holdfast.privacy import event, rule
from holdfast.privacy.rounding import up
from holdfast.validity.argument import miss, proportion, whole
from holdfast.validity.discretised import discretised
from holdfast.validity.gaussian import gaussian_noise, gaussian_width, population_term
from holdfast.validity.guess_and_check import failure_share, holdout_width
from holdfast.validity.planner import plan
from holdfast.validity.search import most
from holdfast.validity.votes import fewest_votes, votes_noise, votes_term, votes_width

MODES = ("votes", "gaussian", "discretised", "guess-and-check", "thresholdout")
_PRIVATE, _EITHER = MODES[:2], MODES[:3]
"""What the planner may take by itself: no mode whose number of looks depends on guesses."""


@dataclass(frozen=True, slots=True)
class Design:
    """Everything that must agree before the first look. `width` is on the scale of a mean in [0,1]."""

    mode: str
    rows: int
    queries: int
    confidence: float
    width: float
    population: float
    """The part of the width for what adaptive questions can do; the rest is noise and sampling."""
    rows_read: int
    rho: float
    """The zCDP loss of one look; inf where answers are not private, which `private` says."""
    votes: int = 0
    variance: str = "0"
    """Of the Gaussian noise, in squared steps of the grid; a fraction as text."""
    cells: int = 0
    failures: int = 0
    """Guess-and-Check: how many guesses may fail before the width can no longer be certified."""
    thresholds: Thresholds | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Design:
        parts = json.loads(text)
        saved = parts.pop("thresholds")
        return cls(**parts, thresholds=None if saved is None else Thresholds(**saved))

    @property
    def private(self) -> bool:
        """Whether answers are differentially private, one label replaced by any other."""
        return math.isfinite(self.rho)

    @property
    def privacy(self) -> str:
        """In words: the loss of all looks together, which is the sum of theirs (zCDP), or that there is none."""
        if not self.private:
            return "not private: labels can be worked out from the answers"
        return f"private: rho {up(self.queries * self.rho):.3g} for all looks together"

    def __str__(self) -> str:
        return (
            f"{self.queries:,} looks at {self.rows:,} rows by {self.mode}, each within {self.width:.4g}, "
            f"all together with confidence {self.confidence:g}; {self.privacy}"
        )


def design(
    *,
    rows: int,
    queries: int,
    within: float | None = None,
    confidence: float = 0.95,
    mode: str | None = None,
    private: bool | None = None,
    failures: int | None = None,
    threshold: float | None = None,
    tolerance: float | None = None,
    hits: int | None = None,
) -> Design:
    """The mechanism and noise for `queries` looks; the narrowest, or for `within` the one that reads least.

    Guarantee: depends on these public numbers only. With `within`: votes if they can certify it, then
    Gaussian noise, then (only with private=False) rounding. Without: whichever certifies the least.
    MechanismError says what could be certified instead. Each of these answers all planned looks, whatever is
    asked. Guess-and-Check and Thresholdout last only while guesses stand, so they are taken by name alone.
    A mode that is not private is taken by its name or with private=False; private=True refuses it.
    """
    n, k, beta = whole("rows", rows), whole("queries", queries), miss(confidence)
    goal = None if within is None else proportion("within", within)
    if mode is not None and mode not in MODES:
        raise InputError(f"mode must be one of {', '.join(MODES)}, got {mode!r}; or leave it out")
    _refuse_unused("guess-and-check", mode, failures=failures)
    _refuse_unused("thresholdout", mode, threshold=threshold, tolerance=tolerance, hits=hits)
    if mode == "thresholdout":
        chosen = _thresholdout(n, k, beta, confidence, threshold, tolerance, hits)
    else:
        names = (mode,) if mode is not None else _EITHER if private is False else _PRIVATE
        options = [_option(name, n, k, beta, confidence, goal, failures) for name in names]
        fitting = [option for option in options if goal is not None and option.width <= goal]
        chosen = fitting[0] if fitting else min(options, key=lambda option: option.width)
    if private and not chosen.private:
        raise not_private(chosen.mode)
    problem = ""
    if goal is not None and chosen.width > goal:
        problem = _refusal(chosen, goal)
    elif chosen.width >= 1.0 and tolerance is None:
        problem = (
            f"nothing can be certified for {k:,} looks at {n:,} rows by {mode or 'a mode that is not named'}; "
            "ask for fewer looks"
        )
    if problem:
        named = "" if mode is not None or private else _by_name(n, k, beta, confidence, goal)
        raise MechanismError(problem + named)
    return chosen


def not_private(mode: str) -> MechanismError:
    """The refusal of a mode where private answers were asked for."""
    return MechanismError(
        f"mode {mode!r} is not private: labels can be worked out from its answers, one a look; choose votes "
        "or gaussian, or say private=False if that is meant"
    )


def _refuse_unused(owner: str, mode: str | None, **parameters: object) -> None:
    for name, value in parameters.items():
        if value is not None and mode != owner:
            raise InputError(
                f"{name}= is for mode={owner!r}, got mode={mode!r}; name the mode or leave it out"
            )


def _option(
    name: str, n: int, k: int, beta: float, confidence: float, goal: float | None, failures: int | None
) -> Design:
    if name == "votes":
        return _votes(n, k, beta, confidence, goal)
    if name == "gaussian":
        return _gaussian(n, k, beta, confidence, goal)
    if name == "discretised":
        return _discretised(n, k, beta, confidence)
    return _guess_and_check(n, k, beta, confidence, goal, failures)


def _by_name(n: int, k: int, beta: float, confidence: float, goal: float | None) -> str:
    """What could be certified by a mode that somebody must name."""
    for name in ("discretised", "guess-and-check"):
        other = _option(name, n, k, beta, confidence, goal, None)
        if other.width <= (math.nextafter(1.0, 0.0) if goal is None else goal):
            last = f" while at most {other.failures:,} guesses fail" if other.failures else ""
            return f"; mode={name!r} certifies {other.width:.4g}{last}, but is not private"
    return ""


def _refusal(best: Design, goal: float) -> str:
    message = (
        f"within={goal:g} cannot be certified for {best.queries:,} looks at {best.rows:,} rows: "
        f"{best.mode} certifies {best.width:.4g}"
    )
    if best.mode not in ("votes", "gaussian"):
        return message + "; ask for a wider interval or for fewer looks"
    planned = plan(rows=best.rows, queries=best.queries, within=goal, confidence=best.confidence)
    option = next(option for option in planned.options if option.name == best.mode)
    return message + f", or {option.most_queries or 0:,} looks within {goal:g}, or {option.least_rows} rows"


def _votes(n: int, k: int, beta: float, confidence: float, goal: float | None) -> Design:
    a = float(FLIP)
    count = votes_noise(n, k, beta, a)[1]
    if goal is not None:
        count = fewest_votes(n, k, beta, goal, a) or count
    width = votes_width(n, k, beta, count, a)
    term = min(votes_term(n, k * count, a, beta), width)
    rho = rule.zcdp(event.Votes(n, count, FLIP)).rho if n > 1 else math.inf
    return Design("votes", n, k, confidence, width, term, count, float(rho), votes=count)


def _gaussian(n: int, k: int, beta: float, confidence: float, goal: float | None) -> Design:
    """The noise is planned on whole counts; on the finer grid it is worth a little more."""
    width, deviation = gaussian_noise(n, k, beta)
    if goal is not None and width <= goal:
        option = next(
            o
            for o in plan(rows=n, queries=k, within=goal, confidence=confidence).options
            if o.name == "gaussian"
        )
        deviation = option.standard_deviation or deviation
    variance = round_down((min(deviation, 1e9) * GRID) ** 2)
    s = math.sqrt(variance)
    width = gaussian_width(n, k, beta, s, GRID)
    mu = GRID * math.sqrt(k / max(variance - 4, Fraction(1)))
    rho = float(rule.zcdp(event.Gaussian(GRID**2, variance)).rho)
    term = min(population_term(beta, mu), width)
    return Design("gaussian", n, k, confidence, width, term, n, rho, variance=str(variance))


def _discretised(n: int, k: int, beta: float, confidence: float) -> Design:
    width, cells = min(
        (discretised(n, k, beta, c), c) for c in range(2, 4 + 4 * math.ceil(math.log(k + 2.0)))
    )
    return Design("discretised", n, k, confidence, width, width * (1 - 1 / cells), n, math.inf, cells=cells)


def _guess_and_check(
    n: int, k: int, beta: float, confidence: float, goal: float | None, failures: int | None
) -> Design:
    """With `within` as many failures as it can bear; otherwise a width that bears `failures` (20)."""
    last = k - 1
    wanted = min(last, 20) if failures is None else min(last, whole("failures", failures, 0))
    if goal is not None and failures is None:
        # most() counts from 1, and so does the first look, which no failure precedes.
        wanted = max(0, most(lambda f: f <= k and _checked(n, k, beta, f - 1)[0] <= goal) - 1)
    width, cells = _checked(n, k, beta, wanted)
    if goal is not None and width <= goal:
        width = goal
    known = holdout_width(n, failure_share(beta, k, wanted, cells))
    return replace(
        Design("guess-and-check", n, k, confidence, width, min(known, width), n, math.inf),
        cells=cells,
        failures=wanted,
    )


def _checked(n: int, k: int, beta: float, failures: int) -> tuple[float, int]:
    """(width, cells) that bear the k-th look after at most so many failures, at the best number of cells."""
    steps = range(round(math.log(4.0 * n + 4.0) / math.log(1.15)))
    counts = {max(1, round(1.15**j)) for j in steps}
    return min((checked_width(n, beta, k, costliest(beta, k, 0, failures, c), c), c) for c in counts)


def checked_width(n: int, beta: float, look: int, failures: int, cells: int) -> float:
    """The half-width of Guess-and-Check at a look: a failed guess is answered by the centre of a cell."""
    return up(0.5 / cells + holdout_width(n, failure_share(beta, look, failures, cells)))


def costliest(beta: float, look: int, low: int, high: int, cells: int) -> int:
    """The number of failures from `low` to `high` at which the look is widest.

    More failures are not always worse: few placements are left when nearly all guesses failed. The share
    falls and then rises, because C(i-1, f) L^f / c_f is log-concave in f.
    """
    return low + most(
        lambda more: (
            low + more <= high
            and failure_share(beta, look, low + more, cells)
            <= failure_share(beta, look, low + more - 1, cells)
        )
    )


def _thresholdout(
    n: int,
    k: int,
    beta: float,
    confidence: float,
    threshold: float | None,
    tolerance: float | None,
    hits: int | None,
) -> Design:
    found = thresholds(n, k, beta, threshold=threshold, tolerance=tolerance, hits=hits)
    width = min(1.0, found.width)
    term = min(found.population, width)
    return Design("thresholdout", n, k, confidence, width, term, n, found.rho / k, thresholds=found)
