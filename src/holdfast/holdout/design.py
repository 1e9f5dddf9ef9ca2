"""How a holdout will be asked: one mechanism and its noise, fixed beforehand from public numbers."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from holdfast.check import between, one_of, whole
from holdfast.errors import InputError, MechanismError
from holdfast.holdout.checked_guess import plan_from_json, plan_rho, plan_to_json
from holdfast.holdout.metric import GRID
from holdfast.holdout.thresholdout import Thresholds, thresholds
from holdfast.privacy import event, rule
from holdfast.privacy.rounding import up
from holdfast.validity.checked_guesses import GuessPlan, plan_guesses
from holdfast.validity.noise_planner import choose, needs
from holdfast.validity.option import Epoch, Option, Request

MODES = ("votes", "gaussian", "discretised", "guess-and-check", "thresholdout", "guesses")
_PRIVATE, _EITHER = MODES[:2], MODES[:3]
"""What the planner may take by itself: no mode whose number of looks depends on guesses."""
METERED = MODES[:2]
"""The modes of the leave-out theorems: noise falls by places, and a meter says which place comes next."""
_PLANNED = {"votes": "leave-out-votes", "gaussian": "leave-out"}
"""Under which names the planner knows them."""
FLIP = Fraction(1, 16)
EPOCHS = 64
"""In so many epochs noise falls: within half a percent of the finest schedule's width."""
ROUNDED = 1 + 1e-6
"""Charges are sums of floats, rounded up in whatever order they come; this is allowed for in every width."""
EXPECTED = 0.05
"""On how many of the rows two models that are compared differ, where nobody says otherwise."""


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
    """The zCDP loss of all looks together; inf where answers are not private, which `private` says."""
    theorem: str
    """What the width rests on, as docs/theorems.md names it."""
    epochs: tuple[Epoch, ...] = ()
    """Of the metered modes: the noise of every place, in order, in squared steps of the grid or in votes."""
    expect: float = EXPECTED
    """On which share of the rows two models that are compared are thought to differ."""
    cells: int = 0
    failures: int = 0
    """Guess-and-Check: how many guesses may fail before the width can no longer be certified."""
    thresholds: Thresholds | None = None
    guesses: GuessPlan | None = None

    def facts(self) -> dict[str, Any]:
        """For JSON; null for the loss of what is not private."""
        epochs = [[epoch.answers, str(epoch.noise), epoch.left_out] for epoch in self.epochs]
        guesses = None if self.guesses is None else plan_to_json(self.guesses)
        return asdict(self) | {
            "rho": self.rho if self.private else None, "epochs": epochs, "guesses": guesses,
        }  # fmt: skip

    def to_json(self) -> str:
        return json.dumps(self.facts(), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Design:
        parts = json.loads(text)
        saved = parts.pop("thresholds")
        epochs = tuple(Epoch(answers, Fraction(noise), m) for answers, noise, m in parts.pop("epochs"))
        rho = math.inf if parts["rho"] is None else parts["rho"]
        found, kept = None if saved is None else Thresholds(**saved), parts.pop("guesses")
        guesses = None if kept is None else plan_from_json(kept)
        return cls(**parts | {"rho": rho}, epochs=epochs, thresholds=found, guesses=guesses)

    @property
    def metered(self) -> bool:
        """Whether its width is by the leave-out theorems."""
        return self.mode in METERED

    @property
    def votes(self) -> int:
        """How many votes the first look takes; 0 for other modes."""
        return int(self.epochs[0].noise) if self.mode == "votes" else 0

    def sigma(self, epoch: Epoch) -> float:
        """The noise of a plain answer of an epoch, on the scale of a mean in [0,1]."""
        if self.mode == "votes":
            return 1 / (2 * (1 - 2 * float(FLIP)) * math.sqrt(epoch.noise))
        return math.sqrt(epoch.noise) / (GRID * self.rows)

    @property
    def private(self) -> bool:
        """Whether answers are differentially private, one label replaced by any other."""
        return math.isfinite(self.rho)

    @property
    def compared_rho(self) -> float:
        """The zCDP loss of all looks together where each is the costliest of its place: a comparison, or a score."""
        if not self.metered:
            return self.rho
        each = (max(pair_rho(self, epoch), score_rho(self, epoch)) for epoch in self.epochs)
        return up(sum(epoch.answers * one for epoch, one in zip(self.epochs, each, strict=True)))

    @property
    def privacy(self) -> str:
        """In words: the loss of all looks together, which is the sum of theirs (zCDP), or that there is none."""
        if not self.private:
            return "not private: labels can be worked out from the answers"
        most = f", at most {self.compared_rho:.3g} with comparisons" if self.metered else ""
        return f"private: rho {self.rho:.3g} for all looks together{most}"

    def __str__(self) -> str:
        return (
            f"{self.queries:,} looks at {self.rows:,} rows by {self.mode} ({self.theorem}), each within "
            f"{self.width:.4g}, all together with confidence {self.confidence:g}; {self.privacy}"
        )


DIFFERENCE_NOISE, DISAGREEMENT_NOISE = 6.5, 11.0
"""The noises of a pair in units of the place's variance times c: at a disagreement of c it tells what a place may."""
KNOWN_NOISE = 4.0
"""The noise of a difference whose disagreement is known: it tells what a place may."""


def score_rho(plan: Design, epoch: Epoch) -> float:
    """The zCDP loss of one plain answer in a place of an epoch."""
    if plan.mode == "votes":
        return rule.zcdp(event.Votes(plan.rows, int(epoch.noise), FLIP)).rho
    return rule.zcdp(event.Gaussian(GRID**2, epoch.noise)).rho


def pair_rho(plan: Design, epoch: Epoch) -> float:
    """The zCDP loss of the costliest comparison: one label moves a difference by 2/n at most, a disagreement by 1/n."""
    place = 2 * (plan.rows * plan.sigma(epoch)) ** 2 * plan.expect
    return up(
        max(4 / KNOWN_NOISE, 4 / DIFFERENCE_NOISE + 1 / (DISAGREEMENT_NOISE * (1 - plan.expect))) / place
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
    expect: float | None = None,
    alarms: int | None = None,
    answers: int | None = None,
) -> Design:
    """The mechanism and noise for `queries` looks; the narrowest, or for `within` the one that reads least.

    Guarantee: depends on these public numbers only. With `within`: votes if they can certify it, then
    Gaussian noise, then (only with private=False) rounding. Without: whichever certifies the least.
    MechanismError says what could be certified instead. Each of these answers all planned looks, whatever is
    asked. Guess-and-Check and Thresholdout last only while guesses stand, so they are taken by name alone.
    A mode that is not private is taken by its name or with private=False; private=True refuses it.
    mode="guesses" checks guesses: silent checks are free, `alarms` (10) of them may fail, each is answered, and so
    are `answers` looks after that (as many).
    `expect` is on which share of the rows two models that are compared will differ (0.05); less means narrower
    comparisons that cost more privacy.
    """
    asked = Request(rows, queries, confidence, within, GRID, float(FLIP), failures, EPOCHS).checked()
    share = EXPECTED if expect is None else between("expect", expect, 1 / asked.rows, 0.5)
    if mode is not None:
        one_of("mode", mode, MODES)
    _refuse_unused("guess-and-check", mode, failures=failures)
    _refuse_unused("guesses", mode, alarms=alarms, answers=answers)
    _refuse_unused("thresholdout", mode, threshold=threshold, hits=hits)
    if mode != "guesses":
        _refuse_unused("thresholdout", mode, tolerance=tolerance)
    found = None
    if mode == "guesses":
        return _guesses(asked, alarms, answers, tolerance)
    if mode == "thresholdout":
        n, k = asked.rows, asked.queries
        found = thresholds(n, k, asked.beta, threshold=threshold, tolerance=tolerance, hits=hits)
        width = min(1.0, found.width)
        option = Option(asked, mode, "sparse vector", "T1°", width, width, min(found.population, width), n)
    else:
        names = (mode,) if mode is not None else _EITHER if private is False else _PRIVATE
        option = _chosen(tuple(_PLANNED.get(name, name) for name in names), _narrower(asked, mode))
        option = replace(option, request=asked, width=option.width * (ROUNDED if option.epochs else 1.0))
    if private and not option.private:
        raise not_private(option.name)
    if not option.fits and (within is not None or tolerance is None):
        raise MechanismError(_problem(option, mode) + ("" if mode or private else _by_name(asked)))
    return _made_from(option, found, share)


@lru_cache(maxsize=64)
def _chosen(names: tuple[str, ...], asked: Request) -> Option:
    """What the planner takes: a function of public numbers, so the same again for a holdout that is opened again."""
    return choose(names, asked)


def _guesses(asked: Request, alarms: int | None, answers: int | None, tolerance: float | None) -> Design:
    """Guesses that are checked, for so many alarms (10) and as many answers after the last one."""
    bear = min(asked.queries, 10) if alarms is None else whole("alarms", alarms, 1, asked.queries)
    more = bear if answers is None else whole("answers", answers, 0)
    apart = 0.0 if tolerance is None else between("tolerance", tolerance, 0.0, 1.0)
    made = plan_guesses(asked.rows, asked.queries, bear, more, asked.beta, GRID, apart)
    if made is None or (asked.within is not None and made.widest > asked.within):
        least = "nothing" if made is None else f"{made.widest:.4g}"
        raise MechanismError(
            f"{asked.queries:,} looks at {asked.rows:,} rows by guesses with {bear} alarms certify {least}; ask for "
            "fewer alarms or a wider interval, or take gaussian"
        )
    apart = made.widest - made.width(0) / 2
    option = Option(
        asked,
        "guesses",
        "sparse vector",
        "Theorem 55",
        made.widest,
        made.widest,
        apart,
        asked.rows,
        failures=bear,
    )
    return _made_from(option, None, EXPECTED, made)


def _made_from(
    option: Option, found: Thresholds | None, expect: float, guesses: GuessPlan | None = None
) -> Design:
    """The planner's option as a holdout keeps it."""
    asked = option.request
    rho = math.inf if found is None else found.rho
    rho = rho if guesses is None else plan_rho(guesses)
    return Design(
        _mode(option), asked.rows, asked.queries, asked.confidence, option.width, option.population,
        option.rows_per_answer, rho if option.rho is None else up(option.rho), option.theorem, option.epochs,
        expect, option.cells, option.failures, found, guesses,
    )  # fmt: skip


def _narrower(asked: Request, mode: str | None) -> Request:
    """The same with room for `ROUNDED`; Guess-and-Check takes the width that was asked for as it is."""
    if asked.within is None or mode == "guess-and-check":
        return asked
    return replace(asked, within=asked.within / ROUNDED)


def _mode(option: Option) -> str:
    """The mode of a holdout that an option is."""
    return option.mechanism if option.name in _PLANNED.values() else option.name


def not_private(mode: str) -> MechanismError:
    """The refusal of a mode where private answers were asked for."""
    return MechanismError(
        f"mode {mode!r} is not private: labels can be worked out from its answers, one for each look; choose votes "
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
        fewer = f"{best.most_queries:,} looks within {asked.within:g}, or " if best.most_queries else ""
        instead = f", or {fewer}{asked.within:g} from {best.rows_needed} rows on"
    return f"within={asked.within:g} cannot be certified for {looks}: {_mode(best)} certifies {best.width:.4g}{instead}"
