"""A table: rows that stay where they are, a public schema, and one ledger."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.check import one_of, printable, probability, whole
from holdfast.errors import InputError, LedgerError
from holdfast.ledger import (
    LEDGER_FILE,
    ChainedLedger,
    Ledger,
    MemoryLedger,
    Moment,
    SqliteLedger,
    Totals,
    copy_ledger,
    open_ledger,
)
from holdfast.planning.budget import Amount, Budget, budget, budget_of, validity_budget
from holdfast.planning.fixed import fixed_noise, odds_noise
from holdfast.planning.session_plan import session_plan
from holdfast.planning.terms import Fixed, Terms
from holdfast.privacy.filter import Filter
from holdfast.query.calling import fitting
from holdfast.query.schema import Schema
from holdfast.session.opening import Opening
from holdfast.session.session import Session
from holdfast.validity.places import places_from_json

if TYPE_CHECKING:
    from holdfast.data.source import Source

_UNLIMITED = 9e9
"""What the table's account is compared with while the owner has set no limit."""


class Table:
    """Rows under a schema. `rows` and `schema` are public; nothing else leaves but through a session.

    All sessions share one ledger: a file in the folder of a saved store, or memory for the life of this object.
    """

    def __init__(self, source: Source, ledger: Ledger, rows_per_unit: int = 1) -> None:
        self._source, self._ledger = source, ledger
        path = getattr(source, "path", None)
        self._home = None if path is None else Path(path).resolve()
        self._opening: Opening | None = None
        self.rows_per_unit = whole("rows_per_unit", rows_per_unit)

    @property
    def rows(self) -> int:
        """The number of rows; public."""
        return self._source.rows

    @property
    def schema(self) -> Schema:
        """The declared columns; public."""
        return self._source.schema

    @property
    def ledger(self) -> Ledger:
        """What was charged, to whom, and for which answers."""
        return self._ledger

    def close(self) -> None:
        """Let go of the rows and the ledger. Sessions on the table end."""
        self._source.close()
        self._ledger.close()

    @fitting
    def limit(
        self, *, epsilon: float | None = None, delta: float | None = None, rho: float | None = None
    ) -> None:
        """Set the cap over all sessions together: epsilon (pure), epsilon and delta, or rho.

        A session's budget is a share of it; whichever ends first refuses.
        """
        self._ledger.set_limit(budget(epsilon=epsilon, delta=delta, rho=rho).account("the table"))

    @property
    def spent(self) -> Amount:
        """What all sessions together have been charged."""
        return self._table_budget().amount(self._ledger.totals().units)

    @fitting
    def session(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        confidence: float | None = None,
        queries: int | None = None,
        only: str | None = None,
        target: str | None = None,
        within: float | None = None,
        intervals: str = "uniform",
        rows: int | None = None,
        name: str | None = None,
    ) -> Session:
        """Open a session on a share of the table's budget.

        `epsilon` alone means pure DP and pure mechanisms; with `delta`, or as `rho`, the currency is zCDP.
        `only="gaussian"` admits Gaussian answers only and accounts for them exactly. `confidence` (0.95) holds for
        all intervals at once, for `queries` answers (None: any number). Intervals cover the `target`: the
        "population" that the rows were drawn from independently, however the questions are chosen, or the
        "table" itself, for an owner whose table is the population (a census).

        `within` with `queries` opens a session for validity: the planner fixes one mechanism and one noise for
        all answers, by the sharpest theorem; the budget may then be left out, and what it costs is reported. It is
        on the scale of a fraction, and of the declared range for others; a mean may miss it (`Answer.met`).
        `intervals="odds"` with `queries` does the same, but gives each answer an interval of its own, narrow
        for rare events. Both need independent rows, and refuse a table with `rows_per_unit` above 1.

        With `queries` the session is planned now: `Session.plan` tells the half-width that each of its answers will
        have, asked without `within=`, `rho=` or `epsilon=`. `rows` caps how many rows such an answer may read.

        A `name` makes a session on a saved store that can be reopened (its budget may then be left out) and goes
        on spending the same budget.
        """
        if self._opening is not None:
            self._opening.warn()
        name = None if name is None else printable("name", name)
        standing = next((account for account in self._ledger.accounts() if account.name == name), None)
        if standing is not None:
            promised = json.loads(standing.terms)
            confidence = promised["confidence"] if confidence is None else confidence
            queries = promised["queries"] if queries is None else queries
            target = promised["target"] if target is None else target
        confidence = probability("confidence", 0.95 if confidence is None else confidence)
        queries = None if queries is None else whole("queries", queries)
        rows = None if rows is None else whole("rows", rows)
        target = "population" if target is None else one_of("target", target, ("population", "table"))
        fixed = self._fixed(within, queries, confidence, target, only, intervals)
        if fixed is not None and name is None:
            # The theorems count every query on these rows, so sessions on the same plan are one session.
            budget_words = f"{epsilon} {delta} {rho}"
            name = (
                f"validity {fixed.mechanism} {fixed.noise} {intervals} {queries} {confidence} {budget_words}"
            )
            standing = next((account for account in self._ledger.accounts() if account.name == name), None)
        if standing is not None and epsilon is None and rho is None:
            own = budget_of(standing)
        elif fixed is not None and epsilon is None and rho is None:
            assert queries is not None
            own = validity_budget(fixed, self.rows, queries, delta)
        else:
            only_budget = None if fixed is not None and fixed.mechanism == "votes" else only
            own = budget(epsilon=epsilon, delta=delta, rho=rho, only=only_budget)
        cap = self._ledger.limit()
        if cap is not None and cap.currency == "pure" and own.currency != "pure":
            raise InputError(
                "expected a pure session on a table whose limit is pure epsilon, got another; leave out delta="
            )
        terms = Terms(
            schema=self.schema,
            rows=self.rows,
            rows_per_unit=self.rows_per_unit,
            session=own.filter,
            table=self._table_budget().filter,
            queries=queries,
            confidence=confidence,
            target=target,
            fixed=fixed,
            within=within,
        )
        if standing is not None:
            kept = json.loads(standing.terms)["places"]
            places = None if kept is None else places_from_json(self.rows, kept)
        elif fixed is None:
            moment = Moment(Totals(), self._ledger.totals(), cap)
            places = session_plan(terms, moment, rows)
        else:
            places = None
        terms = replace(terms, places=places)
        return Session(self._source, self._ledger, own, terms, name)

    def _fixed(
        self,
        within: float | None,
        queries: int | None,
        confidence: float,
        target: str,
        only: str | None,
        intervals: str,
    ) -> Fixed | None:
        """One mechanism and one noise for all answers, if that was asked for."""
        odds = one_of("intervals", intervals, ("uniform", "odds")) == "odds"
        if within is None and not odds:
            return None
        if queries is None or target != "population" or (odds and within is not None):
            raise InputError(
                'cannot open: within= or intervals="odds" plans a session for validity; give one of '
                "them, with queries= and "
                'target="population"'
            )
        if self.rows_per_unit > 1:
            raise InputError(
                'cannot open: within= or intervals="odds" plans for rows of different people, and here '
                "one person may own "
                f"{self.rows_per_unit}; open the session with a budget instead (epsilon= or rho=): its intervals take "
                "rows_per_unit into account"
            )
        if within is None:
            return odds_noise(self.rows, queries, confidence, only)
        return fixed_noise(self.rows, queries, probability("within", within), confidence, only)

    @fitting
    def save(self, path: str | Path, *, overwrite: bool = False, progress: Any = None) -> Table:
        """Write the store: memory-mapped columns, the layout for quick reads. Returns the saved table.

        What was charged so far goes with it; saving never refreshes a budget. A table that lived in memory
        shares the store's ledger from then on, and sessions that were open on it end. Saving a store once more
        makes a copy with a ledger of its own: two copies are two budgets (docs/limits.md).
        """
        from holdfast.data.save import save_store
        from holdfast.data.store import StoreSource

        if not isinstance(path, str | Path):
            raise InputError(f"expected the path of a folder, got {type(path).__name__}")
        folder = Path(printable("path", str(path)))
        self._refuse_to_lose_a_ledger(folder)
        memory = self._ledger if isinstance(self._ledger, MemoryLedger) else None
        if memory is not None:
            memory.retire()  # nothing may be charged between the copy and the store's first moment
        try:
            save_store(
                self._source,
                folder,
                rows_per_unit=self.rows_per_unit,
                overwrite=overwrite,
                progress=progress,
                beside=self._copy_ledger,
            )
        except BaseException:
            if memory is not None:
                memory.retire(False)
            raise
        saved = Table(StoreSource(folder), SqliteLedger(folder / LEDGER_FILE), self.rows_per_unit)
        if memory is not None:
            self._ledger, self._home, self._opening = saved._ledger, saved._home, None
        return saved

    def _copy_ledger(self, folder: Path) -> None:
        ledger = SqliteLedger(folder / LEDGER_FILE)
        copy_ledger(self._ledger, ledger)
        ledger.close()

    def _refuse_to_lose_a_ledger(self, folder: Path) -> None:
        """A store that has been asked keeps what it was charged, unless it is this very table's."""
        if not (folder / LEDGER_FILE).exists() or folder.resolve() == self._home:
            return
        standing = SqliteLedger(folder / LEDGER_FILE)
        asked = standing.totals().entries
        standing.close()
        if asked:
            raise LedgerError(
                f"{folder} has answered {asked} questions, and overwriting it would forget what they cost; save "
                "elsewhere, or remove it yourself"
            )

    def _table_budget(self) -> Budget:
        cap = self._ledger.limit()
        return Budget(Filter.zcdp(_UNLIMITED), None) if cap is None else budget_of(cap)

    def __repr__(self) -> str:
        return f"Table({self.rows:,} rows; {', '.join(self.schema)})"


@fitting
def open(
    data: object,
    schema: Schema | None = None,
    *,
    rows_per_unit: int | None = None,
    ledger: Ledger | str | Path | None = None,
    in_memory: bool | None = None,
    table: str | None = None,
) -> Table:
    """Open rows as a table.

    `data` is a dict of NumPy arrays, a pandas, Polars or Arrow frame, a DuckDB relation, a Spark DataFrame, the
    path of a CSV or Parquet file, a postgresql:// address with `table=`, or the folder of a saved store (which
    has its own schema). Values are clamped to the declared
    bounds; unknown categories and unparsable values become NULL; nothing is learnt from the rows.
    `rows_per_unit=m` says that one person may own up to m rows, and charges group privacy for it; a store
    remembers it.
    `ledger` is where charges are kept: a file, "postgresql://…#name", or a ledger; else in a store's folder, or in
    memory, for the life of this table. A store has one budget: its own ledger refuses from then on, and must be
    moved if it was charged. Rows that are opened again in one process without a ledger count afresh, which is a
    ReopenedWarning; `ledger=MemoryLedger()` says that it is meant.
    """
    from holdfast.data.open import open_source
    from holdfast.data.store import StoreSource
    from holdfast.data.trace import traces

    units = 1 if rows_per_unit is None else whole("rows_per_unit", rows_per_unit)
    source = open_source(data, schema, in_memory=in_memory, table=table)
    if not isinstance(source, StoreSource):
        opened = Table(source, MemoryLedger() if ledger is None else _opened(ledger), units)
        opened._opening = Opening(traces(data, table), opened.ledger, fresh=ledger is None)
        opened._opening.warn()
        return opened
    if rows_per_unit is None:
        units = source.rows_per_unit
    elif units < source.rows_per_unit:
        raise InputError(
            f"expected rows_per_unit={source.rows_per_unit} as in the store, got fewer; they charge too little"
        )
    own = source.path / LEDGER_FILE
    return Table(source, SqliteLedger(own) if ledger is None else _in_place_of(own, _opened(ledger)), units)


def _opened(ledger: Ledger | str | Path) -> Ledger:
    if isinstance(ledger, str | Path):
        printable("ledger", str(ledger))
        return open_ledger(ledger)
    if not hasattr(ledger, "reserve"):
        raise InputError(f"expected ledger= as a path, an address or a ledger, got {type(ledger).__name__}")
    return ledger


def _in_place_of(own: Path, ledger: Ledger) -> Ledger:
    """Have a store's charges counted elsewhere, and no longer in its folder: one store, one budget."""
    if not isinstance(ledger, ChainedLedger):
        raise InputError(
            "expected a ledger that outlasts the process, got one in memory; name a file or a server"
        )
    writable = own.exists() or os.access(own.parent, os.W_OK)  # else nobody can charge it there
    if writable and ledger.address != str(own.absolute()):
        standing = SqliteLedger(own)
        try:
            if standing.moved() != ledger.address:
                standing.retire(ledger.address, unless_charged=True)
        finally:
            standing.close()
    return ledger
