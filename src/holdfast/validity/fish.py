"""Fish, Reyzin and Rubinstein 2020: sub-sampled Laplace answers, as printed and as their proof needs.

Both are read as conditions "n is at least ..."; the width is the least alpha that meets them.
"""

from __future__ import annotations

import math

from holdfast.validity.search import least_power


def fish(rows: int, queries: int, beta: float) -> float:
    """Theorem 5 with the constants that its own proof needs.

    Guarantee: Pr[max_j |a_j - q_j(P)| > alpha] <= beta when l >= 128 ln(64k/(alpha beta))/alpha^2 rows
    without replacement are read an answer and n >= 2048 sqrt(2k ln(32/(alpha beta))) ln(32k/(alpha
    beta))/alpha^2: the transfer theorem asks for (alpha/8, alpha beta/16) on the sample, not for (alpha,
    beta) as the printed proof has.
    Requires: statistical queries; Laplace noise set by ln(1 + (l/n)(e^eps' - 1)) and composition with the
    second term k eps^2/2. With the algorithm's own eps' = eps n/(4 l sqrt(2k ln(1/delta))) the constant is
    4096.
    Reference: Fish et al. 2020, Theorem 5; docs/theorems.md, section 7.
    """

    def holds(alpha: float) -> bool:
        x = alpha * beta
        log = math.log(32.0 * queries / x)
        drawn = 128.0 * math.log(64.0 * queries / x) / alpha**2
        return rows >= max(drawn, 2048.0 * math.sqrt(2.0 * queries * math.log(32.0 / x)) * log / alpha**2)

    return least_power(holds, -40.0, 0.0) if holds(1.0) else math.inf


def fish_printed(rows: int, queries: int, beta: float) -> float:
    """Theorem 5 as printed: n >= 512 sqrt(2k ln(32/(alpha beta))) ln(2k/beta)/alpha^2. NOT a valid
    certificate.

    Guarantee: none. Its proof shows (alpha, beta)-accuracy on the sample only, while the transfer theorem
    that it invokes needs (alpha/8, alpha beta/16). Kept to show what is claimed; the planner never uses it.
    Requires: l = 2 ln(4k/beta)/alpha^2, eps = alpha/64, delta = alpha beta/32.
    Reference: Fish et al. 2020, Theorem 5, the Omega made explicit from its proof.
    """

    def holds(alpha: float) -> bool:
        log = math.log(2.0 * queries / beta)
        drawn = 2.0 * math.log(4.0 * queries / beta) / alpha**2
        return rows >= max(
            drawn, 512.0 * math.sqrt(2.0 * queries * math.log(32.0 / (alpha * beta))) * log / alpha**2
        )

    return least_power(holds, -40.0, 0.0) if holds(1.0) else math.inf
