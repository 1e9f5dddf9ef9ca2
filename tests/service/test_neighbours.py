"""Rows 5, 6, 7, 13, 14, 15 and 25 of docs/threats.md: nothing but the noisy numbers depends on the rows."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from query import kleene
from query.questions import EDGES, SCHEMA, arithmetic, questions

from holdfast.data.deferred import DeferredSource
from holdfast.data.suggest import suggest_schema
from holdfast.errors import DataError
from holdfast.query.measurement import Measurement
from holdfast.service import create_app
from holdfast.service import tables as tables_module
from holdfast.session import Session
from service.site import Site, register_csv, shape, site, write_csv

Rows = dict[str, Sequence[object]]
ROWS = 40

WORST: dict[str, object] = {
    "age": 10**30, "small": "x", "wide": -(2**63), "big": 2**63, "income": "nan", "rate": "inf",
    "smoker": "0x41", "insured": "maybe", "visit": "2024-02-30", 'next "one"': "99999-01-01",
    "left": "2024-02-30 25:61", "back": "0000-00-00T00:00Z", "at": "-1:60",
}  # fmt: skip
"""One person, whose every value makes some engine raise."""


def ordinary(shift: int = 0) -> Rows:
    """Rows of edge values."""
    return {name: [edges[(i + shift) % len(edges)] for i in range(ROWS)] for name, edges in EDGES.items()}


def with_last(rows: Rows, person: Mapping[str, object]) -> Rows:
    """The same rows with the last one replaced."""
    return {name: [*values[:-1], person[name]] for name, values in rows.items()}


NEIGHBOURS: dict[str, Rows] = {
    "plain": ordinary(),
    "worst": with_last(ordinary(), WORST),
    "missing": with_last(ordinary(), dict.fromkeys(EDGES)),
    "empty": {name: [None] * ROWS for name in EDGES},
}
"""Tables of as many rows: neighbours, and one in which every group is empty."""


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    with site({}) as made:
        for key, rows in NEIGHBOURS.items():
            register_csv(made, key, rows, SCHEMA)
        yield made


Seen = tuple[int, object, tuple[str, ...], tuple[int, int, int]]


def seen(here: Site, table: str, question: object) -> Seen:
    """All that an analyst sees of a question but noisy numbers: status, shape, headers, and the ledger's growth."""
    before = here.totals(table)
    reply = here.ask(question, table=table)
    after = here.totals(table)
    delta = (after.entries - before.entries, after.answers - before.answers, after.units - before.units)
    return reply.status_code, shape(reply.json()), tuple(sorted(reply.headers)), delta


def differing(here: Site, question: object) -> set[str]:
    """The tables on which a question looks otherwise than on the plain one."""
    usual = seen(here, "plain", question)
    return {key for key in NEIGHBOURS if key != "plain" and seen(here, key, question) != usual}


AMOUNT = {"rho": 1e-4, "confirm": True}
texts = questions.map(kleene.sql)
numbers = arithmetic.map(kleene.sql)
asked = st.one_of(
    st.fixed_dictionaries({"kind": st.just("fraction"), "where": texts}),
    st.fixed_dictionaries({"kind": st.sampled_from(["sum", "mean"]), "column": numbers, "where": texts}),
    st.fixed_dictionaries(
        {"kind": st.just("count"), "where": texts, "by": st.sampled_from(["smoker", "insured"])}
    ),
    st.fixed_dictionaries(
        {"kind": st.just("quantile"), "column": st.sampled_from(["age", "rate", "visit"]), "where": texts}
    ),
).map(lambda question: question | AMOUNT)
few = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


@few
@given(question=asked)
def test_no_question_fails_on_one_table_only(here: Site, question: object) -> None:
    assert not differing(here, question)


def test_an_engine_that_casts_is_caught() -> None:
    """The broken twin: the text runs in DuckDB as it is."""

    def status(rows: Rows, expression: str, folder: Path) -> str:
        write_csv(folder / "t.csv", rows)
        try:
            duckdb.execute(
                f"SELECT {expression} FROM read_csv('{folder}/t.csv', all_varchar=true)"
            ).fetchall()
        except duckdb.Error as error:
            return type(error).__name__
        return "answered"

    with site({}) as made:
        folder = made.started.settings.roots[0]
        for expression in (
            "sum(CAST(big AS BIGINT))",
            "max(CAST(visit AS DATE))",
            "sum(CAST(age AS INTEGER))",
        ):
            said = {status(rows, expression, folder) for rows in (safe(), with_last(safe(), WORST))}
            assert len(said) == 2, expression


def safe() -> Rows:
    """Rows on which every cast succeeds."""
    first = {name: next(v for v in edges if v is not None) for name, edges in EDGES.items()}
    return {name: [value] * ROWS for name, value in first.items()}


QUESTION = {"kind": "sum", "column": "big + wide * age", "where": "income > 3 OR rate < 0.5"} | AMOUNT


def test_a_row_that_breaks_engines_changes_neither_reply_nor_charge(here: Site) -> None:
    assert not differing(here, QUESTION)


def test_a_source_that_raises_at_a_row_is_caught_and_refunds_nothing(
    here: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin: an engine that fails on one neighbour. Even then both are charged alike, and resumed."""
    totals, question = DeferredSource.totals, QUESTION | {"where": "income > 4"}

    def failing(self: DeferredSource, measurement: Measurement) -> Any:
        if "worst" in self._place:
            raise DataError("cannot cast '0x41'")
        return totals(self, measurement)

    monkeypatch.setattr(DeferredSource, "totals", failing)
    assert differing(here, question) == {"worst"}
    worst = here.ask(question, table="worst")
    assert worst.status_code == 503 and "0x41" not in worst.text
    monkeypatch.undo()
    before, charged = here.totals("worst"), here.totals("plain")
    assert here.ask(question, table="worst").status_code == 200, "what was paid for is resumed"
    assert here.totals("worst") == before
    assert (before.entries, before.units) == (charged.entries, charged.units), "no refund"


def estimates(here: Site, question: object) -> set[bytes]:
    """What the tables say that a question would cost."""
    replies = {here.estimate(question, table=key).content for key in NEIGHBOURS}
    assert b'"cost"' in min(replies) or b'"code"' in min(replies)
    return replies


@pytest.fixture(scope="module")
def fresh() -> Iterator[Site]:
    """Tables that were never asked, so that their ledgers are equal."""
    with site({}) as made:
        for key, rows in NEIGHBOURS.items():
            register_csv(made, key, rows, SCHEMA)
        yield made


@few
@given(question=asked)
def test_a_cost_is_the_same_on_every_table(fresh: Site, question: object) -> None:
    assert len(estimates(fresh, question)) == 1


def test_a_cost_is_known_without_the_rows(fresh: Site) -> None:
    before = estimates(fresh, QUESTION)
    places = [fresh.started.settings.roots[0] / f"{key}.csv" for key in NEIGHBOURS]
    for place in places:
        place.rename(place.with_suffix(".away"))
    try:
        assert estimates(fresh, QUESTION) == before
        assert fresh.ask(QUESTION, table="plain").status_code == 503, "the control: an answer does need them"
    finally:
        for place in places:
            place.with_suffix(".away").rename(place)


def test_a_plan_that_looks_at_the_rows_is_caught(fresh: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: a question about few rows is made cheaper."""
    planned = Session._planned

    def looking(self: Session, statistic: Any, request: Any, moment: Any) -> Any:
        found = int(self._desk._source.totals(Measurement(self.schema, statistic.where))[0])
        return planned(self, statistic, replace(request, rho=request.rho * (1 + found)), moment)

    monkeypatch.setattr(Session, "_planned", looking)
    assert len(estimates(fresh, {"kind": "fraction", "where": "age IS NULL"} | AMOUNT)) > 1


# Groups


@pytest.mark.parametrize(
    "question",
    [
        {"kind": "count", "by": "nowhere"},
        {"kind": "count", "by": "income * 2"},
        {"kind": "sql", "text": "SELECT income, count(*) FROM t GROUP BY income"},
        {"kind": "sql", "text": "SELECT smoker, income, count(*) FROM t GROUP BY smoker, income"},
    ],
    ids=lambda question: (
        f"{question['kind']} {question.get('by') or question.get('column') or question.get('text')}"
    ),
)
def test_groups_by_keys_that_nobody_declared_are_refused(here: Site, question: dict[str, Any]) -> None:
    status, body, _, delta = seen(here, "plain", question | AMOUNT)
    assert isinstance(body, dict)
    assert (status, delta) == (422, (0, 0, 0)), body
    assert body["code"] == "question"


@pytest.mark.parametrize("by", ["age", "income", "visit", "big"])
def test_groups_of_numbers_and_dates_come_from_their_declaration(here: Site, by: str) -> None:
    assert not differing(here, {"kind": "count", "by": by, "where": "age IS NULL OR age < 77"} | AMOUNT)


def keys(here: Site, table: str) -> list[str]:
    """The keys of a count by smoker."""
    reply = here.ask({"kind": "count", "by": "smoker", "where": "age >= 0"} | AMOUNT, table=table)
    labels: list[str] = reply.json()["answers"][0]["labels"]
    return labels


def test_a_value_that_nobody_declared_is_never_a_key(here: Site) -> None:
    assert {tuple(keys(here, table)) for table in NEIGHBOURS} == {("no", "yes", "it's", "7")}


def test_a_plain_group_by_shows_the_singleton(here: Site) -> None:
    """The broken twin."""
    file = here.started.settings.roots[0] / "worst.csv"
    found = duckdb.execute(
        f"SELECT smoker, count(*) FROM read_csv('{file}', all_varchar=true) GROUP BY smoker"
    )
    assert ("0x41", 1) in found.fetchall()


def test_the_order_of_the_rows_is_not_seen() -> None:
    rows = ordinary()
    shuffled: Rows = {name: [*reversed(values)] for name, values in rows.items()}
    with site({}) as made:
        for key, columns in (("straight", rows), ("turned", shuffled)):
            register_csv(made, key, columns, SCHEMA)
        for question in (
            {"kind": "count", "by": "smoker"},
            {"kind": "histogram", "column": "age", "edges": [0, 40, 120]},
            {"kind": "sql", "text": "SELECT smoker, avg(income), count(*) FROM t GROUP BY smoker"},
            {"kind": "quantile", "column": "visit"},
        ):
            first, second = (seen(made, key, question | AMOUNT) for key in ("straight", "turned"))
            assert first == second
    plain = [list(dict.fromkeys(columns["smoker"])) for columns in (rows, shuffled)]
    assert plain[0] != plain[1], "the broken twin: groups in the order in which rows come"


# What is told without a question


def metadata(rows: Rows) -> bytes:
    """What an analyst reads of a table."""
    with site({}) as made:
        register_csv(made, "table", rows, SCHEMA)
        replies = [
            made.call("GET", path) for path in ("/datasets", "/datasets/table", "/datasets/table/budget")
        ]
        assert [reply.status_code for reply in replies] == [200] * 3
        return b"\n".join(reply.content for reply in replies)


def test_metadata_is_the_declaration() -> None:
    assert len({metadata(NEIGHBOURS[key]) for key in ("plain", "worst", "empty")}) == 1


def test_metadata_learnt_from_the_rows_is_caught(tmp_path: Path) -> None:
    """The broken twin: a schema that is read off the file, which the owner's terminal may suggest."""
    told = set()
    for key in ("plain", "worst"):
        write_csv(tmp_path / "t.csv", {name: NEIGHBOURS[key][name] for name in ("age", "small", "rate")})
        told.add(str(suggest_schema(tmp_path / "t.csv")))
    assert len(told) > 1


def reading(made: Site) -> dict[str, tuple[int, bytes]]:
    """Every GET of the API, with the token of somebody who may; what was counted since the start left out."""
    owner = made.started.person(made.started.owner).id
    places = {
        "/datasets": "analyst", "/datasets/table": "analyst", "/datasets/table/analysts": "owner",
        "/datasets/table/answers": "analyst", "/datasets/table/budget": "analyst",
        "/datasets/table/ledger": "auditor", "/people": "owner", f"/people/{owner}/tokens": "owner",
        "/leaderboards": "analyst", "/holdouts": "analyst", "/me": "analyst", "/health": "analyst",
    }  # fmt: skip
    replies = {path: made.call("GET", path, token=getattr(made.started, who)) for path, who in places.items()}
    return {path: (reply.status_code, reply.content) for path, reply in replies.items()}


def without_rows(change: Callable[[], None] = lambda: None) -> tuple[dict[str, Any], dict[str, Any]]:
    """What can be read with the rows there, and by a new process after they were deleted."""
    with site({}) as made:
        place = register_csv(made, "table", NEIGHBOURS["plain"], SCHEMA)
        assert made.ask({"kind": "count", "by": "smoker"} | AMOUNT, table="table").status_code == 200
        before = reading(made)
        place.unlink()
        change()
        again = create_app(made.started.settings)
        with TestClient(again) as client:
            return before, reading(Site(replace(made.started, app=again), client))


def test_everything_can_be_read_when_the_rows_are_gone() -> None:
    before, after = without_rows()
    assert {status for status, _ in before.values()} == {200}
    assert after == before


def test_a_gateway_that_opens_the_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: rows are opened with their table."""

    class Eager(DeferredSource):
        def __init__(self, *declared: Any) -> None:
            super().__init__(*declared)
            self._opened()

    before, after = without_rows(lambda: monkeypatch.setattr(tables_module, "DeferredSource", Eager))
    assert after != before


def test_deleting_the_folder_is_noticed(tmp_path: Path) -> None:
    """The control of the control above: the rows are really gone, so that a new question cannot be answered."""
    with site({}) as made:
        place = register_csv(made, "table", NEIGHBOURS["plain"], SCHEMA)
        shutil.move(place, tmp_path / "away.csv")
        assert (
            made.ask({"kind": "count", "by": "smoker"} | AMOUNT, table="table").json()["code"]
            == "unavailable"
        )
