"""How a holdout will be asked: one mechanism and its noise, fixed beforehand from public numbers."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass

from holdfast.check import one_of
from holdfast.errors import InputError, MechanismError
from holdfast.holdout.metric import GRID
from holdfast.holdout.thresholdout import Thresholds, thresholds
from holdfast.privacy import rule
from holdfast.privacy.rounding import up
from holdfast.validity.noise_planner import choose, needs
from holdfast.validity.option import Option, Request

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
    asked = Request(rows, queries, confidence, within, GRID, failures=failures).checked()
    if mode is not None:
        one_of("mode", mode, MODES)
    _refuse_unused("guess-and-check", mode, failures=failures)
    _refuse_unused("thresholdout", mode, threshold=threshold, tolerance=tolerance, hits=hits)
    found = None
    if mode == "thresholdout":
        n, k = asked.rows, asked.queries
        found = thresholds(n, k, asked.beta, threshold=threshold, tolerance=tolerance, hits=hits)
        width = min(1.0, found.width)
        option = Option(asked, mode, "sparse vector", "T1°", width, width, min(found.population, width), n)
    else:
        option = choose((mode,) if mode is not None else _EITHER if private is False else _PRIVATE, asked)
    if private and not option.private:
        raise not_private(option.name)
    if not option.fits and (within is not None or tolerance is None):
        raise MechanismError(_problem(option, mode) + ("" if mode or private else _by_name(asked)))
    return _made_from(option, found)


def _made_from(option: Option, found: Thresholds | None) -> Design:
    """The planner's option as a holdout keeps it."""
    asked, votes = option.request, option.votes or 0
    rho, noise = math.inf if found is None else found.rho / asked.queries, "0"
    if option.epochs:
        (epoch,) = option.epochs
        rho, noise = rule.zcdp(option.told(epoch)).rho, str(epoch.noise)
    return Design(
        option.name, asked.rows, asked.queries, asked.confidence, option.width, option.population,
        option.rows_per_answer, rho, votes, "0" if votes else noise, option.cells, option.failures, found,
    )  # fmt: skip


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
                f"expected mode={owner!r} with {name}=, got mode={mode!r}; name the mode or leave it out"
            )


def _by_name(asked: Request) -> str:
    """What could be certified by a mode that somebody must name."""
    for name in MODES[2:4]:
        other = choose((name,), asked)
        if other.fits:
            last = f" while at most {other.failures:,} guesses fail" if other.failures else ""
            return f"; mode={name!r} certifies {other.width:.4g}{last}, but is not private"
    return ""


def _problem(best: Option, mode: str | None) -> str:
    """Why nothing is designed, and what could be certified instead."""
    asked = best.request
    looks = f"{asked.queries:,} looks at {asked.rows:,} rows"
    if asked.within is None:
        return f"nothing can be certified for {looks} by {mode or 'a mode that is not named'}; ask for fewer looks"
    instead = "; ask for a wider interval or for fewer looks"
    if best.epochs:
        best = needs(best)
        instead = f", or {best.most_queries:,} looks within {asked.within:g}, or {best.rows_needed} rows"
    return f"within={asked.within:g} cannot be certified for {looks}: {best.name} certifies {best.width:.4g}{instead}"
