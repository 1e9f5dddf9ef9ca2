"""The planner's answer: facts, and how they print."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Option:
    """One mechanism with its best theorem, for the request of a plan."""

    name: str
    """The bound, as `validity.width` knows it."""
    mechanism: str
    theorem: str
    private: bool
    narrowest: float
    """The least half-width that any noise gives; inf when nothing is certified."""
    width: float
    """The half-width at the noise chosen below."""
    fits: bool
    rows_per_answer: int
    most_queries: int | None = None
    """How many queries the requested half-width allows on these rows; None when the request fits."""
    least_rows: int | None = None
    """How many rows the whole request would need; None when it fits, or beyond 1e15."""
    standard_deviation: float | None = None
    """Gaussian noise on the count of each answer; the noise on the mean is this divided by the rows."""
    votes: int | None = None
    flip: float | None = None
    rho: float | None = None
    """The zCDP loss of all answers together; None where answers are not private."""

    def __str__(self) -> str:
        noise = "exact answers"
        if self.standard_deviation is not None:
            noise = f"noise of standard deviation {self.standard_deviation:,.1f} counts on each answer"
        elif self.votes is not None:
            noise = f"{self.votes:,} votes an answer, each flipped with probability {self.flip:g}"
        privacy = "not private" if self.rho is None else f"rho = {self.rho:.4g} for all of them"
        return f"{self.name} ({self.theorem}): {noise}, {self.rows_per_answer:,} rows read each, {privacy}"


@dataclass(frozen=True, slots=True)
class Plan:
    """Whether a request can be certified, by what, and what the alternatives would need. Public numbers
    only."""

    rows: int
    queries: int
    within: float
    confidence: float
    chosen: Option | None
    others: tuple[Option, ...]
    """All other options: private ones first (when privacy is asked for), those that fit first, then by
    width."""

    @property
    def possible(self) -> bool:
        """Whether some allowed mechanism certifies the request."""
        return self.chosen is not None

    @property
    def next_best(self) -> Option:
        """The best of the others."""
        return self.others[0]

    @property
    def options(self) -> tuple[Option, ...]:
        """The chosen option, if any, and all others."""
        return ((self.chosen,) if self.chosen else ()) + self.others

    def __str__(self) -> str:
        request = f"{self.queries:,} adaptive queries on {self.rows:,} rows, each within {self.within:g}"
        lines = [f"{request}, all together with confidence {self.confidence:g}:"]
        if self.chosen:
            lines.append(f"  possible. {self.chosen}")
        else:
            lines.append("  not certified by any allowed mechanism.")
        lines += [f"  {_need(option)}" for option in self.others]
        return "\n".join(lines)


def _need(option: Option) -> str:
    if option.fits:
        return f"also: {option}"
    rows = "more than 1e15" if option.least_rows is None else f"{option.least_rows:,}"
    reach = f"{option.narrowest:.4g}" if math.isfinite(option.narrowest) else "nothing"
    need = f"needs {rows} rows, or at most {option.most_queries:,} queries"
    return f"{option.name} ({option.theorem}): certifies {reach}; {need}"
