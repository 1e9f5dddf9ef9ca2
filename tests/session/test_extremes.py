"""However large or small the numbers of a request are, it is answered, or refused before anything is charged."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.ledger import MemoryLedger
from holdfast.planning import recipe_bought, recipe_search
from holdfast.session.session import Session

ROWS = 200
DATA = {"x": np.arange(ROWS) % 7, "y": np.linspace(-1, 1, ROWS), "c": np.array(["a", "b"] * (ROWS // 2))}
SCHEMA = hf.Schema(x=hf.Integer(0, 6), y=hf.Real(-1.0, 1.0), c=hf.Category("a", "b", "nobody"))
Ask = Callable[..., Any]
KINDS: dict[str, Ask] = {
    "fraction": lambda s, **how: s.fraction("x > 3", **how),
    "count": lambda s, **how: s.count("x > 3", by="c", **how),
    "sum": lambda s, **how: s.sum("y", **how),
    "mean": lambda s, **how: s.mean("x", **how),
    "means": lambda s, **how: s.mean("y", by="c", **how),
    "histogram": lambda s, **how: s.histogram("c", **how),
    "quantile": lambda s, **how: s.quantile("x", 0.5, **how),
    "quantiles": lambda s, **how: s.quantile("y", 0.9, by="c", **how),
    "statistic": lambda s, **how: s.statistic(lambda block: block["y"] / 2 + 0.5, ["y"], **how),
    "sql": lambda s, **how: s.sql("SELECT count(*), avg(x) FROM t", **how),
}
BUDGET_ONLY: dict[str, Ask] = {
    "select": lambda s, **how: s.select(["x > 1", "x > 3"], **how),
    "sparse vector": lambda s, **how: s.sparse_vector(0.5, 1, **how),
}
SESSIONS: dict[str, dict[str, Any]] = {
    "pure": {"epsilon": 9e9},
    "zcdp": {"rho": 9e9},
    "gdp": {"rho": 4e9, "only": "gaussian"},
    "a small budget": {"epsilon": 0.1, "delta": 1e-6},
}
EXTREMES = st.builds(math.ldexp, st.floats(0.5, 1, exclude_max=True), st.integers(-1073, 1024))
FEW = settings(max_examples=12)
"""Of each of eighty combinations; `HYPOTHESIS=explore` does not take more of these, but other ones."""
REFUSALS = (hf.InputError, hf.BudgetError, hf.MechanismError, hf.NoRuleError)


def opened(budget: str, target: str = "table", **terms: Any) -> Session:
    return hf.open(DATA, SCHEMA, ledger=MemoryLedger()).session(target=target, **SESSIONS[budget], **terms)


def is_answered(session: Session, ask: Ask, how: dict[str, Any]) -> bool:
    """Whether it was answered, and so planned; False if it was refused. Any other error passes through."""
    try:
        str(ask(session.estimate, **how))
        ask(session, **how)
    except REFUSALS:
        return False
    return True


def is_sound(session: Session, ask: Ask, how: dict[str, Any]) -> bool:
    """Whether it is answered and charged, or neither."""
    return is_answered(session, ask, how) == (session._ledger.totals(session.name).entries > 0)


@pytest.mark.parametrize("target", ["table", "population"])
@pytest.mark.parametrize("budget", SESSIONS)
@pytest.mark.parametrize("kind", KINDS)
@FEW
@given(name=st.sampled_from(["within", "rho", "epsilon"]), amount=EXTREMES)
def test_a_question_of_any_size(kind: str, budget: str, target: str, name: str, amount: float) -> None:
    assert is_sound(opened(budget, target), KINDS[kind], {name: amount})


@pytest.mark.parametrize("budget", SESSIONS)
@pytest.mark.parametrize("kind", BUDGET_ONLY)
@FEW
@given(name=st.sampled_from(["rho", "epsilon"]), amount=EXTREMES)
def test_a_choice_or_a_watch_of_any_size(kind: str, budget: str, name: str, amount: float) -> None:
    assert is_sound(opened(budget), BUDGET_ONLY[kind], {name: amount})


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "votes", "subsampled-laplace"])
@given(name=st.sampled_from(["within", "rho", "epsilon"]), amount=EXTREMES)
def test_a_mechanism_of_any_size(mechanism: str, name: str, amount: float) -> None:
    assert is_sound(opened("zcdp"), KINDS["fraction"], {name: amount, "mechanism": mechanism})


LARGEST, SMALLEST = sys.float_info.max, 5e-324


LENGTHS = {
    "fraction": 1,
    "count": ROWS,
    "sum": 2 * ROWS,
    "mean": 6,
    "means": 2,
    "histogram": ROWS,
    "quantile": 1,
    "quantiles": 1,
    "statistic": 1,
    "sql": 6,
}
"""How long the range of each is, whatever the rows are."""


@pytest.mark.parametrize("target", ["table", "population"])
@pytest.mark.parametrize("budget", ["pure", "zcdp"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_width_that_every_answer_has_is_refused_before_the_charge(
    kind: str, budget: str, target: str
) -> None:
    session = opened(budget, target)
    for within in (LENGTHS[kind], 3 * LENGTHS[kind], LARGEST):
        for questions in (session, session.estimate):
            with pytest.raises(hf.InputError, match=r"would tell nothing: .* ask for less than"):
                KINDS[kind](questions, within=within)
    assert session._ledger.totals().entries == 0


@pytest.mark.parametrize("budget", ["pure", "zcdp"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_widest_is_answered_for_little(kind: str, budget: str) -> None:
    session = opened(budget)
    assert is_answered(session, KINDS[kind], {"within": 0.999 * LENGTHS[kind]})
    assert session.spent < 2


@pytest.mark.parametrize("rows", [2, 10, 50, 300])
@pytest.mark.parametrize("kind", KINDS)
def test_no_advice_is_vacuous(kind: str, rows: int) -> None:
    """What a refusal calls certifiable or affordable is answered when it is asked for."""
    few = {name: values[:rows] for name, values in DATA.items()}
    session = hf.open(few, SCHEMA).session(rho=1.0, target="population")
    with pytest.raises(hf.InputError) as refused:
        KINDS[kind](session, within=1e-9)
    advised = re.search(r"about within=(\S+) can be", str(refused.value))
    if advised is None:
        assert "no width can be certified" in str(refused.value)
    else:
        KINDS[kind](session.estimate, within=float(advised[1]) * 1.01)


def test_a_mean_without_a_width_is_answered() -> None:
    """So little noise that the certified width is 0; a group without rows has the declared range."""
    sure = {"confidence": 1 - 1e-9}  # the chance that there is noise at all
    plain = opened("zcdp", **sure).mean("x", within=SMALLEST)
    assert plain.low == plain.value == plain.high == DATA["x"].mean()
    empty = opened("zcdp", **sure).mean("x", by="c", within=SMALLEST)
    assert (empty.low[2], empty.high[2]) == (0, 6)


@pytest.mark.parametrize("amount", [{"epsilon": 2.0**600}, {"rho": 2.0**1015}])
def test_a_quantile_of_a_rate_whose_square_is_no_number(amount: dict[str, float]) -> None:
    assert is_sound(opened("a small budget", "population"), KINDS["quantiles"], amount)


def test_a_session_that_counts_mu_squared_says_what_it_can_do() -> None:
    session = opened("gdp")
    with pytest.raises(hf.InputError, match=r"about within=\S+ can be"):
        session.fraction("x > 3", within=1e-20, mechanism="gaussian")
    assert session.spent == 0


def test_a_mean_that_nothing_certifies_is_refused_in_its_own_words() -> None:
    few = hf.open({"x": [1, 2]}, hf.Schema(x=hf.Integer(0, 6))).session(rho=1.0, target="population")
    with pytest.raises(hf.InputError, match="no width can be certified"):
        few.mean("x", within=5.9)


def halved_from_one(rho: float) -> float:
    """The broken twin: a hundred halvings of one do not reach the epsilon of a tiny rho."""
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * math.tanh(middle / 2) <= rho else (low, middle)
    return low


def test_broken_twins_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = {"rho": 1e-150, "mechanism": "laplace"}
    assert is_sound(opened("zcdp"), KINDS["fraction"], tiny)
    monkeypatch.setattr(recipe_bought, "epsilon_of_rho", halved_from_one)
    with pytest.raises(ZeroDivisionError):
        is_sound(opened("zcdp"), KINDS["fraction"], tiny)
    monkeypatch.setattr(recipe_search, "_LEAST_EPSILON", Fraction(1, 10**320))
    with pytest.raises(ArithmeticError):
        is_sound(opened("zcdp"), KINDS["quantile"], {"within": 0.9})
    with pytest.raises(ArithmeticError):
        is_sound(opened("zcdp"), KINDS["quantile"], {"epsilon": 1e-307})
    monkeypatch.setattr(recipe_search, "is_counted", lambda *noise: True)
    with pytest.raises(hf.NoRuleError):
        opened("gdp").fraction("x > 3", within=1e-20, mechanism="gaussian")
