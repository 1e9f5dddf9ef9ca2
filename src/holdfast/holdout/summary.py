"""What all answers of a board come to, kept up as they arrive."""

from __future__ import annotations

from threading import Lock

from holdfast.holdout.looks import Looks
from holdfast.session.answer import Answer


class Summary:
    """The best answer of all and of each team. `refresh` reads only answers that are new.

    Answers to other questions than `question` are left out: one holdout may answer several metrics.
    """

    def __init__(self, looks: Looks, *, question: str, greater_is_better: bool) -> None:
        self._looks, self._question = looks, question
        self._sign = 1.0 if greater_is_better else -1.0
        self._place = 0
        self._lock = Lock()
        self.best: Answer | None = None
        self.bests: dict[str, Answer] = {}
        self.numbers: dict[str, int] = {}
        """The number of each team's best submission."""
        self._against: dict[int, dict[int, Answer]] = {}
        self.counts: dict[str, int] = {}

    def refresh(self) -> Summary:
        """Read what was answered since. What did not move a Ladder is just counted."""
        with self._lock:
            for place, number, team, outcome in self._looks.outcomes(self._place, self._question):
                self._place = place
                self.counts[team] = self.counts.get(team, 0) + 1
                self._against[number] = dict(outcome.against)
                if outcome.moved is not False:
                    self.best = self._better(self.best, outcome.answer)
                    standing = self.bests.get(team)
                    self.bests[team] = self._better(standing, outcome.answer)
                    if self.bests[team] is not standing:
                        self.numbers[team] = number
        return self

    def differences(self) -> dict[tuple[str, str], Answer]:
        """By how much one team's best exceeds another's, for the pairs that were compared."""
        teams = {number: team for team, number in self.numbers.items()}
        return {
            (team, teams[other]): answer
            for number, team in teams.items()
            for other, answer in self._against.get(number, {}).items()
            if other in teams
        }

    def neighbours(self, team: str, answer: Answer) -> list[tuple[str, int]]:
        """(team, number of its best submission) of those next above and next below this answer, if it is the team's
        best and their intervals overlap with its own."""
        standing = self.bests.get(team)
        if standing is not None and self._better(standing, answer) is standing:
            return []
        others = sorted(
            ((self._sign * best.value, other) for other, best in self.bests.items() if other != team)
        )
        above = [other for value, other in others if value >= self._sign * answer.value][:1]
        below = [other for value, other in others if value < self._sign * answer.value][-1:]
        return [
            (other, self.numbers[other])
            for other in above + below
            if self.bests[other].low <= answer.high and answer.low <= self.bests[other].high
        ]

    def _better(self, standing: Answer | None, answer: Answer) -> Answer:
        if standing is None or self._sign * answer.value > self._sign * standing.value:
            return answer
        return standing
