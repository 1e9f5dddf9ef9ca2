"""The majority-vote attack on a leaderboard."""

from __future__ import annotations

import numpy as np

from holdfast.audit.overfitting.chance import Generator
from holdfast.audit.overfitting.game import Referee
from holdfast.audit.overfitting.naive_bayes import ask_coins, ask_vote


def boosting_attack(ask: Referee, generator: Generator) -> None:
    """Submit k-1 random guesses, keep those that scored at least 1/2, and submit their majority.

    Against exact scores the last loss is about 1/2 - sqrt(k/n)/(pi sqrt 2) on the sample, 1/2 in truth.
    Reference: Blum and Hardt 2015, Theorem 5.1; the constant is 1/(π√2), by our own derivation.
    """
    columns = np.arange(1, ask.queries)
    scores = ask_coins(ask, columns)
    ask_vote(ask, columns, np.where(scores >= 0.5, 1.0, 0.0))
