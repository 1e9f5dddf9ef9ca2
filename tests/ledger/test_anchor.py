"""A backup that comes back is refused, when it is opened and at every write; of two copies one goes on."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from holdfast.cli import main
from holdfast.errors import BudgetError, LedgerError
from holdfast.formats import FORMATS
from holdfast.ledger import (
    UNCOVERED,
    Account,
    ChainedLedger,
    Charge,
    SqliteLedger,
    Totals,
    acknowledge,
    chained,
    verify,
)
from holdfast.ledger.anchor import Anchor, Mark, anchors_folder
from holdfast.ledger.writer import Writer
from ledger.homes import HOMES, Home, SqliteHome


@pytest.fixture(params=sorted(HOMES))
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    (tmp_path / "anchors").mkdir()
    return HOMES[request.param](tmp_path)


def charge(ledger: ChainedLedger, key: str, units: int = 1) -> int:
    return ledger.reserve("s", key, "{}", "{}", Charge(units, 2 * units)).id


def started(home: Home) -> ChainedLedger:
    ledger = home.open()
    ledger.set_limit(Account("the table", "zcdp", 100))
    ledger.open(Account("s", "zcdp", 40))
    charge(ledger, "first", 5)
    return ledger


def refuses_at_opening(home: Home) -> bool:
    ledger = started(home)
    ledger.close()
    put_back = home.backup()
    ledger = home.open()
    charge(ledger, "lost", 7)
    ledger.close()
    put_back()
    try:
        home.open().close()
    except LedgerError as error:
        return "older copy" in str(error)
    return False


def refuses_at_writing(home: Home) -> bool:
    """The copy is put in place while the ledger is open."""
    ledger = started(home)
    rows = {t: home.execute(f"SELECT * FROM {t}") for t in ("entries", "answers", "tip")}
    charge(ledger, "lost", 7)
    for table in rows:
        home.execute(f"DELETE FROM {table}")
        for row in rows[table]:
            home.execute(f"INSERT INTO {table} VALUES ({', '.join('?' for _ in row)})", *row)
    refused = 0
    for write in (
        lambda: charge(ledger, "again", 7),
        lambda: ledger.record(3, "an answer"),
        lambda: ledger.open(Account("other", "zcdp", 1)),
        lambda: ledger.set_limit(Account("the table", "zcdp", 1000)),
    ):
        try:
            write()
        except LedgerError as error:
            refused += "older copy" in str(error)
    ledger.close()
    return refused == 4


class TrustsAnyCopy(SqliteLedger):
    """The broken twin: nobody asks the anchor."""

    def _refuse_older(self, reader: object, mark: Mark) -> None: ...


class TrustingHome(SqliteHome):
    Ledger = TrustsAnyCopy


@pytest.mark.parametrize("check", [refuses_at_opening, refuses_at_writing])
def test_an_older_copy_is_refused(check: Callable[[Home], bool], home: Home, tmp_path: Path) -> None:
    assert check(home)
    other = tmp_path / "mutant"
    (other / "anchors").mkdir(parents=True)
    assert not check(TrustingHome(other))


def one_goes_on(Ledger: type[SqliteLedger], folder: Path) -> bool:
    first = Ledger(folder / "ledger.sqlite", folder)
    first.open(Account("s", "zcdp", 40))
    charge(first, "shared")
    first.close()
    shutil.copy(folder / "ledger.sqlite", folder / "copy.sqlite")
    ledgers = [Ledger(folder / name, folder) for name in ("ledger.sqlite", "copy.sqlite")]
    won = []
    for turn in range(6):  # in turns: whoever charges first stays
        for number, ledger in enumerate(ledgers):
            try:
                charge(ledger, f"{turn} {number}")
                won.append(number)
            except LedgerError:
                pass
    for ledger in ledgers:
        ledger.close()
    return won == [0] * 6


def test_of_two_live_copies_only_one_goes_on(tmp_path: Path) -> None:
    assert one_goes_on(SqliteLedger, tmp_path)
    (tmp_path / "mutant").mkdir()
    assert not one_goes_on(TrustsAnyCopy, tmp_path / "mutant")


def test_a_crash_between_commit_and_anchor_is_no_rollback(home: Home, tmp_path: Path) -> None:
    ledger = started(home)
    [anchor] = (tmp_path / "anchors").iterdir()
    behind = anchor.read_bytes()
    charge(ledger, "second")
    ledger.close()
    anchor.write_bytes(behind)
    again = home.open()
    charge(again, "third")
    assert verify(again).totals.entries == 3
    assert again.anchored().place == verify(again).place
    again.close()


@pytest.mark.parametrize("damage", ["torn", "empty", "long", "zeros"])
def test_an_unreadable_anchor_is_refused_and_never_ignored(damage: str, tmp_path: Path) -> None:
    (tmp_path / "anchors").mkdir()
    home = SqliteHome(tmp_path)
    started(home).close()
    [anchor] = (tmp_path / "anchors").iterdir()
    whole = anchor.read_bytes()
    torn = {"torn": whole[:20] + bytes([whole[20] ^ 1]) + whole[21:], "empty": b"", "long": whole + b"x"}
    anchor.write_bytes(torn.get(damage, bytes(len(whole))))
    with pytest.raises(LedgerError, match="expected an anchor"):
        home.open()
    acknowledge(home.path, anchors=home.anchors)
    ledger = home.open()
    assert ledger.totals().units == 100  # all that was left may have been spent
    assert verify(ledger).place > 3
    ledger.close()


def test_an_anchor_of_another_version_is_not_acknowledged_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = SqliteHome(tmp_path)
    (tmp_path / "anchors").mkdir()
    with monkeypatch.context() as later:
        later.setitem(FORMATS, "ledger's anchor", 2)
        started(home).close()
    [anchor] = home.anchors.iterdir()
    before = anchor.read_bytes()
    with pytest.raises(LedgerError, match="got version 2"):
        acknowledge(home.path, anchors=home.anchors)
    assert anchor.read_bytes() == before


def test_a_missing_anchor_is_trusted_once(tmp_path: Path) -> None:
    (tmp_path / "anchors").mkdir()
    home = SqliteHome(tmp_path)
    started(home).close()
    [anchor] = (tmp_path / "anchors").iterdir()
    anchor.unlink()
    ledger = home.open()
    charge(ledger, "second")
    assert ledger.anchored().totals == Totals(2, 2, 12)
    ledger.close()


def test_acknowledging_counts_what_was_lost_as_spent(home: Home, tmp_path: Path) -> None:
    ledger = started(home)
    ledger.open(Account("pure", "pure", 30))
    ledger.close()
    put_back = home.backup()
    ledger = home.open()
    charge(ledger, "lost", 7)
    charge(ledger, "lost too", 1)
    ledger.close()
    put_back()
    acknowledge(home.address, anchors=tmp_path / "anchors")
    ledger = home.open()
    assert ledger.totals().units == 10 + (10 + 14 + 2)  # the first 10 twice: see docs/ledger.md
    assert ledger.totals("s").units == 40  # which session was charged is not known: all that it had left
    assert ledger.totals("pure").units == 30
    with pytest.raises(BudgetError):
        charge(ledger, "one more")
    ledger.open(Account("s", "zcdp", 41))
    charge(ledger, "one more")
    found = verify(ledger)
    assert found.totals.units == 38
    assert [fact.fields["lost_units"] for fact in ledger.history() if fact.kind == "restored"] == [26]
    acknowledge(home.address, anchors=tmp_path / "anchors")  # nothing is lost now, so nothing happens
    assert verify(ledger) == found
    ledger.close()


def test_what_was_lost_counts_also_beyond_the_cap_of_the_copy(home: Home, tmp_path: Path) -> None:
    started(home).close()
    put_back = home.backup()
    ledger = home.open()
    ledger.set_limit(Account("the table", "zcdp", 1000))
    ledger.open(Account("s", "zcdp", 400))
    charge(ledger, "lost", 200)
    ledger.close()
    put_back()
    acknowledge(home.address, anchors=tmp_path / "anchors")
    ledger = home.open()
    assert ledger.limit() == Account("the table", "zcdp", 100)
    assert ledger.totals().units == 420
    ledger.open(Account("new", "zcdp", 10))
    with pytest.raises(BudgetError):
        ledger.reserve("new", "key", "{}", "{}", Charge(1, 1))
    assert verify(ledger).totals.units == 420
    ledger.close()


def counts_both_ways(tmp_path: Path, here: int, there: int) -> bool:
    """Whether an acknowledged copy counts all answers: those before the backup, and those on each machine."""
    (tmp_path / "anchors").mkdir(parents=True)
    home = SqliteHome(tmp_path)
    started(home).close()
    put_back = home.backup()
    ledger = home.open()
    for number in range(here):
        charge(ledger, f"here {number}")
    ledger.close()
    put_back()
    (tmp_path / "elsewhere").mkdir()
    other = SqliteLedger(home.path, tmp_path / "elsewhere")  # another machine: no anchor there yet
    for number in range(there):
        charge(other, f"there {number}")
    other.close()
    with pytest.raises(LedgerError, match="another way"):
        home.open()
    acknowledge(home.path, anchors=home.anchors)
    ledger = home.open()
    counted = verify(ledger).totals
    ledger.close()
    return counted.units >= 10 + 2 * here + 2 * there and counted.answers >= 1 + here + there


@pytest.mark.parametrize(("here", "there"), [(7, 9), (7, 7), (7, 3), (7, 1), (7, 0)])
def test_a_copy_that_went_another_way_pays_for_both(
    here: int, there: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert counts_both_ways(tmp_path / "it", here, there)
    charge_lost = chained._charge_what_was_lost

    def the_difference(writer: Writer, mark: Mark | None) -> None:
        """The broken twin takes a shorter copy for the past of what the anchor saw."""
        assert mark is not None
        less = Totals(0, mark.totals.answers - writer.total.answers, mark.totals.units - writer.total.units)
        charge_lost(writer, replace(mark, totals=less) if mark.place > writer.place else mark)

    monkeypatch.setattr(chained, "_charge_what_was_lost", the_difference)
    assert counts_both_ways(tmp_path / "mutant", here, there) == (there >= here or there == 0)


def test_the_command_line_refuses_acknowledges_and_verifies(tmp_path: Path) -> None:
    (tmp_path / "anchors").mkdir()
    home = SqliteHome(tmp_path)
    started(home).close()
    put_back = home.backup()
    ledger = home.open()
    charge(ledger, "lost")
    ledger.close()
    put_back()
    place = [str(home.path), "--anchors", str(home.anchors)]

    def run(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, ["ledger", *words])
        return result.exit_code, result.output

    assert run("verify", *place)[0] == 1
    assert "older copy" in run("verify", *place)[1]
    assert run("acknowledge", *place)[0] == 2
    assert run("acknowledge", *place, "--i-know-answers-were-lost")[0] == 0
    status, text = run("verify", *place)
    assert (status, "sound" in text) == (0, True)
    status, lines = run("export", *place)
    (tmp_path / "audit.ndjson").write_text(lines)
    assert run("verify", str(tmp_path / "audit.ndjson"))[0] == 0
    (tmp_path / "audit.ndjson").write_text(lines.replace('"units": 40', '"units": 41'))
    assert run("verify", str(tmp_path / "audit.ndjson"))[0] == 1
    assert run("verify", str(tmp_path / "nothing"))[0] == 1


class ReadsByTheSharedFile(SqliteLedger):
    """The broken twin: reading unlocks what a commit holds."""

    def anchored(self) -> Mark:
        with self._anchor.held():
            return self._anchor.read()


def stays_held(
    Ledger: type[SqliteLedger], folder: Path, monkeypatch: pytest.MonkeyPatch, patience: float
) -> bool:
    """Whether the anchor is still held when somebody asks for it between a commit and its end."""
    ledger = Ledger(folder / "ledger.sqlite", folder)
    ledger.open(Account("s", "zcdp", 40))
    committed, asked = threading.Event(), threading.Event()

    def reached(step: str) -> None:
        if step == "after commit":
            committed.set()
            asked.wait()

    monkeypatch.setattr(chained, "reached", reached)
    with ThreadPoolExecutor(2) as threads:
        charged = threads.submit(charge, ledger, "first")
        committed.wait()
        told = threads.submit(ledger.anchored)
        wait([told], timeout=patience)  # only the twin comes to an end here
        with open(ledger._anchor.path) as other:
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = False
            except BlockingIOError:
                held = True
        asked.set()
        charged.result()
        told.result()
    monkeypatch.undo()
    ledger.close()
    return held


def test_reading_an_anchor_does_not_unlock_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stays_held(SqliteLedger, tmp_path, monkeypatch, 0.2)
    (tmp_path / "mutant").mkdir()
    assert not stays_held(ReadsByTheSharedFile, tmp_path / "mutant", monkeypatch, 60)


def test_an_anchor_that_went_away_is_told(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "ledger.sqlite", tmp_path)
    ledger._anchor.path.unlink()
    with pytest.raises(LedgerError, match="cannot be opened"):
        ledger.anchored()
    ledger.close()


def test_an_id_that_names_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "anchors").mkdir()
    home = SqliteHome(tmp_path)
    started(home).close()
    home.execute("UPDATE tip SET ledger = '../outside'")
    with pytest.raises(LedgerError, match="its id"):
        home.open()
    assert not (tmp_path / "outside.anchor").exists()


def test_where_anchors_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_ANCHORS")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert anchors_folder(None, tmp_path) == tmp_path / "state" / "holdfast" / "anchors"
    monkeypatch.setenv("HOLDFAST_ANCHORS", str(tmp_path / "named"))
    assert anchors_folder(None, tmp_path) == tmp_path / "named"
    assert anchors_folder(tmp_path / "given", tmp_path) == tmp_path / "given"
    assert stat.S_IMODE((tmp_path / "named").stat().st_mode) == 0o700
    monkeypatch.delenv("HOLDFAST_ANCHORS")
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert anchors_folder(None, tmp_path) == tmp_path  # beside the ledger
    with pytest.raises(LedgerError, match="HOLDFAST_ANCHORS"):
        anchors_folder(None, None)
    with pytest.raises(LedgerError, match="cannot be written"):
        anchors_folder(tmp_path / "file" / "below", tmp_path)


def test_two_holders_of_an_anchor_take_turns(tmp_path: Path) -> None:
    """The lock is the system's: another process waits, and a killed one lets go."""
    path = tmp_path / "one.anchor"
    Anchor.open(path, Mark(0, "00" * 32, Totals())).close()
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom holdfast.ledger.anchor import Anchor\n"
        "a = Anchor(Path(sys.argv[1]))\nwith a.held():\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    anchor = Anchor(path)
    with pytest.raises(BlockingIOError):
        fcntl.flock(anchor._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with anchor.held():
        anchor.advance(Mark(7, "11" * 32, Totals(1, 2, 3)))
    assert anchor.read() == Mark(7, "11" * 32, Totals(1, 2, 3))
    anchor.close()
    assert os.path.getsize(path) == 104


class Noted:
    """A writer that keeps what it is told."""

    def __init__(self, cap: Account | None, spent: int, accounts: dict[Account, int]) -> None:
        self.cap, self.total, self.place = cap, Totals(3, 2, spent), 9
        self._accounts, self.notes, self.opened, self.charged = accounts, [], [], {}  # type: ignore[var-annotated]

    def accounts(self) -> list[Account]:
        return list(self._accounts)

    def totals(self, name: str) -> Totals:
        return next(Totals(1, 1, spent) for account, spent in self._accounts.items() if account.name == name)

    def write_note(self, kind: str, **fields: object) -> None:
        self.notes.append((kind, fields))

    def open(self, account: Account) -> None:
        self.opened.append(account)

    def charge(self, session: str, key: str, plan: str, event: str, charge: Charge) -> None:
        self.charged[session] = (key, plan, event, charge)


@pytest.mark.parametrize("seen", [True, False], ids=["anchored", "no anchor"])
@pytest.mark.parametrize("capped", [True, False], ids=["capped", "without a cap"])
def test_after_a_loss_everything_that_may_have_been_charged_is(seen: bool, capped: bool) -> None:
    """All that the anchor saw, or without one all that the cap leaves; and all that each session had left."""
    cap = Account("the table", "pure", 100, delta=90) if capped else None
    mark = chained.Mark(17, "ab" * 32, Totals(8, 5, 61)) if seen else None
    over = Account(chained.LOST, "zcdp", 0)
    writer = Noted(cap, 40, {Account("ann", "zcdp", 50, delta=7): 20, Account("bob", "zcdp", 5): 9, over: 0})
    chained._charge_what_was_lost(writer, mark)  # type: ignore[arg-type]
    units, queries = (61, 5) if seen else (60 if capped else 0, 0)
    place, head = (17, "ab" * 32) if seen else (-1, "")
    told = {"lost_place": place, "lost_head": head, "lost_units": units, "lost_queries": queries}
    assert writer.notes == [("restored", told)]
    assert writer.opened == [Account(chained.LOST, "pure" if capped else "zcdp", 0, delta=chained.MOST)]
    lost = {
        "ann": Charge(30, 0, 0, UNCOVERED, 7),
        "bob": Charge(0, 0, 0, UNCOVERED),
        chained.LOST: Charge(0, units, queries, UNCOVERED, 90 if capped else 0),
    }
    assert writer.charged == {
        name: ("restored 9", chained.LOST, "{}", charge) for name, charge in lost.items()
    }


def test_a_cap_that_was_passed_leaves_nothing_to_charge() -> None:
    writer = Noted(Account("the table", "zcdp", 10), 40, {})
    chained._charge_what_was_lost(writer, None)  # type: ignore[arg-type]
    assert writer.charged[chained.LOST][3] == Charge(0, 0, 0, UNCOVERED)
