"""The planner's answer: facts, and how they print."""

from __future__ import annotations

import math
from dataclasses import dataclass

from holdfast.validity.option import Option


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
    reach = f"{option.narrowest:.4g}" if math.isfinite(option.narrowest) else "nothing"
    need = f"needs {option.rows_needed} rows, or at most {option.most_queries:,} queries"
    return f"{option.name} ({option.theorem}): certifies {reach}; {need}"
