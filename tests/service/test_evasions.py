"""Row 23 of docs/threats.md: no text gets more out of a table than the language gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import pytest

import holdfast as hf
from service.evasions import CONDITIONS, NAMES, SELECTS
from service.site import Site, register_csv, site, write_csv

CANARY = "c0ffee7a11c0de5ca1ab1e0ddba11fed"
ROWS = 40
SCHEMA = hf.Schema(age=hf.Integer(0, 99), income=hf.Real(0, 1000), smoker=hf.Category("no", "yes"))
COLUMNS: dict[str, Sequence[object]] = {
    "age": [i % 100 for i in range(ROWS)],
    "income": [i * 10.0 for i in range(ROWS)],
    "smoker": ["yes", "no"] * (ROWS // 2 - 1) + ["yes", CANARY],
    "note": [CANARY] * ROWS,
}
ENDLESS = ("http", "sqlite_scan", "postgres_scan", "1000000", "RECURSIVE", "pg_sleep")
REFUSED = {"question", "invalid"}


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    with site({}) as made:
        register_csv(made, "t", COLUMNS, SCHEMA)
        yield made


def placed(text: str, folder: Path) -> str:
    """A text with the places of the rows filled in."""
    return text.replace("{file}", str(folder / "t.csv")).replace("{folder}", str(folder))


def escapes(here: Site, questions: list[dict[str, object]]) -> list[object]:
    """Questions that were not refused for what they are, that were charged, or that told the canary."""
    found: list[object] = []
    for question in questions:
        before = here.totals("t")
        priced = {"rho": 1e-4} | question
        replies = [here.ask(priced, table="t"), here.estimate(priced, table="t")]
        wrong = {reply.status_code for reply in replies} != {422}
        wrong = wrong or any(reply.json()["code"] not in REFUSED for reply in replies)
        if wrong or here.totals("t") != before or any(CANARY in reply.text for reply in replies):
            found.append((question, [reply.text[:200] for reply in replies]))
    return found


@pytest.mark.parametrize("group", sorted(SELECTS))
def test_no_select_gets_out(here: Site, group: str) -> None:
    folder = here.started.settings.roots[0]
    assert not escapes(here, [{"kind": "sql", "text": placed(text, folder)} for text in SELECTS[group]])


def test_a_name_reaches_no_other_table(here: Site) -> None:
    """Names of other tables, files and functions are refused; the table's own is read."""
    folder = here.started.settings.roots[0]
    names = [placed(f"SELECT count(*) FROM {name}", folder) for name in NAMES]
    assert not escapes(here, [{"kind": "sql", "text": text} for text in names])
    own = {"kind": "sql", "text": "SELECT count(*) FROM t", "rho": 1e-4}
    assert here.ask(own, table="t").status_code == 200, "the control"


PLACES: dict[str, dict[str, object]] = {
    "where": {"kind": "fraction"},
    "column": {"kind": "sum"},
    "by": {"kind": "count"},
    "edges": {"kind": "histogram", "column": "age"},
    "candidates": {"kind": "select", "rho": 1e-6},
}


@pytest.mark.parametrize("place", sorted(PLACES))
def test_no_condition_gets_out(here: Site, place: str) -> None:
    listed = place in ("candidates", "edges")
    assert not escapes(here, [PLACES[place] | {place: [text] if listed else text} for text in CONDITIONS])


def test_there_are_enough_of_them_and_all_are_different() -> None:
    texts = [text for group in SELECTS.values() for text in group]
    assert len(texts) >= 200 and len(set(texts)) == len(texts)
    assert len(CONDITIONS) >= 90 and len(set(CONDITIONS)) == len(CONDITIONS)


def test_the_same_door_answers_what_is_in_the_language(here: Site) -> None:
    """The control of the refusals: plain questions pass."""
    for text in (
        "SELECT count(*) FROM t WHERE age > 40",
        "SELECT smoker, avg(income) FROM t GROUP BY smoker",
    ):
        assert escapes(here, [{"kind": "sql", "text": text}])


def test_a_gateway_that_passes_the_text_on_leaks(tmp_path: Path) -> None:
    """The broken twin: the text runs in DuckDB as it is."""
    write_csv(tmp_path / "t.csv", COLUMNS)
    leaks = 0
    for group in ("files", "rows", "functions"):
        for text in SELECTS[group]:
            if any(word in text for word in ENDLESS):
                continue
            with duckdb.connect() as engine:
                engine.execute("SET threads = 1")
                engine.execute(f"CREATE TABLE t AS SELECT * FROM read_csv('{tmp_path / 't.csv'}')")
                try:
                    leaks += CANARY in str(engine.execute(placed(text, tmp_path)).fetchall())
                except duckdb.Error:
                    continue
    assert leaks >= 15
