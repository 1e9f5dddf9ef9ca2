"""How well synthetic data answer: measured privately, or exactly for the owner's eyes only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.check import positive
from holdfast.errors import InputError
from holdfast.mechanisms.accuracy import gaussian_reach
from holdfast.mechanisms.gaussian import add_gaussian
from holdfast.mechanisms.values import round_up
from holdfast.privacy.event import Gaussian
from holdfast.synthesis.workload import Workload
from holdfast.weights.binned_model import BinnedModel
from holdfast.weights.cell_counts import CellCounts, marginal_counts
from holdfast.weights.synthetic import SyntheticTable

if TYPE_CHECKING:
    from holdfast.desk import RowAccess
    from holdfast.session.session import Session


@dataclass(frozen=True, slots=True)
class Quality:
    """Max and mean error over some conditions, as fractions of the rows. Public only if `private`."""

    conditions: int
    max_error: float
    mean_error: float
    half_width: float
    private: bool

    def __str__(self) -> str:
        body = f"{self.conditions:,} conditions: max error {self.max_error:.4g}, mean error {self.mean_error:.4g}"
        if self.private:
            return f"{body} (both within {self.half_width:.2g}, by itself; measured privately)"
        return f"OWNER ONLY, NOT PRIVATE, do not release. {body}"


def quality(
    session: Session,
    synthetic: SyntheticTable,
    queries: Sequence[str],
    *,
    rho: float | None = None,
    owner_only: bool = False,
) -> Quality:
    """The error of synthetic data on conditions: its own workload, or held-out marginals.

    With `rho`: two numbers with Gaussian noise. Guarantee: rho-zCDP; replacing a row moves the max by at most
    1 count and the mean by at most 1, so the squared L2 sensitivity is 2 (in counts). With `owner_only`: the
    exact numbers, which must stay with the owner of the rows; nothing is charged, the result says so.
    `half_width` holds for the two numbers with the session's confidence by itself: it uses up none of the
    session's queries, so it stands outside the joint promise of the session's intervals.
    """
    if (rho is None) == (not owner_only):
        raise InputError("expected rho= or owner_only=True, got both or neither; an exact report stays here")
    work = Workload(synthetic.universe, queries)
    n, k = session._terms.rows, len(work)
    guesses = np.rint(work.read(synthetic.weights.marginals(work.groups)) * n).astype(np.int64)
    wide = isinstance(synthetic.weights, BinnedModel)
    if rho is None:
        worst, total = _errors(session._desk.for_the_owner(), work, guesses, wide)
        return Quality(k, worst / n, total / (k * n), 0.0, private=False)
    # The sum of k errors moves by at most k, so its k-th part, rounded down, by at most 1.
    variance = round_up(Fraction(2) / (2 * Fraction(positive("rho", rho))))
    event = Gaussian(2, variance)
    paid = session.pay("quality", f"quality of {synthetic.method} on {k} conditions", event)
    worst, total = _errors(paid, work, guesses, wide)
    noisy = add_gaussian(np.array([worst, total // k], dtype=np.int64), variance)
    found = json.loads(paid.record(json.dumps(np.asarray(noisy).tolist())))
    reach = (gaussian_reach(variance, (1 - session.confidence) / 2, False) + 1) / n
    return Quality(k, max(0, found[0]) / n, max(0, found[1]) / n, reach, private=True)


def _errors(rows: RowAccess, work: Workload, guesses: NDArray[np.int64], wide: bool) -> tuple[int, int]:
    """The largest error and the sum of all, in counts. Secret."""
    if wide:
        truth = work.read(marginal_counts(rows, work.universe, work.groups))
    else:
        truth = work.answers(CellCounts(rows, work.universe).cells)
    errors = np.abs(truth - guesses)
    return int(errors.max()), int(errors.sum())
