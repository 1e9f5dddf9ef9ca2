"""Which oracle for which domain and epsilon."""

from __future__ import annotations

from holdfast.check import integer, refusal
from holdfast.local.affine import LARGEST_DOMAIN
from holdfast.local.hadamard import HadamardResponse
from holdfast.local.hashing import LocalHashing
from holdfast.local.kary import KaryResponse
from holdfast.local.oracle import FrequencyOracle
from holdfast.local.parameter import read_epsilon
from holdfast.local.subset_selection import SubsetSelection
from holdfast.local.unary import OptimisedUnary, SymmetricUnary

_NEAR = 1.02
"""Two per cent more variance are worth a shorter report."""


def candidates(domain: int, epsilon: float) -> list[FrequencyOracle]:
    """Every frequency oracle that can serve the domain."""
    found: list[FrequencyOracle] = [LocalHashing(domain, epsilon)]
    if domain < 1 << 24:
        found += [KaryResponse(domain, epsilon), HadamardResponse(domain, epsilon)]
    if domain <= 1 << 16:
        found += [f(domain, epsilon) for f in (SubsetSelection, OptimisedUnary, SymmetricUnary)]
    return found


def best(domain: int, epsilon: float, *, report_bits: int | None = None) -> FrequencyOracle:
    """The oracle with the least variance for a rare item; of those within 2 %, that of the shortest report.

    Requires: at least 2 values; `report_bits` is the longest report allowed, if any.
    Reference: variance as in `Support.variance`, at fraction 0, for the exact p and q of each oracle. Among
    k-ary response and local hashing this means k-ary response if and only if k < 3 e^epsilon + 2 or so.
    """
    domain, epsilon = integer("domain", domain, 2, LARGEST_DOMAIN), read_epsilon(epsilon)
    fitting = [
        oracle
        for oracle in candidates(domain, epsilon)
        if report_bits is None or oracle.report_bits <= integer("report_bits", report_bits)
    ]
    if not fitting:
        raise refusal("enough for one oracle", "report_bits", report_bits, "allow 144")
    least = min(oracle.support.variance() for oracle in fitting)
    near = [oracle for oracle in fitting if oracle.support.variance() <= _NEAR * least]
    return min(near, key=lambda oracle: (oracle.report_bits, oracle.support.variance()))
