"""The one door behind the API and the page: who may do what, in which order, and what of it is told."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from holdfast.data.open import suggest_toml
from holdfast.desk import Steps, run
from holdfast.errors import DataError, HoldfastError, LedgerError
from holdfast.ledger import Charge, Moment, export, verify
from holdfast.planning.question import Question
from holdfast.privacy.filter import UNITS
from holdfast.query.schema import Schema
from holdfast.service import auth
from holdfast.service.agreement import refuse_filling, refuse_unagreed
from holdfast.service.answering import answering, released
from holdfast.service.boards import Board, Boards, Scored, as_array
from holdfast.service.catalog import Catalog, Person, Token
from holdfast.service.dataset import Dataset
from holdfast.service.gateway_database import databases, keep_private
from holdfast.service.identities import canonical
from holdfast.service.parts import account_of, called, table_of, with_parts
from holdfast.service.problem import Problem
from holdfast.service.replies import (
    Reply,
    amount,
    answers_in,
    answers_of,
    fresh_name,
    json_array,
    json_of,
    mark_of,
    marked,
    shown,
)
from holdfast.service.settings import Settings
from holdfast.service.single_sign_on import SingleSignOn
from holdfast.service.tables import Admitted, Tables
from holdfast.service.work import LEDGER, REPLIES
from holdfast.session import Answer
from holdfast.session.history import Release, asked_in, history_of, history_texts


class Gateway:
    """Everything that people can do. Each method refuses whoever may not do it, and before anything happens."""

    def __init__(self, settings: Settings) -> None:
        settings.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        keep_private(settings.folder)
        for root in settings.roots:
            root.mkdir(parents=True, exist_ok=True)
        self.settings = settings
        beside = settings.folder if settings.database is None else None
        self.catalog = Catalog(*databases(settings), settings.anchors, beside)
        self.sign_on = SingleSignOn(settings, self.catalog)
        self.tables, self.boards = Tables(self.catalog, settings), Boards(self.catalog, settings)

    def check(self, most: float = math.inf) -> list[str]:
        """Refuse to start on records or a ledger that were changed, or that are older than their anchors: LedgerError
        says why. Ledgers of more than `most` entries are left to `Tables.walk`; their tables are returned."""
        self.catalog.deeds.refuse_older()
        for _ in self.catalog.deeds.all():
            pass  # it raises where the chain does not fit
        self.tables.resume()
        return self.tables.walk(most)

    # Who

    def first_owner(self) -> str | None:
        """A token for a first owner, told once: when nobody is registered yet."""
        if self.catalog.people():
            return None
        return auth.issue(self.catalog, self.catalog.add_person("owner", "owner").id, label="first")

    def who(self, token: str) -> Person | None:
        """Whose token this is."""
        return auth.who(self.catalog, token)

    def people(self, asker: Person) -> list[Person]:
        """Everybody, for owners."""
        _only(asker, "owner")
        return self.catalog.people()

    def add_person(
        self, asker: Person, name: str, scope: str, team: str | None, identity: str | None = None
    ) -> Person:
        """Somebody new, by an owner."""
        _only(asker, "owner")
        return self.catalog.add_person(name, scope, team, identity=self._identity(identity), by=asker.id)

    def identity(self, asker: Person, person: str) -> str | None:
        """By what a provider or a proxy knows somebody, for owners and themselves."""
        if person != asker.id:
            _only(asker, "owner")
        return self.catalog.identities.of(person)

    def set_identity(self, asker: Person, person: str, identity: str | None) -> None:
        """By what a provider or a proxy knows somebody, by an owner; None is by nothing. Their visits end."""
        _only(asker, "owner")
        self.catalog.set_identity(self._somebody(person).id, self._identity(identity), by=asker.id)

    def _identity(self, told: str | None) -> str | None:
        return None if told is None else canonical(told, self.settings.identity)

    def issue(self, asker: Person, person: str, label: str, days: float | None) -> str:
        """A token for somebody, by an owner; told once."""
        _only(asker, "owner")
        return auth.issue(self.catalog, self._somebody(person).id, label=label, days=days, by=asker.id)

    def _somebody(self, person: str) -> Person:
        if (somebody := self.catalog.person(person)) is None:
            raise Problem("not-found")
        return somebody

    def tokens(self, asker: Person, person: str) -> list[Token]:
        """Somebody's tokens, for owners and themselves."""
        if person != asker.id:
            _only(asker, "owner")
        return self.catalog.tokens(person)

    def revoke(self, asker: Person, token: str) -> None:
        """End a token: one's own, or any by an owner."""
        known = self.catalog.token(token)
        if known is None or (asker.scope != "owner" and known[1].id != asker.id):
            raise Problem("not-found")
        self.catalog.revoke(token, by=asker.id)

    def end_tokens(self, asker: Person, person: str) -> None:
        """End all tokens of somebody: one's own, or anybody's by an owner."""
        if person != asker.id:
            _only(asker, "owner")
        self._somebody(person)
        self.catalog.end_tokens(person, by=asker.id)

    def disable(self, asker: Person, person: str) -> None:
        """Have somebody sign in no more, ever again, by an owner. One owner stays."""
        _only(asker, "owner")
        somebody, disabled = self._somebody(person), self.catalog.disabled()
        owners = [one for one in self.catalog.people() if one.scope == "owner" and one.id not in disabled]
        if owners == [somebody]:
            raise Problem(
                "invalid", "this is the last owner, without whom nobody could run the gateway; add another"
            )
        self.catalog.disable(person, by=asker.id)

    def deeds(self, asker: Person) -> Iterator[str]:
        """Every change to people, tokens, tables and boards, line by line, for owners and auditors."""
        _only(asker, "owner", "auditor")
        return (json.dumps(asdict(deed)) for deed in self.catalog.deeds.all())

    # Tables

    def register(self, asker: Person, key: str, path: str, schema: Schema | None, **declared: Any) -> Dataset:
        """Take a table in, by an owner; see `Tables.register`."""
        _only(asker, "owner")
        with _declaring():
            return self.tables.register(key, path, schema, by=asker.id, **declared)

    def suggest(self, asker: Person, path: str) -> str:
        """Columns for a file, as TOML to be edited, by an owner. It reads the rows, so nobody else is told."""
        _only(asker, "owner")
        place = self.tables.place(path)
        try:
            return suggest_toml(place)
        except DataError:
            wanted = "a whole CSV file (a head, then as many fields in each line) or Parquet file"
            raise Problem("invalid", f"expected {wanted}, got another or nothing; look at it") from None

    def datasets(self, asker: Person) -> list[Dataset]:
        """The tables that somebody may see: owners and auditors all, analysts those of which they may ask a part."""
        return [dataset for dataset in self.tables.all() if self._sees(asker, dataset.id)]

    def dataset(self, asker: Person, key: str) -> Dataset:
        """A table that somebody may see, or what is set aside of it."""
        if not self._sees(asker, key):
            raise Problem("not-found")
        return self.tables.dataset(key)

    def _sees(self, asker: Person, key: str) -> bool:
        parts = with_parts(table_of(key))
        return asker.scope != "analyst" or any(
            self.catalog.member(part, asker.id) is not None for part in parts
        )

    def admit(self, asker: Person, key: str, person: str, share: dict[str, Any]) -> None:
        """Let somebody ask a table, or what is set aside of it, with a share of their own, by an owner; or change that
        share.

        A share is a budget and perhaps `queries`: how many answers of those that the table's intervals are
        promised for.
        """
        _only(asker, "owner")
        self.tables.dataset(key)
        somebody = self._somebody(person)
        if somebody.scope not in ("analyst", "owner"):
            raise Problem("invalid", f"{somebody.scope} asks no questions; admit an analyst")
        self.tables.check_share(key, somebody, share)
        before = self.catalog.member(key, person)
        self.catalog.set_member(key, person, share, by=asker.id)
        try:
            # The ledger knows the new share before anybody asks by it.
            self.tables.session(key, somebody, anew=True)
        except HoldfastError:
            if before is None:
                self.catalog.withdraw(key, person, by=asker.id)
            else:
                self.catalog.set_member(key, person, before, by=asker.id)
            raise

    def end(self, asker: Person, key: str, person: str) -> None:
        """Close somebody's session on a table, for ever: one's own, or anybody's by an owner; see `Session.close`."""
        if asker.id != person:
            _only(asker, "owner")
        self.tables.session(key, self._somebody(person)).close()

    def withdraw(self, asker: Person, key: str, person: str) -> None:
        """Let somebody ask a table no more, for good, by an owner: their account is closed. What they were told they
        keep; what they have not told of their share of the meter is free for others. Of a table that is both parts."""
        _only(asker, "owner")
        if all(self.catalog.member(part, person) is None for part in with_parts(key)):
            raise Problem("not-found")
        self.tables.withdraw(key, self._somebody(person), asker.id)

    def set_cap(self, asker: Person, key: str, cap: dict[str, Any]) -> Dataset:
        """Raise or lower the cap of a table, by an owner; not below what was charged."""
        _only(asker, "owner")
        self.tables.set_cap(key, cap, asker.id)
        return self.tables.dataset(key)

    def retire(self, asker: Person, key: str) -> None:
        """Have a table answer nothing any more, by an owner. Its ledger stays, and its rows cannot come again."""
        _only(asker, "owner")
        self.tables.retire(key, asker.id)

    def retire_board(self, asker: Person, key: str, kind: str) -> None:
        """Have a board take nothing any more, by an owner."""
        _only(asker, "owner")
        self.boards.retire(key, kind, asker.id)

    def analysts(self, asker: Person, key: str) -> list[dict[str, Any]]:
        """Who may ask a table, their budgets and what they have spent, for owners and auditors."""
        _only(asker, "owner", "auditor")
        ledger, limits = self.tables.ledger(key), self.catalog.members(key)
        people = {person.id: person for person in self.catalog.people()}
        accounts, ended = {account.name: account for account in ledger.accounts()}, ledger.ended()
        shown = []
        for person, budget in limits.items():
            name = account_of(key, person)
            account, spent = accounts.get(name), ledger.totals(name)
            limit = None if account is None else account.limit / UNITS
            shown.append({
                "person": person, "name": people[person].name, "team": people[person].team, "budget": budget,
                "spent": spent.units / UNITS, "limit": limit, "answers": spent.answers, "closed": name in ended,
            })  # fmt: skip
        return shown

    # Questions

    def estimate(self, asker: Person, key: str, asked: Question) -> dict[str, Any]:
        """What a question would cost and how wide its answer would be. No row is read, nothing charged."""
        session = self.tables.session(key, asker)
        before = answering(asked, session, table_of(key))
        plans, known = before.plans(), before.known()
        cost, left = sum(plan.cost for plan in plans), float(session.remaining)
        return {
            "plans": [shown(plan) for plan in plans], "currency": session.currency, "cost": cost,
            "remaining": left, "known": known, "affordable": known or cost <= left,
            "confirm": not known and cost > self.settings.confirm * left,
        }  # fmt: skip

    def ask(self, asker: Person, key: str, asked: Question, call: str | None = None) -> str:
        """Answer a question, charged before a row is read; the JSON text that leaves.

        Guarantee: `call` makes it repeatable: the same call returns the same answer, at no further cost, and the
        same text while its reply is kept (`catalog.REPLIES_KEPT`). A call that was another question's is refused
        before anything is charged.
        """
        steps = self.asking(asker, key, asked, call)  # refuses before a ledger is opened
        return run(steps, self.tables.ledger(key))

    def asking(
        self,
        asker: Person,
        key: str,
        asked: Question,
        call: str | None = None,
        admitted: Admitted | None = None,
    ) -> Steps[str]:
        """The same in steps; a question of several answers, or of none, takes one."""
        session, share = admitted or self.tables.admitted(key, asker)

        most, careless = self.settings.most_entries, self.settings.confirm

        def agree(charge: Charge, moment: Moment) -> int | None:
            refuse_filling(most, moment, asked, 1)
            refuse_unagreed(asked, share, session, moment, charge.queries, charge.session / UNITS, careless)
            return share.get("queries")

        def all_steps() -> Steps[str]:
            reply = None
            if call is not None:
                yield REPLIES
                reply = Reply(self.catalog, asker, f"table {key}", asked.identity, call)
                if reply.standing is not None:
                    return reply.standing
            yield LEDGER
            before = answering(asked, session, table_of(key))
            steps = before.steps(agree)
            if steps is not None:
                told = released([(yield from steps)])
            else:
                if before.leaves():
                    refuse_filling(most, self.tables.ledger(key).moment(session.name), asked, 0)
                if not before.known():
                    plans, moment = before.plans(), self.tables.ledger(key).moment(session.name)
                    answers, cost = sum(map(answers_of, plans)), sum(plan.cost for plan in plans)
                    refuse_filling(most, moment, asked, len(plans))
                    refuse_unagreed(asked, share, session, moment, answers, cost, careless)
                told = before.put(call or fresh_name())
            text = json_of(told)
            if reply is None:
                return text
            yield REPLIES
            return reply.kept(text)

        return all_steps()

    def answers(self, asker: Person, key: str) -> Iterator[str]:
        """Everything that was released to somebody on a table, oldest first, as a JSON array in pieces."""
        session = self.tables.session(key, asker)
        return json_array(history_texts(self.tables.ledger(key).entries(session.name), session.currency))

    def budget(self, asker: Person, key: str) -> dict[str, Any]:
        """What somebody has spent and has left on a table, and the table as a whole."""
        if not self._sees(asker, key):
            raise Problem("not-found")
        table = self.tables.table(key)
        whole = {"spent": amount(table.spent), "answers": table.ledger.totals().answers}
        if self.catalog.member(key, asker.id) is None:
            return {"table": whole}
        session = self.tables.session(key, asker)
        own = {
            "currency": session.currency, "limit": amount(session.limit), "spent": amount(session.spent),
            "remaining": amount(session.remaining), "answers": table.ledger.totals(session.name).answers,
        }  # fmt: skip
        return own | {"table": whole}

    def meter(self, asker: Person, key: str) -> dict[str, Any]:
        """What somebody's answers were planned to be, and how many are left at which width."""
        session = self.tables.session(key, asker)
        left = None if (meter := session.meter) is None else asdict(meter) | {"line": str(meter)}
        return {"queries": session.queries, "plan": session.plan, "meter": left, "closed": session.closed}

    def last_released(self, asker: Person, key: str, last: int) -> tuple[list[Answer | Release], bool]:
        """What somebody's last charges released, newest first, and whether there were more charges before."""
        session, ledger = self.tables.session(key, asker), self.tables.ledger(key)
        given = list(history_of(ledger.entries(session.name, last=last), session.currency))
        return given[::-1], ledger.totals(session.name).entries > last

    def answer_marked(self, asker: Person, key: str, mark: str, last: int = 10_000) -> Answer | None:
        """The answer of this name among somebody's last charges: their own, and nobody else's."""
        name, ledger = self.tables.session(key, asker).name, self.tables.ledger(key)
        text = marked(answers_in(ledger.entries(name, last=last)), mark)
        return None if text is None else Answer.from_json(text)

    def burn(self, asker: Person, key: str, most: int = 1000) -> list[tuple[int, float]]:
        """What was left of somebody's budget after which charge, as a share of it; at `most` about so many points."""
        session, ledger = self.tables.session(key, asker), self.tables.ledger(key)
        limit, spent = float(session.limit) * UNITS, ledger.totals(session.name)
        course = dict([(0, 0), *ledger.course(session.name, 1 + spent.entries // most)])
        course[spent.entries] = spent.units
        return [(place, max(0.0, 1.0 - units / limit)) for place, units in course.items()]

    def entries(self, asker: Person, key: str, last: int = 50) -> list[dict[str, Any]]:
        """The last charges of a table, newest first, for auditors and owners; no answers."""
        _only(asker, "auditor", "owner")
        names = {person.id: person.name for person in self.catalog.people()}
        entries = list(self.tables.ledger(key).entries(last=last))
        return [
            {
                "id": entry.id, "name": called(entry.session, names), "what": asked_in(entry.plan),
                "cost": entry.charge.table / UNITS, "answered": entry.answer is not None,
            }
            for entry in reversed(entries)
        ]  # fmt: skip

    def export(self, asker: Person, key: str) -> Iterator[str]:
        """The ledger of a table, line by line, for auditors and owners; secrets only as digests."""
        _only(asker, "auditor", "owner")
        return export(self.tables.ledger(key))

    def verify(self, asker: Person, key: str) -> str:
        """Walk the chain of a table's ledger."""
        _only(asker, "auditor", "owner")
        return str(verify(self.tables.ledger(key)))

    # Boards

    def register_board(self, asker: Person, wanted: Board) -> Board:
        """Take labels in, by an owner."""
        _only(asker, "owner")
        with _declaring():
            return self.boards.register(wanted, self.tables.place(wanted.labels), by=asker.id)

    def leaderboard(self, asker: Person, key: str) -> dict[str, Any]:
        """A leaderboard with its standings; what is public, and what the asker's team has left."""
        board, opened = self.boards.board(key, "leaderboard"), self.boards.leaderboard(key)
        return board.public() | {
            "standings": self.boards.standings(key), **opened.left.facts(),
            "team": asker.team, "team_looks_left": opened.looks_left(asker.team),
            "width": opened.width if opened.proven else None,
        }  # fmt: skip

    def holdout(self, asker: Person, key: str) -> dict[str, Any]:
        """A holdout and the looks that are left."""
        board, opened = self.boards.board(key, "holdout"), self.boards.holdout(key)
        return board.public() | {**opened.left.facts(), "width": opened.width}

    def submit(self, asker: Person, key: str, predictions: list[Any], call: str | None) -> str:
        """Score a submission of the asker's team."""
        _only(asker, "analyst", "owner")
        said = as_array(predictions, self.boards.board(key, "leaderboard").rows)
        reply = Reply(self.catalog, asker, f"board {key}", mark_of(said), call)
        if reply.standing is not None:
            return reply.standing
        scored = self.boards.submit(key, asker.team, said, f"{asker.id} {reply.name}")
        return reply.kept(json_of({"kind": "answers", "answers": [scored]}))

    def score(
        self,
        asker: Person,
        key: str,
        predictions: list[Any],
        against: list[Any] | None,
        asked: Scored,
        call: str | None,
        weights: list[Any] | None = None,
    ) -> str:
        """Score predictions on a holdout, check a training score against it, or compare with other predictions."""
        _only(asker, "analyst", "owner")
        rows = self.boards.board(key, "holdout").rows
        said = as_array(predictions, rows)
        other, weighed = (None if sent is None else as_array(sent, rows) for sent in (against, weights))
        mark = f"{asked} {mark_of(said)} {'' if other is None else mark_of(other)}"
        if weighed is not None:
            mark += f" {asked.most_weight} {mark_of(weighed)}"
        reply = Reply(self.catalog, asker, f"holdout {key}", mark, call)
        if reply.standing is not None:
            return reply.standing
        return reply.kept(
            json_of(
                self.boards.score(key, asker.team, said, other, asked, f"{asker.id} {reply.name}", weighed)
            )
        )

    def close(self) -> None:
        """Let go of everything."""
        self.tables.close()
        self.boards.close()
        self.catalog.close()


def _only(asker: Person, *scopes: str) -> None:
    if asker.scope not in scopes:
        raise Problem("forbidden", f"this needs a token of scope {' or '.join(scopes)}")


@contextmanager
def _declaring() -> Iterator[None]:
    """What an owner declares wrongly is their mistake. The words of a source are not told: they may hold rows."""
    try:
        yield
    except DataError:
        raise Problem(
            "invalid", "nothing there can be read as declared; look at path, schema and column"
        ) from None
    except LedgerError as error:
        raise Problem("taken", str(error)) from None
