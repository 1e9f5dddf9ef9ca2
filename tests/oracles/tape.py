"""What a release did to its rows: every secret that met randomness, in order, and the same release on other rows.

Between the rows and whoever asks stand a few *doors*: noise that is added, a choice, a vote, a comparison with a
noisy threshold, the draw of some rows. While `doors()` are open every call of them goes to the tape that plays.

A tape that *records* lets each door say something (no matter how likely: a law holds on every path) and keeps what
the door was shown. A tape that *replays* another makes every door say the same again, and keeps what it was shown
this time. So two tapes hold, step by step, what two tables show to the same doors after the same public past.

A release that passes its doors in another order on the neighbour, or whose answer differs although every door said
the same, has let something out beside the doors. Coins that are drawn for anything else are repeated too.
"""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np

from holdfast.data.frame import FrameSource
from holdfast.data.unit_source import UnitSource
from holdfast.mechanisms import selection
from holdfast.mechanisms.flips import flips
from holdfast.mechanisms.sparse_vector import SparseVector
from holdfast.mechanisms.sparse_vector_terms import units as in_units
from holdfast.mechanisms.votes import FLIP, vote, votes
from holdfast.noise import bits, choice, gaussian, laplace, logistic, subset

ROOMS = (
    "noise",
    "mechanisms",
    "data",
    "desk",
    "planning",
    "session",
    "weights",
    "optimize",
    "synthesis",
    "learn",
    "holdout",
)
"""Through which the answers of sessions and holdouts go."""
DOORS = frozenset(
    (
        "laplace",
        "gaussian",
        "choice",
        "smoothed",
        "permute-and-flip",
        "votes",
        "rows",
        "threshold",
        "above",
        "coin",
        "logistic",
        "logistic-sum",
    )
)
_FAR = 1 << 300


class LawBroken(AssertionError):
    """A release did something that no door of the house accounts for."""


@dataclass(frozen=True)
class Step:
    """One passage. `public` is what the neighbour must share, `secret` what the door was shown, `said` what left."""

    door: str
    public: tuple[Any, ...]
    secret: Any
    said: Any


@dataclass
class Tape:
    """`script` is the tape to repeat; `answers` is what comparisons say; `only_row` is fetched wherever rows are."""

    script: Tape | None = None
    answers: Sequence[bool] = ()
    only_row: int | None = None
    seed: int = 0
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = np.random.default_rng(self.seed)
        self.inside = False
        """Whether a door is at work, whose own coins are not a matter of the tape."""
        self._drawn: list[tuple[str, int, Any]] = []
        self._compared = 0
        self._comparison: list[Any] | None = None

    def passed(self, door: str, public: tuple[Any, ...], secret: Any, say: Callable[[], Any]) -> Any:
        """Go through a door, which says what the script says, or something new."""
        said = say() if self.script is None else self._scripted(len(self.steps), door).said
        self.steps.append(Step(door, public, secret, said))
        self._same_terms(len(self.steps) - 1)
        return said

    def noise(self, law: str, parameter: Fraction | int, size: int | None) -> Any:
        """Noise for a sum; inside a sparse vector the number that decides its comparison as it shall be."""
        if self._comparison is not None:
            self._comparison.append((law, Fraction(parameter)))
            return self._comparison[0]
        reach = 1 + (math.isqrt(math.ceil(parameter)) if law == "gaussian" else parameter)
        return Noise(
            self, law, Fraction(parameter), self.chance.integers(-3, 4, size=size) * math.ceil(reach)
        )

    def exceeded(self, distance: int, scale: Fraction | int) -> bool:
        """A comparison with logistic noise: inside a sparse vector it decides as it shall be, outside it
        is a door of its own."""
        if self._comparison is None:
            said = self.passed(
                "logistic", (Fraction(scale),), distance, lambda: bool(self.chance.integers(2))
            )
            return bool(said)
        self._comparison.append(("logistic", Fraction(scale)))
        return bool(self._comparison[0] > 0)

    def threshold(self, draw: Callable[[], None]) -> None:
        """A sparse vector draws its threshold: no noise is taken, the law of the threshold is known."""
        laws = self._comparing(0, draw)[1]
        self.passed("threshold", laws, None, lambda: 0)

    def compared(self, vector: SparseVector, units: int, compare: Callable[[], bool]) -> bool:
        """One question to a sparse vector, answered as the script or the pattern wants it."""
        place = len(self.steps)
        if self.script is None:
            wanted = self._compared < len(self.answers) and self.answers[self._compared]
            self._compared += 1
        else:
            wanted = self._scripted(place, "above").said
        # A hit may draw a fresh threshold, which is a step after this one.
        self.steps.append(Step("above", (), units, wanted))
        said, laws = self._comparing(_FAR if wanted else -_FAR, compare)
        if said != wanted:
            raise LawBroken("a comparison with a threshold does not heed its noise")
        level = in_units(vector.terms.threshold, vector.terms.step)
        self.steps[place] = Step("above", (laws, level), units, wanted)
        self._same_terms(place)
        return said

    def ids(self, law: str, of: int, count: int) -> Any:
        """Row numbers of a known law."""
        fresh = (
            self.chance.permutation(of)[:count] if law == "without" else self.chance.integers(0, of, count)
        )
        self._drawn.append((law, of, fresh))
        return fresh

    def coin(self, name: str, arguments: tuple[Any, ...], draw: Callable[[], Any]) -> Any:
        """A draw that is for no door; one below the number of rows may be for one row."""
        if self.inside:
            return draw()
        said = self.passed("coin", (name, *arguments), None, draw)
        if name == "below":
            self._drawn.append(("with", arguments[0], np.array([said])))
        return said

    def fetched(self, rows: int, ids: Any) -> Any:
        """Rows are read by number: which law chose them? The draw must be over all rows, and unchanged."""
        for law, of, fresh in reversed(self._drawn):
            whole = fresh is ids or ids.base is fresh or (fresh.size == 1 and np.array_equal(fresh, ids))
            if of == rows and whole and len(ids) == len(fresh):
                said = self.passed("rows", (law, len(ids), of), None, lambda: np.array(ids))
                return said if self.only_row is None else np.full(len(ids), self.only_row)
        raise LawBroken("rows were read whose numbers are of unknown law")

    def end(self) -> None:
        """The release is over."""
        if self.script is not None and len(self.steps) != len(self.script.steps):
            raise LawBroken("the neighbour did not come to every door")

    def _comparing(self, number: int, act: Callable[[], Any]) -> tuple[Any, tuple[Any, ...]]:
        """What the act returns, and the laws of all noise that it took, each draw being `number`."""
        around, self._comparison = self._comparison, [number]
        try:
            said = act()
            return said, tuple(self._comparison[1:])
        finally:
            self._comparison = around

    def _scripted(self, place: int, door: str) -> Step:
        assert self.script is not None
        if place >= len(self.script.steps) or self.script.steps[place].door != door:
            raise LawBroken(f"the neighbour came to a door ({door}) where the first table did not")
        return self.script.steps[place]

    def _same_terms(self, place: int) -> None:
        if self.script is not None and self.script.steps[place].public != self.steps[place].public:
            door, there, here = (
                self.steps[place].door,
                self.script.steps[place].public,
                self.steps[place].public,
            )
            raise LawBroken(f"the terms of a door ({door}) depend on the rows: {there} and {here}")


class Noise:
    """Noise that knows what it is added to. It can be added, once, and nothing else."""

    __array_ufunc__ = None  # arrays leave the sum to us

    def __init__(self, tape: Tape, law: str, parameter: Fraction, drawn: Any) -> None:
        self._tape, self._law, self._parameter, self._drawn = tape, law, parameter, drawn
        self._spent = False

    def reshape(self, shape: tuple[int, ...]) -> Noise:
        self._drawn = self._drawn.reshape(shape)
        return self

    def __radd__(self, secret: Any) -> Any:
        if self._spent:
            raise LawBroken("one draw of noise was added twice")
        self._spent = True
        shown = np.array(secret, dtype=object)
        if shown.shape != np.shape(self._drawn):
            raise LawBroken("one draw of noise was spread over several numbers")
        sums = secret + (int(self._drawn) if shown.ndim == 0 else self._drawn)
        return self._tape.passed(self._law, (self._parameter, shown.shape), shown, lambda: sums)

    __add__ = __radd__


class _Coins:
    """The system's bits, through the tape."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        draw = getattr(_BITS, name)
        return lambda *arguments: _tape().coin(name, arguments, partial(draw, *arguments))


_BITS = bits.system_bits()
_playing: list[Tape] = []


def _tape() -> Tape:
    return _playing[-1]


@contextmanager
def playing(tape: Tape) -> Iterator[Tape]:
    """Every door that is passed meanwhile belongs to this tape."""
    _playing.append(tape)
    try:
        yield tape
        tape.end()
    finally:
        _playing.pop()


def _choice(scores: Any, rate: Any, *_: Any, **__: Any) -> int:
    tape, shown = _tape(), np.array(scores)
    return int(
        tape.passed(
            "choice", (len(shown), Fraction(rate)), shown, lambda: int(tape.chance.integers(len(shown)))
        )
    )


def _smoothed_choice(first: Any, second: Any, rate: Any, *_: Any, **__: Any) -> int:
    tape, shown = _tape(), np.stack([first, second])
    public = (shown.shape[1], Fraction(rate))
    return int(tape.passed("smoothed", public, shown, lambda: int(tape.chance.integers(shown.shape[1]))))


def _permute_and_flip(*arguments: Any, **named: Any) -> int:
    """The real one runs, so that its coins show their rate; what it says is the tape's."""
    tape, seen = _tape(), []

    def coins(distances: Any, rate: Any, *rest: Any, **more: Any) -> Any:
        seen.append((np.array(distances), Fraction(rate)))
        return _FLIPS(distances, rate, *rest, **more)

    tape.inside, selection.flips = True, coins
    try:
        _PERMUTE_AND_FLIP(*arguments, **named)
    finally:
        tape.inside, selection.flips = False, _FLIPS
    ((distances, rate),) = seen
    index = lambda: int(tape.chance.integers(len(distances)))  # noqa: E731
    return int(tape.passed("permute-and-flip", (len(distances), rate), -distances, index))


def _votes(values: Any, *, flip: Fraction = FLIP, levels: int = 1, **_: Any) -> int:
    tape, shown = _tape(), np.array(values)
    public = (len(shown), flip, levels)
    return int(tape.passed("votes", public, shown, lambda: int(tape.chance.integers(len(shown) + 1))))


def _vote(bit: bool, *_: Any) -> bool:
    tape = _tape()
    public = (1, FLIP, 1)
    return bool(tape.passed("votes", public, np.array([bit]), lambda: int(tape.chance.integers(2))))


_FLIPS, _PERMUTE_AND_FLIP = flips, selection.permute_and_flip
_DOORS: dict[Any, Any] = {
    laplace.laplace: lambda scale, *_: _tape().noise("laplace", scale, None),
    laplace.laplace_vector: lambda scale, count, *_: _tape().noise("laplace", scale, count),
    gaussian.gaussian: lambda variance, *_: _tape().noise("gaussian", variance, None),
    gaussian.gaussian_vector: lambda variance, count, *_: _tape().noise("gaussian", variance, count),
    choice.choice: _choice,
    choice.smoothed_choice: _smoothed_choice,
    logistic.logistic: lambda scale, *_: _tape().noise("logistic-sum", scale, None),
    logistic.logistic_vector: lambda scale, count, *_: _tape().noise("logistic-sum", scale, count),
    logistic.exceeds: lambda distance, scale, *_: _tape().exceeded(distance, scale),
    selection.permute_and_flip: _permute_and_flip,
    votes: _votes,
    vote: _vote,
    subset.with_replacement: lambda n, count, *_: _tape().ids("with", n, count),
    subset.without_replacement: lambda n, count, *_: _tape().ids("without", n, count),
    bits.system_bits: _Coins,
    bits.source: lambda given: _Coins() if given is None else given,
}


def _tested(test: Callable[..., bool]) -> Callable[..., bool]:
    return lambda self, units: _tape().compared(self, units, lambda: test(self, units))


def _thresholded(draw: Callable[..., None]) -> Callable[..., None]:
    return lambda self: _tape().threshold(lambda: draw(self))


def _gathered(gather: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, columns, ids: gather(self, columns, _tape().fetched(self.rows, np.asarray(ids)))


_METHODS: list[tuple[type, str, Callable[..., Any]]] = [
    (SparseVector, "_test", _tested),
    (SparseVector, "_draw_threshold", _thresholded),
    (FrameSource, "gather", _gathered),
    (UnitSource, "gather", _gathered),
]


@contextmanager
def doors() -> Iterator[None]:
    """All doors lead to the tape that plays, under whatever names the rooms have imported them.

    A sampler that is no door has no law here, so that a release which takes it is stopped.
    """
    stand_ins = _DOORS | {sampler: partial(_no_law, sampler) for sampler in _other_samplers()}
    by_name = [
        (module, name, value)
        for module in modules(*ROOMS)
        for name, value in list(vars(module).items())
        if callable(value) and _is_one_of(value, stand_ins)
    ]
    methods = [(kind, name, getattr(kind, name)) for kind, name, _ in _METHODS]
    try:
        for module, name, value in by_name:
            setattr(module, name, stand_ins[value])
        for (kind, name, stand_in), (*_, method) in zip(_METHODS, methods, strict=True):
            setattr(kind, name, stand_in(method))
        yield
    finally:
        for owner, name, value in by_name + methods:
            setattr(owner, name, value)


def _is_one_of(value: Any, stand_ins: dict[Any, Any]) -> bool:
    try:
        return value in stand_ins
    except TypeError:  # not hashable, so no function
        return False


def _no_law(sampler: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    if _tape().inside:
        return sampler(*arguments, **named)
    raise LawBroken(
        f"{sampler.__module__}.{sampler.__name__} has no law here; give it one in tests/oracles/tape.py"
    )


@cache
def modules(*rooms: str) -> list[Any]:
    """Every module of some rooms."""
    for room in rooms:
        package = importlib.import_module(f"holdfast.{room}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(found.name)
    prefixes = tuple(f"holdfast.{room}" for room in rooms)
    return [module for name, module in sorted(sys.modules.items()) if name.startswith(prefixes)]


@cache
def _other_samplers() -> list[Any]:
    """Functions of the noise room that take bits and are no doors."""
    return [
        value
        for module in modules("noise")
        for value in vars(module).values()
        if inspect.isfunction(value)
        and value.__module__ == module.__name__
        and value.__module__ != bits.__name__
        and "bits" in inspect.signature(value).parameters
        and value not in _DOORS
    ]
