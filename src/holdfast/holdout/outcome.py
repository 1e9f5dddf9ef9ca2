"""What one look came to, as the ledger keeps it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from holdfast.session.answer import Answer


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer that was told, and what later looks depend on."""

    answer: Answer
    failed: int | None = None
    """How many of its guesses failed; None where the mode takes no guesses."""
    moved: bool | None = None
    """Whether it moved a Ladder; None elsewhere."""
    state: str | None = None
    """The secret state of the mechanism afterwards; None where it has none, or it is as before."""

    def to_json(self) -> str:
        """JSON text, with the answer as it is told."""
        facts = json.dumps({"failed": self.failed, "moved": self.moved, "state": self.state})
        return f'{facts[:-1]}, "answer": {self.answer.to_json()}}}'

    @classmethod
    def from_json(cls, text: str, *, repeated: bool = False) -> Outcome:
        """What `to_json` wrote."""
        facts = json.loads(text)
        answer = Answer.from_json(json.dumps(facts.pop("answer")), repeated=repeated)
        return cls(answer, **facts)
