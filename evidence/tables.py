"""docs/evidence.md, from summaries."""

from __future__ import annotations

import math

from evidence.cells import BETA, BREAKING_ALPHA, BREAKING_ROWS, EQUAL_ALPHA, EQUAL_ROWS
from evidence.summary import Summary

_BOARD = "loss on the leaderboard after {} submissions"
_HOLDOUT = "accuracy after feature selection by the {} (true: 0.5)"
_PUBLISHED = {
    ("boosting", "naive", 100): (_BOARD.format(100), "0.467 (Blum and Hardt's code)"),
    ("boosting", "naive", 400): (_BOARD.format(400), "0.427 (Blum and Hardt's code)"),
    ("single-adaptive", "naive", 200): ("bias of the last query at k/n = 0.1", "0.125 (formula)"),
    ("trained-selection", "naive", 3003): (_HOLDOUT.format("plain holdout"), "0.63"),
    ("trained-selection", "paper-thresholdout", 3003): (_HOLDOUT.format("reusable holdout"), "0.50 to 0.52"),
}


def document(summaries: list[Summary], audit: str, command: str) -> str:
    """The whole page."""
    groups = {
        name: [s for s in summaries if s.cell.experiment == name]
        for name in ("coverage", "breaking", "equal")
    }
    published = [s for s in summaries if s.cell.experiment == "published"]
    edge = BREAKING_ROWS * (BREAKING_ALPHA / 0.399) ** 2
    return f"""# Evidence

Written by `{command}`. The games are seeded, so that a second run gives the same tables; the audit is not.

## Simultaneous coverage under attack

Each game draws a fresh sample and lets an adaptive analyst ask k questions about n rows, answered by a fresh
mechanism. A *miss* is a game in which at least one answer is further from the population value than the
half-width which the mechanism claims for all its answers at once, at confidence {1 - BETA:g}: at most
{BETA:g} of the games may be misses. Naive answers claim Hoeffding's width with a union over the questions,
which would be right for questions fixed beforehand. The interval is Clopper and Pearson's, at 95%. The ratio
is the claimed width over the mean of the worst errors. A width above 1 certifies nothing; "none" means that
the mechanism gave no answers, because it has fewer rows than questions.

What this table can and cannot show: the last column says how often *naive* answers to the same attack leave
the width of that row. Where it says 0%, the attack could not have told the mechanism from one without noise:
zero misses show that the width is safe there, not that the noise is needed. Where it says 100%, exact answers
would have failed at this very width.

![coverage](evidence-coverage.png)

{_coverage(groups["coverage"])}
## Where naive answers break

The single-adaptive analyst (Rogers et al. 2020, Algorithm 5) at n = {BREAKING_ROWS}. In theory it gains
Φ(√(k/n)) − 1/2 ≈ 0.399 √(k/n) on exact answers, which crosses α = {BREAKING_ALPHA:g} near
k = n(α/0.399)² = {edge:.0f}.

![breaking](evidence-breaking.png)

{_breaking(groups["breaking"])}
## The same width for both

At n = {EQUAL_ROWS} Gaussian answers certify a half-width of {EQUAL_ALPHA:g} for as many queries as below.
Naive answers to the same analyst are judged by that very width.

{_equal(groups["equal"])}
## Published numbers, met again

{_published(published)}
## Privacy, claimed and measured

`holdfast audit` runs every mechanism of the package and every kind of answer of a session on its worst neighbours and
bounds epsilon from below, each with confidence 1 - 1e-6. A session's claim is what its ledger was charged. Controls are
broken on purpose and must be caught. Mechanisms of other libraries are listed where they were installed.

*Notices* is the power of each row: how many times too large the loss would have to be for as many runs to refute the
claim, nine times in ten (`holdfast.audit.power`; the event that told most here, as likely as here, with so many times
its log-ratio). "None" means that no undercharge would be refuted by so few runs: more of them (`--effort`) see more,
but selections and comparisons whose loss is spread over many unlikely outputs (quantiles, weights) stay hard to see
from outside. That these are charged for what they do is therefore computed and not measured: `tests/laws` recomputes
the loss of every release from what its noise was shown, on all neighbours of small tables, and compares the charge.

![audit](evidence-audit.png)

{audit}"""


def _coverage(summaries: list[Summary]) -> str:
    head = "attack | mechanism | n | k | width | games | misses | 95% interval | mean worst error | largest"
    lines = [f"| {head} | ratio | answered | naive outside |", "|" + "---|" * 13]
    naive = {s.cell.attack: s for s in summaries if s.cell.answerer == "naive"}
    for s in summaries:
        cell = s.cell
        parts = (
            f"{cell.attack} | {cell.answerer} | {cell.rows} | {cell.queries} | {_number(s.width)}",
            f"{s.runs} | {s.misses} | {s.low:.4f} to {s.high:.4f}",
            f"{_number(s.worst)} | {_number(s.largest)} | {_number(s.ratio, 1)}",
            f"{s.answered / cell.queries:.0%}",
            f"{naive[cell.attack].beyond(s.width):.0%}" if cell.attack in naive else "not played",
        )
        lines.append(f"| {' | '.join(parts)} |")
    return "\n".join(lines) + "\n"


def _breaking(summaries: list[Summary]) -> str:
    names = list(dict.fromkeys(s.cell.answerer for s in summaries))
    head = "| k | in theory, naive | " + " | ".join(f"{name}: last error | claimed" for name in names) + " |"
    lines = [head, "|" + "---|" * (2 + 2 * len(names))]
    for queries in dict.fromkeys(s.cell.queries for s in summaries):
        row = {s.cell.answerer: s for s in summaries if s.cell.queries == queries}
        parts = [
            f"{row[n].last:.3f} ± {row[n].last_error:.3f} | {_number(row[n].width)}"
            for n in names
            if n in row
        ]
        lines.append(f"| {queries} | {gain(queries / BREAKING_ROWS):.3f} | " + " | ".join(parts) + " |")
    return "\n".join(lines) + "\n"


def _equal(summaries: list[Summary]) -> str:
    lines = [
        "| answers | k | games | mean error of the last answer | largest error | outside the width |",
        "|---|---|---|---|---|---|",
    ]
    width = min((s.width for s in summaries if s.cell.answerer == "gaussian"), default=math.nan)
    for s in summaries:
        outside = "yes" if s.last > width else "no"
        lines.append(
            f"| {s.cell.answerer} | {s.cell.queries} | {s.runs} | {s.last:.4f} ± {s.last_error:.4f} | "
            f"{s.largest:.4f} | {outside} (width {width:.4f}) |"
        )
    return "\n".join(lines) + "\n"


def _published(summaries: list[Summary]) -> str:
    lines = ["| quantity | published | here |", "|---|---|---|"]
    for s in summaries:
        what, known = _PUBLISHED[s.cell.attack, s.cell.answerer, s.cell.queries]
        value = {"boosting": 0.5 - s.last, "trained-selection": 0.5 + s.last}.get(s.cell.attack, s.last)
        lines.append(f"| {what} | {known} | {value:.3f} ± {s.last_error:.3f} |")
    return "\n".join(lines) + "\n"


def gain(share: float) -> float:
    """Φ(√(k/n)) - 1/2: what the naive-Bayes vote over k exactly answered coins gains on the sample."""
    return 0.5 * math.erf(math.sqrt(share / 2.0))


def _number(value: float, digits: int = 3) -> str:
    return "none" if not math.isfinite(value) else f"{value:.{digits}f}"
