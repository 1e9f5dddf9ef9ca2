"""What all answers of a board come to, kept up as they arrive."""

from __future__ import annotations

from threading import Lock

from holdfast.holdout.state import State
from holdfast.session.answer import Answer


class Summary:
    """The best answer of all and of each team. `refresh` reads only answers that are new.

    Answers to other questions than `question` are left out: one holdout may answer several metrics.
    """

    def __init__(
        self, state: State, *, question: str, greater_is_better: bool, only: str | None = None
    ) -> None:
        self._state, self._question, self._only = state, question, only
        self._sign = 1.0 if greater_is_better else -1.0
        self._place = 0
        self._lock = Lock()
        self.best: Answer | None = None
        self.bests: dict[str, Answer] = {}
        self.counts: dict[str, int] = {}

    def refresh(self) -> Summary:
        """Read what was answered since. With `only`, answers whose explanation lacks it are just counted."""
        with self._lock:
            for place, team, text in self._state.answers(self._place, self._question):
                answer = Answer.from_json(text)
                self._place = place
                self.counts[team] = self.counts.get(team, 0) + 1
                if self._only is None or self._only in answer.explanation:
                    self.best = self._better(self.best, answer)
                    self.bests[team] = self._better(self.bests.get(team), answer)
        return self

    def _better(self, standing: Answer | None, answer: Answer) -> Answer:
        if standing is None or self._sign * answer.value > self._sign * standing.value:
            return answer
        return standing
