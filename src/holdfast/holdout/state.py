"""What was asked of a holdout, kept in one file that survives crashes, restarts and renaming."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any

from holdfast.errors import InputError, LedgerError
from holdfast.holdout.anchor import Anchor, Mark, locked
from holdfast.process import Home

VERSION = 2
SUFFIX = ".holdout"
_BUSY_SECONDS = 60.0

_TABLES = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE looks (id INTEGER PRIMARY KEY, team TEXT NOT NULL, key TEXT, question TEXT NOT NULL,"
    " looks INTEGER NOT NULL CHECK (looks > 0), total INTEGER NOT NULL, team_total INTEGER NOT NULL,"
    " head TEXT NOT NULL, UNIQUE (team, key))",
    "CREATE INDEX looks_by_team ON looks (team, id)",
    "CREATE INDEX looks_by_total ON looks (total)",
    "CREATE TABLE answers (id INTEGER PRIMARY KEY, look INTEGER NOT NULL UNIQUE REFERENCES looks,"
    " answer TEXT NOT NULL, total INTEGER NOT NULL, secret TEXT, head TEXT NOT NULL)",
    "CREATE TRIGGER looks_stay BEFORE UPDATE ON looks BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    "CREATE TRIGGER looks_last BEFORE DELETE ON looks BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    "CREATE TRIGGER answers_stay BEFORE UPDATE ON answers BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    "CREATE TRIGGER answers_last BEFORE DELETE ON answers BEGIN SELECT RAISE(ABORT, 'append-only'); END",
)


@dataclass(frozen=True, slots=True)
class Look:
    """One charge: its number, the looks charged before and with it, and the answer if it was given before."""

    id: int
    total: int
    answer: str | None


class Overspent(Exception):
    """A cap would be passed. Nothing was charged."""

    def __init__(self, team_left: int | None, left: int) -> None:
        self.team_left, self.left = team_left, left
        super().__init__("no looks left")


def _nothing() -> None:
    """Wait for nothing."""


class State:
    """The record of looks at one holdout.

    Guarantee: `charge` is atomic and on disk when it returns; no interleaving of threads or processes passes
    a cap. Looks, and answers with the secret state after them, are append-only and each chained by SHA-256.
    A file that lacks looks or answers of its anchor is refused: when it is opened, and at every charge and
    settlement. `facts` holds the terms, which are not chained, and the mechanism's secret state; `settle`
    commits an answer together with the secret state after it. In a forked child it refuses (LedgerError): looks in
    memory would be counted twice there, and SQLite's connections must not cross a fork.
    """

    def __init__(self, path: Path | None, anchor: Anchor | None = None, lock: Path | None = None) -> None:
        self._lock = RLock()
        self._home = Home("a holdout", "open it with state=FOLDER in each process", LedgerError)
        self._anchor = anchor
        self.before_settling: Callable[[], None] = _nothing
        """Called before an answer is committed; a server waits there for a public time."""
        self._alone = path.with_suffix(".lock") if lock is None and path is not None else lock
        try:
            self._db = sqlite3.connect(
                path or ":memory:", timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            with self._transaction():
                version = self._db.execute("PRAGMA user_version").fetchone()[0]
                if version > VERSION:
                    raise LedgerError(
                        f"this holdout was made by a newer Holdfast (format {version}); upgrade"
                    )
                if 0 < version < VERSION:
                    raise LedgerError(
                        f"this holdout's state has the old format {version}, which does not chain its answers; "
                        "go on with the Holdfast that made it, or collect a fresh holdout"
                    )
                if not version:
                    for statement in _TABLES:
                        self._db.execute(statement)
                    self._db.execute(f"PRAGMA user_version={VERSION}")
        except sqlite3.Error as error:
            raise LedgerError(f"the holdout's state cannot be opened: {error}") from None
        try:
            self._verify()
        except BaseException:
            self._db.close()
            raise

    @classmethod
    def open(cls, folder: Path | str, fingerprint: str, anchors: Path | str | None = None) -> State:
        """The state of the holdout with this fingerprint in a folder, under whatever name; made if new."""
        place, beside = Path(folder), Path(folder if anchors is None else anchors)
        for directory in (place, beside):
            directory.mkdir(parents=True, exist_ok=True)
        anchor = Anchor(beside / f"{fingerprint}.anchor")
        with locked(place / f"{fingerprint}.opening"):
            path = _find(place, fingerprint)
            if path is None and anchor.read() is not None:
                raise LedgerError(
                    "the state of this holdout is missing, and its anchor says that it was used; put "
                    "the file back, or collect a fresh holdout"
                )
            # The lock is named by the fingerprint: it stays the same when the state file is renamed.
            state = cls(path or place / f"{fingerprint}{SUFFIX}", anchor, place / f"{fingerprint}.lock")
            state.fact("fingerprint", fingerprint)
            with state._anchored():
                pass
            return state

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._home.check()
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield
                except BaseException:
                    self._db.execute("ROLLBACK")
                    raise
                self._db.execute("COMMIT")
            except sqlite3.Error as error:
                raise LedgerError(f"the holdout's state cannot be written: {error}") from None

    @contextlib.contextmanager
    def _anchored(self) -> Iterator[None]:
        """A transaction on a file that has all that its anchor has, and the anchor brought up to it.

        The anchor is held from the check to the end, so that of two copies only one can go on.
        """
        self._home.check()
        if self._anchor is None:
            with self._transaction():
                yield
            return
        with self._lock, self._anchor.held():
            with self._transaction():
                self._refuse_older(self._anchor.read())
                yield
                mark = self._mark()
            self._anchor.advance(mark)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """For mechanisms with a state of their own: one look at a time, over all threads and processes.

        The lock is named by the fingerprint, so a new name for the state file does not make a second one.
        Requires: an open state file is not moved to another folder. Renaming it while open leaves SQLite's log
        behind; the anchor then refuses the side that lags.
        """
        self._home.check()
        with self._lock:
            if self._alone is None:
                yield
                return
            with locked(self._alone):
                yield

    def fact(self, name: str, value: str | None = None) -> str | None:
        """The fact of this name; the given value becomes it if there is none yet."""
        if value is not None:
            with self._transaction():
                self._rows("INSERT OR IGNORE INTO facts VALUES (?, ?)", name, value)
        rows = self._rows("SELECT value FROM facts WHERE name = ?", name)
        return str(rows[0][0]) if rows else None

    def charge(
        self,
        team: str,
        question: str,
        looks: int,
        *,
        most: int,
        team_most: int | None,
        key: str | None = None,
    ) -> Look:
        """Commit a charge of `looks`; Overspent if a cap would be passed. A known key costs nothing."""
        with self._anchored():
            if key is not None:
                known = self._rows(
                    "SELECT l.id, l.total, a.answer, l.question FROM looks l"
                    " LEFT JOIN answers a ON a.look = l.id"
                    " WHERE l.team = ? AND l.key = ?", team, key
                )  # fmt: skip
                if known:
                    if known[0][3] != question:
                        raise InputError(f"key {key!r} was used for another question; choose a new one")
                    return Look(*known[0][:3])
            used, head = self._last()
            mine = self.used(team)
            left, team_left = most - used, None if team_most is None else team_most - mine
            if looks > left or (team_left is not None and looks > team_left):
                raise Overspent(team_left, left)
            total, team_total = used + looks, mine + looks
            head = _link(head, team, key, question, looks)
            number = self._db.execute(
                "INSERT INTO looks (team, key, question, looks, total, team_total, head)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (team, key, question, looks, total, team_total, head),
            ).lastrowid
        assert number is not None
        return Look(number, total, None)

    def settle(self, look: int, answer: str, secret: str | None = None) -> str:
        """Commit the one answer of a look, and the secret state after it; returns the answer that stands.

        The anchor knows of the answer before it is returned.
        """
        self.before_settling()
        with self._anchored():
            known = self._rows("SELECT answer FROM answers WHERE look = ?", look)
            if known:
                return str(known[0][0])
            _, total, head = self._last_answer()
            total += int(self._rows("SELECT looks FROM looks WHERE id = ?", look)[0][0])
            digest = None if secret is None else _digest(secret)
            self._rows(
                "INSERT INTO answers (look, answer, total, secret, head) VALUES (?, ?, ?, ?, ?)",
                look, answer, total, digest, _link(head, look, answer, total, digest),
            )  # fmt: skip
            if secret is not None:
                self._rows("INSERT OR REPLACE INTO facts VALUES ('secret', ?)", secret)
            return answer

    def answered(self, team: str, key: str) -> str | None:
        """The answer that stands under a key, if there is one."""
        sql = "SELECT a.answer FROM looks l JOIN answers a ON a.look = l.id WHERE l.team = ? AND l.key = ?"
        rows = self._rows(sql, team, key)
        return str(rows[0][0]) if rows else None

    def used(self, team: str | None = None) -> int:
        """Looks charged so far, in all or to a team."""
        if team is None:
            return self._last()[0]
        rows = self._rows("SELECT team_total FROM looks WHERE team = ? ORDER BY id DESC LIMIT 1", team)
        return int(rows[0][0]) if rows else 0

    def settled(self) -> int:
        """Looks whose answer was given; those of a crash are charged, but released nothing."""
        return self._last_answer()[1]

    def answers(self, after: int = 0, question: str | None = None) -> Iterator[tuple[int, str, str]]:
        """(place, team, answer) of every answer, in the order given.

        `after` leaves out what was seen, `question` all answers to others.
        """
        sql = (
            "SELECT a.id, l.team, a.answer FROM answers a JOIN looks l ON a.look = l.id"
            " WHERE a.id > ? AND (? IS NULL OR l.question = ?) ORDER BY a.id"
        )
        return iter(self._rows(sql, after, question, question))

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def _last(self) -> tuple[int, str]:
        rows = self._rows("SELECT total, head FROM looks ORDER BY id DESC LIMIT 1")
        return (int(rows[0][0]), str(rows[0][1])) if rows else (0, "")

    def _last_answer(self) -> tuple[int, int, str]:
        """(answers, looks answered, head)"""
        rows = self._rows("SELECT id, total, head FROM answers ORDER BY id DESC LIMIT 1")
        return (int(rows[0][0]), int(rows[0][1]), str(rows[0][2])) if rows else (0, 0, "")

    def _mark(self) -> Mark:
        answers, _, head = self._last_answer()
        return Mark(*self._last(), answers, head)

    def _refuse_older(self, anchored: Mark | None) -> None:
        """LedgerError unless the looks and the answers of the anchor are in this file."""
        if anchored is None:
            return
        looks = self._rows("SELECT 1 FROM looks WHERE total = ? AND head = ?", anchored.looks, anchored.head)
        answers = self._rows(
            "SELECT 1 FROM answers WHERE id = ? AND head = ?", anchored.answers, anchored.answers_head
        )
        if (anchored.looks and not looks) or (anchored.answers and not answers):
            here = self._mark()
            raise LedgerError(
                f"the holdout's state is an older copy: its anchor counted {anchored.looks} looks and "
                f"{anchored.answers} answers, the file has {here.looks} and {here.answers} or others; "
                "put the current file back"
            )

    def _rows(self, sql: str, *values: object) -> list[Any]:
        self._home.check()
        with self._lock:
            try:
                return self._db.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise LedgerError(f"the holdout's state cannot be read: {error}") from None

    def _verify(self) -> None:
        """Walk the chains; refuse a file that was changed, or that is older than its anchor."""
        anchored = None if self._anchor is None else self._anchor.read()
        with self._lock:
            self._rows("BEGIN")  # one snapshot: others may settle meanwhile
            try:
                self._verify_looks()
                self._verify_answers()
                self._refuse_older(anchored)
            finally:
                self._rows("ROLLBACK")

    def _verify_looks(self) -> None:
        head, total = "", 0
        for number, team, key, question, looks, said, link in self._rows(
            "SELECT id, team, key, question, looks, total, head FROM looks ORDER BY id"
        ):
            head, total = _link(head, team, key, question, looks), total + looks
            if (said, link) != (total, head):
                raise _changed(f"look {number}")

    def _verify_answers(self) -> None:
        head, total, secret = "", 0, None
        for place, (number, look, answer, said, digest, link, looks) in enumerate(
            self._rows(
                "SELECT a.id, a.look, a.answer, a.total, a.secret, a.head, l.looks FROM answers a"
                " LEFT JOIN looks l ON a.look = l.id ORDER BY a.id"
            ),
            1,
        ):
            total += looks or 0
            head = _link(head, look, answer, total, digest)
            if (number, said, link) != (place, total, head) or looks is None:
                raise _changed(f"answer {number}")
            secret = secret if digest is None else digest
        if secret is not None:
            held = self._rows("SELECT value FROM facts WHERE name = 'secret'")
            if not held or _digest(held[0][0]) != secret:
                raise _changed("its secret state")


def _changed(where: str) -> LedgerError:
    return LedgerError(f"the holdout's state was changed by hand at {where}; it stays closed")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _link(head: str, *parts: object) -> str:
    return hashlib.sha256("\x1f".join([head, *map(repr, parts)]).encode()).hexdigest()


def _find(folder: Path, fingerprint: str) -> Path | None:
    """The one state file of this holdout in a folder; two are a copy too many."""
    # SQLite's own side files are never touched: closing one would drop the locks that this process holds.
    aside = (".anchor", ".lock", ".opening", "-wal", "-shm", "-journal")
    found = [
        path
        for path in sorted(folder.glob("*"))
        if path.is_file() and not path.name.endswith(aside) and _owner(path) == fingerprint
    ]
    if len(found) > 1:
        raise LedgerError(
            f"this holdout has {len(found)} state files in one folder "
            f"({', '.join(p.name for p in found[:4])}); keep the newest only"
        )
    return found[0] if found else None


def _owner(path: Path) -> str | None:
    """Whose state a file is, None if it is no state file."""
    try:
        # Through SQLite only: closing a plain file would drop the locks that this process holds on it.
        address = f"{path.absolute().as_uri()}?mode=rw"
        with contextlib.closing(sqlite3.connect(address, timeout=_BUSY_SECONDS, uri=True)) as db:
            row = db.execute("SELECT value FROM facts WHERE name = 'fingerprint'").fetchone()
            return None if row is None else str(row[0])
    except (sqlite3.Error, OSError):  # a passing file of another process, or a broken one
        return None
