"""Answers print themselves: in a log, in a terminal, in a notebook."""

from __future__ import annotations

import html
import io
import json
import math
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

import holdfast as hf
from holdfast.session import Answer


@pytest.fixture
def answers(table: hf.Table) -> list[Answer]:
    session = table.session(target="table", rho=1.0)
    return [
        session.fraction("age > 40", within=0.02),
        session.histogram("smoker", within=300),
        session.quantile("visit", 0.5, within=0.1),
        session.quantile("visit", 0.5, within=0.1, by="insured"),
        session.mean("income", by="smoker", within=300),
    ]


def test_json_round_trip(answers: list[Answer]) -> None:
    for answer in answers:
        back = Answer.from_json(answer.to_json())
        assert back.to_json() == answer.to_json()
        for name in ("value", "low", "high", "noise", "labels", "rho", "question"):
            assert np.all(getattr(back, name) == getattr(answer, name))


def test_text_names_value_interval_cost_and_confidence(answers: list[Answer]) -> None:
    text = str(answers[0])
    assert text.startswith("fraction where age >= 41: ")
    for part in ("95%", "table", "rho", "20,000 rows read"):
        assert part in text
    assert str(answers[1]).count("\n") == 3


def test_the_terminal_shows_a_table(answers: list[Answer]) -> None:
    screen = io.StringIO()
    for answer in answers:
        Console(file=screen, width=120).print(answer)
    assert "never asked" in screen.getvalue()
    assert "covers the table at 95%" in screen.getvalue()


def test_a_notebook_shows_a_picture(answers: list[Answer]) -> None:
    for answer in answers:
        page = ElementTree.fromstring(f"<div>{answer._repr_html_()}</div>")
        pictures = page.findall(".//svg")
        assert len(pictures) == (1 if answer.labels is None else len(answer.labels))
        for picture in pictures:
            circle = picture.find("circle")
            assert circle is not None
            assert 0 <= float(circle.get("cx", "nan")) <= 200


def test_hostile_labels_are_inert() -> None:
    label = "<script>alert(1)</script>"
    table = hf.open({"c": np.array([label] * 100)}, hf.Schema(c=hf.Category(label)))
    page = table.session(target="table", epsilon=1.0).histogram("c", epsilon=1.0)._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_report_tells_budget_and_history(table: hf.Table) -> None:
    session = table.session(target="table", epsilon=1.0, delta=1e-6, queries=10)
    session.fraction("age > 40", within=0.02)
    session.histogram("smoker", within=300)
    report = session.report()
    assert "epsilon 1 at delta 1e-06" in str(report)
    assert "2 answers so far" in str(report)
    screen = io.StringIO()
    Console(file=screen, width=100).print(report)
    assert "fraction where age >= 41" in screen.getvalue()
    assert "fraction where age" in report._repr_html_()


def test_what_a_session_tells_reads_the_same_at_a_prompt_and_in_print(table: hf.Table) -> None:
    session = table.session(epsilon=1, delta=1e-6, queries=100)
    for shown in (
        session.estimate.fraction("age > 40"), session.fraction("age > 40"), session.report(), session.meter
    ):  # fmt: skip
        assert repr(shown) == str(shown) and "object at" not in str(shown)


@pytest.mark.parametrize("budget", [{}, {"rho": 1e-3}])
def test_noise_is_told_in_the_scale_of_the_column(budget: dict[str, float]) -> None:
    def told(most: float) -> float:
        table = hf.open({"cost": np.full(1000, most * 0.4)}, hf.Schema(cost=hf.Real(0, most)))
        session = table.session(epsilon=1, delta=1e-6, queries=5)
        said = session.estimate.sum("cost", **budget).explain()
        return float(said.partition("standard deviation ")[2].partition(" to the sum")[0].replace(",", ""))

    wide, narrow = told(1000), told(10)
    assert wide == pytest.approx(100 * narrow, rel=1e-3)
    if budget:
        assert wide == pytest.approx(1000 / (2 * 1e-3) ** 0.5, rel=1e-3)


def test_a_report_tells_everything_that_was_charged(table: hf.Table) -> None:
    session = table.session(epsilon=1, delta=1e-6, queries=10)
    session.fraction("age > 40")
    session.select(["age > 40", "age > 90"], rho=1e-4)
    report, screen = session.report(), io.StringIO()
    Console(file=screen, width=120).print(report)
    for shown in (str(report), screen.getvalue(), report._repr_html_()):
        assert "1 answer so far, and 1 other release" in shown
        assert "select among 2 candidates" in shown and "rho 0.0001" in shown
    assert len(report.answers) == 1 and len(report.history) == 2
    made = session.synthesize(["smoker"], rho=1e-3)
    assert repr(made).startswith("<synthetic table of smoker: rho 0.001")
    line = str(session.history[-1])
    assert len(line) < 500 and line.endswith("(rho 0.001)")


def test_a_long_report_prints_its_latest_answers(table: hf.Table) -> None:
    session = table.session(epsilon=1, delta=1e-6, queries=100)
    asked = [session.fraction(f"age > {age}").question for age in range(30, 60)]
    report = session.report()
    screen = io.StringIO()
    Console(file=screen, width=120).print(report)
    for shown in (str(report), screen.getvalue(), html.unescape(report._repr_html_())):
        assert [question in shown for question in asked] == [False] * 10 + [True] * 20
        assert "the latest 20 of them" in shown
    assert len(report.answers) == 30


def test_plans_explain_themselves(table: hf.Table) -> None:
    session = table.session(target="table", rho=1.0)
    plan = session.estimate.fraction("age > 40", within=0.02)
    assert "reads all 20,000 rows" in plan.explain()
    assert "of the table value" in str(plan)
    assert session.fraction("age > 40", within=0.02).explain() == plan.explain()


def test_an_answer_that_is_not_private_says_so_and_shows_no_infinite_cost() -> None:
    parts = ("accuracy", 0.5, 0.4, 0.6, 0.95, 0.0, 0.0, 0.1, "population", math.inf, None, 9, "rounding", "")
    answer = Answer(*parts)
    screen = io.StringIO()
    Console(file=screen, width=200).print(answer)
    again = Answer.from_json(answer.to_json(), repeated=True)
    assert (again, again.rho, again.private) == (answer, math.inf, False)
    for shown in (str(answer), str(again), answer._repr_html_(), screen.getvalue()):
        assert "not private" in shown
        assert "inf" not in shown
    told = json.loads(answer.to_json(), parse_constant=pytest.fail)  # Infinity is no JSON
    assert (told["private"], told["rho"]) == (False, None)


def test_the_word_epsilon_means_that_of_the_budget(table: hf.Table) -> None:
    """A quantile is chosen by a pure mechanism, and is still told in rho where the session counts rho."""
    counted = table.session(target="table", epsilon=1.0, delta=1e-6, queries=10)
    pure = table.session(target="table", epsilon=1.0, queries=10)
    for session, word in ((counted, "rho "), (pure, "epsilon ")):
        asked = (session.quantile("age"), session.fraction("age > 30"), session.median("age", "age > 30"))
        for answer in asked:
            assert f", {word}" in str(answer) and answer.currency == session.currency
            assert hf.Answer.from_json(answer.to_json()).currency == session.currency
        costs = str(session.estimate.quantile("age", 0.9))
        assert f"It costs {word}" in costs and "(epsilon" not in costs
        assert ", free, " in str(session.count())


def test_a_group_that_is_not_there_says_which_are(table: hf.Table) -> None:
    session = table.session(target="table", rho=50.0)
    with pytest.raises(KeyError, match="no group 'maybe'; there are no, yes"):
        session.count(by="smoker", rho=1.0)["maybe"]
    with pytest.raises(KeyError, match="a label in each of smoker, insured, as in \\['no', 'false'\\]"):
        session.count(by=["smoker", "insured"], rho=1.0)["no"]
    with pytest.raises(KeyError, match="has none"):
        session.count("age > 30", rho=1.0)["no"]
