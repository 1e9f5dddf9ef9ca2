"""`holdfast ledger verify | export | acknowledge | close | move`: for owners and auditors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


def _place(function: Any) -> Any:
    """Where the ledger is; the same options for every command."""
    for option in (
        click.option(
            "--ledger", "name", help="the name of the ledger, where PLACE is a postgresql:// address"
        ),
        click.option("--anchors", type=click.Path(path_type=Path), help="the folder of its anchor"),
        click.argument("place"),
    ):
        function = option(function)
    return function


@click.group()
def ledger() -> None:
    """Check, export and restore a record of charges.

    PLACE is a store's or a holdout's folder, a ledger's SQLite file, or a postgresql:// address.
    """


@ledger.command()
@_place
def verify(place: str, name: str | None, anchors: Path | None) -> None:
    """Walk every fact of PLACE (or of an exported .ndjson file); exits with 1 where one does not fit."""
    from holdfast.ledger import open_ledger, verify, verify_export

    if place.endswith(".ndjson"):
        with click.open_file(place, encoding="utf-8") as lines:
            click.echo(verify_export(lines))
        return
    opened = open_ledger(place, name=name, anchors=anchors, create=False)
    click.echo(verify(opened))
    opened.close()


@ledger.command()
@_place
def export(place: str, name: str | None, anchors: Path | None) -> None:
    """Write PLACE as one JSON object a line; secret answers (noisy thresholds) only as digests."""
    from holdfast.ledger import export, open_ledger

    opened = open_ledger(place, name=name, anchors=anchors, create=False)
    for line in export(opened):
        click.echo(line)
    opened.close()


@ledger.command()
@_place
@click.option(
    "--i-know-answers-were-lost",
    "known",
    is_flag=True,
    required=True,
    help="the current ledger is gone for good; what was lost is counted as spent",
)
def acknowledge(place: str, name: str | None, anchors: Path | None, known: bool) -> None:
    """Go on from a restored backup of PLACE. Every session there is counted as spent to its limit."""
    from holdfast.ledger import acknowledge

    acknowledge(place, name=name, anchors=anchors)
    click.echo("acknowledged: what was lost is counted as spent; raise a limit or open new sessions to go on")


@ledger.command()
@_place
@click.argument("sessions", nargs=-1)
def close(place: str, name: str | None, anchors: Path | None, sessions: tuple[str, ...]) -> None:
    """Close SESSIONS of PLACE for ever: nothing new is answered there. Without any, list those that are open."""
    from holdfast.ledger import open_ledger

    opened = open_ledger(place, name=name, anchors=anchors, create=False)
    for session in sessions:
        opened.end(session)
    ended = opened.ended()
    click.echo(
        f"{len(ended)} closed; open: {', '.join(a.name for a in opened.accounts() if a.name not in ended) or 'none'}"
    )
    opened.close()


@ledger.command()
@_place
@click.argument("target")
def move(place: str, name: str | None, anchors: Path | None, target: str) -> None:
    """Move PLACE to TARGET (a file, or postgresql://…#name), which counts from then on."""
    from holdfast.ledger import move_ledger, open_ledger

    source = open_ledger(place, name=name, anchors=anchors, create=False)
    opened = open_ledger(target, anchors=anchors)
    move_ledger(source, opened)
    click.echo(f"moved to {opened.address}")
    source.close()
    opened.close()
