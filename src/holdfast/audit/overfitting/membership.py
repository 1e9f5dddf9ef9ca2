"""The plainest overfit: h_S(x) = 1 if x is in the sample."""

from __future__ import annotations

import numpy as np

from holdfast.audit.overfitting.chance import Generator
from holdfast.audit.overfitting.game import Referee


def membership_analyst(ask: Referee, generator: Generator) -> None:
    """Ask about every individual, then about all of those whose answer was above 1/(2n).

    Exact answers give the sample away: the last question holds for all of its rows, whatever the population.
    Reference: folklore, h_S(x) = 1{x in S}.
    """
    people = ask.queries - 1
    chance = np.full(people, 1.0 / people)
    answers = ask.many(lambda rows: rows[:, None] == np.arange(people), chance)
    seen = answers > 0.5 / ask.rows
    ask(lambda rows: seen[rows], float(seen.mean()))
