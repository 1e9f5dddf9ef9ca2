"""What was run: inert, frozen, hashable facts, from which a loss can be computed, today or by a better
theorem tomorrow.

Numbers are Fractions. Integers are accepted and converted, floats are read exactly (0.1 is not 1/10; say
Fraction("0.1") for that). Anything else is refused with InputError before the event exists.
Neighbours replace one row, the number of rows is public.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction

from holdfast.check import Number, exact, exact_positive, integer, one_of, refusal
from holdfast.errors import InputError


@dataclass(frozen=True, slots=True, init=False)
class Laplace:
    """Integer values plus discrete Laplace noise, P(x) proportional to exp(-|x|/scale); L1 sensitivity."""

    sensitivity: Fraction
    scale: Fraction

    def __init__(self, sensitivity: Number, scale: Number) -> None:
        _fill(
            self, sensitivity=exact_positive("sensitivity", sensitivity), scale=exact_positive("scale", scale)
        )


@dataclass(frozen=True, slots=True, init=False)
class Logistic:
    """Integer values plus discrete logistic noise, P(x) proportional to 1/cosh(x/(2 scale))^2, in each coordinate.

    `sensitivity` is in L1 norm, `sensitivity_squared` the squared L2 sensitivity.
    """

    sensitivity: Fraction
    sensitivity_squared: Fraction
    scale: Fraction

    def __init__(self, sensitivity: Number, sensitivity_squared: Number, scale: Number) -> None:
        _fill(
            self,
            sensitivity=exact_positive("sensitivity", sensitivity),
            sensitivity_squared=exact_positive("sensitivity_squared", sensitivity_squared),
            scale=exact_positive("scale", scale),
        )


@dataclass(frozen=True, slots=True, init=False)
class Gaussian:
    """Integer values plus discrete Gaussian noise, P(x) proportional to exp(-x^2/(2 variance)), in each
    coordinate.

    `sensitivity_squared` is the squared L2 sensitivity. Both numbers are in units of the grid (steps of 1).
    """

    sensitivity_squared: Fraction
    variance: Fraction

    def __init__(self, sensitivity_squared: Number, variance: Number) -> None:
        _fill(
            self,
            sensitivity_squared=exact_positive("sensitivity_squared", sensitivity_squared),
            variance=exact_positive("variance", variance),
        )


@dataclass(frozen=True, slots=True, init=False)
class Votes:
    """`votes` bits, each of a row drawn afresh with replacement from `rows`, each flipped by chance."""

    rows: int
    votes: int
    flip: Fraction

    def __init__(self, rows: int, votes: int, flip: Number) -> None:
        a = exact_positive("flip", flip)
        if not a < Fraction(1, 2):
            raise refusal("a number strictly between 0 and 1/2", "flip", flip, "1/4 is usual")
        _fill(self, rows=integer("rows", rows), votes=integer("votes", votes), flip=a)


@dataclass(frozen=True, slots=True, init=False)
class BoundedRange:
    """A mechanism proved epsilon-bounded-range: the exponential mechanism."""

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        _fill(self, epsilon=exact_positive("epsilon", epsilon))


@dataclass(frozen=True, slots=True, init=False)
class PureMechanism:
    """A mechanism proved epsilon-DP: permute-and-flip, sparse vector, randomized response."""

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        _fill(self, epsilon=exact_positive("epsilon", epsilon))


@dataclass(frozen=True, slots=True, init=False)
class ApproxMechanism:
    """A mechanism proved (epsilon, delta)-DP: a thresholded release of group keys."""

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        _fill(
            self, epsilon=exact_positive("epsilon", epsilon), delta=_failure(exact_positive("delta", delta))
        )


@dataclass(frozen=True, slots=True, init=False)
class ConcentratedMechanism:
    """A mechanism proved rho-zCDP, or delta-approximately rho-zCDP."""

    rho: Fraction
    delta: Fraction

    def __init__(self, rho: Number, delta: Number = 0) -> None:
        _fill(self, rho=exact_positive("rho", rho), delta=_failure(exact("delta", delta)))


@dataclass(frozen=True, slots=True, init=False)
class KeysByGaussian:
    """Keys whose weight with discrete Gaussian noise reaches `threshold` are shown; only keys that occur get noise.

    A unit has at most `keys` keys: with t of them each weighs floor(scale/sqrt(t)). Or it owns up to `rows` rows, each
    with one key of weight `scale`. All numbers are in units of the grid.
    """

    keys: int
    rows: int
    scale: int
    variance: Fraction
    threshold: int

    def __init__(self, keys: int, rows: int, scale: int, variance: Number, threshold: int) -> None:
        _fill(
            self,
            keys=integer("keys", keys),
            rows=integer("rows", rows),
            scale=integer("scale", scale),
            variance=exact_positive("variance", variance),
            threshold=integer("threshold", threshold),
        )
        if keys > 1 and rows > 1:
            raise refusal("1 beside several keys of a unit", "rows", rows, "count the keys of units")


@dataclass(frozen=True, slots=True, init=False)
class KeysByLogistic:
    """Keys of at least `least` units are shown with odds e^(rate (count - threshold)), each by itself; others never.

    A unit has at most `keys` keys, or (rows above 1) owns up to `rows` rows with one key each.
    """

    keys: int
    rows: int
    least: int
    rate: Fraction
    threshold: int

    def __init__(self, keys: int, rows: int, least: int, rate: Number, threshold: int) -> None:
        _fill(
            self,
            keys=integer("keys", keys),
            rows=integer("rows", rows),
            least=integer("least", least),
            rate=exact_positive("rate", rate),
            threshold=integer("threshold", threshold),
        )
        if keys > 1 and rows > 1:
            raise refusal("1 beside several keys of a unit", "rows", rows, "count the keys of units")


@dataclass(frozen=True, slots=True, init=False)
class Subsampled:
    """`event` run on `rows` of the `of` rows, a secret uniform subset drawn without replacement."""

    event: Event
    rows: int
    of: int

    def __init__(self, event: Event, rows: int, of: int) -> None:
        n = integer("of", of)
        _fill(self, event=_row_level(event), rows=integer("rows", rows, 1, n, "draw fewer rows"), of=n)


@dataclass(frozen=True, slots=True, init=False)
class SubsampledWithReplacement:
    """`event` run on `rows` secret independent draws out of the `of` rows; a row may come several times."""

    event: Event
    rows: int
    of: int

    def __init__(self, event: Event, rows: int, of: int) -> None:
        _fill(self, event=_row_level(event), rows=integer("rows", rows), of=integer("of", of))


@dataclass(frozen=True, slots=True, init=False)
class Group:
    """`event`, seen by a unit that owns up to `size` rows."""

    event: Event
    size: int

    def __init__(self, event: Event, size: int) -> None:
        _fill(self, event=_event(event), size=integer("size", size))


@dataclass(frozen=True, slots=True)
class Nothing:
    """Post-processing: no row was touched."""


@dataclass(frozen=True, slots=True, init=False)
class Sequence:
    """Events one after another, each chosen freely after seeing what the earlier ones released."""

    events: tuple[Event, ...]

    def __init__(self, events: tuple[Event, ...]) -> None:
        if not isinstance(events, tuple):
            raise InputError(f"expected a tuple for events, got {type(events).__name__}; use tuple(...)")
        _fill(self, events=tuple(_event(e) for e in events))


@dataclass(frozen=True, slots=True, init=False)
class Repeat:
    """`event`, `count` times."""

    event: Event
    count: int

    def __init__(self, event: Event, count: int) -> None:
        _fill(self, event=_event(event), count=integer("count", count))


Event = (
    Laplace
    | Logistic
    | Gaussian
    | Votes
    | BoundedRange
    | PureMechanism
    | ApproxMechanism
    | ConcentratedMechanism
    | KeysByGaussian
    | KeysByLogistic
    | Subsampled
    | SubsampledWithReplacement
    | Group
    | Nothing
    | Sequence
    | Repeat
)


_TYPES: dict[str, type[Event]] = {
    "laplace": Laplace,
    "logistic": Logistic,
    "gaussian": Gaussian,
    "votes": Votes,
    "bounded_range": BoundedRange,
    "pure": PureMechanism,
    "approx": ApproxMechanism,
    "concentrated": ConcentratedMechanism,
    "keys_by_gaussian": KeysByGaussian,
    "keys_by_logistic": KeysByLogistic,
    "subsampled": Subsampled,
    "subsampled_with_replacement": SubsampledWithReplacement,
    "group": Group,
    "nothing": Nothing,
    "sequence": Sequence,
    "repeat": Repeat,
}
_NAMES = {kind: name for name, kind in _TYPES.items()}
_FRACTION = re.compile(r"(0|[1-9][0-9]{0,1299})/([1-9][0-9]{0,1299})", re.ASCII)
_DEPTH = 32


def to_json(event: Event) -> dict[str, object]:
    """A JSON-able record for the ledger, fractions as "p/q"; equal events have equal records."""
    known = _event(event)
    record = {field.name: _write(getattr(known, field.name)) for field in fields(known)}
    return {"type": _NAMES[type(known)], **record}


def from_json(record: object) -> Event:
    """The event that `to_json` wrote; a closed set of types, nothing executed and nothing guessed.

    InputError for unknown types, missing or extra fields, numbers out of range, and nesting past 32.
    """
    return _read(record, _DEPTH)


def _write(value: object) -> object:
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    if isinstance(value, tuple):
        return [to_json(part) for part in value]
    return value if isinstance(value, int) else to_json(_event(value))


def _read(record: object, depth: int) -> Event:
    if depth == 0:
        raise InputError(f"expected an event nested at most {_DEPTH} deep, got more; flatten it")
    if not isinstance(record, dict):
        raise InputError(f"expected a JSON object for an event, got {type(record).__name__}; read it again")
    name = one_of("an event's type", record.get("type"), _TYPES)
    kind = _TYPES[name]
    wanted = {field.name: str(field.type) for field in fields(kind)}
    if set(record) != {"type", *wanted}:
        raise InputError(
            f"expected the fields type, {', '.join(wanted)} of {name}, got others; read it again"
        )
    make: Callable[..., Event] = kind
    return make(
        **{name: _value(name, annotation, record[name], depth) for name, annotation in wanted.items()}
    )


def _value(name: str, annotation: str, value: object, depth: int) -> object:
    if annotation == "Fraction":
        found = _FRACTION.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            raise refusal('a fraction written "p/q"', name, value)
        return Fraction(int(found[1]), int(found[2]))
    if annotation == "Event":
        return _read(value, depth - 1)
    if annotation == "tuple[Event, ...]":
        if not isinstance(value, list):
            raise InputError(f"expected a list of events for {name}, got {type(value).__name__}")
        return tuple(_read(part, depth - 1) for part in value)
    return value


def _fill(event: object, /, **fields: object) -> None:
    for name, value in fields.items():
        object.__setattr__(event, name, value)


def _event(value: object) -> Event:
    if not isinstance(value, Event):
        raise InputError(f"expected an event of holdfast.privacy.events, got {type(value).__name__}; wrap it")
    return value


def _row_level(value: object) -> Event:
    """A unit with several rows is drawn more often than one row, so a Group goes outside the subsampling."""
    event = _event(value)
    parts = event.events if isinstance(event, Sequence) else (event,)
    for part in parts:
        if isinstance(part, Group):
            raise InputError("expected a Group outside a subsampled event, got one inside; swap the two")
        if isinstance(part, Repeat):
            _row_level(part.event)
        elif isinstance(part, Sequence):
            _row_level(part)
    return event


def _failure(delta: Fraction) -> Fraction:
    if delta >= 1:
        raise refusal("a number below 1", "delta", delta, "1e-6 is usual")
    return delta
