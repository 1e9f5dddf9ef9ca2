"""Every benchmark can be run, and the page keeps what was not run again."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def load(name: str) -> Any:
    return importlib.import_module(f"benchmarks.{name}" if name else "benchmarks")


def test_every_benchmark_has_rows_and_says_what_it_measures() -> None:
    names = load("__main__").names()
    assert {"answers", "filter", "imports", "noise", "scans"} <= set(names)
    for name in names:
        module = load(name)
        assert callable(module.rows), name
        assert module.__doc__, name


def test_answers_run_at_a_small_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = load("answers")
    monkeypatch.setattr(answers, "CALLS", 2)
    monkeypatch.setattr(answers.gc, "collect", int)  # of all that the tests before us left
    section = load("__main__").run("answers", quick=True, data=tmp_path, figures=tmp_path)
    sizes = [row["n"] for row in section.rows if row.get("question") == "one clause"]
    assert sizes == [100_000, 200_000, 400_000]
    for row in section.rows:
        if "question" in row:
            assert row["rows read"] == 13_973
            assert row["bare, columns us"] > 0
    assert section.figures == ["benchmarks-latency.png"]
    assert (tmp_path / "benchmarks-latency.png").stat().st_size > 10_000


def test_a_text_that_is_called_new_was_never_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsed texts are remembered for the whole process, across benchmarks; old ones would flatter us."""
    from holdfast.query.parse import _predicate_cached

    scans, stores = load("scans"), load("stores")

    def all_new() -> bool:
        before = _predicate_cached.cache_info().misses
        scans.rows(quick=True, data=tmp_path)
        return _predicate_cached.cache_info().misses - before >= 2 * 2 * scans.CALLS

    monkeypatch.setattr(scans, "_peers", lambda codes: ([], []))
    assert all_new()
    assert all_new()
    for _ in range(2):  # the broken twin: every benchmark begins with the same texts
        monkeypatch.setitem(stores.new_texts, "three clauses", stores._three_clauses())
        again = all_new()
    assert not again


def test_a_missing_peer_is_said_to_be_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    scans = load("scans")
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setattr(scans, "_opendp", scans._polars)
    found, missing = scans._peers([scans.np.zeros(8, dtype=kind) for kind in ("u1", "u2", "u1")])
    assert [name for name, _ in found] == ["duckdb, scan"]
    assert missing == ["polars", "opendp", "diffprivlib"]


def keeps_other_sections(merged: Any, section: Any) -> bool:
    page = merged("", section("zebra", "Stripes.", [{"x": 1}], []))
    page = merged(page, section("ant", "Legs.", [{"x": 6}], ["legs.png"]))
    page = merged(page, section("zebra", "Stripes.", [{"x": 2.5, "met": False}], []))
    order = [page.find("# Benchmarks"), page.find("## ant"), page.find("![legs.png]"), page.find("## zebra")]
    return (
        page.count("## zebra") == 1
        and -1 < order[0] < order[1] < order[2] < order[3]
        and "| 2.5 | **no** |" in page
    )


def test_the_page_replaces_one_section_and_keeps_the_others() -> None:
    page = load("page")
    assert keeps_other_sections(page.merged, page.Section)
    assert not keeps_other_sections(lambda _, section: page.merged("", section), page.Section)


def test_rows_of_different_shape_are_different_tables() -> None:
    table = load("page").table
    text = table([{"a": 1, "b": "x|y"}, {"a": 12_345}, {"c": True}])
    assert text.split("\n\n") == [
        "| a | b |\n| ---: | --- |\n| 1 | x\\|y |\n| 12,345 |  |",
        "| c |\n| --- |\n| yes |",
    ]
