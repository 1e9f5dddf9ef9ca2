"""Words that help: what is affordable, what a larger budget does, what was spent before."""

from __future__ import annotations

import re

import numpy as np
import pytest

import holdfast as hf

ROWS = 200_000
SCHEMA = hf.Schema(age=hf.Integer(0, 99), smoker=hf.Category("no", "yes"))


@pytest.fixture(scope="module")
def table() -> hf.Table:
    draw = np.random.default_rng(5)
    rows = {"age": draw.integers(0, 100, ROWS), "smoker": draw.choice(["no", "yes"], ROWS)}
    return hf.open(rows, SCHEMA, allow_uncovered=True)  # its sessions are those of many tests


@pytest.mark.parametrize("budget", [{"rho": 0.02}, {"epsilon": 0.5}, {"epsilon": 1.0, "delta": 1e-6}])
@pytest.mark.parametrize("target", ["population", "table"])
def test_what_is_said_to_be_affordable_is_narrow_and_can_be_asked(
    table: hf.Table, budget: dict[str, float], target: str
) -> None:
    session = table.session(**budget, target=target)
    too_much = {"epsilon": 10.0} if session.currency == "pure" else {"rho": 10.0}
    with pytest.raises(hf.BudgetError) as refused:
        session.fraction("age > 50", **too_much)
    assert refused.value.within is not None and refused.value.within < 0.05
    assert session.estimate.fraction("age > 50", within=refused.value.within).cost <= float(session.remaining)


def test_who_pays_more_for_less_is_told(table: hf.Table) -> None:
    """Intervals for the population widen with what is spent; at some budget that outweighs the smaller noise."""
    session = table.session(rho=1.0)
    dear, fair = (session.estimate.fraction("age > 50", rho=rho, mechanism="laplace") for rho in (0.1, 1e-6))
    assert dear.width > fair.width
    assert "A quarter of that budget" in dear.explain()
    assert "A quarter" not in fair.explain()
    assert "A quarter" not in session.estimate.fraction("age > 50", within=0.02).explain()
    census = table.session(rho=1.0, target="table")
    assert "A quarter" not in census.estimate.fraction("age > 50", rho=0.1).explain()


def test_a_refusal_says_what_was_spent() -> None:
    draw = np.random.default_rng(6)
    table = hf.open({"age": draw.integers(0, 100, ROWS), "smoker": ["no"] * ROWS}, SCHEMA)
    session = table.session(rho=1.0)
    with pytest.raises(hf.InputError) as fresh:
        session.fraction("age > 50", within=1e-4)
    session.fraction("age > 50", rho=0.01)
    with pytest.raises(hf.InputError) as later:
        session.fraction("age > 50", within=1e-3)
    assert "after answers that cost rho" not in str(fresh.value)
    assert "after answers that cost rho 0.01 together" in str(later.value)


def test_one_text_is_no_list_of_candidates(table: hf.Table) -> None:
    session = table.session(rho=1.0)
    with pytest.raises(hf.InputError, match="expected a list of candidates"):
        session.select("smoker = 'yes'", rho=0.1)
    assert session.spent == 0


def test_things_that_are_shown_by_their_name(table: hf.Table) -> None:
    session = table.session(rho=1.0)
    watch = session.sparse_vector(0.5, 3, rho=0.1)
    assert repr(watch) == "sparse vector 'watch' at 0.5: 0 asked, 3 more may be above"
    weights = session.multiplicative_weights(["smoker"], queries=10, rho=0.5)
    assert repr(weights) == f"weights 'weights' over smoker: 10 questions within {weights.within:.3g}"
    answer = session.fraction("age > 50", within=0.8)

    class Printer:
        said = ""

        def text(self, words: str) -> None:
            self.said += words

    printer = Printer()
    answer._repr_pretty_(printer, False)
    assert printer.said == str(answer) and "95% confidence for the population" in printer.said


@pytest.mark.parametrize("rows", [6_000, 10_000])
def test_a_mean_by_groups_that_will_tell_nothing_says_what_helps(rows: int) -> None:
    """The advice is followed, and helps; a fraction and counts need none."""
    draw = np.random.default_rng(7)
    data = {"age": draw.integers(0, 100, rows), "smoker": draw.choice(["no", "yes"], rows)}
    table = hf.open(data, SCHEMA)
    session = table.session(epsilon=1, delta=1e-6, queries=1_000)
    planned = session.estimate.mean("age", by="smoker")
    assert planned.width > 49 and "tells next to nothing" in planned.explain()
    advised = re.search(r"within=(\S+) \(rho about (\S+)\)", planned.explain())
    assert advised is not None
    empty = session.mean("age", by="smoker")
    assert (
        empty.too_few.all()
        and "ask with within=" in str(empty)
        and "tells next to nothing" in empty.explain()
    )
    helped = session.mean("age", by="smoker", within=float(advised[1]))
    assert not helped.too_few.any() and "ask with within=" not in str(helped)
    assert helped.width.max() < 1.1 * float(advised[1]) < 49
    assert helped.rho == pytest.approx(float(advised[2]), rel=0.25)
    for made in (session.estimate.fraction("age > 50"), session.estimate.count("age > 50", by="smoker")):
        assert "next to nothing" not in made.explain()


def test_a_mean_that_is_refused_in_its_place_says_what_helps() -> None:
    draw = np.random.default_rng(8)
    data = {"age": draw.integers(0, 100, 3_000), "smoker": draw.choice(["no", "yes"], 3_000)}
    session = hf.open(data, SCHEMA).session(epsilon=1, delta=1e-6, queries=2_000)
    with pytest.raises(
        hf.InputError, match=r"an interval narrower than the range .*; ask it with within=\S+ \(rho about"
    ) as refused:
        session.mean("age")
    within = float(str(refused.value).split("within=")[1].split()[0])
    assert session.spent == 0 and session.mean("age", within=within).width < 49
