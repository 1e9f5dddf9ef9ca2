"""The command line: `holdfast ingest | ask | plan | serve | ledger | audit | holdout | board | demo | doctor | …`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast import __version__
from holdfast.errors import HoldfastError
from holdfast.holdout.board_command import board
from holdfast.holdout.command import demo_leaderboard, holdout
from holdfast.ledger.command import ledger
from holdfast.progress import bar
from holdfast.service.backup import backup, restore
from holdfast.service.operator import gateway
from holdfast.service.serve import serve

if TYPE_CHECKING:
    from holdfast.query.schema import Schema


class _Commands(click.Group):
    """Turns our errors into one clear line and exit status 1; never a traceback."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except HoldfastError as error:
            raise click.ClickException(str(error)) from None


@click.group(cls=_Commands)
@click.version_option(__version__, prog_name="holdfast")
def main() -> None:
    """Ask a dataset question after question: every answer is private and comes with an honest interval."""


@main.command()
@click.argument("data", type=click.Path(exists=True, path_type=Path))
@click.argument("store", type=click.Path(path_type=Path), required=False)
@click.option(
    "--schema", "schema_path", type=click.Path(exists=True, path_type=Path), help="the declaration, as TOML"
)
@click.option(
    "--suggest", is_flag=True, help="read DATA and print a schema to be edited; for the owner's eyes only"
)
@click.option(
    "--rows-per-unit",
    type=int,
    help="the most rows that one person may own; without --unit 1 unless said otherwise",
)
@click.option(
    "--unit",
    help="the column that says whose row it is: then people are protected, and rows beyond the bound are left out",
)
@click.option(
    "--events",
    nargs=4,
    multiple=True,
    metavar="NAME FILE SCHEMA BOUND",
    help="with --unit: a table with at most BOUND rows for each unit, of which DATA has one row; may be repeated",
)
@click.option(
    "--order",
    multiple=True,
    metavar="[TABLE.]COLUMN",
    help="with --unit: the column by which the first and the last row of a unit are known; once for each table",
)
@click.option("--overwrite", is_flag=True, help="replace an existing store, and with it its ledger")
def ingest(
    data: Path,
    store: Path | None,
    schema_path: Path | None,
    suggest: bool,
    rows_per_unit: int | None,
    unit: str | None,
    events: tuple[tuple[str, str, str, str], ...],
    order: tuple[str, ...],
    overwrite: bool,
) -> None:
    """Write DATA (CSV, Parquet) into STORE, a folder of memory-mapped columns."""
    from holdfast.data.open import ingest as write
    from holdfast.data.open import suggest_toml
    from holdfast.query.schema import Schema

    if suggest:
        click.echo(
            "# Suggested from the data itself: for your eyes only. Check every bound before you publish it,"
        )
        click.echo("# because a bound that was read off the rows tells about them.")
        click.echo(suggest_toml(data))
        return
    if store is None or schema_path is None:
        raise click.UsageError("give STORE and --schema FILE, or --suggest to have a schema proposed")
    schema = Schema.from_toml(schema_path)
    if unit is not None or events or order:
        _ingest_units(data, store, schema, unit, rows_per_unit, events, order, overwrite)
        return
    with bar(f"reading {data.name}") as advance:
        bound = 1 if rows_per_unit is None else rows_per_unit
        write(data, store, schema, overwrite=overwrite, rows_per_unit=bound, progress=advance)
    click.echo(f"wrote {store}")


def _ingest_units(
    data: Path,
    store: Path,
    schema: Schema,
    unit: str | None,
    rows_per_unit: int | None,
    events: tuple[tuple[str, str, str, str], ...],
    order: tuple[str, ...],
    overwrite: bool,
) -> None:
    """`ingest`, of tables around one unit. The secret that chooses rows goes into the store's own ledger."""
    from holdfast.data.unit_open import declared_units, ingest_units
    from holdfast.ledger import LEDGER_FILE, MemoryLedger, SqliteLedger, copy_ledger
    from holdfast.query.schema import Schema

    if not events:
        if len(order) > 1:
            raise click.UsageError("give --order once for one table")
        declared = declared_units(data, schema, unit, rows_per_unit, *order)
    else:
        own = data.name.split(".")[0]
        if rows_per_unit is not None:
            raise click.UsageError(
                f"{own} has one row for each unit; give the bounds of others with --events"
            )
        if len({own, *(name for name, *_ in events)}) <= len(events):
            raise click.UsageError(f"give each table of events a name of its own, other than {own}")
        files = {own: data} | {name: Path(file) for name, file, _, _ in events}
        schemas = {own: schema} | {name: Schema.from_toml(path) for name, _, path, _ in events}
        bounds: dict[str, Any] = {
            name: int(bound) if bound.isdecimal() else bound for name, *_, bound in events
        }
        orders = dict(name.partition(".")[::2] for name in order)
        declared = declared_units(files, schemas, unit, bounds, orders)
    kept = MemoryLedger()

    def beside(folder: Path) -> None:
        with closing(SqliteLedger(folder / LEDGER_FILE)) as ledger:
            copy_ledger(kept, ledger)

    with bar(f"reading {data.name}") as advance:
        ingest_units(declared, store, kept.secret, overwrite=overwrite, progress=advance, beside=beside)
    click.echo(f"wrote {store}")


@main.command()
@click.argument("store", type=click.Path(exists=True, path_type=Path))
@click.argument("question")
@click.option("--within", type=float, help="the half-width of the interval [default: the planned one]")
@click.option("--epsilon", type=float, help="the budget of all questions asked under this session's name")
@click.option(
    "--delta", type=float, help="with --epsilon; 0 for pure epsilon-DP, which is less exact [default: 1e-6]"
)
@click.option("--rho", type=float, help="the same budget in zero-concentrated privacy")
@click.option(
    "--queries",
    type=int,
    help="how many answers a new session is planned for; 0 for any number [default: 100]",
)
@click.option("--confidence", type=float, help="of all intervals together [default: 0.95]")
@click.option(
    "--target",
    type=click.Choice(["population", "table"]),
    help="population: the rows are a sample, and intervals cover what they were drawn from, however the questions "
    "depend on earlier answers; table: the rows are all there is, and intervals cover the noise alone "
    "[default: population]",
)
@click.option(
    "--session", "name", default="ask", show_default=True, help="the name under which the budget is kept"
)
@click.option("--estimate", is_flag=True, help="say only what it would cost; nothing is read or charged")
@click.option("--json", "as_json", is_flag=True, help="print the answer as JSON")
def ask(
    store: Path,
    question: str,
    within: float | None,
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
    queries: int | None,
    confidence: float | None,
    target: str | None,
    name: str,
    estimate: bool,
    as_json: bool,
) -> None:
    """Ask STORE a QUESTION: a condition such as "age > 40" (its fraction), or a SELECT.

    The budget lives in the store's ledger: asking again tomorrow goes on spending it. It is set by --epsilon
    (or --rho) the first time and may be left out afterwards. The session is planned then: each of its answers has
    the half-width that is printed, unless --within asks for another.
    """
    from rich.console import Console

    from holdfast.session import open as open_table
    from holdfast.session.questions import Questions

    table = open_table(store)
    opens = epsilon is not None or rho is not None
    session = table.session(
        epsilon=epsilon,
        delta=1e-6 if epsilon is not None and delta is None else delta or None,
        rho=rho,
        queries=100 if opens and queries is None else queries or None,
        confidence=confidence,
        target=target,
        name=name,
    )

    def put(questions: Questions[Any]) -> Sequence[Any]:
        if question.lstrip().lower().startswith("select"):
            return questions.sql(question, within=within)
        return [questions.fraction(question, within=within)]

    advice: list[str] = []
    if estimate:
        for planned in put(session.estimate):
            Console().print(planned.explain())
    else:
        with suppress(HoldfastError):  # what cannot be asked is said by the question itself
            advice = [planned.advice for planned in put(session.estimate)]
        for answer in put(session):
            if as_json:
                click.echo(answer.to_json())
            else:
                Console().print(answer)
    if not as_json:
        for words in dict.fromkeys(filter(None, advice)):
            click.secho(words, fg="yellow")
        left = session.remaining
        epsilon_left = "" if left.epsilon is None else f" (epsilon {left.epsilon:.4g})"
        unit = {"zcdp": "rho", "pure": "epsilon", "gdp": "mu squared"}[session.currency]
        click.echo(f"left in session {name!r}: {unit} {float(left):.4g}{epsilon_left}")
        if (meter := session.meter) is not None:
            click.echo(str(meter))


@main.command()
@click.option("--rows", type=float, required=True, help="how many rows, e.g. 1e6")
@click.option("--within", type=float, required=True, help="the half-width that every answer shall keep")
@click.option("--queries", type=float, help="how many adaptive questions; then the chosen noise is shown too")
@click.option("--confidence", type=float, default=0.95, show_default=True)
def plan(rows: float, within: float, queries: float | None, confidence: float) -> None:
    """Say how many adaptive questions can be answered for the population, and by which theorem.

    Needs no data: the bounds are functions of public numbers.
    """
    from rich.console import Console
    from rich.table import Table

    from holdfast import validity

    table = Table("bound", "adaptive queries", "answers", "private", "from", box=None)
    best: tuple[int, str] = (0, "none")
    for bound in validity.bounds():
        if not (bound.adaptive and bound.certified):
            continue
        most = validity.most_queries(bound.name, rows=int(rows), within=within, confidence=confidence)
        if bound.private and bound.mechanism in ("gaussian", "votes"):
            best = max(best, (most, bound.name))
        source = bound.reference.replace("docs/theorems.md", "Holdfast")
        shown = f"{most:,}" if most < 10**12 else f"{most:.3g}"
        table.add_row(bound.name, shown, bound.mechanism, "yes" if bound.private else "no", source)
    console = Console()
    console.print(
        f"{int(rows):,} rows; how many adaptive answers, each within {within:g}, hold together with confidence "
        f"{confidence:g}:"
    )
    console.print(table)
    if best[0]:
        console.print(f"chosen: {best[1]}, {best[0]:,} queries")
    else:
        least = validity.width("leave-out", rows=int(rows), queries=1, confidence=confidence)
        console.print(f"no private answer is certified; a single one is within {least:.3g} at best")
    if queries is not None:
        chosen = validity.plan(rows=int(rows), queries=int(queries), within=within, confidence=confidence)
        console.print(str(chosen))
        sys.exit(0 if chosen.possible else 1)


@main.command()
@click.option(
    "--effort", type=float, default=1.0, show_default=True, help="more runs find smaller violations"
)
@click.option("--plot", type=click.Path(path_type=Path), help="write a picture of claimed against measured")
def audit(effort: float, plot: Path | None) -> None:
    """Attack every mechanism in the package; exit with 1 if a claim is refuted."""
    from holdfast.audit import run_all

    with bar("auditing") as advance:
        report = run_all(lambda name, done, total: advance(done, total), effort=effort)
    click.echo(str(report))
    if plot is not None:
        report.plot(plot)
        click.echo(f"wrote {plot}")
    sys.exit(report.exit_status)


@main.group(invoke_without_command=True)
@click.option("--rows", default=1_000_000, show_default=True, help="the size of the table")
@click.pass_context
def demo(context: click.Context, rows: int) -> None:
    """Play an adaptive analyst on a million rows whose truth is known, then an attack."""
    from holdfast.demo import run

    if context.invoked_subcommand is None:
        run(rows)


@main.command()
def doctor() -> None:
    """Say what is installed, and what each extra would add; exit with 1 if the core does not work."""
    from holdfast.doctor import examine

    findings = examine()
    click.echo("\n".join(str(finding) for finding in findings))
    sys.exit(any(finding.needed and not finding.fine for finding in findings))


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that lets SHELL complete these commands: eval "$(holdfast completion bash)"."""
    from click.shell_completion import get_completion_class

    complete = get_completion_class(shell)
    assert complete is not None, "click knows the shells that it is asked for above"
    click.echo(complete(main, {}, "holdfast", "_HOLDFAST_COMPLETE").source())


main.add_command(holdout)
main.add_command(board)
main.add_command(ledger)
main.add_command(serve)
main.add_command(gateway)
main.add_command(backup)
main.add_command(restore)
demo.add_command(demo_leaderboard)
