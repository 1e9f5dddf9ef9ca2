"""The extremes of a column, as quantiles: the least and the greatest value belong to one row each."""

from __future__ import annotations

from fractions import Fraction

LOWEST = Fraction(1, 1000)
"""The rank of what is told as min; that of max is as far from the other end."""
EXTREMES = {"min": LOWEST, "max": 1 - LOWEST}
SAID = (
    "The least and the greatest value belong to one row each, and are not told: min and max are the quantiles of ranks "
    f"{float(LOWEST)} and {float(1 - LOWEST)}."
)
