"""Plans that a session keeps for as long as nothing changes that they depend on."""

from __future__ import annotations

from dataclasses import replace
from threading import RLock

from holdfast.ledger import UNCOVERED, Moment, Precondition
from holdfast.planning.plan import Plan
from holdfast.query.predicate import Always

_PLANS_KEPT = 4096
_SIZE_KEPT = 1 << 15
"""How large all kept plans of a session may be together, in groups and letters: about 4 MB."""


class KeptPlans:
    """Plans by the shape of the question and the request, each without its condition, and for how long it holds.

    All of them together stay small, whatever is asked. Safe to share by threads.
    """

    def __init__(self, lock: RLock) -> None:
        self._lock = lock
        self._plans: dict[object, tuple[Precondition, Plan, int]] = {}
        self._size = 0

    def find(self, shape: object, moment: Moment) -> tuple[Precondition, Plan] | None:
        """What was planned for this shape, if it would be planned again now."""
        known = self._plans.get(shape)
        if known is None:
            return None
        holding, planned, told = known
        if told > moment.table.information or not holding.after(moment, planned.charge):
            return None  # what was reserved and then not told makes narrower plans
        if planned.ends_theorem and moment.table.information >= UNCOVERED:
            return None  # the next of its kind has nothing to end
        return holding, planned

    def keep(self, shape: object, planned: Plan, holding: Precondition, told: int) -> None:
        """Remember a plan, without its condition, and what was told when it was made."""
        bare = replace(planned.statistic, where=Always())
        size = len(str(bare)) + sum(0 if groups is None else groups.size for groups in (bare.by, bare.bins))
        if size > _SIZE_KEPT:
            return
        with self._lock:
            if len(self._plans) >= _PLANS_KEPT or self._size + size > _SIZE_KEPT:
                self._plans.clear()
                self._size = 0
            self._size += 0 if shape in self._plans else size
            self._plans[shape] = (holding, planned.about(bare), told)
