"""Find a ledger by its place."""

from __future__ import annotations

from pathlib import Path

from holdfast.errors import InputError
from holdfast.ledger.chained import ChainedLedger
from holdfast.ledger.sqlite import SqliteLedger

LEDGER_FILE = "ledger.sqlite"
"""The name of a store's ledger, in its folder."""


def open_ledger(
    place: str | Path,
    *,
    name: str | None = None,
    anchors: Path | str | None = None,
    create: bool = True,
    acknowledged: bool = False,
) -> ChainedLedger:
    """The ledger at a place: a store's folder, a SQLite file, or "postgresql://…#name"; made if new.

    With `create=False` a ledger that is not there is an InputError.
    """
    text = str(place)
    if text.startswith(("postgresql://", "postgres://")):
        from holdfast.ledger.postgres import PostgresLedger

        address, _, fragment = text.partition("#")
        if not (name or fragment):
            raise InputError("expected the name of the ledger, got none; write postgresql://…#name")
        return PostgresLedger(address, name or fragment, anchors, create=create, acknowledged=acknowledged)
    path = Path(place)
    if path.is_dir():
        path = path / LEDGER_FILE
    if not create and not path.exists():
        raise InputError(
            f"expected a ledger at {path}, got none; give a store's folder, a file or an address"
        )
    return SqliteLedger(path, anchors, acknowledged=acknowledged)


def acknowledge(place: str | Path, *, name: str | None = None, anchors: Path | str | None = None) -> None:
    """Go on from an older copy, because the answers given after it are lost for good.

    What it means: the table is charged all that the anchor had seen, on top of what the copy has (which may
    have been charged elsewhere since), and each session all that it had left (the anchor does not know which was
    charged); raise a limit, or open another session, to go on. The chain keeps a fact `restored`. The lost
    answers themselves cannot be given again, and a question asked again gets fresh noise, which is paid for. A
    ledger that agrees with its anchor stays as it is.
    """
    open_ledger(place, name=name, anchors=anchors, create=False, acknowledged=True).close()
