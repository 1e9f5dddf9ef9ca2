"""How exactly a question is to be answered."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.check import positive, printable, whole
from holdfast.errors import InputError


@dataclass(frozen=True, slots=True)
class Request:
    """Accuracy first (`within`), or a budget for this answer (`rho` or `epsilon`), or neither: then the
    session's budget is shared equally among its declared number of queries. `mechanism` insists on one, and
    `rows` caps how many rows may be read."""

    within: float | None = None
    rho: float | None = None
    epsilon: float | None = None
    mechanism: str | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        wishes = ("within", self.within), ("rho", self.rho), ("epsilon", self.epsilon)
        given = [name for name, wish in wishes if wish is not None]
        if len(given) > 1:
            raise InputError(f"expected at most one of within, rho and epsilon, got {' and '.join(given)}")
        for name in given:
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        if self.mechanism is not None:
            printable("mechanism", self.mechanism)
        if self.rows is not None:
            object.__setattr__(self, "rows", whole("rows", self.rows))
