"""`holdfast holdout init | score | status | serve`: a holdout for scripts and CI.

Exit codes: 0 done (and any bar cleared), 1 an error, 2 wrong usage, 3 no looks left, 4 the bar not cleared.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.errors import BudgetError, InputError

if TYPE_CHECKING:
    from holdfast.holdout.reusable import ReusableHoldout

REFUSED, NOT_CLEARED = 3, 4


def place_options(function: Any) -> Any:
    """Whose the labels are and where looks are counted; the same options for every command."""
    for option in (
        click.option("--column", help="the column of LABELS, if it has several and none is called label"),
        click.option(
            "--units", help="the column of LABELS that says whose row it is: people count, not their rows"
        ),
        click.option(
            "--rows-per-unit", type=int, help="with --units: how many rows of one are kept, the first"
        ),
        click.option(
            "--ledger",
            help="where looks are counted: a file, a folder or postgresql://…#name; always the same for one LABELS",
        ),
        click.option(
            "--anchors",
            type=click.Path(path_type=Path),
            help="a folder elsewhere, by which old copies are noticed",
        ),
    ):
        function = option(function)
    return function


def placed(
    labels: Path,
    *,
    column: str | None,
    units: str | None,
    rows_per_unit: int | None,
    ledger: str | None,
    anchors: Path | None,
) -> tuple[Any, dict[str, Any]]:
    """The labels of a file, and whose they are and where their looks are counted: there, or in the user's own files."""
    from holdfast.holdout.file_column import read_column
    from holdfast.holdout.fingerprint import fingerprint, labels_array

    if units is not None and labels.suffix.lower() not in (".csv", ".parquet"):
        raise InputError(
            f"expected a .csv or .parquet file with --units, got {labels.name}; its columns need names"
        )
    values = labels_array(read_column(labels, column, besides=units, usual="label"))
    home = (
        Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "holdfast" / "holdouts"
    )
    return values, {
        "ledger": ledger or home / f"{fingerprint(values)}.sqlite",
        "anchors": anchors,
        "units": None if units is None else read_column(labels, units),
        "rows_per_unit": rows_per_unit,
    }


def _open(labels: Path, place: dict[str, Any], **terms: Any) -> ReusableHoldout:
    """The holdout of these labels."""
    from holdfast.holdout.reusable import ReusableHoldout

    values, where = placed(labels, **place)
    return ReusableHoldout(values, **where, **terms)


def said_in(labels: Path, predictions: Path, column: str | None, ids: str | None) -> Any:
    """The predictions of a file, in the order of the labels' rows."""
    from holdfast.holdout.file_column import read_column
    from holdfast.holdout.submission_file import SubmissionFolder

    if ids is None:
        return read_column(predictions, column)
    below = SubmissionFolder(predictions.resolve().parent, read_column(labels, ids))
    return below.read(predictions.name, column=column, id_column=ids)


@click.group()
def holdout() -> None:
    """Score models on one holdout again and again, and still believe the scores."""


@holdout.command()
@click.argument("labels", type=click.Path(path_type=Path))
@click.option("--queries", type=int, required=True, help="how many looks there will be in all")
@click.option("--within", type=float, help="the half-width to certify [default: the narrowest]")
@click.option("--confidence", type=float, default=0.95, show_default=True)
@click.option(
    "--mode",
    help="votes, gaussian or thresholdout; or discretised or guess-and-check, which are not private [default: the "
    "narrower of the first two]",
)
@click.option(
    "--private/--not-private",
    default=None,
    help="whether answers must be differentially private for the labels [default: yes, unless --mode names one "
    "that is not]. Labels can be worked out from answers that are not private, one for each look",
)
@click.option("--metric", default="accuracy", show_default=True)
@place_options
def init(
    labels: Path,
    queries: int,
    within: float | None,
    confidence: float,
    mode: str | None,
    private: bool | None,
    metric: str,
    **place: Any,
) -> None:
    """Open the holdout of LABELS (.npy, .csv, .txt, .parquet) and fix its terms."""
    with _open(
        labels, place,
        queries=queries, within=within, confidence=confidence, mode=mode, private=private, metric=metric,
    ) as opened:  # fmt: skip
        click.echo(str(opened.design))


@holdout.command()
@click.argument("labels", type=click.Path(path_type=Path))
@click.argument("predictions", type=click.Path(path_type=Path))
@click.option("--metric", help="the score to compute [default: the one named at init]")
@click.option("--predictions-column", help="the column of PREDICTIONS, if it has several")
@click.option("--ids", help="the column of ids in both files: rows are matched by it, not by their order")
@click.option("--train-score", type=float, help="your own estimate; says whether it holds on the labels")
@click.option("--at-least", type=float, help="exit 4 unless the whole interval is at least this")
@click.option("--at-most", type=float, help="exit 4 unless the whole interval is at most this")
@click.option("--key", help="a name for this look: asked again under it, the same answer is free")
@click.option("--json", "as_json", is_flag=True, help="print the answer as JSON")
@place_options
@click.pass_context
def score(
    context: click.Context,
    /,
    labels: Path,
    predictions: Path,
    metric: str | None,
    predictions_column: str | None,
    ids: str | None,
    train_score: float | None,
    at_least: float | None,
    at_most: float | None,
    key: str | None,
    as_json: bool,
    **place: Any,
) -> None:
    """Score PREDICTIONS against LABELS; takes one look (precision and recall take two)."""
    with _open(labels, place) as opened:
        said = said_in(labels, predictions, predictions_column, ids)
        try:
            if train_score is None:
                fine, answer = None, opened.score(said, metric=metric, key=key)
            else:
                verdict = opened.check(train_score, said, metric=metric, key=key)
                fine, answer = verdict.fine, verdict.answer
        except BudgetError as error:
            click.echo(f"refused: {error}", err=True)
            context.exit(REFUSED)
        left = opened.left
    if as_json:
        click.echo(json.dumps({**json.loads(answer.to_json()), "fine": fine, **left.facts()}))
    else:
        note = (
            ""
            if fine is None
            else ("; the training score is fine" if fine else "; the training score is not")
        )
        click.echo(f"{answer}{note}")
        click.echo(f"looks left: {left}")
    cleared = (at_least is None or answer.low >= at_least) and (at_most is None or answer.high <= at_most)
    if not cleared or fine is False:
        context.exit(NOT_CLEARED)


@holdout.command()
@click.argument("labels", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="print it as JSON")
@place_options
@click.pass_context
def status(
    context: click.Context,
    /,
    labels: Path,
    as_json: bool,
    **place: Any,
) -> None:
    """Say what was planned for LABELS and how many looks are left; exit 3 if none."""
    with _open(labels, place) as opened:
        used, left, plan = opened.looks_used, opened.left, opened.design
    if as_json:
        facts = {
            "rows": plan.rows, "mode": plan.mode, "private": plan.private, "width": plan.width,
            "confidence": plan.confidence, "queries": plan.queries, "looks_used": used,
        }  # fmt: skip
        click.echo(json.dumps(facts | left.facts()))
    else:
        click.echo(f"{plan}\nlooks used: {used:,}, left: {left}")
    if not left.looks:
        context.exit(REFUSED)


@holdout.command()
@click.argument("labels", type=click.Path(path_type=Path))
@click.option(
    "--not-private", is_flag=True, help="serve a mode that is not private: each look may reveal a label"
)
@click.option(
    "--files", type=click.Path(path_type=Path), help="a folder with files of predictions that can be scored"
)
@click.option("--ids", help="the column of LABELS with ids, by which the rows of files are matched")
@place_options
def serve(
    labels: Path,
    not_private: bool,
    files: Path | None,
    ids: str | None,
    **place: Any,
) -> None:
    """Serve LABELS to an agent over MCP (stdio), which scores models and hears differentially private answers.

    A holdout whose mode is not private is refused without --not-private; with it, every answer says so. An agent with
    a shell under the same user can read LABELS: run this as another user.
    """
    from holdfast.holdout.file_column import read_column
    from holdfast.holdout.mcp import SAME_USER, server
    from holdfast.holdout.submission_file import SubmissionFolder

    click.echo(SAME_USER, err=True)
    below = None
    if files is not None:
        below = SubmissionFolder(files, None if ids is None else read_column(labels, ids))
    elif ids is not None:
        raise click.UsageError("--ids goes with --files")
    with _open(labels, place) as opened:
        server(opened, opened.metric.name, private=not not_private, files=below).run("stdio")


@click.command("leaderboard")
@click.option("--rows", default=4000, show_default=True, help="rows of the test set")
@click.option("--submissions", default=4000, show_default=True, help="what each attacker may submit")
@click.option("--picture", type=click.Path(path_type=Path), help="write a PNG here (needs matplotlib)")
def demo_leaderboard(rows: int, submissions: int, picture: Path | None) -> None:
    """Attack an ordinary leaderboard and a guarded one, live, and show the truth at the end."""
    from holdfast.holdout.attack_demo import run

    run(rows, submissions, picture)
