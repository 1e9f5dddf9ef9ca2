"""One of two processes that open a table at once; it stops between its own checks and the ledger's transaction."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import holdfast as hf
from holdfast.ledger import Account, ChainedLedger, memory, open_ledger, writer

ROWS = 400
DATA = {"x": np.arange(ROWS) % 100}
SCHEMA = hf.Schema(x=hf.Integer(0, 99))
_open = ChainedLedger.open


class Opener:
    """The other process, at the test's end."""

    def __init__(self, broken: bool) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ledger.dividing", "broken" if broken else ""],
            cwd=Path(__file__).parent.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def say(self, what: object) -> str:
        """Tell it something, and wait for what it says next."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def stop(self) -> None:
        self._process.communicate()


def _stopping(self: ChainedLedger, account: Account) -> Account:
    print("stopped", flush=True)
    sys.stdin.readline()
    return _open(self, account)


def _outcome(address: str, anchors: str, share: float | None, ask: bool) -> str:
    """Open the rows, perhaps with a share set aside, and perhaps a session; which units it is about, or the refusal."""
    ledger = open_ledger(address, anchors=anchors)
    try:
        table = hf.open(DATA, SCHEMA, ledger=ledger, set_aside=share)
        if ask:
            table.session(rho=1.0, queries=5, target="table").fraction("x < 50")
        return f"{table.rows} units"
    except hf.HoldfastError as error:
        return f"{type(error).__name__}: {error}"
    finally:
        ledger.close()


def main(broken: str) -> None:
    if broken:  # the check is made before the transaction only
        memory.check_part = writer.check_part = lambda account, divided, others: None
    for line in sys.stdin:
        how: dict[str, Any] = json.loads(line)
        ChainedLedger.open = _stopping if how.pop("stop") else _open  # type: ignore[method-assign]
        print(_outcome(**how), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
