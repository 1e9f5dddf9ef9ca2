"""Interactive fingerprinting: answers that are accurate on average betray who is in the sample."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from holdfast.audit.overfitting.chance import Generator
from holdfast.audit.overfitting.game import Referee, Rows, Truths
from holdfast.audit.overfitting.population import IDENTITIES

ROUNDS = 8


def fingerprinting_analyst(ask: Referee, generator: Generator) -> None:
    """Random questions with biased codewords; a person's score grows with the answers that agree with theirs.

    In each of eight rounds, questions are asked whose bias p follows the arcsine law, scores are updated by
    (a - p)(c - p)/(p(1-p)), and then the analyst asks how common the n best scorers are: few in the
    population, many in a sample that was answered exactly.
    Reference: Steinke and Ullman 2015; Tardos 2008 for the law of p. The codes are not encrypted here, since
    our answerers do not look at them.
    """
    people = IDENTITIES * ask.rows
    scores = np.zeros(people)
    batch = ask.queries // ROUNDS - 1
    for _ in range(ROUNDS):
        level = np.rint(256 * np.sin(generator.uniform(0.1, np.pi / 2 - 0.1, size=batch)) ** 2)
        bias = level / 256
        codes = generator.integers(0, 256, size=(people, batch), dtype=np.uint8) < level.astype(np.uint8)
        answers = ask.many(partial(_belongs, codes), codes.mean(axis=0))
        weights = (np.clip(answers, 0.0, 1.0) - bias) / (bias * (1.0 - bias))
        scores += codes.astype(np.float32) @ weights.astype(np.float32) - float(weights @ bias)
        accused = np.zeros(people, dtype=np.bool_)
        accused[np.argsort(-scores)[: ask.rows]] = True
        ask(partial(_belongs, accused), float(accused.mean()))


def _belongs(codes: NDArray[np.bool_], rows: Rows) -> Truths:
    return codes[rows]
