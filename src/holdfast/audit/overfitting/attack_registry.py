"""Every attack and every answering mechanism, by name."""

from __future__ import annotations

from holdfast.audit.overfitting.fingerprinting import fingerprinting_analyst
from holdfast.audit.overfitting.freedman import feature_selection_analyst, trained_selection_analyst
from holdfast.audit.overfitting.game import Attack, Maker
from holdfast.audit.overfitting.hill_climbing import hill_climbing_analyst
from holdfast.audit.overfitting.holdouts import guess_and_check, thresholdout
from holdfast.audit.overfitting.majority_vote import boosting_attack
from holdfast.audit.overfitting.membership import membership_analyst
from holdfast.audit.overfitting.naive import discretised, naive, splitting
from holdfast.audit.overfitting.naive_bayes import (
    quadratic_adaptive_analyst,
    repeating_analyst,
    single_adaptive_analyst,
)
from holdfast.audit.overfitting.noisy import gaussian, laplace, votes
from holdfast.audit.overfitting.population import (
    coins_for_queries,
    few_identities,
    identities,
    labelled_cells,
)

ATTACKS: dict[str, Attack] = {
    attack.name: attack
    for attack in (
        Attack("boosting", coins_for_queries, boosting_attack),
        Attack("hill-climbing", labelled_cells, hill_climbing_analyst),
        Attack("single-adaptive", coins_for_queries, single_adaptive_analyst),
        Attack("quadratic-adaptive", coins_for_queries, quadratic_adaptive_analyst),
        Attack("feature-selection", coins_for_queries, feature_selection_analyst),
        Attack("trained-selection", coins_for_queries, trained_selection_analyst),
        Attack("fingerprinting", identities, fingerprinting_analyst),
        Attack("repeating", coins_for_queries, repeating_analyst),
        Attack("membership", few_identities, membership_analyst),
    )
}

ANSWERERS: dict[str, Maker] = {
    "naive": naive,
    "splitting": splitting,
    "discretised": discretised,
    "gaussian": gaussian,
    "votes": votes,
    "laplace": laplace,
    "thresholdout": thresholdout,
    "guess-and-check": guess_and_check,
}
