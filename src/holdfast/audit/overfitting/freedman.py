"""Freedman's paradox: select features by their correlation, then test the model on the same rows."""

from __future__ import annotations

import numpy as np

from holdfast.audit.overfitting.chance import Generator
from holdfast.audit.overfitting.game import Referee
from holdfast.audit.overfitting.naive_bayes import ask_coins, ask_vote, signed_sum
from holdfast.audit.overfitting.population import coins

SHARES = (0.01, 0.02, 0.05)
"""Sizes of the models, as shares of the number of features; the paper's figure ends at the last."""


def feature_selection_analyst(ask: Referee, generator: Generator) -> None:
    """Ask for the correlation of every feature with the label, then for the accuracy of models of the best.

    A model is the unweighted vote of the features with the strongest correlations, each with its sign. No
    feature tells anything about the label, so every model is right half of the time.
    Reference: Freedman 1983.
    """
    columns = np.arange(1, ask.queries + 1 - len(SHARES))
    answers = ask_coins(ask, columns)
    order = np.argsort(-np.abs(answers - 0.5))
    for share in SHARES:
        chosen = order[: max(1, round(share * len(columns)))]
        ask_vote(ask, columns[chosen], np.sign(answers[chosen] - 0.5))


def trained_selection_analyst(ask: Referee, generator: Generator) -> None:
    """The same with a training set of the analyst's own, whose values it brings along as guesses.

    A feature is kept if its correlations on both sets have one sign and exceed 1/sqrt(n); kept features are
    ranked by the training set. Exact holdout answers let models through which are no better than chance.
    Reference: Dwork et al. 2015 (Science), the experiment without signal; answers there are correlations in
    [-1, 1], here (1 + correlation)/2.
    """
    columns = np.arange(1, ask.queries + 1 - len(SHARES))
    training = coins(ask.rows, ask.queries + 1, generator)
    seen = np.count_nonzero(training[:, columns], axis=0) / ask.rows - 0.5
    held = ask_coins(ask, columns, seen + 0.5) - 0.5
    bar = 0.5 / np.sqrt(ask.rows)
    kept = (np.sign(seen) == np.sign(held)) & (np.minimum(np.abs(seen), np.abs(held)) >= bar)
    order = np.argsort(-np.where(kept, np.abs(seen), -1.0))[: np.count_nonzero(kept)]
    for share in SHARES:
        chosen = order[: max(1, round(share * len(columns)))]
        weights = np.sign(seen[chosen])
        guess = float(np.mean(signed_sum(training, columns[chosen], weights) > 0.0))
        ask_vote(ask, columns[chosen], weights, guess)
