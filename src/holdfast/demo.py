"""The main job, shown at work: an adaptive analyst questions a million rows whose truth is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.audit.overfitting.chance import fresh_generator
from holdfast.noise.bits import system_bits
from holdfast.query.evaluate import compile_predicate
from holdfast.query.parse import parse_predicate
from holdfast.query.schema import Boolean, Category, Integer, Schema
from holdfast.session import Answer, Session, Table
from holdfast.session import open as open_table

if TYPE_CHECKING:
    from rich.console import Console

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


def analyst(session: Session, scale: float = 1.0) -> Iterator[tuple[str, str, Answer]]:
    """Questions that depend on earlier answers: follow whatever looks largest, ever more exactly.

    Yields what was added to the question, the whole question, and its answer.
    """
    found: list[tuple[float, str]] = []

    def ask(added: str, base: str = "", within: float = 0.01) -> tuple[str, str, Answer]:
        where = f"{base} AND {added}" if base else added
        answer = session.fraction(where, within=scale * within)
        found.append((answer.value, where))
        return f"… {added}" if base else added, where, answer

    def best() -> str:
        where = max(found)[1]
        found.clear()
        return where

    for region in REGIONS:
        yield ask(f"region = '{region}'", within=0.04)
    base = best()
    for least in (0, 1, 2, 3, 4, 6):
        yield ask(f"visits >= {least}" if least else "visits = 0", base, within=0.03)
    base = best()
    for decade in range(20, 80, 10):
        yield ask(f"age BETWEEN {decade} AND {decade + 9}", base)
    base = best()
    for clause in ("smoker = 'yes'", "smoker = 'no'", "insured", "NOT insured"):
        yield ask(clause, base)
    base = best()
    for clause in ("visits <= 2", "visits > 4"):
        yield ask(clause, base, within=0.008)


def run(rows: int = ROWS) -> int:
    """Run the demo in the terminal; returns the number of intervals that missed."""
    from rich.console import Console

    console = Console()
    console.print(f"[bold]Holdfast[/bold]: drawing {rows:,} people from a population whose truth is known …")
    people = population()
    with console.status("building the table"):
        table: Table = open_table(people.draw(rows), SCHEMA)
    session = table.session(epsilon=1.0, delta=1e-6, confidence=0.95, queries=100)
    console.print(f"Opened a session with {session.report().budget}.")
    console.print(
        "Each question is chosen after seeing the answers before it; each interval covers the population:\n"
    )
    asked, missed = _show(console, people, session, scale=max(1.0, (ROWS / rows) ** 0.5))
    for line in closing(session, asked, missed):
        console.print(line)
    console.print()
    _show_attack(console)
    console.print(
        "\nTry it on your own table: [bold]holdfast ingest people.csv --suggest > people.toml[/bold]"
    )
    return missed


def _show(console: Console, people: Population, session: Session, scale: float) -> tuple[int, int]:
    """The analyst's questions, one line each."""
    from rich.table import Table as Grid

    grid = Grid("question", "answer", "±", "truth", "rows read", "rho", "left", box=None)
    for column in grid.columns[1:]:
        column.justify, column.no_wrap = "right", True
    missed = asked = 0
    for added, where, answer in analyst(session, scale):
        truth = people.truth(where)
        inside = answer.low <= truth <= answer.high
        asked, missed = asked + 1, missed + (not inside)
        grid.add_row(
            added,
            f"{answer.value:.4f}",
            f"{answer.noise + answer.sampling + answer.population:.4f}",
            f"[{'green' if inside else 'red'}]{truth:.4f}[/]",
            f"{answer.rows_read:,}",
            f"{answer.rho:.1e}",
            f"{session.remaining.rho / (session.spent.rho + session.remaining.rho):.2%}",
        )
    console.print(grid)
    console.print()
    return asked, missed


def closing(session: Session, asked: int, missed: int) -> list[str]:
    """A few lines that a newcomer understands."""
    spent = session.spent
    return [
        f"{asked} questions; {asked - missed} intervals hold the truth of the whole population, not only of the rows.",
        "Nobody's row can be told from the answers: together they are differentially private with "
        f"epsilon {spent.epsilon:.3f} (delta {spent.delta:.0e}), and the session refuses before its budget "
        "of epsilon 1 is passed.",
    ]


def _show_attack(console: Console, rows: int = 20_000, queries: int = 2_000) -> None:
    """The same adaptive analyst against ordinary answers and against ours."""
    from holdfast.audit import ANSWERERS, ATTACKS, play

    console.print(
        f"[bold]Now an attack.[/bold] {queries:,} questions about pure chance (the truth is 0.5 each time) on "
        f"{rows:,} rows, then one more that combines whatever looked promising:"
    )
    for name, label in (("naive", "ordinary answers"), ("gaussian", "Holdfast")):
        outcome = play(
            ATTACKS["single-adaptive"],
            ANSWERERS[name],
            rows=rows,
            queries=queries,
            generator=fresh_generator(),
        )
        claim = 0.5 + outcome.last
        verdict = "[red]outside[/]" if outcome.missed else "[green]inside[/]"
        console.print(
            f"  {label:17} finds {claim:.3f} and claims within {outcome.width:.3f}: "
            f"the truth .500 is {verdict} its interval"
        )
