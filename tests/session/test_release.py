"""The noise that is drawn is the noise that was charged for, of each total by itself."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.planning.plan import Recipe
from holdfast.planning.recipe_event import event_of
from holdfast.privacy import events
from holdfast.query.expression import Column
from holdfast.query.predicate import Always
from holdfast.query.statistic import Kind, Statistic, workload
from holdfast.session import release as release_module

SCHEMA = hf.Schema(age=hf.Integer(-10, 120))
ROWS = 1000


def drawn(kind: Kind, recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> list[Fraction]:
    """The variances or scales of the noise that one release draws."""
    asked: list[Fraction] = []

    def noted(secret: Any, noise: Fraction) -> Any:
        asked.append(noise)
        return secret

    for name in ("add_gaussian", "add_laplace"):
        monkeypatch.setattr(release_module, name, noted)
    value = None if kind == "fraction" else Column("age")
    paid: Any = SimpleNamespace(totals=lambda measurement: np.zeros(measurement.size, dtype=np.int64))
    terms: Any = SimpleNamespace(rows=ROWS)
    totals = workload(Statistic(kind, Always(), value), SCHEMA, ROWS)
    told = release_module._noisy(totals, recipe, paid, terms)
    assert len(told) == len(asked) == len(totals.measurements)
    return asked


@pytest.mark.parametrize(("kind", "spans"), [("fraction", [1]), ("sum", [130]), ("mean", [130, 65])])
def test_a_variance_for_each_span_is_drawn_as_it_is_charged(
    kind: Kind, spans: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = Recipe("gaussian", Fraction(9), ROWS, per_span=True)
    variances = drawn(kind, recipe, monkeypatch)
    assert variances == [9 * span**2 for span in spans]
    value = None if kind == "fraction" else Column("age")
    charged = event_of(workload(Statistic(kind, Always(), value), SCHEMA, ROWS), recipe, ROWS)
    assert isinstance(charged, events.Sequence)
    assert [part.variance for part in charged.events if isinstance(part, events.Gaussian)] == variances


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_one_noise_for_all_totals_is_the_recipes(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn("mean", Recipe(mechanism, Fraction(9), ROWS), monkeypatch) == [9, 9]
