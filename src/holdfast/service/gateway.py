"""The one door behind the API and the page: who may do what, in which order, and what of it is told."""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from holdfast.desk import Steps, run
from holdfast.errors import BudgetError, DataError, LedgerError
from holdfast.ledger import Charge, Entry, Moment, export, verify
from holdfast.planning.budget import Amount
from holdfast.planning.plan import STATISTIC
from holdfast.planning.question import Question
from holdfast.privacy.filter import UNITS
from holdfast.query.schema import Schema
from holdfast.service import auth
from holdfast.service.answering import Released, answering, released
from holdfast.service.boards import Board, Boards, Scored, as_array
from holdfast.service.catalog import Catalog, Person, Token
from holdfast.service.gateway_database import Database, PostgresDatabase, SqliteDatabase
from holdfast.service.problem import Problem
from holdfast.service.settings import Settings
from holdfast.service.tables import Admitted, Dataset, Tables
from holdfast.service.work import LEDGER, REPLIES
from holdfast.session import Answer, Plan, Session
from holdfast.session.price import Price

_MEMBERS = 100


class Gateway:
    """Everything that people can do. Each method refuses whoever may not do it, and before anything happens."""

    def __init__(self, settings: Settings) -> None:
        settings.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for root in settings.roots:
            root.mkdir(parents=True, exist_ok=True)
        self.settings = settings
        self.catalog = Catalog(*_databases(settings))
        self.tables, self.boards = Tables(self.catalog, settings), Boards(self.catalog, settings)

    def check(self) -> None:
        """Refuse to start on a ledger that was changed, or that is older than its anchor: LedgerError says why.

        A store that is not there at all has no rows to ask either, and is left alone.
        """
        self.tables.resume()
        for dataset in self.tables.all():
            if not dataset.store or Path(dataset.path).exists() or self.settings.database is not None:
                verify(self.tables.ledger(dataset.id))

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

    def add_person(self, asker: Person, name: str, scope: str, team: str | None) -> Person:
        """Somebody new, by an owner."""
        _only(asker, "owner")
        return self.catalog.add_person(name, scope, team)

    def issue(self, asker: Person, person: str, label: str, days: float | None) -> str:
        """A token for somebody, by an owner; told once."""
        _only(asker, "owner")
        return auth.issue(self.catalog, self._somebody(person).id, label=label, days=days)

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
        self.catalog.revoke(token)

    # Tables

    def register(self, asker: Person, key: str, path: str, schema: Schema | None, **declared: Any) -> Dataset:
        """Take a table in, by an owner; see `Tables.register`."""
        _only(asker, "owner")
        with _declaring():
            return self.tables.register(key, path, schema, **declared)

    def datasets(self, asker: Person) -> list[Dataset]:
        """The tables that somebody may see: owners and auditors all, analysts those they may ask."""
        return [
            dataset
            for dataset in self.tables.all()
            if asker.scope != "analyst" or self.catalog.member(dataset.id, asker.id) is not None
        ]

    def dataset(self, asker: Person, key: str) -> Dataset:
        """A table that somebody may see."""
        if asker.scope == "analyst" and self.catalog.member(key, asker.id) is None:
            raise Problem("not-found")
        return self.tables.dataset(key)

    def admit(self, asker: Person, key: str, person: str, share: dict[str, Any]) -> None:
        """Let somebody ask a table with a share of their own, by an owner; or change that share.

        A share is a budget and perhaps `queries`: how many answers of those that the table's intervals are
        promised for.
        """
        _only(asker, "owner")
        self.tables.dataset(key)
        somebody = self._somebody(person)
        if somebody.scope not in ("analyst", "owner"):
            raise Problem("invalid", f"{somebody.scope} asks no questions; admit an analyst")
        self.tables.check_share(key, somebody, share)
        self.catalog.set_member(key, person, share)
        # The ledger knows the new share before anybody asks by it.
        self.tables.session(key, somebody, anew=True)

    def end(self, asker: Person, key: str, person: str) -> None:
        """Close somebody's session on a table, for ever: one's own, or anybody's by an owner; see `Session.close`."""
        if asker.id != person:
            _only(asker, "owner")
        self.tables.session(key, self._somebody(person)).close()

    def analysts(self, asker: Person, key: str) -> list[dict[str, Any]]:
        """Who may ask a table, their budgets and what they have spent, for owners and auditors."""
        _only(asker, "owner", "auditor")
        ledger, limits = self.tables.ledger(key), self.catalog.members(key)
        people = {person.id: person for person in self.catalog.people()}
        accounts, ended = {account.name: account for account in ledger.accounts()}, ledger.ended()
        shown = []
        for person, budget in limits.items():
            account, spent = accounts.get(person), ledger.totals(person)
            limit = None if account is None else account.limit / UNITS
            shown.append({
                "person": person, "name": people[person].name, "team": people[person].team, "budget": budget,
                "spent": spent.units / UNITS, "limit": limit, "answers": spent.answers, "closed": person in ended,
            })  # fmt: skip
        return shown

    # Questions

    def estimate(self, asker: Person, key: str, asked: Question) -> dict[str, Any]:
        """What a question would cost and how wide its answer would be. No row is read, nothing charged."""
        session = self.tables.session(key, asker)
        before = answering(asked, session, key)
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

        def agree(charge: Charge, moment: Moment) -> int | None:
            self._refuse_full(moment)
            self._refuse_unagreed(asked, share, session, moment, charge.queries, charge.session / UNITS)
            return share.get("queries")

        def all_steps() -> Steps[str]:
            if call is not None:
                yield REPLIES
            reply = Reply(self.catalog, asker, f"table {key}", asked.identity, call)
            if reply.standing is not None:
                return reply.standing
            yield LEDGER
            before = answering(asked, session, key)
            steps = before.steps(agree)
            if steps is not None:
                told = released([(yield from steps)])
            else:
                if before.leaves():
                    self._refuse_full(self.tables.ledger(key).moment(session.name))
                if not before.known():
                    plans, moment = before.plans(), self.tables.ledger(key).moment(session.name)
                    answers, cost = sum(map(answers_of, plans)), sum(plan.cost for plan in plans)
                    self._refuse_unagreed(asked, share, session, moment, answers, cost)
                told = before.put(reply.name)
            if call is not None:
                yield REPLIES
            return reply.kept(_json(told))

        return all_steps()

    def answers(self, asker: Person, key: str) -> Iterator[str]:
        """Every answer that somebody was given on a table, oldest first, as a JSON array in pieces."""
        session = self.tables.session(key, asker)
        return _array(_answers(self.tables.ledger(key).entries(session.name)))

    def budget(self, asker: Person, key: str) -> dict[str, Any]:
        """What somebody has spent and has left on a table, and the table as a whole."""
        table = self.tables.table(key)
        whole = {"spent": amount(table.spent), "answers": table.ledger.totals().answers}
        if asker.scope != "analyst" and self.catalog.member(key, asker.id) is None:
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

    def last_answers(self, asker: Person, key: str, last: int) -> tuple[list[Answer], bool]:
        """The answers among somebody's last charges, newest first, and whether there were more charges before."""
        ledger, name = self.tables.ledger(key), self.tables.session(key, asker).name
        given = [Answer.from_json(text) for text in _answers(ledger.entries(name, last=last))]
        return given[::-1], ledger.totals(name).entries > last

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
                "id": entry.id, "name": names.get(entry.session, entry.session), "what": _asked(entry.plan),
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
            return self.boards.register(wanted, self.tables.place(wanted.labels))

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
        reply = Reply(self.catalog, asker, f"board {key}", _mark(said), call)
        if reply.standing is not None:
            return reply.standing
        scored = self.boards.submit(key, asker.team, said, f"{asker.id} {reply.name}")
        return reply.kept(_json({"kind": "answers", "answers": [scored]}))

    def score(
        self,
        asker: Person,
        key: str,
        predictions: list[Any],
        against: list[Any] | None,
        asked: Scored,
        call: str | None,
    ) -> str:
        """Score predictions on a holdout, check a training score against it, or compare with other predictions."""
        _only(asker, "analyst", "owner")
        rows = self.boards.board(key, "holdout").rows
        said = as_array(predictions, rows)
        other = None if against is None else as_array(against, rows)
        mark = f"{asked} {_mark(said)} {'' if other is None else _mark(other)}"
        reply = Reply(self.catalog, asker, f"holdout {key}", mark, call)
        if reply.standing is not None:
            return reply.standing
        return reply.kept(
            _json(self.boards.score(key, asker.team, said, other, asked, f"{asker.id} {reply.name}"))
        )

    def close(self) -> None:
        """Let go of everything."""
        self.tables.close()
        self.boards.close()
        self.catalog.close()

    def _refuse_full(self, moment: Moment) -> None:
        """An answer that costs next to nothing takes its place on the disk all the same."""
        most, used = self.settings.most_entries, moment.session.entries
        if used >= most:
            raise BudgetError(
                f"you have asked {used:,} questions of this table, as many as anybody may; ask the owner for a larger "
                "most_entries",
                requested=1,
                remaining=0,
            )

    def _refuse_unagreed(
        self,
        asked: Question,
        share: dict[str, Any],
        session: Session,
        moment: Moment,
        answers: int,
        cost: float,
    ) -> None:
        """One analyst shall not use up the answers that the table's intervals were promised for, and one careless
        question shall not burn an analyst's budget."""
        most, used, left = share.get("queries"), moment.session.answers, session.left(moment)
        if most is not None and used + answers > most:
            raise BudgetError(
                f"your share is {most:,} answers; {used:,} are given and this needs {answers:,}",
                requested=answers,
                remaining=most - used,
            )
        if not asked.confirm and self.settings.confirm * left < cost <= left:
            raise Problem(
                "confirm",
                f"it costs {cost:.4g} of {left:.4g} that is left; ask again with confirm, or less exactly",
                cost=cost,
                remaining=left,
            )


class Reply:
    """The reply to a call by its Idempotency-Key: `standing` if there is one, or a new one, kept before it is told.

    The key is taken for this request now, before anything is charged, and refused if another request has it. Whoever
    comes with the same request goes on with it: it may have been interrupted, and the ledger knows how far it came.
    """

    def __init__(self, catalog: Catalog, asker: Person, place: str, what: str, call: str | None) -> None:
        self._catalog, self._whose, self._call = catalog, (asker.id, place), call
        self._digest = hashlib.sha256(what.encode()).hexdigest()
        self.name = secrets.token_hex(16) if call is None else call
        self.standing = None if call is None else self._claimed(call)

    def kept(self, body: str) -> str:
        """Keep a reply. Another of the same call may have been first: then that one."""
        if self._call is None:
            return body
        return self._catalog.keep_reply(*self._whose, self._call, self._digest, body)

    def _claimed(self, call: str) -> str | None:
        digest, body = self._catalog.claim(*self._whose, call, self._digest)
        if digest != self._digest:
            raise Problem("idempotency", "use a new Idempotency-Key for another question")
        return body or None


def _mark(said: NDArray[Any]) -> str:
    """What stands for predictions where two requests are compared."""
    return f"{said.dtype} {hashlib.sha256(said.tobytes()).hexdigest()}"


def _answers(entries: Iterable[Entry]) -> Iterator[str]:
    """The answers to statistics among reservations, as they were told."""
    return (entry.answer for entry in entries if entry.answer and entry.kind == STATISTIC)


def _array(texts: Iterable[str]) -> Iterator[str]:
    """A JSON array, some hundred members at a time."""
    start, rest = "[", iter(texts)
    while some := list(islice(rest, _MEMBERS)):
        yield start + ",\n".join(some)
        start = ",\n"
    yield "[]" if start == "[" else "]"


def answers_of(plan: Plan | Price) -> int:
    """How many of the promised answers it uses up."""
    return plan.charge.queries if isinstance(plan, Plan) else plan.answers


def shown(plan: Plan | Price) -> dict[str, Any]:
    """A plan as JSON."""
    names = ["question", "mechanism", "cost", "explanation"]
    if isinstance(plan, Plan):
        names += ["rows_read", "rho", "epsilon", "width", "noise", "sampling", "population"]
        names += ["target", "confidence", "scope", "within", "qualifying"]
    return {name: _finite(getattr(plan, name)) for name in names} | {"answers": answers_of(plan)}


def _finite(value: Any) -> Any:
    """JSON has no infinity: a width without an end is null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def amount(value: Amount) -> dict[str, float | None]:
    """An amount of budget in all the notions that apply."""
    return {"amount": float(value), "rho": value.rho, "epsilon": value.epsilon, "delta": value.delta}


def _json(released: Released) -> str:
    """The bytes that leave. Answers are written as the ledger keeps them."""
    answers = released.get("answers", [])
    texts = ",".join(answer.to_json() for answer in answers)
    head = json.dumps({name: part for name, part in released.items() if name != "answers"})
    return f'{head[:-1]}, "answers": [{texts}]}}' if "answers" in released else head


def _asked(plan: str) -> str:
    """What a plan of the ledger is about: its question, or its kind."""
    try:
        known = json.loads(plan)
    except ValueError:
        return plan[:80]
    said = known.get("question") or known.get("kind") if isinstance(known, dict) else None
    return str(said or "a release")


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


def _databases(settings: Settings) -> tuple[Database, Database]:
    if settings.database is not None:
        return PostgresDatabase(settings.database), PostgresDatabase(settings.database, relaxed=True)
    folder = settings.folder
    return SqliteDatabase(folder / "gateway.sqlite"), SqliteDatabase(folder / "replies.sqlite", relaxed=True)
