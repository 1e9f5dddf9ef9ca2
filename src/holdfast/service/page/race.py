"""An attack on two leaderboards at once, step by step: an ordinary one and a guarded one."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.errors import BudgetError
from holdfast.holdout import Leaderboard
from holdfast.holdout.attackers import Attack, World, hill_climbing, majority_vote
from holdfast.noise.bits import Bits, system_bits

ATTACKS: dict[str, Callable[[World, int], Attack]] = {
    "majority-vote": majority_vote,
    "hill-climbing": hill_climbing,
}
ROWS = SUBMISSIONS = 2000
FRESH = 20_000
DECIMALS = 5
HONEST = 0.8
"""In the end somebody submits a model that is really this good: a board must not be deaf."""


@dataclass(frozen=True, slots=True)
class Ending:
    """What the attackers' models are worth on fresh rows, and what an honest model scored."""

    ordinary: float
    guarded: float
    honest: float


class Race:
    """One attacker at each board, on the same labels. Labels are fair coins, so every model is worth 1/2.

    Cost: about 0.8 ms a submission.
    """

    def __init__(
        self, attack: str, rows: int = ROWS, submissions: int = SUBMISSIONS, bits: Bits | None = None
    ) -> None:
        self.rows, self.submissions, self._bits = rows, submissions, bits or system_bits()
        world = World(rows, FRESH, self._bits)
        self._labels, self._fresh = world.coins(rows), world.coins(FRESH)
        self._board = Leaderboard(self._labels, queries=submissions + 1, failures=5, mode="guess-and-check")
        self.width = self._board.width
        self._truth: dict[str, float] = {}
        self._climbs = {
            name: self._climb(name, ATTACKS[attack](world, submissions), score)
            for name, score in (("ordinary", self._exact), ("guarded", self._guarded))
        }
        self.best = dict.fromkeys(self._climbs, 0.0)
        self.done = 0

    def step(self, submissions: int) -> bool:
        """Let both submit so many times; False when they have ended."""
        for _ in range(min(submissions, self.submissions - self.done)):
            for name, climb in self._climbs.items():
                self.best[name] = next(climb, self.best[name])
            self.done += 1
        return self.done < self.submissions

    def end(self) -> Ending:
        """Reveal fresh data."""
        for climb in self._climbs.values():
            for _ in climb:
                pass
        right = self._bits.integers_below(1000, self.rows) < round(1000 * HONEST)
        honest = self._guarded(np.where(right, self._labels, 1 - self._labels))
        self._board.close()
        return Ending(self._truth["ordinary"], self._truth["guarded"], honest)

    def _climb(
        self, name: str, attack: Attack, score: Callable[[Any], float]
    ) -> Generator[float, None, None]:
        """The best score shown after each submission."""
        best, self._truth[name] = 0.0, 0.5
        try:
            said = next(attack)
            while True:
                scored = score(said)
                best = max(best, scored)
                yield best
                said = attack.send(scored)
        except StopIteration as ended:
            self._truth[name] = float(np.mean(ended.value() == self._fresh))
        except BudgetError:
            return

    def _exact(self, said: Any) -> float:
        """An ordinary board: the score on the test set, rounded as most boards do."""
        return round(float(np.mean(said == self._labels)), DECIMALS)

    def _guarded(self, said: Any) -> float:
        return float(self._board.submit("somebody", said).value)
