"""What the server learnt, with its interval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """An unbiased estimate from private reports. Everything in it is public.

    `low` and `high` cover the truth, for all of `items` at once, with probability `confidence`. The truth is
    the fraction (or mean) among the users who reported; and also, separately, that of the population if the
    users are an independent sample of it. The limits are cut to the possible range. `value` is not, so that
    it stays unbiased: a rare item may have a negative one.
    `deviation` is the standard deviation of `value` over the clients' coins, by the formula, at that value.
    """

    value: Any
    low: Any
    high: Any
    confidence: float
    epsilon: float
    users: int
    deviation: Any
    items: NDArray[np.int64] | None = None

    @property
    def width(self) -> Any:
        """Half the length of the interval."""
        return (self.high - self.low) / 2

    def __len__(self) -> int:
        return 1 if self.items is None else len(self.items)

    def __getitem__(self, item: int) -> Estimate:
        """One item of several, as an estimate of its own."""
        found = [] if self.items is None else np.flatnonzero(self.items == item).tolist()
        if not found:
            raise KeyError(item)
        value, low, high, deviation = (
            float(part[found[0]]) for part in (self.value, self.low, self.high, self.deviation)
        )
        return replace(self, value=value, low=low, high=high, deviation=deviation, items=None)

    def top(self, count: int) -> Estimate:
        """The `count` items with the largest values, largest first. Covered together, as all items were."""
        if self.items is None:
            return self
        best = np.argsort(-self.value, kind="stable")[:count]
        picked = {name: getattr(self, name)[best] for name in ("value", "low", "high", "deviation", "items")}
        return replace(self, **picked)

    def __str__(self) -> str:
        tail = f"{self.confidence:.4g} confidence, epsilon {self.epsilon:.4g}, {self.users:,} reports"
        if self.items is None:
            return f"{self.value:.5g} in [{self.low:.5g}, {self.high:.5g}] ({tail})"
        shown = self.top(10)
        lines = [
            f"{item:>12}  {value:>10.5f}  [{low:.5f}, {high:.5f}]"
            for item, value, low, high in zip(shown.items, shown.value, shown.low, shown.high, strict=True)  # type: ignore[arg-type]
        ]
        more = [f"{'…':>12}  {len(self) - 10:,} more"] if len(self) > 10 else []
        return "\n".join([f"{len(self):,} items together ({tail})", *lines, *more])
