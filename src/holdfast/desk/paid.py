"""What was paid for: the rows, until an outcome is told; and that outcome."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.data.frame import FrameSource
from holdfast.data.store import StoreSource
from holdfast.desk.replayed import refuse_to_replay
from holdfast.desk.steps import Steps, run
from holdfast.errors import LedgerError
from holdfast.ledger import Entry, Ledger, Record
from holdfast.noise.bits import system_bits
from holdfast.privacy.event import Nothing, to_json
from holdfast.query.dictionary import text_behind, with_words

if TYPE_CHECKING:
    from holdfast.data.source import Block, Measurement, Source

_NOTHING = json.dumps(to_json(Nothing()))


class RowAccess:
    """A source's rows (see `holdfast.data.source.Source`) for whoever holds this; only a desk makes one."""

    __slots__ = ("_source",)

    def __init__(self, source: Source) -> None:
        self._source = source

    def _admit(self) -> Source:
        return self._source

    @property
    def count(self) -> int:
        """The public number of rows."""
        return self._source.rows

    def scan(self, columns: Sequence[str]) -> Iterator[Block]:
        return map(self._with_words, self._admit().scan(columns))

    def gather(self, columns: Sequence[str], ids: NDArray[np.int64]) -> Block:
        return self._with_words(self._admit().gather(columns, ids))

    def draw(self, columns: Sequence[str], count: int) -> Block:
        return self._with_words(self._admit().draw(columns, count))

    def totals(self, measurement: Measurement) -> NDArray[np.int64]:
        source = self._admit()
        if not any(text_behind(source.schema, name) for name in measurement.columns):
            return source.totals(measurement)
        # Only here do codes of texts meet their dictionary: no engine knows it, so that all of them agree.
        return sum(
            map(measurement.totals, self.scan(measurement.columns)), np.zeros(measurement.size, np.int64)
        )

    def one(self, columns: Sequence[str]) -> Block:
        """One fresh row. Arrays and stores fetch it at once; the others draw ahead of the questions."""
        source = self._admit()
        if isinstance(source, FrameSource | StoreSource):
            return self._with_words(source.gather(columns, np.array([system_bits().below(self.count)])))
        return self._with_words(source.draw(columns, 1))

    def _with_words(self, block: Block) -> Block:
        """The block, in which texts know their dictionary."""
        for name, codes in block.items():
            if (texts := text_behind(self._source.schema, name)) is not None:
                block[name] = with_words(codes, self._source.words[texts])
        return block


class Paid(RowAccess):
    """A committed charge. It reaches rows as often as the release needs until its outcome is recorded.

    A secret outcome (a noisy threshold) is the state of a mechanism that goes on, so rows stay in reach; an outcome
    that is told ends it, here and for everybody who finds the charge again. A charge of nothing reaches no rows: what
    it tells was paid for before. `entry` is the charge as it was committed.
    """

    __slots__ = ("_ledger", "_secret", "entry", "outcome")

    def __init__(self, entry: Entry, source: Source, ledger: Ledger) -> None:
        super().__init__(source)
        self.entry, self._ledger = entry, ledger
        self.outcome, self._secret = entry.answer, entry.secret

    def record(self, outcome: str, *, secret: bool = False, told: int | None = None) -> str:
        """Commit the outcome, once; returns the one that stands. A `secret` one is left out of exports, `told` is how
        much it tells where that is read off the outcome."""
        return run(self.recording(outcome, secret=secret, told=told), self._ledger)

    def recording(self, outcome: str, *, secret: bool = False, told: int | None = None) -> Steps[str]:
        """`record`, as a step."""
        refuse_to_replay(self.entry)
        self.outcome = yield Record(self.entry.id, outcome, secret, told)
        self._secret = secret
        return self.outcome

    def _admit(self) -> Source:
        if self.entry.event == _NOTHING:
            raise LedgerError(
                "expected a charge that covers rows, got one of nothing; look by what was paid for"
            )
        if self.outcome is None:
            refuse_to_replay(self.entry)
        elif not self._secret:
            raise LedgerError("expected a charge whose outcome is open, got one that was told; ask again")
        return self._source
