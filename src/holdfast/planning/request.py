"""How exactly a question is to be answered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.errors import InputError
from holdfast.query.wording import near, shown


@dataclass(frozen=True, slots=True)
class Request:
    """Accuracy first (`within`), or a budget for this answer (`rho` or `epsilon`), or neither: then the
    session's budget is shared equally among its declared number of queries. `mechanism` insists on one, and
    `rows` caps how many rows may be read."""

    within: float | None = None
    rho: float | None = None
    epsilon: float | None = None
    mechanism: str | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("within", "rho", "epsilon") if getattr(self, name) is not None]
        if len(given) > 1:
            raise InputError(f"give only one of within, rho and epsilon, got {' and '.join(given)}")
        for name in given:
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        if self.mechanism is not None:
            printable("mechanism", self.mechanism)
        if self.rows is not None:
            object.__setattr__(self, "rows", whole("rows", self.rows))


def positive(name: str, value: object) -> float:
    """A positive, finite number as a float."""
    try:
        if isinstance(value, bool | str | bytes):
            raise TypeError
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"expected a positive number for {name}, got {shown(value)}") from None
    if not (math.isfinite(number) and number > 0):
        raise InputError(f"expected a positive finite number for {name}, got {shown(value)}")
    return number


def probability(name: str, value: object) -> float:
    """A number strictly between 0 and 1."""
    number = positive(name, value)
    if number >= 1:
        raise InputError(f"expected {name} strictly between 0 and 1, got {shown(value)}")
    return number


def whole(name: str, value: object) -> int:
    """A positive whole number."""
    number = positive(name, value)
    if number != int(number):
        raise InputError(f"expected a whole number for {name}, got {shown(value)}")
    return int(number)


def printable(what: str, value: object) -> str:
    """A name that people can read and every database can keep: nothing in it is invisible."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise InputError(f"expected a {what} in printable characters, got something else; choose another")
    return value


def one_of(name: str, value: object, options: Sequence[str]) -> str:
    """One of some words."""
    if not isinstance(value, str) or value not in options:
        wanted = " or ".join(f'"{option}"' for option in options)
        raise InputError(
            f"expected {name}={wanted}, got {shown(value)}{near(value, options) if isinstance(value, str) else ''}"
        )
    return value
