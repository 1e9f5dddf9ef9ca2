"""A ledger that was moved counts in one place only; a store has one budget, wherever it is kept."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from services import postgres

import holdfast as hf
from holdfast.cli import main
from holdfast.errors import InputError, LedgerError
from holdfast.ledger import (
    Account,
    ChainedLedger,
    Charge,
    MemoryLedger,
    PostgresLedger,
    SqliteLedger,
    Totals,
    move_ledger,
    open_ledger,
    verify,
    verify_export,
)
from holdfast.ledger.move import _arrive
from holdfast.ledger.postgres import without_password
from ledger.homes import HOMES, Home

KINDS = list(itertools.product(sorted(HOMES), sorted(HOMES)))


def homes(folder: Path, source: str, target: str) -> tuple[Home, Home]:
    for name in ("source", "target"):
        (folder / name).mkdir()
    return HOMES[source](folder / "source"), HOMES[target](folder / "target")


def filled(ledger: ChainedLedger) -> ChainedLedger:
    ledger.set_limit(Account("the table", "zcdp", 100))
    ledger.open(Account("s", "zcdp", 40))
    entry = ledger.reserve("s", "open", "open", "{}", Charge(5, 5))
    ledger.reserve("s", "pending", "pending", "{}", Charge(5, 5))
    ledger.record(entry.id, "a secret", secret=True)
    ledger.open(Account("done", "zcdp", 40))
    ledger.end("done")
    return ledger


def alive(ledger: ChainedLedger, key: str) -> bool:
    """Whether a ledger accepts a charge."""
    try:
        ledger.open(Account("s", "zcdp", 40))
        ledger.reserve("s", key, "{}", "{}", Charge(1, 1))
    except LedgerError:
        return False
    return True


@pytest.mark.parametrize(("source", "target"), KINDS)
def test_a_moved_ledger_goes_on_elsewhere(source: str, target: str, tmp_path: Path) -> None:
    here, there = (home.open() for home in homes(tmp_path, source, target))
    filled(here)
    move_ledger(here, there)
    assert [(e.session, e.key, e.charge, e.answer, e.secret) for e in there.entries()] == [
        (e.session, e.key, e.charge, e.answer, e.secret) for e in here.entries()
    ]
    assert (there.limit(), list(there.accounts())) == (here.limit(), list(here.accounts()))
    assert there.ended() == here.ended() == {"done"}
    assert there.totals() == Totals(2, 2, 10)
    assert verify(here).moved == there.address
    assert verify(there).totals == here.totals()
    pending = here.find("s", "pending")
    assert pending is not None
    for charged in (
        lambda: here.reserve("s", "more", "{}", "{}", Charge(1, 1)),
        lambda: here.record(pending.id, "the answer is drawn there, once"),
        lambda: here.open(Account("new", "zcdp", 1)),
        lambda: here.set_limit(Account("the table", "zcdp", 1000)),
    ):
        with pytest.raises(LedgerError, match="moved to"):
            charged()
    assert alive(there, "more")
    move_ledger(here, there)  # once more is no harm
    with pytest.raises(LedgerError, match="empty"):
        move_ledger(here, here)
    here.close()
    there.close()


def killed_moves(source: ChainedLedger, target: ChainedLedger) -> list[Callable[[], None]]:
    """The steps of a move; a crash may come after each."""
    return [
        lambda: target.expect(source.id),
        lambda: source.retire(target.address),
        lambda: target.adopt(lambda writer: _arrive(source, writer)),
    ]


def never_both(folder: Path, order: tuple[int, ...]) -> bool:
    """Whether at most one of the two accepts charges after each step, in this order of steps."""
    for killed_after in range(len(order) + 1):
        place = folder / f"{order} {killed_after}"
        place.mkdir()
        here, there = (home.open() for home in homes(place, "sqlite", "sqlite"))
        filled(here)
        steps = killed_moves(here, there)
        for step in order[:killed_after]:
            steps[step]()
        living = [alive(here, "x"), killed_after > 0 and alive(there, "y")]
        if all(living):
            return False
        if not any(living):  # the move is finished by repeating it
            move_ledger(here, there)
            assert alive(there, "z")
            assert not alive(here, "z")
        here.close()
        there.close()
    return True


def test_a_crash_leaves_at_most_one_of_the_two_alive(tmp_path: Path) -> None:
    assert never_both(tmp_path, (0, 1, 2))
    assert not never_both(tmp_path, (2, 1))  # the broken twin: copied first, retired later


def test_the_command_line_moves_and_verifies_on_a_server(tmp_path: Path) -> None:
    here, there = homes(tmp_path, "sqlite", "postgres")
    filled(here.open()).close()
    anchors = ["--anchors", str(tmp_path)]  # neither has been seen from here

    def run(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, ["ledger", *words, *anchors])
        return result.exit_code, result.output

    assert run("move", here.address, there.address) == (0, f"moved to {there.address}\n")
    url, name = there.address.split("#")
    for words in (["verify", there.address], ["verify", url, "--ledger", name], ["verify", here.address]):
        status, text = run(*words)
        assert (status, "sound" in text) == (0, True)
    status, lines = run("export", url, "--ledger", name)
    assert status == 0
    assert verify_export(lines.splitlines()).totals == Totals(2, 2, 10)
    assert "a secret" not in lines
    assert run("close", there.address) == (0, "1 closed; open: s\n")
    assert run("close", there.address, "s") == (0, "2 closed; open: none\n")
    status, text = run("close", there.address, "stranger")
    assert status == 1 and "nothing to close" in text
    assert run("verify", url, "--ledger", "nobody's")[0] == 1
    assert run("verify", url)[0] == 1


def test_a_full_ledger_is_no_target(tmp_path: Path) -> None:
    here, there = (home.open() for home in homes(tmp_path, "sqlite", "sqlite"))
    filled(here)
    filled(there)
    with pytest.raises(LedgerError, match="empty"):
        move_ledger(here, there)
    assert alive(here, "still")
    here.close()
    there.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@host:5432/db",
        "postgresql://me@host/db?password=hunter2",
        "postgresql://host/db?sslmode=require&password=hunter2&user=me",
    ],
)
def test_no_password_is_shown(url: str) -> None:
    assert "hunter2" in url
    shown = without_password(url)
    assert "hunter2" not in shown
    assert "host" in shown and "/db" in shown


SCHEMA = hf.Schema(x=hf.Integer(0, 99))


def store(folder: Path) -> Path:
    data = {"x": np.arange(1000) % 100}
    hf.open(data, SCHEMA).save(folder / "rows.hf").close()
    return folder / "rows.hf"


def ask(table: hf.Table) -> str:
    session = table.session(rho=1.0, target="table", name="s")
    answer = session.fraction("x > 3", within=0.2).to_json()
    table.close()
    return answer


@pytest.mark.parametrize("kind", sorted(HOMES))
def test_a_store_may_keep_its_ledger_elsewhere(kind: str, tmp_path: Path) -> None:
    path, home = store(tmp_path), HOMES[kind](tmp_path)
    first = ask(hf.open(path, ledger=home.address))
    again = json.loads(ask(hf.open(path, ledger=home.address)))
    assert again["value"] == json.loads(first)["value"]
    with pytest.raises(LedgerError, match="moved to"):  # its own ledger counts no longer
        ask(hf.open(path))
    with pytest.raises(LedgerError, match="moved to"):
        hf.open(path, ledger=tmp_path / "a third.sqlite")


def test_a_store_that_was_charged_must_be_moved(tmp_path: Path) -> None:
    path, target = store(tmp_path), tmp_path / "elsewhere.sqlite"
    first = ask(hf.open(path))
    with pytest.raises(LedgerError, match="answered 1 questions; move it"):
        hf.open(path, ledger=target)
    own, other = open_ledger(path), open_ledger(target)
    move_ledger(own, other)
    own.close()
    other.close()
    assert json.loads(ask(hf.open(path, ledger=target)))["value"] == json.loads(first)["value"]
    assert hf.open(path, ledger=open_ledger(target)).spent > 0


def test_charges_on_a_store_outlast_the_process(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="outlasts"):
        hf.open(store(tmp_path), ledger=MemoryLedger())
    table = hf.open({"x": np.arange(10)}, SCHEMA, ledger=tmp_path / "frame.sqlite")
    assert isinstance(table.ledger, SqliteLedger)
    table.close()


def test_an_address_names_its_ledger(tmp_path: Path) -> None:
    url = postgres().url
    with pytest.raises(InputError, match="#name"):
        open_ledger(url)
    with pytest.raises(LedgerError, match="got none"):
        open_ledger(f"{url}#{tmp_path}", create=False)
    made = open_ledger(f"{url}#{tmp_path}")
    assert isinstance(made, PostgresLedger)
    named = open_ledger(url, name=str(tmp_path), create=False)
    assert named.id == made.id
    for ledger in (made, named):
        ledger.close()
    with pytest.raises(LedgerError, match="away"):
        open_ledger("postgresql://127.0.0.1:1/none#name")
