"""An attack on two leaderboards at once, step by step: an ordinary one and a guarded one."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from holdfast.errors import BudgetError
from holdfast.holdout.attackers import Attack, World, hill_climbing, majority_vote
from holdfast.holdout.leaderboard import Leaderboard
from holdfast.noise.bits import Bits, system_bits

ATTACKS: dict[str, Callable[[World, int], Attack]] = {
    "majority-vote": majority_vote,
    "hill-climbing": hill_climbing,
}
FRESH = 20_000
DECIMALS = 5
FAILURES = 5
HONEST = 0.8
"""In the end somebody submits a model that is really this good: a board must not be deaf."""


class Race:
    """One attacker at each board, on the same labels. Labels are fair coins, so every model is worth 1/2.

    `ordinary` and `guarded` are the best scores shown after each submission, `ordinary_fresh` and `guarded_fresh`
    what the attackers' models are worth on fresh rows, and `honest` what the guarded board then said of a model
    whose accuracy is really HONEST. `width` is its certified half-width, `inside` whether each of its intervals
    held the truth.
    Cost: about 0.8 ms a submission.
    """

    def __init__(self, attack: str, rows: int, submissions: int, bits: Bits | None = None) -> None:
        self.attack, self.rows, self.submissions, self.done = attack, rows, submissions, 0
        self.ordinary: list[float] = []
        self.guarded: list[float] = []
        self.ordinary_fresh = self.guarded_fresh = self.honest = 0.5
        self.inside = True
        self._bits = bits or system_bits()
        world = World(rows, FRESH, self._bits)
        self._labels, self._fresh = world.coins(rows), world.coins(FRESH)
        self._board = Leaderboard(
            self._labels, queries=submissions + 1, failures=FAILURES, mode="guess-and-check"
        )
        self.width = self._board.width
        first, second = (ATTACKS[attack](world, submissions) for _ in "og")
        self._ordinary = self._climb(first, self._exact, self.ordinary)
        self._guarded = self._climb(second, self._asked, self.guarded)

    def step(self, submissions: int) -> bool:
        """Let both submit so many times; False when they have ended."""
        for _ in range(min(submissions, self.submissions - self.done)):
            next(self._ordinary, None)
            next(self._guarded, None)
            self.done += 1
        return self.done < self.submissions

    def end(self) -> None:
        """Let both submit what is left, and reveal fresh data."""
        self.step(self.submissions)
        self.ordinary_fresh = next(self._ordinary, 0.5)
        self.guarded_fresh = next(self._guarded, 0.5)
        right = self._bits.integers_below(1000, self.rows) < round(1000 * HONEST)
        self.honest = self._asked(np.where(right, self._labels, 1 - self._labels), HONEST)
        self._board.close()

    def _climb(
        self, attack: Attack, score: Callable[[Any], float], shown: list[float]
    ) -> Generator[float, None, None]:
        """One score a submission, and at last what the model is worth on fresh rows; nothing if refused."""
        try:
            said = next(attack)
            while True:
                scored = score(said)
                shown.append(max([scored, *shown[-1:]]))
                yield scored
                said = attack.send(scored)
        except StopIteration as ended:
            yield float(np.mean(ended.value() == self._fresh))
        except BudgetError:
            return

    def _exact(self, said: Any) -> float:
        """An ordinary board: the score on the test set, rounded as most boards do."""
        return round(float(np.mean(said == self._labels)), DECIMALS)

    def _asked(self, said: Any, truth: float = 0.5) -> float:
        answer = self._board.submit("somebody", said)
        self.inside = self.inside and answer.low <= truth <= answer.high
        return float(answer.value)
