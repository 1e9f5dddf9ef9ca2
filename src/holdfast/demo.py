"""The main job, shown at work: an adaptive analyst questions a million rows whose truth is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.noise.bits import system_bits
from holdfast.query.evaluate import compile_predicate
from holdfast.query.parse import parse_predicate
from holdfast.query.schema import Boolean, Category, Integer, Schema
from holdfast.session import Answer, Session, Table
from holdfast.session import open as open_table

ROWS = 1_000_000
REGIONS = ("north", "east", "south", "west", "islands")
SCHEMA = Schema(
    age=Integer(18, 97),
    region=Category(*REGIONS),
    smoker=Category("no", "yes"),
    insured=Boolean(),
    visits=Integer(0, 11),
)


@dataclass(frozen=True)
class Population:
    """A known law over rows: every cell of the schema with its probability."""

    columns: dict[str, NDArray[Any]]
    probability: NDArray[np.float64]

    def truth(self, where: str) -> float:
        """The exact fraction of the population which satisfies a condition."""
        chosen = compile_predicate(parse_predicate(where, SCHEMA), SCHEMA)(self.columns)
        return float(self.probability[chosen].sum())

    def draw(self, rows: int) -> dict[str, NDArray[Any]]:
        """Independent rows, as values."""
        bounds = np.cumsum(self.probability)
        uniform = system_bits().words(rows) / 2.0**64 * bounds[-1]
        cells = np.minimum(np.searchsorted(bounds, uniform, side="right"), len(bounds) - 1)
        drawn = {name: codes[cells] for name, codes in self.columns.items()}
        return {
            "age": drawn["age"].astype(np.int64) + 18,
            "region": np.array(REGIONS)[drawn["region"]],
            "smoker": np.array(["no", "yes"])[drawn["smoker"]],
            "insured": drawn["insured"].astype(bool),
            "visits": drawn["visits"].astype(np.int64),
        }


def population() -> Population:
    """People whose smoking depends on age and region, and whose visits depend on both and on smoking."""
    shape = (80, len(REGIONS), 2, 2, 12)
    age, region, smoker, insured, visits = np.indices(shape)
    years = age + 18
    weight = np.exp(-(((years - 44) / 24.0) ** 2)) * np.array([3, 2, 4, 2, 0.6])[region]
    smoking = np.clip(0.12 + 0.05 * (region == 2) + 0.10 * ((years > 30) & (years < 55)), 0, 1)
    weight *= np.where(smoker == 1, smoking, 1 - smoking)
    covered = np.clip(0.75 + 0.002 * (years - 40) - 0.25 * (region == 4), 0, 1)
    weight *= np.where(insured == 1, covered, 1 - covered)
    rate = 1.0 + 0.03 * (years - 18) + 0.9 * smoker
    weight *= rate**visits * np.exp(-rate) / np.cumprod(np.maximum(np.arange(12), 1))[visits]
    columns = {
        name: cells.reshape(-1).astype(SCHEMA[name].dtype)
        for name, cells in zip(SCHEMA, (age, region, smoker, insured, visits), strict=True)
    }
    return Population(columns, (weight / weight.sum()).reshape(-1))


def analyst(session: Session, within: float) -> Iterator[tuple[str, Answer]]:
    """Questions that depend on earlier answers: follow whatever looks largest."""

    def ask(where: str) -> Iterator[tuple[str, Answer]]:
        answer = session.fraction(where, within=within)
        found.append((answer.value, where))
        yield where, answer

    found: list[tuple[float, str]] = []
    for region in REGIONS:
        yield from ask(f"smoker = 'yes' AND region = '{region}'")
    best = max(found)[1]
    found.clear()
    for decade in range(20, 90, 10):
        yield from ask(f"{best} AND age BETWEEN {decade} AND {decade + 9}")
    best = max(found)[1]
    found.clear()
    for least in (1, 2, 3, 4, 6, 8):
        yield from ask(f"{best} AND visits >= {least}")
    for coverage in ("insured", "NOT insured"):
        yield from ask(f"{best} AND {coverage}")
    best = max(found)[1]
    for other in REGIONS:
        yield from ask(f"NOT ({best}) AND region = '{other}' AND visits > 5")


def run(rows: int = ROWS) -> int:
    """Run the demo in the terminal; returns the number of intervals that missed."""
    from rich.console import Console
    from rich.table import Table as Grid

    console = Console()
    console.print(f"[bold]Holdfast[/bold]: drawing {rows:,} people from a population whose truth is known …")
    people = population()
    with console.status("building the table"):
        table: Table = open_table(people.draw(rows), SCHEMA)
    session = table.session(epsilon=1.0, delta=1e-6, confidence=0.95, queries=100)
    console.print(f"Opened a session with {session.report().budget}. The analyst follows the answers:\n")
    grid = Grid("question", "answer", "interval", "truth", "rows read", "rho", "budget left", box=None)
    for column in grid.columns[1:]:
        column.justify = "right"
    missed = asked = 0
    for where, answer in analyst(session, within=0.002):
        truth = people.truth(where)
        inside = answer.low <= truth <= answer.high
        asked, missed = asked + 1, missed + (not inside)
        grid.add_row(
            where,
            f"{answer.value:.4f}",
            f"[{answer.low:.4f}, {answer.high:.4f}]",
            f"[{'green' if inside else 'red'}]{truth:.4f}[/]",
            f"{answer.rows_read:,}",
            f"{answer.rho:.1e}",
            f"{session.remaining.rho / (session.spent.rho + session.remaining.rho):.1%}",
        )
    console.print(grid)
    console.print()
    for line in closing(session, asked, missed):
        console.print(line)
    return missed


def closing(session: Session, asked: int, missed: int) -> list[str]:
    """A few lines that a newcomer understands."""
    spent = session.spent
    return [
        f"{asked} questions, each chosen after seeing the answers before it; {asked - missed} intervals hold the truth.",
        "Nobody's row can be told from the answers: together they are differentially private with "
        f"epsilon {spent.epsilon:.2f} (delta {spent.delta:.0e}),",
        "and the session will refuse before its budget of epsilon 1 is passed. Try it on your own table:",
        "  holdfast ingest people.csv people.hf --suggest > people.toml",
    ]
