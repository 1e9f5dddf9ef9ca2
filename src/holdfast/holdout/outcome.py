"""What one look came to, as the ledger keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.holdout.look_meter import Told, told_from_json, told_to_json
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
    told: tuple[Told, ...] = ()
    """What it told, for the meter, in order."""
    against: Mapping[int, Answer] = field(default_factory=dict)
    """By how much a submission's score exceeds those of others; by their numbers."""

    def to_json(self) -> str:
        """JSON text, with the answer as it is told."""
        facts = json.dumps(
            {
                "failed": self.failed,
                "moved": self.moved,
                "state": self.state,
                "told": [told_to_json(told) for told in self.told],
                "against": {other: json.loads(answer.to_json()) for other, answer in self.against.items()},
            }
        )
        return f'{facts[:-1]}, "answer": {self.answer.to_json()}}}'

    @classmethod
    def from_json(cls, text: str, *, repeated: bool = False) -> Outcome:
        """What `to_json` wrote."""
        facts = json.loads(text)
        answer = Answer.from_json(json.dumps(facts.pop("answer")), repeated=repeated)
        told = tuple(told_from_json(kept) for kept in facts.pop("told"))
        against = {
            int(other): Answer.from_json(json.dumps(kept)) for other, kept in facts.pop("against").items()
        }
        return cls(answer, **facts, told=told, against=against)
