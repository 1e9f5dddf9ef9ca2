"""Fresh rows for each question, or for each round of questions: adaptivity paid for with data."""

from __future__ import annotations

import math

from holdfast.validity.hoeffding import hoeffding


def splitting(rows: int, queries: int, beta: float) -> float:
    """Hoeffding on floor(n/k) rows with a union over k queries.

    Guarantee: Pr[max_j |a_j - q_j(P)| > width] <= beta, where a_j is the exact mean over part j.
    Requires: every query is answered from its own part of the rows. No privacy.
    Reference: folklore; the baseline of Rogers et al. 2020.
    """
    part = rows // queries
    return hoeffding(part, queries, beta) if part else math.inf


def known_rounds(rows: int, queries: int, beta: float, rounds: int | None = None) -> float:
    """Hoeffding on floor(n/r) rows with a union over all k queries.

    Guarantee: Pr[max_j |a_j - q_j(P)| > width] <= beta.
    Requires: k queries in r rounds (default r = k); the queries of a round depend on the answers of earlier
    rounds only, and each round reads its own part of the rows. No privacy.
    Reference: sample splitting by rounds; docs/theorems.md.
    """
    part = rows // (queries if rounds is None else min(rounds, queries))
    return hoeffding(part, queries, beta) if part else math.inf
