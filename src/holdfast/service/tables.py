"""The tables that a gateway guards, and the sessions of their analysts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any

from holdfast.data.deferred import DeferredSource, Seen, look
from holdfast.data.identity import marks
from holdfast.data.lookup import Lookup
from holdfast.errors import DataError, HoldfastError, InputError, LedgerError
from holdfast.ledger import LEDGER_FILE, Account, Ledger, SqliteLedger, move_ledger, verify
from holdfast.ledger.chained import ChainedLedger
from holdfast.planning.budget import Budget, budget
from holdfast.query.lookup_json import without_lookups
from holdfast.query.schema import Schema
from holdfast.service.catalog import Catalog, Person, same_rows
from holdfast.service.dataset import Dataset
from holdfast.service.gateway_database import NotRemembered, at_once
from holdfast.service.parts import account_of, is_aside, refuse_part, table_of, with_parts
from holdfast.service.problem import Problem
from holdfast.service.public_times import PublicTimesLedger
from holdfast.service.settings import Settings
from holdfast.session import Session, Table
from holdfast.session.set_aside import how_many_aside, keep_aside, kept_aside

URLS = ("postgresql://", "postgres://")
Admitted = tuple[Session, dict[str, Any]]
"""An analyst's session on a table, and their share of it."""


class Tables:
    """Opens each table, and each analyst's session, once in this process.

    Guarantee: all sessions on a table share its one ledger: that of the store if it is one, so that notebooks and
    the command line share it too; otherwise one in the gateway's folder or database.
    """

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog, self._settings, self._lock = catalog, settings, RLock()
        self._tables: dict[str, tuple[Dataset, Table]] = {}
        self._sessions: dict[tuple[str, str], tuple[dict[str, Any], Session]] = {}
        """By table and analyst, with the share for which it was opened."""

    def register(
        self,
        key: str,
        path: str,
        schema: Schema | None,
        *,
        relation: str | None = None,
        rows_per_unit: int = 1,
        lookups: Mapping[str, Mapping[str, Any]] | None = None,
        set_aside: float | None = None,
        by: str = "",
        **promised: Any,
    ) -> Dataset:
        """Take a table in: look at it once, count its rows, remember the declaration, and set its cap.

        `lookups` are public tables beside it: for each name a path, a key and perhaps a schema (see `Lookup`).
        `promised` is the name, the budget, the confidence, the queries, the target, and what is allowed. `set_aside` is
        the share of the units that is set aside, where the gateway keeps the ledger: a store's says it itself.
        Guarantee: rows have one ledger, however many declare them at once (`marks` says which rows are the same). The
        declaration is decided in one transaction, before there is a ledger; what comes after follows from it, and is
        done by whoever opens the table next, should it be interrupted here.
        """
        if self._catalog.dataset(key) is not None:
            raise Problem("taken", f"{key!r} is registered already; choose another id")
        place = self.place(path)
        known = marks(place, relation)
        self._refuse_registered(known)
        budget(**promised["budget"])  # refused before anything is kept
        public = {
            name: dict(each) | {"path": self._file(each["path"])} for name, each in (lookups or {}).items()
        }
        seen = look(place, schema, relation, _lookups(public))
        if set_aside is not None:
            _refuse_undivided(seen, set_aside, promised["target"])
        declared = Dataset(
            id=key, path=place, relation=relation, store=seen.store, schema=seen.schema, rows=seen.rows,
            rows_per_unit=max(rows_per_unit, seen.rows_per_unit), ledger=None, lookups=public, set_aside=set_aside,
            **promised,
        )  # fmt: skip
        self._catalog.add_dataset(key, declared.record(), known, by=by)
        return self._open_once(key)[0]

    def _refuse_registered(self, known: frozenset[str]) -> None:
        """The catalog has the marks of each table as they were. Those of files change when disks are numbered anew, so
        they are looked at once more."""
        for one in self.all():
            with suppress(DataError):  # its files are gone
                if one.relation is None and known & marks(one.path):
                    raise same_rows(one.id)

    def dataset(self, key: str) -> Dataset:
        """The declaration of a table, as it stands: its cap may be another than when it was opened, and it may have
        been retired."""
        opened, record = self._opened(key)[0], self._catalog.dataset(table_of(key))
        retired = table_of(key) in self._catalog.retired("table")
        if record is None or (record["budget"] == opened.budget and not retired):
            return opened
        return replace(opened, budget=record["budget"], retired=retired)

    def set_cap(self, key: str, cap: dict[str, Any], by: str) -> None:
        """Raise or lower the cap of a table: a fact in its ledger, which counts, and in the catalog, which tells."""
        refuse_part(key)
        standing, wanted = budget(**self.dataset(key).budget), budget(**cap)
        if wanted.currency != standing.currency:
            raise InputError(
                f"expected a cap counted in {standing.currency} like before, got one in {wanted.currency}; give "
                f"{', '.join(self.dataset(key).budget)}"
            )
        self.ledger(key).set_limit(wanted.account("the table"))
        self._catalog.set_cap(key, cap, by=by)

    def withdraw(self, key: str, person: Person, by: str) -> None:
        """Somebody may ask a table no more, neither part of it, ever again: a fact in its ledger, and in the catalog.
        Of a part (`parts.aside_of`) only that one."""
        ledger = self.ledger(table_of(key))
        for part in with_parts(key):
            if _standing(ledger, account_of(part, person.id)) is not None:
                ledger.end(account_of(part, person.id))
            if self._catalog.member(part, person.id) is not None:
                self._catalog.withdraw(part, person.id, by=by)
            self._sessions.pop((part, person.id), None)

    def retire(self, key: str, by: str) -> None:
        """Close the account of everybody on a table, and have it answer nothing any more."""
        refuse_part(key)
        ledger = self.ledger(key)
        for account in list(ledger.accounts()):
            ledger.end(account.name)
        self._catalog.retire("table", key, by=by)

    def ledger(self, key: str) -> Ledger:
        """The ledger of a table."""
        return self._opened(key)[1].ledger

    def table(self, key: str) -> Table:
        """A table, opened; or what is set aside of it."""
        return self._opened(key)[1]

    def resume(self) -> None:
        """Finish registrations that were interrupted. Those that cannot be finished are taken back."""
        for dataset in self.all():
            if dataset.ledger is None:
                with suppress(HoldfastError):
                    self._open_once(dataset.id)

    def walk(self, most: float = math.inf) -> list[str]:
        """Walk the chain of every ledger: LedgerError if one was changed. Those of more than `most` entries are not
        walked, and their tables returned.

        A store that is not there at all has no rows to ask either, and is left alone.
        """
        long = []
        for dataset in self.all():
            if not dataset.store or Path(dataset.path).exists() or self._settings.database is not None:
                ledger = self.ledger(dataset.id)
                if ledger.totals().entries > most:
                    long.append(dataset.id)
                else:
                    verify(ledger)
        return long

    def all(self) -> list[Dataset]:
        """Every registered table."""
        retired = self._catalog.retired("table")
        return [Dataset.of(key, record, key in retired) for key, record in self._catalog.datasets()]

    def session(self, key: str, person: Person, *, anew: bool = False) -> Session:
        """The session of an analyst on a table; `not-found` if they may not ask it.

        `anew` opens it once more, which tells the ledger of a share that was changed.
        """
        return self.admitted(key, person, anew=anew)[0]

    def ready(self, key: str, person: Person) -> Admitted | None:
        """What `admitted` gives, if the table and the session are open already, their files are on this machine, no
        public table may have to be read, and the share is remembered: then nothing has to be waited for. None also if
        they may not ask it."""
        known, session = self._tables.get(key), self._sessions.get((key, person.id))
        if known is None or session is None or self._settings.database is not None or not known[0].store:
            return None
        if known[0].lookups:
            return None
        try:
            share = at_once(lambda: self._catalog.member(key, person.id))
        except NotRemembered:
            return None
        return (session[1], share) if session[0] == share else None

    def admitted(self, key: str, person: Person, *, anew: bool = False) -> Admitted:
        """The session of an analyst on a table, and their share of it."""
        share = self._catalog.member(key, person.id)
        if share is None:
            raise Problem("not-found")
        # Without the lock first: whoever opens something else holds it long.
        known = self._sessions.get((key, person.id))
        if not anew and known is not None and known[0] == share:
            return known[1], share
        dataset, table = self._opened(key)
        with self._lock:
            known = self._sessions.get((key, person.id))
            if anew or known is None or known[0] != share:
                account = account_of(key, person.id)
                promised = _promised(dataset, share, _standing(table.ledger, account))
                terms_of_all: dict[str, Any] = {
                    "confidence": dataset.confidence,
                    "target": dataset.target,
                    "name": account,
                }
                try:
                    session = table.session(**_budget(share), **promised, **terms_of_all)
                except InputError:
                    if "share" not in promised:
                        raise
                    # So small a budget has no plan, and what is not planned cannot be widened.
                    session = table.session(**_budget(share), queries=dataset.queries, **terms_of_all)
                known = self._sessions[key, person.id] = (share, session)
            return known[1], share

    def check_share(self, key: str, person: Person, share: dict[str, Any]) -> None:
        """Refuse a budget that is none, that is counted otherwise than the table's, or that is spent already."""
        dataset, ledger, account = self.dataset(key), self.ledger(key), account_of(key, person.id)
        wanted, cap = budget(**_budget(share)), budget(**dataset.budget)
        if is_aside(key) and dataset.target == "table":
            raise InputError(
                "expected a table whose answers are about a population, got one that is all there is: nothing can be "
                "said of it by the units that are set aside; admit them to the table itself"
            )
        if dataset.retired or account in ledger.ended():
            raise InputError(
                "expected a table that is asked, and an analyst whose session on it is open, got one closed for "
                "good; admit another person, or register another table"
            )
        if wanted.currency != cap.currency:
            raise InputError(
                f"expected a budget counted in {cap.currency} like the table's, got one in {wanted.currency}; "
                f"give {', '.join(dataset.budget)}"
            )
        if wanted.filter.limit_units > cap.filter.limit_units:
            raise InputError(
                f"expected a share of at most the table's cap ({_words(dataset.budget)}), got a larger one; raise the "
                "cap first, or give a smaller share"
            )
        standing, most = _standing(ledger, account), share.get("queries")
        exactly = standing is not None and standing.currency == "gdp"
        counted = budget(**_budget(share), only="gaussian") if exactly else wanted
        if ledger.totals(account).units > counted.filter.limit_units:
            raise InputError(
                "expected a budget above what the analyst has spent, got less; give a larger one"
            )
        promised = None if standing is None else json.loads(standing.terms)["queries"]
        if promised is not None and most is not None and most > promised:
            raise InputError(
                f"expected at most {promised:,} answers, for which the share was planned when it was opened, got more; "
                "admit another person for more"
            )

    def committing(self) -> list[tuple[str, float]]:
        """Every open table, and for how long the commit that is under way in its ledger has been. Waits for nobody."""
        return [
            (key, table.ledger.committing_for())  # type: ignore[attr-defined]
            for key, (_, table) in list(self._tables.items())
            if not is_aside(key)
        ]

    def close(self) -> None:
        """Let go of every table."""
        with self._lock:
            for _, table in self._tables.values():
                table.close()
            self._tables.clear()
            self._sessions.clear()

    def _opened(self, key: str) -> tuple[Dataset, Table]:
        return self._tables.get(key) or self._open_once(key)

    def _open_once(self, key: str) -> tuple[Dataset, Table]:
        with self._lock:
            known = self._tables.get(key)
            if known is None and is_aside(key):
                dataset, table = self._open_once(table_of(key))
                known = self._tables[key] = (dataset.part_aside(), table.aside)
            if known is None:
                record = self._catalog.dataset(key)
                if record is None:
                    raise Problem("not-found")
                known = self._tables[key] = self._open(self._finished(Dataset.of(key, record)))
            return known

    def _finished(self, dataset: Dataset) -> Dataset:
        """A declaration with its ledger, which is made now if it has none. If that fails, the declaration is taken
        back: nobody was told of it, and nothing was asked."""
        if dataset.ledger is not None:
            return dataset
        try:
            cap = _whole(dataset).account("the table")
            with closing(self._new_ledger(dataset.id, dataset.path, dataset.store, cap)) as ledger:
                if dataset.set_aside is not None:
                    with closing(_source(dataset, looking_up=False)) as rows:
                        keep_aside(ledger, rows, dataset.set_aside)
                return self._counted(dataset, ledger)
        except BaseException:
            self._catalog.take_back(dataset.id)
            raise

    def _counted(self, dataset: Dataset, ledger: ChainedLedger) -> Dataset:
        """The declaration with its ledger, and with how many units are set aside by what the ledger says; so from now
        on in the catalog, if that said otherwise."""
        rows = dataset.rows + dataset.aside
        division = kept_aside(ledger, rows)
        aside = 0 if division is None else division.aside
        if dataset.ledger == ledger.id and dataset.aside == aside:
            return dataset
        counted: dict[str, Any] = {"rows": rows - aside, "aside": aside}
        self._catalog.set_ledger(dataset.id, ledger.id, counted)
        return replace(dataset, ledger=ledger.id, **counted)

    def _open(self, dataset: Dataset) -> tuple[Dataset, Table]:
        ledger = self._ledger(dataset.id, dataset.path, dataset.store)
        if ledger.id != dataset.ledger:
            ledger.close()
            raise LedgerError(
                f"the ledger of {dataset.id!r} is not the one that was registered with it, but another one; put "
                "the registered one back"
            )
        counted = self._counted(dataset, ledger)
        table = Table(
            _source(counted), PublicTimesLedger(ledger, self._settings.most_entries), counted.rows_per_unit
        )
        table.allow_uncovered = counted.allow_uncovered
        return counted, table

    def place(self, path: str) -> str:
        """A path below one of the roots, or a database's address."""
        if path.startswith(URLS):
            if not self._settings.postgres_tables:
                raise InputError(
                    "expected a path, got a postgresql:// address; start the gateway with --postgres-tables"
                )
            return path
        place = Path(path)
        candidates = [place] if place.is_absolute() else [root / place for root in self._settings.roots]
        for candidate in candidates:
            with suppress(OSError, ValueError):  # no path at all: too long, or with a NUL in it
                resolved = candidate.resolve()
                if any(resolved.is_relative_to(root) for root in self._settings.roots) and resolved.exists():
                    return str(resolved)
        raise InputError(
            "expected a table below the gateway's data folders, got another path or nothing there; move it into "
            "one of them, or start the gateway with --data FOLDER"
        )

    def _file(self, path: str) -> str:
        """A public table's file below one of the roots."""
        if path.startswith(URLS):
            raise InputError(
                "expected a public table as a file, got a postgresql:// address; export it as Parquet"
            )
        return self.place(path)

    def _new_ledger(self, key: str, place: str, store: bool, cap: Account) -> ChainedLedger:
        """The ledger of a new table, with its cap. What a store was charged before goes with it."""
        if self._settings.database is None or not store:
            ledger = self._ledger(key, place, store)
            ledger.set_limit(cap)
            return ledger
        own = SqliteLedger(Path(place) / LEDGER_FILE, anchors=self._settings.anchors)
        if own.moved() is None:
            own.set_limit(cap)  # refused before anything is moved
        ledger = self._ledger(key, place, store)
        move_ledger(own, ledger)
        own.close()
        return ledger

    def _ledger(self, key: str, place: str, store: bool) -> ChainedLedger:
        anchors = self._settings.anchors
        if self._settings.database is not None:
            from holdfast.ledger.postgres import PostgresLedger

            return PostgresLedger(self._settings.database, key, anchors)
        if store:
            return SqliteLedger(Path(place) / LEDGER_FILE, anchors)
        folder = self._settings.folder / "ledgers"
        folder.mkdir(parents=True, exist_ok=True)
        return SqliteLedger(folder / f"{key}.sqlite", anchors)


def _source(dataset: Dataset, *, looking_up: bool = True) -> DeferredSource:
    """All rows of a table, whichever part they are in; perhaps with the public tables beside them."""
    schema = dataset.schema if looking_up else without_lookups(dataset.schema)
    lookups = _lookups(dataset.lookups) if looking_up else None
    return DeferredSource(schema, dataset.rows + dataset.aside, dataset.path, dataset.relation, lookups)


def _refuse_undivided(seen: Seen, share: float, target: str) -> None:
    """InputError where nothing is set aside at a registration, before anything is kept."""
    how_many_aside(seen.rows, share)
    if seen.store:
        raise InputError(
            "expected no set_aside for a saved store, whose own ledger says it, got one; open the store once before it "
            "is registered: hf.open(PATH, set_aside=0.1)"
        )
    if target == "table":
        raise InputError(
            "expected set_aside for a table whose answers are about a population, got one that is all there is; leave "
            "set_aside out"
        )


def _lookups(declared: Mapping[str, Mapping[str, Any]]) -> dict[str, Lookup]:
    """The public tables that an owner declared."""
    schemas = {name: each.get("schema") for name, each in declared.items()}
    return {
        name: Lookup(
            each["path"],
            each["key"],
            schema=None if schemas[name] is None else Schema.from_json(schemas[name]),
        )
        for name, each in declared.items()
    }


def _words(amounts: dict[str, Any]) -> str:
    return ", ".join(f"{name} {amount:g}" for name, amount in amounts.items())


def _standing(ledger: Ledger, name: str) -> Account | None:
    """The account of an analyst who was admitted before."""
    return next((account for account in ledger.accounts() if account.name == name), None)


def _promised(dataset: Dataset, share: dict[str, Any], standing: Account | None) -> dict[str, Any]:
    """How many answers an analyst's session is planned for, and which part of the meter is theirs.

    Who may use up some of the table's answers has as large a part of its meter, which nobody else can touch. What was
    promised stays as it was. Of the units that are set aside each has places of their own.
    """
    mine, all_ = share.get("queries"), dataset.queries
    if is_aside(dataset.id) and standing is None:
        return {"queries": mine}
    if standing is not None or all_ is None:
        return {"queries": None}
    covered = dataset.target == "population" and dataset.rows_per_unit == 1
    if mine is None or mine >= all_ or not covered:
        return {"queries": all_}
    return {"queries": mine, "share": mine / all_}


def _whole(dataset: Dataset) -> Budget:
    """The table's budget. Where there are texts, half of its delta is kept for the discovery of their keys."""
    delta = dataset.budget.get("delta")
    return budget(**dataset.budget, keys_delta=delta / 2 if dataset.schema.texts and delta else None)


def _budget(share: dict[str, Any]) -> dict[str, Any]:
    """The budget in a share."""
    return {name: part for name, part in share.items() if name != "queries"}
