"""How numbers and intervals look on the page. Places are in percent of a drawing's width."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from holdfast.query.schema import Boolean, Category, ColumnType, Integer, Real, Schema, Temporal, Text
from holdfast.query.unit_schema import UnitSchema, event_columns
from holdfast.service.parts import table_of
from holdfast.service.replies import answer_mark
from holdfast.session import Answer, display

SIGNS = {"pure": "ε", "zcdp": "ρ", "gdp": "μ²"}
"""What is counted in each currency."""
AMOUNTS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
"""What a budget may be made of."""
PARTS = ("noise", "sampling", "population")
SHOWN = 200
"""Groups shown before the rest is only counted."""
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_MARGIN = 0.06


@dataclass(frozen=True, slots=True)
class Piece:
    """A coloured piece of an interval."""

    part: str
    left: float
    width: float


@dataclass(frozen=True, slots=True)
class Bar:
    """One value with its interval, in words and as places on an axis."""

    label: str
    value: str
    low: str
    high: str
    missed: str
    dot: float
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """From where to where a drawing goes."""

    least: float
    most: float

    def place(self, value: float) -> float:
        """A value's place in percent; what lies outside is put at the end."""
        return round(100 * min(1.0, max(0.0, (value - self.least) / (self.most - self.least))), 3)


def axis(lows: Iterable[float], highs: Iterable[float]) -> Axis:
    """An axis that holds all of these, as far as they are finite, with a margin."""
    least = min(filter(math.isfinite, lows), default=0.0)
    most = max(filter(math.isfinite, highs), default=least + 1.0)
    margin = _MARGIN * ((most - least) or 1.0)
    return Axis(least - margin, most + margin)


def bars(answer: Answer, along: Axis | None = None) -> list[Bar]:
    """The groups of an answer on one axis, or its one value."""
    rows = list(answer)[:SHOWN]
    along = along or axis((_float(row[2]) for row in rows), (_float(row[3]) for row in rows))
    return [
        Bar(
            label, line.value, quantity(low), quantity(high), line.missed, along.place(_float(value)),
            pieces(along, _float(value), _float(low), _float(high), _parts(answer, index)),
        )
        for index, ((label, value, low, high), line) in enumerate(
            zip(rows, display.lines(answer, SHOWN), strict=True)
        )
    ]  # fmt: skip


def side_by_side(first: Answer, second: Answer) -> list[tuple[Bar, Bar, bool]]:
    """The groups that both have, or the one value of each, on one axis; and whether their intervals are apart."""
    ends = [
        {row[0]: (_float(row[2]), _float(row[3])) for row in list(answer)[:SHOWN]}
        for answer in (first, second)
    ]
    along = axis(*zip(*(end for some in ends for end in some.values()), strict=True))
    drawn = [{bar.label: bar for bar in bars(answer, along)} for answer in (first, second)]
    return [
        (drawn[0][label], drawn[1][label], high < ends[1][label][0] or ends[1][label][1] < low)
        for label, (low, high) in ends[0].items()
        if label in ends[1]
    ]


def pieces(along: Axis, value: float, low: float, high: float, parts: tuple[float, ...]) -> tuple[Piece, ...]:
    """Both sides of an interval, from the value outwards: noise, sampling, population, each with its share."""
    whole = sum(parts) or 1.0
    found = []
    for end in (low, high):
        start = 0.0
        for name, part in zip(PARTS, parts, strict=True):
            inner, outer = value + (end - value) * start, value + (end - value) * (start + part / whole)
            left, right = sorted((along.place(inner), along.place(outer)))
            if right - left > 0:
                found.append(Piece(name, left, round(right - left, 3)))
            start += part / whole
    return tuple(found)


def part_texts(answer: Answer) -> list[tuple[str, str]]:
    """The three parts of the half-width in words; of a vector answer their largest."""
    return [(name, quantity(_largest(getattr(answer, name)))) for name in PARTS]


def quantity(value: Any) -> str:
    """A number or a date, as answers print them."""
    return display.number(value)


def small(value: float) -> str:
    """An amount of budget, which may be tiny: three digits, with a power of ten where it needs one."""
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    digits, _, power = f"{value:.2e}".partition("e")
    ten = f"10{str(int(power)).translate(_RAISED)}"
    return ten if float(digits) == 1 else f"{float(digits):g}\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}{ten}"


def exact(value: float) -> str:
    """An amount of budget to its last unit, a billionth."""
    return f"{value:,.9f}".rstrip("0").rstrip(".")


def percent(share: float) -> str:
    """A share of a whole, with digits enough to tell it from nothing and from all."""
    if share <= 0 or share >= 1:
        return "0%" if share <= 0 else "100%"
    rest = min(share, 1 - share)
    if rest < 1e-6:
        return "under 0.0001%" if share < 0.5 else "over 99.9999%"
    text = f"{100 * share:.{max(0, 1 - math.floor(math.log10(100 * rest)))}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "%"


def bounds(column: ColumnType) -> str:
    """What is declared of a column, in words."""
    match column:
        case Category():
            return ", ".join(str(label) for label in column.labels)
        case Boolean():
            return "false, true"
        case Temporal():
            return f"{column.first} to {column.last}"
        case Text():
            return f"at most {column.max_length} letters"
        case Integer() | Real():
            return f"{quantity(column.lo)} to {quantity(column.hi)}"


def kind(column: ColumnType) -> str:
    """The type of a column."""
    return type(column).__name__.lower()


def moment(seconds: float) -> str:
    """A time, to the minute."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def several(count: int, word: str) -> str:
    """1 answer, 2 answers."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def of_events(schema: Schema) -> list[tuple[str, ColumnType]]:
    """The columns of the events of units, as questions name them; none in a table of rows."""
    if not isinstance(schema, UnitSchema):
        return []
    return [(name, schema.events[table].schema[column]) for name, table, column in event_columns(schema)]


def condition(schema: Schema) -> str:
    """A condition that a table's own columns could have, to show how one is written."""
    parts: list[str] = []
    for name, column in schema.items():
        match column:
            case Integer() | Real() if len(parts) < SHOWN_CONDITIONS:
                parts.append(
                    f"{name} > {quantity(column.lo + (column.hi - column.lo) // 2)}".replace(",", "")
                )
            case Category() if len(parts) < SHOWN_CONDITIONS and isinstance(column.labels[0], str):
                parts.append(f"{name} = '{column.labels[0]}'")
            case _:
                pass
    return " AND ".join(parts) or f"{next(iter(schema))} IS NOT NULL"


SHOWN_CONDITIONS = 2


FILTERS = {
    "condition": condition, "mark": answer_mark, "extract": lambda name, known: known[name],
    "of_events": of_events, "whole_table": table_of,
    "bars": bars, "bounds": bounds, "exact": exact, "kept": display.kept, "kind": kind, "moment": moment,
    "parts": part_texts, "percent": percent, "quantity": quantity, "several": several, "small": small,
}  # fmt: skip


def _float(value: Any) -> float:
    return float(value.toordinal() if isinstance(value, datetime.date) else value)


def _parts(answer: Answer, index: int) -> tuple[float, ...]:
    return tuple(float(_at(getattr(answer, name), index)) for name in PARTS)


def _at(part: Any, index: int) -> Any:
    return part[index] if hasattr(part, "__len__") else part


def _largest(part: Any) -> float:
    return float(max(part)) if hasattr(part, "__len__") else float(part)
