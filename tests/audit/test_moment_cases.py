"""The audit of sums that are told together has the power to see an undercharge."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.audit.audit_report import audit_case
from holdfast.audit.moment_cases import ASKED, moments
from holdfast.session import release

CASES = {case.name: case for case in moments()}


def test_every_question_is_at_the_extreme_of_some_noise() -> None:
    """Two rows that were nearer would make a case that cannot fail."""
    for name in ASKED:
        assert any(case.startswith(f"sums of a {name}, ") for case in CASES), name
    for kind in ("variance", "covariance", "correlation", "regression", "ratio", "share", "difference"):
        assert {f"{kind}", "laplace", "gaussian"} <= {
            word.strip(",") for name in CASES if f" {kind}" in name for word in name.split()
        }


@pytest.mark.parametrize("name", CASES)
def test_what_is_charged_is_enough(name: str) -> None:
    assert audit_case(CASES[name], 20_000, 1 - 1e-9).verdict == "holds"


@pytest.mark.parametrize(
    "name",
    [
        "variance, gaussian",
        "variance, of a row that comes, laplace",
        "covariance, laplace",
        "correlation, gaussian",
        "regression, of a row that comes, laplace",
        "ratio, laplace",
        "share, gaussian",
        "difference of means, laplace",
        "difference of means, apart, gaussian",
    ],
)
def test_noise_for_two_thirds_of_the_sensitivity_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin has noise as if the joint sensitivity were two thirds of what it is. What is found then is ten of its
    standard deviations above the claim, so that it is caught whatever the noise."""
    case = CASES[f"sums of a {name}"]
    gaussian, laplace = release.add_gaussian, release.add_laplace

    def less(secret: Any, variance: Any) -> Any:
        return gaussian(secret, variance * 4 / 9)

    def smaller(secret: Any, scale: Any) -> Any:
        return laplace(secret, scale * 2 / 3)

    monkeypatch.setattr(release, "add_gaussian", less)
    monkeypatch.setattr(release, "add_laplace", smaller)
    assert audit_case(case, case.runs).verdict == "VIOLATED"
