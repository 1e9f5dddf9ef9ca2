"""SQL cells in notebooks: `%load_ext holdfast`, then `%holdfast URL` and `%%holdfast --within 0.02`."""

from __future__ import annotations

import argparse
import re
import shlex
from typing import Any, NoReturn, Protocol

from holdfast.client.connection import Connection, connect
from holdfast.errors import InputError


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

    def ask(self, line: str, cell: str) -> Any:
        """%%holdfast [NAME =] [--within X] [--table NAME] [--estimate] [--confirm] [--out NAME]: ask in SQL."""
        if self._connection is None:
            raise InputError("not connected; run %holdfast URL first")
        named = re.match(r"\s*([A-Za-z_]\w*)\s*=(?!=)", line)
        asked = _ASK.parse_args(_words(line[named.end() :] if named else line))
        session = self._connection.session(asked.table or self._table, confirm=asked.confirm)
        how = {name: getattr(asked, name) for name in ("within", "rho", "epsilon", "mechanism")}
        given = {name: value for name, value in how.items() if value is not None}
        result = (session.estimate if asked.estimate else session).sql(cell.strip(), **given)
        name = named.group(1) if named else asked.out
        if name is not None:
            self._shell.push({name: result})
        return _shown(result, asked.estimate)


def _shown(result: Any, planned: bool) -> Any:
    """Plans as words; one answer as itself, which the notebook displays; several one below the other."""
    if planned:
        print("\n\n".join(plan.explain() for plan in (result if isinstance(result, list) else [result])))
        return None
    if not isinstance(result, list):
        return result
    from IPython.display import display

    for answer in result:
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
