"""The six published sparse vectors before the auditor: 3, 4, 5 and 6 are condemned, 1, 2 and ours pass."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from mechanisms.svt_variants import run, variant

from holdfast.audit import Audit, epsilon_lower_bound
from holdfast.mechanisms.sparse_vector import SparseVector

EPSILON, SURE = 2.0, 1.0 - 1e-9

# For each wrong variant: hits, and two neighbouring inputs on which it gives itself away within few runs.
STAGES: dict[int, tuple[int, list[int], list[int]]] = {
    3: (1, [0] * 4 + [1], [1] * 4 + [0]),
    4: (3, [0] * 5 + [1] * 3, [1] * 5 + [0] * 3),
    5: (1, [0, 1], [1, 0]),
    6: (1, [0] * 12 + [1] * 12, [1] * 12 + [0] * 12),
}
RUNS = {3: 120_000, 4: 40_000, 5: 20_000, 6: 10_000}


def audit_variant(number: int, stage: int, runs: int) -> Audit:
    hits, first, second = STAGES[stage]
    v = variant(number, Fraction(EPSILON), hits)
    return epsilon_lower_bound(lambda values: run(v, values), first, second, runs=runs, confidence=SURE)


def audit_ours(stage: int, version: str, runs: int) -> Audit:
    hits, first, second = STAGES[stage]

    def ours(values: Sequence[int]) -> tuple[bool, ...]:
        vector = SparseVector(0, epsilon=EPSILON, hits=hits, version=version)  # type: ignore[arg-type]
        answers: list[bool] = []
        for value in values:
            if vector.halted:
                break
            answers.append(vector.above(value))
        return tuple(answers)

    return epsilon_lower_bound(ours, first, second, runs=runs, confidence=SURE)


@pytest.mark.parametrize("number", [3, 4, 5, 6])
def test_the_wrong_ones_are_condemned(number: int) -> None:
    assert audit_variant(number, number, RUNS[number]).violates(EPSILON)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("number", [1, 2])
def test_the_right_ones_pass_on_every_stage(number: int, stage: int) -> None:
    assert not audit_variant(number, stage, 10_000).violates(EPSILON)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("version", ["best", "lecture"])
def test_ours_pass_on_every_stage(version: str, stage: int) -> None:
    assert not audit_ours(stage, version, 3_000).violates(EPSILON)
