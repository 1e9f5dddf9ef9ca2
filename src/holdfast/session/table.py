"""A table: rows that stay where they are, a public schema, and one ledger."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.check import one_of, printable, probability, refusal, whole
from holdfast.errors import InputError
from holdfast.ledger import (
    LEDGER_FILE,
    Ledger,
    MemoryLedger,
    Moment,
    SqliteLedger,
    Totals,
    given_away,
    most_of_all,
)
from holdfast.planning.budget import Amount, Budget, budget, budget_of
from holdfast.planning.plan_line import could_be
from holdfast.planning.session_plan import Room, plan_counted, share_of
from holdfast.planning.terms import Terms
from holdfast.planning.width_plan import validity_budget, width_plan
from holdfast.privacy.filter import Filter
from holdfast.query.calling import fitting
from holdfast.query.schema import Schema, declared
from holdfast.query.unit_schema import UnitSchema
from holdfast.session.ledger_place import (
    copied_beside,
    ledger_of_store,
    opened_ledger,
    refuse_to_lose_a_ledger,
)
from holdfast.session.opening import Opening
from holdfast.session.reopening import refuse_other_terms
from holdfast.session.session import Session
from holdfast.session.set_aside import keep_aside, kept_aside, part_of, refuse_by_part
from holdfast.validity.places import places_from_json

if TYPE_CHECKING:
    from holdfast.data.lookup import Lookup
    from holdfast.data.source import Source

_UNLIMITED = 9e9
"""What the table's account is compared with while the owner has set no limit."""


class Table:
    """Rows under a schema. `rows` and `schema` are public; nothing else leaves but through a session.

    All sessions share one ledger: a file in the folder of a saved store, or memory for the life of this object.
    Where units were set aside when it was first opened, it is about the rest, and `aside` about these.
    """

    def __init__(self, source: Source, ledger: Ledger, rows_per_unit: int = 1, part: str = "rest") -> None:
        self._whole, self._ledger = source, ledger
        self._part = "whole" if kept_aside(ledger, source.rows) is None else part
        self._source = part_of(source, ledger, self._part)
        path = getattr(source, "path", None)
        self._home = None if path is None else Path(path).resolve()
        self._opening: Opening | None = None
        self._lookups: Mapping[str, Lookup] | None = None
        self.allow_uncovered = True
        self.rows_per_unit = whole("rows_per_unit", rows_per_unit)
        self._unit = schema.unit if isinstance(schema := source.schema, UnitSchema) else None

    @property
    def rows(self) -> int:
        """The number of rows, or of units where these are what is protected; public."""
        return self._source.rows

    @property
    def schema(self) -> Schema:
        """The declared columns; public."""
        return self._source.schema

    @property
    def aside(self) -> Table:
        """The units that are set aside, as a table: for releases that the leave-out theorem does not cover.

        Its sessions have the same ledger and limit. What they tell is not counted on the meter, and their intervals for
        the population follow Theorem 20 (docs/theorems.md, Theorem 61).
        """
        if self._part == "whole":
            raise InputError(
                "expected a table with units that are set aside, got one without; open the rows with set_aside=0.1 "
                "before they are asked"
            )
        table = Table(self._whole, self._ledger, self.rows_per_unit, "aside")
        table.allow_uncovered = self.allow_uncovered
        return table

    @property
    def ledger(self) -> Ledger:
        """What was charged, to whom, and for which answers."""
        return self._ledger

    def _look_up(self, lookups: Mapping[str, Lookup] | None) -> None:
        from holdfast.data.lookup import with_lookups

        self._whole, self._lookups = with_lookups(self._whole, lookups), lookups
        self._source = part_of(self._whole, self._ledger, self._part)

    def _widened(self, lookups: Mapping[str, Lookup]) -> Source:
        """The same rows with more public tables beside them."""
        from holdfast.data.lookup import more_lookups

        both = more_lookups(self._whole, self._lookups or {}, lookups)
        return part_of(both, self._ledger, self._part)

    def close(self) -> None:
        """Let go of the rows and the ledger. Sessions on the table end."""
        self._source.close()
        self._ledger.close()

    @fitting
    def limit(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        keys_delta: float | None = None,
    ) -> None:
        """Set the cap over all sessions together: epsilon (pure), epsilon and delta, or rho.

        A session's budget is a share of it; whichever ends first refuses. `keys_delta` as in `session`.
        """
        kept = self._for_keys(delta, keys_delta)
        cap = budget(epsilon=epsilon, delta=delta, rho=rho, keys_delta=kept)
        self._ledger.set_limit(cap.account("the table"))

    def _for_keys(self, delta: float | None, keys_delta: float | None) -> float | None:
        """What is kept of delta for the discovery of keys: half of it where there are text columns, unless said."""
        if keys_delta is not None or delta is None or not self.schema.texts:
            return keys_delta
        return probability("delta", delta) / 2

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
        share: float | None = None,
        name: str | None = None,
        keys_delta: float | None = None,
    ) -> Session:
        """Open a session on a share of the table's budget.

        `epsilon` alone means pure DP and pure mechanisms; with `delta`, or as `rho`, the currency is zCDP. A plan that
        the budget keeps wide counts mu squared instead: Gaussian answers by their exact profile, others as much as the
        Gaussian noise that shows what they may (Theorem 290). `only="gaussian"` counts so also without a plan.
        `confidence` (0.95) holds for all intervals at once, for `queries` answers (None: any number). Intervals cover
        the `target`: the
        "population" that the rows were drawn from independently, however the questions are chosen, or the
        "table" itself, for an owner whose table is the population (a census).

        `within` with `queries` opens a session for validity: the planner takes the most noise with which every answer
        keeps that half-width, by the leave-out theorem; the budget may then be left out, and what it costs is reported.
        It is on the scale of a fraction, and of the declared range for others; a mean may miss it (`Answer.met`). If
        others are told something meanwhile, an answer needs less noise for the same width, and is refused where none
        will do. It needs independent rows, and refuses a table with `rows_per_unit` above 1.

        With `queries` the session is planned now: `Session.plan` tells the half-width that each of its answers will
        have, asked without `within=`, `rho=` or `epsilon=`. `rows` caps how many rows such an answer may read.
        `intervals="rare"` plans for questions near 1%: the noise is smaller, what each answer tells is read off the
        answer, and so is its interval, which is wide near one half.

        `keys_delta` is the part of delta that is kept for the discovery of keys (`Session.keys`); half of it where
        there are text columns, unless said.

        `share` makes it one of several on the same rows, none of which widens another's plan: the session has that part
        (0 to 1) of what all will have told, as a maximum that the ledger keeps; its plan counts from the beginning that
        others tell the rest, and who comes later may open what is left.

        A `name` makes a session on a saved store that can be reopened (its budget may then be left out) and goes
        on spending the same budget. Another budget in the same currency is its limit from then on, a chained fact of
        the ledger, unless it is below what was charged; the plan stays as it was made, and so do all its other terms,
        which are refused if they differ. `with table.session(...) as session:` closes it at the end (`Session.close`).
        """
        if self._opening is not None:
            self._opening.warn()
        name = None if name is None else printable("name", name)
        one_of("intervals", intervals, ("uniform", "rare"))
        planned = within is not None or intervals != "uniform" or share is not None
        refuse_by_part(self._part, self._ledger, self._whole.rows, name, target, planned)
        standing = next((account for account in self._ledger.accounts() if account.name == name), None)
        if standing is not None:
            promised = json.loads(standing.terms)
            given = {
                "confidence": confidence,
                "queries": queries,
                "target": target,
                "within": within,
                "only": only,
            }
            kept_plan = promised["places"] and places_from_json(self.rows, promised["places"])
            refuse_other_terms(
                standing, given | {"intervals": intervals, "rows": rows, "share": share}, kept_plan
            )
            confidence = promised["confidence"] if confidence is None else confidence
            queries = promised["queries"] if queries is None else queries
            target = promised["target"] if target is None else target
            within = promised["within"] if within is None else within
        confidence = probability("confidence", 0.95 if confidence is None else confidence)
        queries = None if queries is None else whole("queries", queries)
        rows = None if rows is None else whole("rows", rows)
        target = "population" if target is None else one_of("target", target, ("population", "table"))
        self._refuse_unplannable(within, queries, target, only, rare=intervals == "rare")
        free = within is not None and standing is None and epsilon is None and rho is None
        if standing is not None and epsilon is None and rho is None:
            own = budget_of(standing)
        elif free:
            own = Budget(Filter.zcdp(_UNLIMITED), None)  # as much as the plan will cost
        else:
            only_budget = None if only == "votes" else only
            if standing is not None and standing.currency == "gdp" and (delta is not None or rho is not None):
                only_budget = "gaussian"  # as it was counted when its plan was made
            kept = self._for_keys(delta, keys_delta)
            own = budget(epsilon=epsilon, delta=delta, rho=rho, only=only_budget, keys_delta=kept)
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
            allow_uncovered=self.allow_uncovered,
            within=within,
            part=self._part,
        )
        if standing is not None:
            places = kept_plan
            information, table_information = standing.information, standing.table_information
            share = promised.get("share")
        else:
            moment, room = Moment(Totals(), self._ledger.totals(), cap), self._room(share)
            share = room.share
            if within is None:
                ways = [own]
                if epsilon is not None and delta is not None and only is None:
                    ways.append(budget(epsilon=epsilon, delta=delta, only="gaussian", keys_delta=kept))
                own, places = plan_counted(ways, terms, moment, rows, room, rare=intervals == "rare")
                if intervals == "rare" and (places is None or not places.rare or share is not None):
                    raise InputError(
                        'cannot open: intervals="rare" has no plan here; give a budget with delta= or rho= and no '
                        "share=, on more than a handful of rows of which all that was told is covered"
                        f"{could_be(replace(terms, places=places), moment)}"
                    )
            else:
                places = width_plan(terms, moment, within, only, room, rows)
                own = validity_budget(places, delta) if free else own
            if rows is not None and places is None:
                raise InputError(
                    "expected rows= with a plan that it can cap, got a session without one; give queries= and "
                    'target="population", or leave rows= out'
                )
            information, table_information = share_of(places, terms, room)
        terms = replace(
            terms,
            session=own.filter,
            places=places,
            information=information,
            table_information=table_information,
            share=share,
        )
        return Session(self._source, self._ledger, own, terms, name, self._widened)

    def _room(self, share: float | None) -> Room:
        """What the shares that stand leave of the meter to another session."""
        ended = self._ledger.ended()
        shares = [
            account for account in self._ledger.accounts() if account.is_share and account.name not in ended
        ]
        told = self._ledger.totals().information
        begun = given_away(shares, lambda name: self._ledger.totals(name).information, told)
        part = 1.0 if share == 1 else None if share is None else probability("share", share)
        return Room(begun, most_of_all(shares), part)

    def _refuse_unplannable(
        self, within: float | None, queries: int | None, target: str, only: str | None, *, rare: bool
    ) -> None:
        """InputError for sessions by `within=` or `intervals="rare"` that no theorem could plan here."""
        if only is not None:
            one_of("only", only, ("gaussian",) if within is None else ("gaussian", "votes"))
        if within is None and not rare:
            return
        if queries is None or target != "population" or (rare and within is not None):
            raise InputError(
                'cannot open: within= or intervals="rare" plans a number of answers about the population; give one of '
                'them, with queries= and target="population"'
            )
        if self.rows_per_unit > 1:
            raise InputError(
                'cannot open: within= or intervals="rare" plans for rows of different people, and here one person may '
                f"own {self.rows_per_unit}; open the session with a budget instead (epsilon= or rho=): its intervals "
                "take rows_per_unit into account"
            )
        if within is not None:
            probability("within", within)

    @fitting
    def save(self, path: str | Path, *, overwrite: bool = False, progress: Any = None) -> Table:
        """Write the store: memory-mapped columns, the layout for quick reads. Returns the saved table.

        What was charged so far goes with it; saving never refreshes a budget. A table that lived in memory
        shares the store's ledger from then on, and sessions that were open on it end. Saving a store once more
        makes a copy with a ledger of its own: two copies are two budgets (docs/limits.md).
        """
        from holdfast.data.open import open_store
        from holdfast.data.save import save_store
        from holdfast.data.unit_source import UnitSource
        from holdfast.data.unit_store import save_units

        if self._part == "aside":
            raise InputError("cannot save units that are set aside alone; save the table that they belong to")
        if not isinstance(path, str | Path):
            raise InputError(f"expected the path of a folder, got {type(path).__name__}")
        folder = Path(printable("path", str(path)))
        refuse_to_lose_a_ledger(folder, self._home)
        memory = self._ledger if isinstance(self._ledger, MemoryLedger) else None
        if memory is not None:
            memory.retire()  # nothing may be charged between the copy and the store's first moment
        try:
            how: Any = {
                "overwrite": overwrite,
                "progress": progress,
                "beside": partial(copied_beside, self._ledger),
            }
            bare = getattr(self._whole, "base", self._whole)  # public tables are not saved with the rows
            if isinstance(bare, UnitSource):
                save_units(bare, folder, **how)
            else:
                save_store(bare, folder, rows_per_unit=self.rows_per_unit, **how)
        except BaseException:
            if memory is not None:
                memory.retire(False)
            raise
        saved = Table(open_store(folder), SqliteLedger(folder / LEDGER_FILE), self.rows_per_unit)
        saved.allow_uncovered = self.allow_uncovered
        saved._look_up(self._lookups)
        if memory is not None:
            self._ledger, self._home, self._opening = saved._ledger, saved._home, None
        return saved

    def _table_budget(self) -> Budget:
        cap = self._ledger.limit()
        return Budget(Filter.zcdp(_UNLIMITED), None) if cap is None else budget_of(cap)

    def __repr__(self) -> str:
        if isinstance(self.schema, UnitSchema):
            tables = ", ".join(
                f"{name}: at most {e.most} a {self._unit}" for name, e in self.schema.events.items()
            )
            return f"Table({self.rows:,} units ({self._unit}); {', '.join(self.schema)}; {tables})"
        return f"Table({self.rows:,} rows; {', '.join(self.schema)})"


@fitting
def open(
    data: object,
    schema: Schema | Mapping[str, Any] | str | Path | None = None,
    *,
    unit: str | None = None,
    rows_per_unit: int | Mapping[str, int] | None = None,
    order: str | Mapping[str, str] | None = None,
    ledger: Ledger | str | Path | None = None,
    in_memory: bool | None = None,
    table: str | Mapping[str, str] | None = None,
    lookups: Mapping[str, Lookup] | None = None,
    allow_uncovered: bool = False,
    set_aside: float | None = None,
) -> Table:
    """Open rows as a table.

    `data` is a dict of NumPy arrays, a pandas, Polars or Arrow frame, a DuckDB relation, a Spark DataFrame, the
    path of a CSV or Parquet file, a postgresql:// address with `table=`, or the folder of a saved store (which
    has its own schema). `schema` is a Schema, a dict of columns, or the path of a schema file (TOML). Values are
    clamped to the declared bounds; unknown categories and unparsable values become NULL; nothing is learnt from the
    rows.
    `rows_per_unit=m` says that one person may own up to m rows, and charges group privacy for it; a store
    remembers it. With `unit="person"`, the column that says whose a row is, persons are what is protected, drawn
    and counted, and at most m rows of each are kept; several tables are `{"people": ..., "visits": ...}` with a
    schema each and `rows_per_unit={"visits": 20}`, where the one without a bound has a row for each person
    (docs/units.md). `order` names the column by which a person's first and last rows are known.
    `ledger` is where charges are kept: a file, "postgresql://…#name", or a ledger; else in a store's folder, or in
    memory, for the life of this table. A store has one budget: its own ledger refuses from then on, and must be
    moved if it was charged. Rows that are opened again in one process without a ledger count afresh, which is a
    ReopenedWarning; `ledger=MemoryLedger()` says that it is meant.
    `lookups` are public tables by name, `{"carriers": hf.Lookup(carriers, key="carrier")}`: their columns
    (`carriers.name`) are then columns of the rows, at no cost (docs/lookups.md). They are given at each opening.
    `allow_uncovered=True` allows releases that end the leave-out theorem (Laplace answers by name, plain quantiles,
    older weights) also while other sessions for the population are open, whose later intervals they widen.
    `set_aside=0.1` sets a tenth of the units aside for such releases, when the table is first opened and for good:
    chosen by a key that the ledger keeps, whatever they hold. `table.rows` and all answers are then about the rest, and
    `table.aside` about these units. The rows must come in the same order at every opening; a PostgreSQL table that was
    written to or rewritten since is refused.
    """
    opened = _opened_table(data, declared(schema), unit, rows_per_unit, order, ledger, in_memory, table)
    if set_aside is not None:
        keep_aside(opened._ledger, opened._whole, set_aside)
        opened._part = "rest"
    if not isinstance(allow_uncovered, bool):
        raise refusal("True or False", "allow_uncovered", allow_uncovered)
    opened.allow_uncovered = allow_uncovered
    opened._look_up(lookups)
    if opened._opening is not None:
        opened._opening.warn()
    return opened


def _opened_table(
    data: object,
    schema: object,
    unit: str | None,
    rows_per_unit: int | Mapping[str, int] | None,
    order: str | Mapping[str, str] | None,
    ledger: Ledger | str | Path | None,
    in_memory: bool | None,
    table: str | Mapping[str, str] | None,
) -> Table:
    from holdfast.data.open import open_source
    from holdfast.data.store import StoreSource
    from holdfast.data.trace import traces
    from holdfast.data.unit_source import UnitSource

    if unit is not None or isinstance(rows_per_unit, Mapping):
        return _open_units(data, schema, unit, rows_per_unit, order, ledger, in_memory, table)
    if not (schema is None or isinstance(schema, Schema)) or isinstance(table, Mapping) or order is not None:
        raise InputError('expected unit="person" with several tables or with order=, got none')
    units = 1 if rows_per_unit is None else whole("rows_per_unit", rows_per_unit)
    source = open_source(data, schema, in_memory=in_memory, table=table)
    if isinstance(source, UnitSource) and rows_per_unit is not None:
        raise InputError("expected no rows_per_unit= for a store of units, got one; it has its bounds")
    if isinstance(source, UnitSource):
        return Table(source, ledger_of_store(source.path, ledger))
    if not isinstance(source, StoreSource):
        opened = Table(source, MemoryLedger() if ledger is None else opened_ledger(ledger), units)
        opened._opening = Opening(traces(data, table), opened.ledger, fresh=ledger is None)
        return opened
    if rows_per_unit is None:
        units = source.rows_per_unit
    elif units < source.rows_per_unit:
        raise InputError(
            f"expected rows_per_unit={source.rows_per_unit} as in the store, got fewer; they charge too little"
        )
    return Table(source, ledger_of_store(source.path, ledger), units)


def _open_units(
    data: object,
    schema: object,
    unit: str | None,
    rows_per_unit: int | Mapping[str, int] | None,
    order: str | Mapping[str, str] | None,
    ledger: Ledger | str | Path | None,
    in_memory: bool | None,
    table: str | Mapping[str, str] | None,
) -> Table:
    """`open`, of tables around one unit. What is in the ledger decides which rows are kept, so it comes first."""
    from holdfast.data.unit_open import declared_units, open_units

    declared = declared_units(data, schema, unit, rows_per_unit, order, table)
    kept = MemoryLedger() if ledger is None else opened_ledger(ledger)
    opened = Table(open_units(declared, kept.secret, in_memory=in_memory), kept)
    opened._opening = Opening(declared.traces(), kept, fresh=ledger is None)
    return opened
