"""`holdfast board init | submit | show`: a leaderboard for scripts, from files.

Exit codes: 0 done, 1 an error, 2 wrong usage, 3 no submissions left.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.errors import BudgetError
from holdfast.holdout.command import REFUSED, place_options, placed, said_in

if TYPE_CHECKING:
    from holdfast.holdout.leaderboard import Leaderboard


def _open(labels: Path, place: dict[str, Any], **terms: Any) -> Leaderboard:
    from holdfast.holdout.leaderboard import Leaderboard

    values, where = placed(labels, **place)
    return Leaderboard(values, **where, **terms)


@click.group()
def board() -> None:
    """A leaderboard that can't be overfitted: teams are tied unless one is certainly better."""


@board.command()
@click.argument("labels", type=click.Path(path_type=Path))
@click.option("--queries", type=int, required=True, help="how many submissions there will be in all")
@click.option("--metric", default="accuracy", show_default=True)
@click.option("--within", type=float, help="the half-width to certify [default: the narrowest]")
@click.option("--mode", help="votes, gaussian, ladder, … [default: the narrowest that is private]")
@place_options
def init(
    labels: Path,
    queries: int,
    metric: str,
    within: float | None,
    mode: str | None,
    **place: Any,
) -> None:
    """Open the board of LABELS (.npy, .csv, .txt, .parquet) and fix its terms."""
    opened = _open(labels, place, queries=queries, metric=metric, within=within, mode=mode)
    click.echo(f"{opened.looks_left():,} submissions, each within {opened.width:.4g}")
    opened.close()


@board.command()
@click.argument("labels", type=click.Path(path_type=Path))
@click.argument("team")
@click.argument("predictions", type=click.Path(path_type=Path))
@click.option("--predictions-column", help="the column of PREDICTIONS, if it has several")
@click.option("--ids", help="the column of ids in both files: rows are matched by it, not by their order")
@click.option("--per-team", type=int, help="how many submissions a team may make")
@click.option("--key", help="a name for this submission: under it a second one is free and the same")
@place_options
@click.pass_context
def submit(
    context: click.Context,
    /,
    labels: Path,
    team: str,
    predictions: Path,
    predictions_column: str | None,
    ids: str | None,
    per_team: int | None,
    key: str | None,
    **place: Any,
) -> None:
    """Submit PREDICTIONS for TEAM."""
    opened = _open(labels, place, per_team=per_team)
    try:
        click.echo(str(opened.submit(team, said_in(labels, predictions, predictions_column, ids), key=key)))
        click.echo(f"submissions left: {opened.looks_left(team):,}")
    except BudgetError as error:
        click.echo(f"refused: {error}", err=True)
        context.exit(REFUSED)
    finally:
        opened.close()


@board.command()
@click.argument("labels", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="print it as JSON")
@place_options
def show(labels: Path, as_json: bool, **place: Any) -> None:
    """Show the standings."""
    opened = _open(labels, place)
    if as_json:
        lines = [
            {"rank": s.rank, "team": s.team, "value": s.best.value, "low": s.best.low, "high": s.best.high,
             "submissions": s.submissions}
            for s in opened.standings()
        ]  # fmt: skip
        click.echo(json.dumps({"standings": lines, **opened.left.facts()}))
    else:
        click.echo(opened.table())
    opened.close()
