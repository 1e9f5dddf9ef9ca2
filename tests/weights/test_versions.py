"""What one update of the weights is charged for, written down once more."""

from __future__ import annotations

from fractions import Fraction

import pytest

from holdfast.privacy import events
from holdfast.privacy.event import Event
from holdfast.query.region import GRID
from holdfast.weights.versions import WeightsTerms

NOISE, RUN = Fraction(10**9), Fraction(1, 100)


@pytest.mark.parametrize(
    ("answer", "told"),
    [("gaussian", events.Gaussian(GRID**2, NOISE)), ("laplace", events.Laplace(GRID, NOISE))],
)
def test_an_update_is_a_sparse_vector_and_the_noisy_answer_after_its_hit(answer: str, told: Event) -> None:
    """A row moves a fraction of the rows by one row, which is GRID steps."""
    terms = WeightsTerms("best", 0.1, 0.05, 7, 100, 400, RUN, answer, NOISE, 30)
    assert terms.event == events.Sequence((events.PureMechanism(RUN), told))
