"""How answers look: one line in a log, a table in a terminal, a small picture in a notebook."""

from __future__ import annotations

import datetime
import html
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.session.answer import Answer

_SHOWN = 40
"""Groups shown before the rest is only counted."""

_STYLE = "font:13px system-ui,sans-serif;border-collapse:collapse"
_CELL = "padding:2px 10px 2px 0;text-align:left;white-space:nowrap"


def number(value: Any) -> str:
    """A number with about four digits, or a date."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    value = float(value)
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"


def interval(low: Any, high: Any) -> str:
    return f"[{number(low)}, {number(high)}]"


def answer_text(answer: Answer) -> str:
    """One line for a number, one line a group for a vector."""
    tail = f"{answer.confidence:.0%} confidence for the {answer.target}, {cost(answer)}, {answer.rows_read:,} rows read"
    if answer.labels is None:
        return f"{answer.question}: {number(answer.value)} {interval(answer.low, answer.high)} ({tail})"
    lines = [f"{answer.question} ({tail})"]
    for label, value, low, high in list(answer)[:_SHOWN]:
        lines.append(f"  {label}: {number(value)} {interval(low, high)}")
    if len(answer.labels) > _SHOWN:
        lines.append(f"  … and {len(answer.labels) - _SHOWN} more")
    return "\n".join(lines)


def cost(answer: Answer) -> str:
    """What the answer cost, in the plainest notion that holds."""
    if answer.replayed:
        return "REPLAYED, not private"
    if not answer.private:
        return "not private, repeated at no cost" if answer.repeated else "not private"
    if answer.repeated:
        return "repeated at no cost"
    return f"rho {answer.rho:.3g}" if answer.epsilon is None else f"epsilon {answer.epsilon:.3g}"


def answer_rich(answer: Answer) -> Any:
    """A table for the terminal."""
    from rich.table import Table

    table = Table(
        title=answer.question, title_justify="left", caption=_caption(answer), caption_justify="left"
    )
    if answer.labels is not None:
        table.add_column("group")
    for heading in ("value", "low", "high"):
        table.add_column(heading, justify="right")
    for label, value, low, high in list(answer)[:_SHOWN]:
        row = [number(value), number(low), number(high)]
        table.add_row(*([label, *row] if answer.labels is not None else row))
    return table


def _caption(answer: Answer) -> str:
    hidden = 0 if answer.labels is None else max(0, len(answer.labels) - _SHOWN)
    more = f"{hidden} more groups; " if hidden else ""
    return (
        f"{more}covers the {answer.target} at {answer.confidence:.0%}; {cost(answer)}; "
        f"{answer.rows_read:,} rows read; {answer.mechanism}"
    )


def answer_html(answer: Answer) -> str:
    """A table with a bar for each interval: inline SVG, no dependency, legible on light and dark pages."""
    rows = list(answer)[:_SHOWN]
    floats = [tuple(_axis(part) for part in row[1:]) for row in rows]
    least, most = min(row[1] for row in floats), max(row[2] for row in floats)
    body = "".join(
        f"<tr><td style='{_CELL}'>{html.escape(label)}</td><td style='{_CELL}'><b>{number(value)}</b></td>"
        f"<td style='{_CELL}'>{interval(low, high)}</td><td>{_bar(spot, least, most)}</td></tr>"
        for (label, value, low, high), spot in zip(rows, floats, strict=True)
    )
    return (
        f"<table style='{_STYLE}'><caption style='text-align:left;padding-bottom:4px'>"
        f"{html.escape(answer.question)}</caption>{body}</table>"
        f"<div style='font:11px system-ui,sans-serif;opacity:.7'>{html.escape(_caption(answer))}</div>"
    )


def _axis(value: Any) -> float:
    return float(value.toordinal() if isinstance(value, datetime.date) else value)


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
