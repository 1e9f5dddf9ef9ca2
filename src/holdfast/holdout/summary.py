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
        self.counts: dict[str, int] = {}

    def refresh(self) -> Summary:
        """Read what was answered since. What did not move a Ladder is just counted."""
        with self._lock:
            for place, team, outcome in self._looks.outcomes(self._place, self._question):
                self._place = place
                self.counts[team] = self.counts.get(team, 0) + 1
                if outcome.moved is not False:
                    self.best = self._better(self.best, outcome.answer)
                    self.bests[team] = self._better(self.bests.get(team), outcome.answer)
        return self

    def _better(self, standing: Answer | None, answer: Answer) -> Answer:
        if standing is None or self._sign * answer.value > self._sign * standing.value:
            return answer
        return standing
