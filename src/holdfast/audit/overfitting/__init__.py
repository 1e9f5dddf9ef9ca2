"""Adaptive analysts against answering mechanisms: who overfits, and whose intervals hold?

play(ATTACKS["boosting"], ANSWERERS["naive"], rows=4000, queries=400, generator=generator) -> Outcome
"""

from holdfast.audit.overfitting.attack_registry import ANSWERERS, ATTACKS
from holdfast.audit.overfitting.game import Analyst, Answerer, Attack, Maker, Outcome, Referee, play

__all__ = ["ANSWERERS", "ATTACKS", "Analyst", "Answerer", "Attack", "Maker", "Outcome", "Referee", "play"]
