"""SQL cells in notebooks: `%load_ext holdfast`, then `%holdfast URL` and `%%holdfast --within 0.02`."""

from __future__ import annotations

import argparse
import re
import shlex
from typing import Any, NoReturn, Protocol

from holdfast.client.connection import Connection, connect
from holdfast.errors import InputError
from holdfast.planning.keywords import Accuracy
from holdfast.session import Answer


class Shell(Protocol):
    """What is used of IPython's InteractiveShell."""

    def register_magic_function(self, func: Any, magic_kind: str, magic_name: str) -> None:
        """Make a function a magic."""

    def push(self, variables: dict[str, Any]) -> None:
        """Set variables of the notebook."""


def load_ipython_extension(shell: Shell) -> None:
    """What `%load_ext holdfast` calls."""
    magic = Magic(shell)
    shell.register_magic_function(magic.connect, "line", "holdfast")
    shell.register_magic_function(magic.ask, "cell", "holdfast")


class Magic:
    """The magics of one notebook, and the gateway that it is connected to."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._connection: Connection | None = None
        self._table: str | None = None

    def connect(self, line: str) -> None:
        """%holdfast URL [TOKEN] [--table NAME] [--insecure]: connect; HOLDFAST_TOKEN is the token if none is given."""
        asked = _CONNECT.parse_args(_words(line))
        self._connection = connect(asked.url, asked.token, insecure=asked.insecure)
        self._table = asked.table
        tables = ", ".join(f"{table.id} ({table.rows:,} rows)" for table in self._connection.tables)
        print(f"connected as {self._connection.me['name']}; tables: {tables or 'none'}")

    def ask(self, line: str, cell: str) -> Answer | None:
        """%%holdfast [NAME =] [--within X] [--table NAME] [--estimate] [--confirm] [--out NAME]: ask in SQL.

        NAME is the list of answers, or of plans. One answer is the cell's value, which the notebook displays; several
        are displayed one below the other, and plans are printed in words.
        """
        if self._connection is None:
            raise InputError("expected a gateway, got none; run %holdfast URL first")
        named = re.match(r"\s*([A-Za-z_]\w*)\s*=(?!=)", line)
        asked = _ASK.parse_args(_words(line[named.end() :] if named else line))
        session = self._connection.session(asked.table or self._table, confirm=asked.confirm)
        how: Accuracy = {
            "within": asked.within, "rho": asked.rho, "epsilon": asked.epsilon, "mechanism": asked.mechanism
        }  # fmt: skip
        name, text = named.group(1) if named else asked.out, cell.strip()
        plans = session.estimate.sql(text, **how) if asked.estimate else []
        answers = [] if asked.estimate else session.sql(text, **how)
        if name is not None:
            self._shell.push({name: plans or answers})
        if plans:
            print("\n\n".join(plan.explain() for plan in plans))
        if len(answers) == 1:
            return answers[0]
        for answer in answers:
            from IPython.display import display

            display(answer)  # type: ignore[no-untyped-call]
        return None


class _Parser(argparse.ArgumentParser):
    """A parser whose mistakes are errors of ours: a notebook is not to exit. They don't repeat what was given."""

    def error(self, message: str) -> NoReturn:
        raise InputError(
            f"expected {self.format_usage().strip().removeprefix('usage: ')}, got something else"
        )


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        raise InputError("expected closed quotes on the line, got an open one") from None


_CONNECT = _Parser(prog="%holdfast", add_help=False)
_CONNECT.add_argument("url")
_CONNECT.add_argument("token", nargs="?")
_CONNECT.add_argument("--table")
_CONNECT.add_argument("--insecure", action="store_true")

_ASK = _Parser(prog="%%holdfast", add_help=False)
for _name in ("--within", "--rho", "--epsilon"):
    _ASK.add_argument(_name, type=float)
for _name in ("--mechanism", "--table", "--out"):
    _ASK.add_argument(_name)
for _name in ("--estimate", "--confirm"):
    _ASK.add_argument(_name, action="store_true")
