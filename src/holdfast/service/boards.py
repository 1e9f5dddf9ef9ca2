"""Leaderboards and holdouts behind the gateway: the labels stay here."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import DataError, HoldfastError, InputError, LedgerError
from holdfast.holdout import Leaderboard, ReusableHoldout
from holdfast.holdout.file_column import read_column
from holdfast.holdout.fingerprint import fingerprint
from holdfast.holdout.labels import Labels
from holdfast.holdout.looks import open_looks
from holdfast.holdout.unit_rows import UnitRows
from holdfast.ledger import ChainedLedger, move_ledger
from holdfast.service.catalog import Catalog
from holdfast.service.problem import Problem
from holdfast.service.public_times import PublicTimesLedger
from holdfast.service.settings import Settings
from holdfast.session import Answer

KINDS = ("leaderboard", "holdout")
LONGEST_TEXT = 200
MOST_CHARACTERS = 2**26
"""How long one text may be, and how many characters an array of them may take."""
MOST_COLUMNS = 64
"""How many chances a row may have, one for each class."""


@dataclass(frozen=True, slots=True)
class Board:
    """A registered leaderboard or holdout. All of it is public but `labels` and `units`, the names of files in the
    gateway's folder of boards (before, of the owner's file and its column), `column`, and `ledger`."""

    id: str
    name: str
    kind: str
    labels: str
    column: str | None
    rows: int
    metric: str
    queries: int
    per_team: int | None
    within: float | None
    confidence: float
    mode: str | None
    private: bool
    """Whether answers are differentially private for the labels: so unless the owner says otherwise."""
    ledger: str = ""
    """The id of its ledger, once it is registered. Another one in its place would be fresh looks, and is refused."""
    units: str | None = None
    """Whose each label is, where one of them has several."""
    rows_per_unit: int | None = None
    columns: int = 1
    """How many numbers a prediction may have: a chance for each class."""

    def public(self) -> dict[str, Any]:
        """What everybody may know."""
        hidden = ("labels", "column", "ledger", "units")
        return {name: getattr(self, name) for name in Board.__slots__ if name not in hidden}

    def record(self) -> dict[str, Any]:
        """What the catalog keeps."""
        return {name: getattr(self, name) for name in Board.__slots__ if name != "id"}


@dataclass(frozen=True, slots=True)
class Scored:
    """What is asked of a holdout besides its predictions."""

    train_score: float | None = None
    metric: str | None = None
    guess: float | None = None
    expect: float | None = None
    most_weight: float = field(default=1.0, repr=False)
    """Beside weights, which are marked with it."""


class Boards:
    """Opens each board once in this process. Its looks are counted in a ledger that all workers share: in the
    gateway's folder, or in its database, and then by all hosts that have the same labels in their folder.

    Guarantee: that of `Leaderboard` and `ReusableHoldout`. Teams, not people, hold the looks. A ledger is known by the
    labels it is for: two boards over the same labels share their looks.
    """

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog, self._lock = catalog, RLock()
        self._folder, self._settings = settings.folder / "boards", settings
        self._opened: dict[str, tuple[Board, Leaderboard | ReusableHoldout]] = {}

    def register(self, wanted: Board, place: str, by: str = "") -> Board:
        """Take labels in from a place, fix the terms, and remember the declaration.

        Only an owner who says private=False gets a mode that is not private; where the plan is private even so,
        the declaration says that. The gateway keeps a copy of the labels: a file that is changed or removed later
        changes no score.
        """
        if self._catalog.board(wanted.id) is not None:
            raise Problem("taken", f"{wanted.id!r} is registered already; choose another id")
        known = Labels(_labels(place, wanted.column, wanted.units))
        labels, columns = known.values, min(len(known.classes), MOST_COLUMNS)
        # A name that no other registration has: two at once must not overwrite each other's.
        kept = self._folder / f"{wanted.id}-{secrets.token_hex(8)}.npy"
        board = replace(wanted, labels=kept.name, column=None, rows=len(labels), columns=columns)
        if wanted.units is not None:
            board = replace(board, units=f"{kept.stem}.units.npy")
            whose = _whose(place, wanted.units, len(labels), wanted.rows_per_unit)
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        np.save(kept, labels)
        try:
            if board.units is not None:
                np.save(self._folder / board.units, whose)
            board, opened = self._open(board)
            self._catalog.add_board(board.id, board.record(), by=by)
        except HoldfastError:
            for name in (board.labels, board.units):
                if name is not None:
                    (self._folder / name).unlink(missing_ok=True)
            raise
        with self._lock:
            self._opened[board.id] = (board, opened)
        return board

    def all(self, kind: str) -> list[Board]:
        """Every board of a kind."""
        boards, retired = self._catalog.boards(), self._catalog.retired("board")
        return [
            Board(id=key, **record) for key, record in boards if record["kind"] == kind and key not in retired
        ]

    def retire(self, key: str, kind: str, by: str) -> None:
        """Have a board take nothing any more."""
        self.board(key, kind)
        self._catalog.retire("board", key, by=by)

    def board(self, key: str, kind: str) -> Board:
        """A declaration; `not-found` if there is none of this kind."""
        record = self._catalog.board(key)
        if record is None or record["kind"] != kind or key in self._catalog.retired("board"):
            raise Problem("not-found")
        return Board(id=key, **record)

    def leaderboard(self, key: str) -> Leaderboard:
        """An open leaderboard."""
        opened = self._get(key, "leaderboard")
        assert isinstance(opened, Leaderboard)
        return opened

    def holdout(self, key: str) -> ReusableHoldout:
        """An open holdout."""
        opened = self._get(key, "holdout")
        assert isinstance(opened, ReusableHoldout)
        return opened

    def submit(self, key: str, team: str, said: NDArray[Any], call: str) -> Answer:
        """Score a submission, charged to the team."""
        return self.leaderboard(key).submit(team, said, key=call)

    def score(
        self,
        key: str,
        team: str,
        said: NDArray[Any],
        other: NDArray[Any] | None,
        asked: Scored,
        call: str,
        weights: NDArray[Any] | None = None,
    ) -> dict[str, Any]:
        """A score on a holdout; with a training score, whether that is fine; with other predictions, the difference."""
        holdout = self.holdout(key)
        if weights is not None and (other is not None or asked.train_score is not None):
            raise InputError(
                "expected weights with a score only, got them with another question; leave them out"
            )
        if other is not None:
            found = holdout.compare(
                said, other, metric=asked.metric, expect=asked.expect, key=call, team=team
            )
            return {"kind": "answers", "answers": [found]}
        if asked.train_score is None:
            found = holdout.score(
                said, metric=asked.metric, guess=asked.guess, sample_weight=weights, most_weight=asked.most_weight,
                key=call, team=team,
            )  # fmt: skip
            return {"kind": "answers", "answers": [found]}
        verdict = holdout.check(asked.train_score, said, metric=asked.metric, key=call, team=team)
        return {"kind": "verdict", "fine": verdict.fine, "answers": [verdict.answer]}

    def standings(self, key: str) -> list[dict[str, Any]]:
        """The public table: rank, team, best score with its interval, number of submissions."""
        return [
            {
                "rank": place.rank, "team": place.team, "value": place.best.value, "low": place.best.low,
                "high": place.best.high, "submissions": place.submissions,
            }
            for place in self.leaderboard(key).standings()
        ]  # fmt: skip

    def close(self) -> None:
        """Let go of every ledger."""
        with self._lock:
            for _, opened in self._opened.values():
                opened.close()
            self._opened.clear()

    def _get(self, key: str, kind: str) -> Leaderboard | ReusableHoldout:
        board = self.board(key, kind)
        with self._lock:
            if key not in self._opened:
                self._opened[key] = self._open(board)
            return self._opened[key][1]

    def _open(self, board: Board) -> tuple[Board, Leaderboard | ReusableHoldout]:
        """The board as it is declared once it is open, and itself."""
        labels = Labels(_labels(str(self._folder / board.labels), board.column, None))
        ledger = self._ledger(labels)
        terms: dict[str, Any] = {
            "metric": board.metric, "queries": board.queries, "within": board.within, "confidence": board.confidence,
            "mode": board.mode, "private": board.private,
            "ledger": PublicTimesLedger(ledger),
            "units": None if board.units is None else read_column(self._folder / board.units),
            "rows_per_unit": board.rows_per_unit,
        }  # fmt: skip
        try:
            if board.ledger not in ("", ledger.id):
                raise LedgerError(
                    f"the labels of {board.id!r} are not those that it was registered with, or their ledger is another "
                    "one; put the right ones back"
                )
            opened = (
                ReusableHoldout(labels.values, **terms)
                if board.kind == "holdout"
                else Leaderboard(
                    labels.values,
                    per_team=board.per_team,
                    predictions=self._folder / f"{board.labels.removesuffix('.npy')}.predictions",
                    **terms,
                )
            )
            return replace(board, private=opened.private, ledger=ledger.id), opened
        except BaseException:
            ledger.close()
            raise

    def _ledger(self, labels: Labels) -> ChainedLedger:
        """The ledger of these labels. What was counted in the folder goes along when the gateway has a database."""
        name, database, anchors = fingerprint(labels.values), self._settings.database, self._settings.anchors
        own = self._folder / f"{name}.sqlite"
        if database is None:
            return open_looks(labels, own, anchors)
        ledger = open_looks(labels, database, anchors, name=f"labels {name}")
        if own.exists():
            standing = open_looks(labels, own, anchors)
            move_ledger(standing, ledger)
            standing.close()
        return ledger


def _labels(place: str, column: str | None, units: str | None) -> Any:
    """The labels. A file without a header has values for names, so that its names are not told."""
    try:
        return read_column(Path(place), column, besides=units)
    except InputError:
        raise DataError(
            "expected labels in one column of a file; name the column, or look at the file"
        ) from None


def _whose(place: str, column: str, rows: int, most: int | None) -> NDArray[np.int64]:
    """The number of the unit of each label; the keys themselves are not kept."""
    refused = DataError("expected the keys of units in a column of a .csv or .parquet file; name that column")
    if Path(place).suffix.lower() not in (".csv", ".parquet"):
        raise refused
    try:
        keys = read_column(Path(place), column)
    except InputError:
        raise refused from None
    return UnitRows(keys, rows, most).numbers


def as_array(predictions: list[Any], rows: int) -> NDArray[Any]:
    """One prediction for each row: numbers throughout, texts throughout, or lists of as many numbers throughout."""
    if len(predictions) != rows:
        raise InputError(f"expected {rows:,} predictions, one for each row, got {len(predictions):,}")
    kinds = set(map(type, predictions))
    if kinds == {list}:
        columns = set(map(len, predictions))
        if len(columns) != 1 or not 1 <= min(columns) <= MOST_COLUMNS:
            raise InputError(
                f"expected as many numbers in each prediction, {MOST_COLUMNS} at most, got others; send a chance for "
                "each class"
            )
        numbers = [one for row in predictions for one in row]
        if not set(map(type, numbers)) <= {int, float, bool}:
            raise InputError("expected chances that are all numbers, got something else")
        return as_array(numbers, len(numbers)).reshape(rows, -1)
    if kinds <= {int, float, bool}:
        try:
            said = np.array(predictions, dtype=np.float64)
        except OverflowError:
            raise InputError("expected predictions that a float can hold, got a larger one") from None
        if not np.isfinite(said).all():
            raise InputError("expected finite predictions, got another")
        return said
    if kinds != {str}:
        raise InputError("expected predictions that are all numbers or all texts, got something else")
    longest = max(map(len, predictions))
    # An array of texts is as wide as its longest, in every row.
    if longest > LONGEST_TEXT or longest * rows > MOST_CHARACTERS:
        raise Problem(
            "too-large", f"the longest of the predictions has {longest} characters; shorten the names"
        )
    return np.array(predictions, dtype=np.str_)
