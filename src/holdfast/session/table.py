"""A table: rows that stay where they are, a public schema, and one ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import InputError
from holdfast.ledger import Ledger, MemoryLedger, SqliteLedger, copy_ledger
from holdfast.privacy.filter import Filter
from holdfast.query.schema import Schema
from holdfast.session.budget import Amount, Budget, budget, budget_of
from holdfast.session.planner import Terms
from holdfast.session.request import probability, whole
from holdfast.session.session import Session

if TYPE_CHECKING:
    from holdfast.data.source import Source

LEDGER_FILE = "ledger.sqlite"
_UNLIMITED = 9e9
"""What the table's account is compared with while the owner has set no limit."""


class Table:
    """Rows under a schema. `rows` and `schema` are public; nothing else leaves but through a session.

    All sessions share one ledger: a file in the folder of a saved store, or memory for the life of this object.
    """

    def __init__(self, source: Source, ledger: Ledger, rows_per_unit: int = 1) -> None:
        self._source, self._ledger = source, ledger
        self.rows_per_unit = whole("rows_per_unit", rows_per_unit)

    @property
    def rows(self) -> int:
        """The number of rows; public."""
        return self._source.rows

    @property
    def schema(self) -> Schema:
        """The declared columns; public."""
        return self._source.schema

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

    def session(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        confidence: float = 0.95,
        queries: int | None = None,
        only: str | None = None,
        name: str | None = None,
    ) -> Session:
        """Open a session on a share of the table's budget.

        `epsilon` alone means pure DP and pure mechanisms; with `delta`, or as `rho`, the currency is zCDP.
        `only="gaussian"` admits Gaussian answers only and accounts for them exactly. `confidence` holds for
        all intervals at once, for `queries` answers (None: any number). A `name` makes a session on a saved
        store that can be reopened (its budget may then be left out) and goes on spending the same budget.
        """
        standing = next((account for account in self._ledger.accounts() if account.name == name), None)
        if standing is not None and epsilon is None and rho is None:
            own = budget_of(standing)
        else:
            own = budget(epsilon=epsilon, delta=delta, rho=rho, only=only)
        if name is not None and (not isinstance(name, str) or not name):
            raise InputError(f"expected a name in words, got {name!r}")
        cap = self._ledger.limit()
        if cap is not None and cap.currency == "pure" and own.currency != "pure":
            raise InputError("the table's limit is pure epsilon; open a pure session (epsilon= without delta=)")
        terms = Terms(
            schema=self.schema,
            rows=self.rows,
            rows_per_unit=self.rows_per_unit,
            session=own.filter,
            table=self._table_budget().filter,
            queries=None if queries is None else whole("queries", queries),
            confidence=probability("confidence", confidence),
            target="table",
        )
        return Session(self._source, self._ledger, own, terms, name)

    def save(self, path: str | Path, *, overwrite: bool = False, progress: Any = None) -> Table:
        """Write the store: memory-mapped columns, the layout for quick reads. Returns the saved table.

        What was charged so far goes with it; saving never refreshes a budget.
        """
        from holdfast.data.save import save_store
        from holdfast.data.store import StoreSource

        folder = Path(path)
        save_store(self._source, folder, overwrite=overwrite, progress=progress)
        ledger = SqliteLedger(folder / LEDGER_FILE)
        copy_ledger(self._ledger, ledger)
        return Table(StoreSource(folder), ledger, self.rows_per_unit)

    def _table_budget(self) -> Budget:
        cap = self._ledger.limit()
        return Budget(Filter.zcdp(_UNLIMITED), None) if cap is None else budget_of(cap)

    def __repr__(self) -> str:
        return f"Table({self.rows:,} rows; {', '.join(self.schema)})"


def open(
    data: object, schema: Schema | None = None, *, rows_per_unit: int = 1, **options: Any
) -> Table:
    """Open rows as a table.

    `data` is a dict of NumPy arrays, a pandas, Polars or Arrow frame, a DuckDB relation, the path of a CSV or
    Parquet file, or the folder of a saved store (which has its own schema). Values are clamped to the declared
    bounds; unknown categories and unparsable values become NULL; nothing is learnt from the rows.
    `rows_per_unit=m` says that one person may own up to m rows, and charges group privacy for it.
    """
    from holdfast.data.open import open_source
    from holdfast.data.store import StoreSource

    source = open_source(data, schema, **options)
    ledger: Ledger = MemoryLedger()
    if isinstance(source, StoreSource):
        ledger = SqliteLedger(source.path / LEDGER_FILE)
    return Table(source, ledger, rows_per_unit)
