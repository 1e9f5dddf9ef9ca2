"""What a release of means came to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """The half-width of each mean, and what they cost together."""

    width: float
    rho: float
    rows_read: int
