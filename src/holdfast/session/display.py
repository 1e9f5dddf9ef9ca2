"""How answers look: one line in a log, a table in a terminal, a small picture in a notebook."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.planning.plan import PUBLIC
from holdfast.privacy.rounding import sure
from holdfast.query.temporal import Moment
from holdfast.session import answer_columns

if TYPE_CHECKING:
    from holdfast.session.answer import Answer

_SHOWN = 40
"""Groups shown before the rest is only counted."""

_STYLE = "font:13px system-ui,sans-serif;border-collapse:collapse"
_CELL = "padding:2px 10px 2px 0;text-align:left;white-space:nowrap"


def number(value: Any) -> str:
    """A number with about four digits, or a date; ends that are nowhere are told as such."""
    if isinstance(value, Moment):
        return str(value)
    value = float(value)
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else "∞" if value > 0 else "−∞"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"


def interval(low: Any, high: Any) -> str:
    return f"[{number(low)}, {number(high)}]"


@dataclass(frozen=True, slots=True)
class Line:
    """One group of an answer, or its one value, in words."""

    label: str
    value: str
    """The value, or that there were too few rows for one."""
    interval: str
    rows: str
    """The interval for the rows themselves, beside one for the population; else nothing."""
    missed: str
    """"not within 2" where the half-width asked for was not kept; else nothing."""


def lines(answer: Answer, most: int = _SHOWN) -> list[Line]:
    """The groups of an answer, or its one value."""
    groups = list(answer)
    kept = np.broadcast_to(True if answer.met is None else answer.met, len(groups))
    few = np.broadcast_to(answer.too_few, len(groups))
    missed = "" if answer.within is None else f"not within {number(answer.within)}"
    both = answer.table_low is not None
    ends = zip(*(np.atleast_1d(end) for end in (answer.table_low, answer.table_high)), strict=True)
    rows = [interval(*end) for end in ends] if both else [""] * len(groups)
    return [
        Line(
            label,
            "too few rows" if few[i] else number(value),
            interval(low, high),
            "" if few[i] else rows[i],
            "" if kept[i] else missed,
        )
        for i, (label, value, low, high) in enumerate(groups[:most])
    ]


def kept(answer: Answer) -> str:
    """Whether the half-width asked for was kept, in words; nothing if none was asked for, or if it was kept."""
    if answer.met is None or np.all(answer.met):
        return ""
    if answer.labels is None:
        return f"not within {number(answer.within)}"
    return f"within {number(answer.within)} in {np.count_nonzero(answer.met)} of {len(answer.labels)} groups"


def helps(answer: Answer) -> str:
    """Where means say nothing, what helps, in words; else nothing."""
    if not np.any(answer.too_few):
        return ""
    return (
        "too few rows for this noise: ask with within=, for fewer groups, or in a session for fewer queries; "
        "explain() says more"
    )


def answer_text(answer: Answer) -> str:
    """One line for a number, one line a group for a vector."""
    head = f"{kept(answer)}, " if kept(answer) else ""
    tail = (
        f"{head}{sure(answer.confidence, percent=True)} confidence for the {answer.target}, {cost(answer)}, "
        f"{answer.rows_read:,} rows read"
    )
    shown = lines(answer)
    if answer.labels is None:
        rows = f", of these rows {shown[0].rows}" if shown[0].rows else ""
        few = f"; {helps(answer)}" if helps(answer) else ""
        return f"{answer.question}: {shown[0].value} {shown[0].interval}{rows} ({tail}){few}"
    texts = [f"{answer.question} ({tail})"]
    for line in shown:
        missed = f" {line.missed}" if line.missed else ""
        rows = f", of these rows {line.rows}" if line.rows else ""
        texts.append(f"  {line.label}: {line.value} {line.interval}{rows}{missed}")
    if len(answer.labels) > _SHOWN:
        texts.append(f"  … and {len(answer.labels) - _SHOWN} more")
    texts += [f"  {helps(answer)}"] if helps(answer) else []
    return "\n".join(texts)


def cost(answer: Answer) -> str:
    """What the answer cost, in the plainest notion that holds."""
    if answer.replayed:
        return "REPLAYED, not private"
    if not answer.private:
        return "not private, repeated at no cost" if answer.repeated else "not private"
    if answer.repeated:
        return "repeated at no cost"
    if answer.mechanism == PUBLIC:
        return "free"
    if answer.epsilon is None or answer.currency not in ("pure", None):
        return f"rho {answer.rho:.3g}"
    pure = f"epsilon {answer.epsilon:.3g}"
    # Many small steps lose much less than their pure epsilons add up to: a session with a delta counts their rho.
    both = answer.currency is None and answer.rho < answer.epsilon**2 / 16
    return f"rho {answer.rho:.3g} or pure {pure}" if both else pure


def answer_rich(answer: Answer) -> Any:
    """A table for the terminal."""
    from rich.table import Table

    table = Table(title=answer.question, title_justify="left")
    if answer.labels is not None:
        table.add_column("group")
    for heading in ("value", "low", "high"):
        table.add_column(heading, justify="right")
    both = answer.table_low is not None
    if both:
        table.add_column("of these rows", justify="right")
    if kept(answer):
        table.add_column("")
    for line, (label, _, low, high) in zip(lines(answer), answer, strict=False):
        row = [line.value, number(low), number(high), *([line.rows] if both else [])]
        row += [line.missed] if kept(answer) else []
        table.add_row(*([label, *row] if answer.labels is not None else row))
    return _above(table, [answer])


def _caption(answer: Answer) -> str:
    hidden = 0 if answer.labels is None else max(0, len(answer.labels) - _SHOWN)
    more = f"{hidden} more groups; " if hidden else ""
    met = f"{kept(answer)}; " if kept(answer) else ""
    met += f"{helps(answer)}; " if helps(answer) else ""
    return (
        f"{more}{met}covers the {answer.target} at {sure(answer.confidence, percent=True)}; {cost(answer)}; "
        f"{answer.rows_read:,} rows read; {answer.mechanism}"
    )


def answer_html(answer: Answer) -> str:
    """A table with a bar for each interval: inline SVG, no dependency, legible on light and dark pages."""
    rows = list(answer)[:_SHOWN]
    floats = [tuple(_axis(part) for part in row[1:]) for row in rows]
    least = min((row[1] for row in floats), default=0.0)
    most = max((row[2] for row in floats), default=0.0)
    body = "".join(
        f"<tr><td style='{_CELL}'>{html.escape(line.label)}</td><td style='{_CELL}'><b>{line.value}</b></td>"
        f"<td style='{_CELL}'>{line.interval}</td><td>{_bar(spot, least, most)}</td>"
        f"<td style='{_CELL}'>{'of these rows ' + line.rows if line.rows else ''}</td>"
        f"<td style='{_CELL}'>{line.missed}</td></tr>"
        for line, spot in zip(lines(answer), floats, strict=True)
    )
    return (
        f"<table style='{_STYLE}'><caption style='text-align:left;padding-bottom:4px'>"
        f"{html.escape(answer.question)}</caption>{body}</table>"
        f"<div style='font:11px system-ui,sans-serif;opacity:.7'>{html.escape(_caption(answer))}</div>"
    )


def table_rich(answers: Sequence[Answer], names: Sequence[str]) -> Any:
    """Several answers about the same groups as one table for the terminal."""
    from rich.table import Table

    table = Table()
    for heading in _headings(answers, names):
        table.add_column(heading, justify="left" if heading == "group" else "right")
    for row in _rows(answers):
        table.add_row(*row)
    return _above(table, answers)


def _above(table: Any, answers: Sequence[Answer]) -> Any:
    """A table over what is to be known of its answers; a caption of its own would be as narrow as the table."""
    from rich.console import Group
    from rich.text import Text

    return Group(table, *(Text(said, style="dim italic") for said in dict.fromkeys(map(_caption, answers))))


def table_html(answers: Sequence[Answer], names: Sequence[str]) -> str:
    """The same as HTML."""
    head = "".join(f"<th style='{_CELL}'>{html.escape(name)}</th>" for name in _headings(answers, names))
    body = "".join(
        "<tr>" + "".join(f"<td style='{_CELL}'>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in _rows(answers)
    )
    captions = "".join(f"<div>{html.escape(said)}</div>" for said in dict.fromkeys(map(_caption, answers)))
    return (
        f"<table style='{_STYLE}'><tr>{head}</tr>{body}</table>"
        f"<div style='font:11px system-ui,sans-serif;opacity:.7'>{captions}</div>"
    )


def plain_text(shown: Any) -> str:
    """What a terminal would show, as text."""
    from rich.console import Console

    console = Console(width=120, color_system=None)
    with console.capture() as capture:
        console.print(shown)
    return capture.get().rstrip("\n")


def _headings(answers: Sequence[Answer], names: Sequence[str]) -> list[str]:
    groups = ["group"] if answers and answers[0].labels is not None else []
    return [*groups, *(heading for name in names for heading in (name, "interval"))]


def _rows(answers: Sequence[Answer]) -> list[list[str]]:
    """The cells of each group: its label, then the value and the interval of each answer."""
    columns = [lines(answer) for answer in answers]
    grouped = bool(answers) and answers[0].labels is not None
    return [
        [
            *([group[0].label] if grouped else []),
            *(cell for line in group for cell in (line.value, line.interval)),
        ]
        for group in zip(*columns, strict=True)
    ]


def _axis(value: Any) -> float:
    return answer_columns.number(value)


def _bar(spot: tuple[float, ...], least: float, most: float) -> str:
    """The interval as a line and the value as a dot, on the axis that all groups share."""
    value, low, high = spot
    span = (most - least) or 1.0
    margin = 0.1 * span
    place = [190 * (part - least + margin) / (span + 2 * margin) + 5 for part in (value, low, high)]
    return (
        "<svg width='200' height='16' role='img' aria-label='interval'>"
        "<line x1='0' x2='200' y1='8' y2='8' stroke='currentColor' stroke-opacity='.15'/>"
        f"<line x1='{place[1]:.1f}' x2='{place[2]:.1f}' y1='8' y2='8' stroke='#2f7ed8' stroke-width='4'"
        f" stroke-linecap='round'/><circle cx='{place[0]:.1f}' cy='8' r='4' fill='#2f7ed8' stroke='#fff'/></svg>"
    )
