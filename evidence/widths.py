"""The half-width of the plain path beside every other way to answer, for the same rows and questions.

python evidence/widths.py            a few minutes; writes evidence/widths.md, and draws
python evidence/widths.py picture    a second; draws docs/leave-out-widths.png from evidence/widths.md
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "evidence" / "widths.md"
PICTURE = ROOT / "docs" / "leave-out-widths.png"
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import holdfast as hf  # noqa: E402  (the path must be set first)
from holdfast.ledger import Moment, Totals  # noqa: E402
from holdfast.planning.budget import budget  # noqa: E402
from holdfast.planning.plan_line import plan_line  # noqa: E402
from holdfast.planning.session_plan import plan_counted  # noqa: E402
from holdfast.planning.terms import Terms  # noqa: E402
from holdfast.privacy.filter import Filter  # noqa: E402

SIZES = tuple((10**rows, 10**queries) for rows in range(3, 9) for queries in range(7))
EPSILON, DELTA = 1.0, 1e-6
PRIVATE: dict[str, dict[str, Any]] = {
    'only="gaussian"': {"delta": DELTA, "only": "gaussian"},
    "votes": {"delta": DELTA, "rows_read": True},
    "rare": {"delta": DELTA, "rare": True},
    "pure": {},
}
"""The other sessions of the same epsilon, which also has delta 1e-6."""
OTHERS = ("leave-out", "leave-out-votes", "gaussian", "votes")
"""Bounds of ours at their best noise, whatever it costs in privacy."""
PUBLISHED = ("rogers", "bnsssu", "jlnrss", "dfhprr", "feldman-steinke", "xu-raginsky", "blanc", "fish")
"""Published bounds for adaptive questions by noise; `splitting` has a column of its own."""


ABOUT = """\
Written by `python evidence/widths.py`. The certified half-width of each of k adaptive answers at confidence
.95. First at one budget: of `table.session(epsilon=1, delta=1e-6, queries=k)` on an untouched table; of the
same opened later, after an answer to anybody: what is left out is then not planned but the recorded
mixture, which is 5 to 10% wider for 1,000 answers and more, 15% for 100, a quarter for 10 and two fifths
for one; of the same counted in mu squared, as a plan that the budget keeps wide is by itself; by votes;
planned for rare questions; and of `epsilon=1` without delta. Then whatever it costs in privacy: of the
bounds of `holdfast plan` at their best noise (`leave-out` is the same theorem without a budget; its 16
epochs of falling noise lose 2.0 to 2.4% against 256); of splitting the rows, which is not private and
answers at most n questions; of the best published bound that we know of; and of a union bound that adaptive
questions break. `-`: nothing below 1. *Least of ours* is of all that is private, at any budget. Where the
plain path is much above it, the budget keeps it there; where another session of the same budget is narrower
by more than a hundredth (\\*), the line of the plan (`Session.plan`) says which and by how much. It stays a
choice: pure epsilon is wide for many questions. Votes may be 2% wider than the least, where they read fewer
rows. Where the plain path or `rare` reads answers as rare events, this is the most that an end of an
interval can be away from its answer; `evidence/rare.md` (by `python evidence/rare.py`) has the frequencies.
Rows read and time at n = 1e8 and 1e9, beside the earlier plans, are in docs/benchmarks.md, *answers*."""


def session(
    rows: int,
    queries: int,
    *,
    delta: float | None = None,
    only: str | None = None,
    either: bool = False,
    rows_read: bool = False,
    rare: bool = False,
    later: bool = False,
) -> tuple[float, str]:
    """(the common half-width of a session, the line that says so): on an untouched table, or `later`, on one of which
    hardly anything was told; counted in `either` currency, as sessions are."""
    ways = [budget(epsilon=EPSILON, delta=delta, only=only)]
    ways += [budget(epsilon=EPSILON, delta=delta, only="gaussian")] if either else []
    terms = Terms(
        schema=hf.Schema(x=hf.Integer(0, 1)),
        rows=rows,
        rows_per_unit=1,
        session=ways[0].filter,
        table=Filter.zcdp(9e9),
        queries=queries,
        confidence=0.95,
        target="population",
    )
    moment = Moment(Totals(), Totals(entries=int(later)))
    own, places = plan_counted(ways, terms, moment, rows - 1 if rows_read else None, rare=rare)
    words = plan_line(replace(terms, session=own.filter, places=places), own, moment)
    if places is None or not places.epochs:
        return math.inf, words
    return places.width, words


def plain(rows: int, queries: int) -> tuple[float, str]:
    """What `table.session(epsilon=1, delta=1e-6, queries=k)` plans, and says."""
    return session(rows, queries, delta=DELTA, either=True)


def private(rows: int, queries: int) -> dict[str, float]:
    """Every other session at the same budget."""
    return {name: session(rows, queries, **how)[0] for name, how in PRIVATE.items()}


def offered(words: str) -> float | None:
    """How near the line of a plan says that answers could be in another session of the same budget, if it does."""
    found = re.search(r"; without delta= .*within ([0-9.e-]+)", words)
    return None if found is None else float(found[1].rstrip("."))


def other(name: str, rows: int, queries: int) -> float:
    try:
        return hf.validity.width(name, rows=rows, queries=queries, confidence=0.95)
    except hf.HoldfastError:
        return math.inf


def naive(rows: int, queries: int) -> float:
    """A union bound as if the questions had been chosen beforehand: not valid for an adaptive analyst."""
    return math.sqrt(math.log(2 * queries / 0.05) / (2 * rows))


def shown(width: float) -> str:
    return f"{width:.3g}" if width < 1 else "-"


def page(sizes: tuple[tuple[int, int], ...] = SIZES) -> str:
    head = ["n, k", "plain path, (1, 1e-6)", "the same, later", *(f"{name}, same budget" for name in PRIVATE)]
    head += ["plain / least at this budget", *OTHERS, "splitting", "best published", "plain / least of ours"]
    head += ["non-adaptive Bonferroni (invalid)"]
    lines = [
        "## The plain path beside the others",
        "",
        *textwrap.wrap(ABOUT, 116),
        "",
        f"| {' | '.join(head)} |",
        "|" + "---|" * len(head),
    ]
    for n, k in sizes:
        (own, words), same = plain(n, k), private(n, k)
        ways, published = [other(name, n, k) for name in OTHERS], min(other(name, n, k) for name in PUBLISHED)
        least, ours = min(own, *same.values()), min(own, *same.values(), *ways)
        told = "\\*" if offered(words) else ""
        ratios = [f"{own / width:.3f}" if own < 1 else "-" for width in (least, ours)]
        cells = [shown(own), shown(session(n, k, delta=DELTA, later=True)[0]), *map(shown, same.values())]
        cells += [ratios[0] + told, *map(shown, ways)]
        cells += [shown(other("splitting", n, k)), shown(published), ratios[1], shown(naive(n, k))]
        lines.append(f"| {n:,}, {k:,} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return "\n".join([*lines, ""])


def recorded() -> list[dict[str, Any]]:
    """The table of evidence/widths.md: for each n and k the half-width by each theorem, None where there is none."""
    lines = RECORD.read_text(encoding="utf-8").splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    (_, *names), _, *rows = table
    kept = [(place, name) for place, name in enumerate(names, 1) if "/" not in name]
    found = []
    for row in rows:
        n, k = (int(part.replace(",", "")) for part in row[0].split(", "))
        widths = {name: None if row[place] == "-" else float(row[place]) for place, name in kept}
        found.append({"n": n, "k": k, "widths": widths})
    return found


CURVES = {
    "splitting": "splitting the rows",
    "best published": "best published bound we know of",
    "gaussian": "ours, by transfer from privacy",
    "plain path, (1, 1e-6)": "a session with (1, 1e-6)",
    "leave-out": "leave-out theorem, any budget",
    "non-adaptive Bonferroni (invalid)": "fixed questions (invalid here)",
}


def draw(target: Path = PICTURE, sizes: tuple[int, ...] = (10**4, 10**6)) -> None:
    """Half-widths against the number of answers, with a mark of what was drawn, which a test compares."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    found = recorded()
    for axes, n in zip(figure.subplots(1, len(sizes), sharey=True), sizes, strict=True):
        lines = [line for line in found if line["n"] == n]
        for column, name in CURVES.items():
            points = [
                (line["k"], line["widths"][column]) for line in lines if line["widths"][column] is not None
            ]
            style = ":" if "invalid" in name else "o-"
            axes.loglog(*zip(*points, strict=True), style, markersize=3, label=name)
        axes.set(title=f"{n:,} rows", xlabel="adaptive answers")
    figure.axes[0].set_ylabel("half-width, all together at .95")
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, fontsize=8)
    figure.savefig(target, dpi=120, metadata={"Description": drawn()})


def drawn() -> str:
    """A mark of what the picture is drawn from."""
    return hashlib.sha256(json.dumps(recorded()).encode()).hexdigest()


if __name__ == "__main__":
    if sys.argv[1:] != ["picture"]:
        RECORD.write_text(page())
        print(f"wrote {RECORD.relative_to(ROOT)}")
    draw()
    print(f"drew {PICTURE.relative_to(ROOT)}")
