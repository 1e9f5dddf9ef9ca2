"""Widths that nobody can certify are refused after a few looks, however small the table is."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

import holdfast as hf
from holdfast.mechanisms.values import round_up
from holdfast.session import planner, weights_terms

WIDTHS = [1e-9, 1e-7, 1e-6, 5e-6, 2.7e-5, 1e-4, 1e-3, 0.5, 0.999]


class TooManyLooksError(Exception): ...


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that looks too often is stopped, so that a loop without an end fails instead of hanging."""
    for module, name in (
        (weights_terms, "run_reach"),
        (weights_terms, "gaussian_reach"),
        (planner, "_plan_by"),
    ):
        real, looks = getattr(module, name), itertools.count()

        def looked(*asked: object, real=real, looks=looks) -> object:  # type: ignore[no-untyped-def]
            if next(looks) > 20_000:
                raise TooManyLooksError
            return real(*asked)

        monkeypatch.setattr(module, name, looked)


def planned(rows: int, within: float, answer: str) -> bool:
    """Whether terms were found, which keep their width; False if it was refused."""
    try:
        terms = weights_terms.best(rows, 3, 10**6, within, 0.05, answer)
    except hf.InputError:
        return False
    unit = rows * weights_terms.GRID
    reach = weights_terms.run_reach(terms.run_epsilon, terms.updates, 10**6, 0.05)
    assert terms.threshold + reach <= within * unit and terms.answer_noise > 0
    assert terms.answer_reach <= terms.least_gap / 2 * unit
    return True


@pytest.mark.parametrize("answer", ["gaussian", "laplace"])
@pytest.mark.parametrize("rows", [1, 2, 1000])
def test_every_width_is_planned_or_refused(rows: int, answer: str) -> None:
    found = [planned(rows, within, answer) for within in WIDTHS]
    assert (
        found == sorted(found) and found[-1]
    )  # what is narrower than a plan is refused, and nothing wider is
    assert rows > 2 or not found[0]


def step_by_step(reach: int, updates: int, questions: int, failure: float) -> Fraction:
    """The broken twin, which never ends when rounding alone reaches farther."""
    epsilon = Fraction(1)
    while weights_terms.run_reach(epsilon, updates, questions, failure) > reach:
        epsilon = round_up(epsilon * Fraction(1001, 1000))
    return epsilon


def test_small_steps_do_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights_terms, "_run_epsilon", step_by_step)
    with pytest.raises(TooManyLooksError):
        planned(2, 2.7e-5, "laplace")


def test_a_budget_that_certifies_nothing_is_refused_at_once() -> None:
    with pytest.raises(hf.InputError, match="no error below 1"):
        weights_terms.best_within(2, 3, 10**6, 0.05, rho=1e-9)
    assert weights_terms.best_within(2, 3, 10**6, 0.05, rho=1e9).within < 1


def scanned(holds: Callable[[int], bool], most: int) -> int | None:
    """The broken twin tries one width after the other."""
    return next((times for times in range(1, most + 1) if holds(times)), None)


def looks(monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """How many plans were made for an impossible width, and what is said of it."""
    made, real = [], planner._plan_by
    monkeypatch.setattr(planner, "_plan_by", lambda *asked: (made.append(asked), real(*asked))[1])
    estimate = hf.open({"x": np.arange(1000) % 100}, hf.Schema(x=hf.Integer(0, 99))).session(rho=1.0).estimate
    with pytest.raises(hf.InputError) as refused:
        estimate.fraction("x < 5", within=1e-9)
    nearest = re.search(r"about within=(\S+) can be", str(refused.value))
    assert nearest is not None
    assert estimate.fraction("x < 5", within=float(nearest[1]) * 1.01).width > 0
    return len(made), nearest[1]


def test_an_impossible_width_is_refused_after_a_few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    times, nearest = looks(monkeypatch)
    assert times <= 20
    monkeypatch.setattr(planner, "_fewest", scanned)
    assert looks(monkeypatch)[0] > 50
    assert looks(monkeypatch)[1] == nearest
