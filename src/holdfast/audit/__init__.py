"""The opponent: it tries to break what the other rooms promise.

`epsilon_lower_bound` measures the privacy of any mechanism, `run_all` audits every mechanism of the package.
`play` lets an adaptive analyst (`ATTACKS`) ask an answering mechanism (`ANSWERERS`) and keeps the score.
"""

from holdfast.audit.audit_report import Report, Row, registry, run_all
from holdfast.audit.binomial import proportion_interval
from holdfast.audit.case import Case
from holdfast.audit.epsilon import Audit, epsilon_lower_bound
from holdfast.audit.overfitting import ANSWERERS, ATTACKS, Answerer, Attack, Outcome, Referee, play
from holdfast.audit.overfitting.fingerprinting import fingerprinting_analyst
from holdfast.audit.overfitting.freedman import feature_selection_analyst, trained_selection_analyst
from holdfast.audit.overfitting.hill_climbing import hill_climbing_analyst
from holdfast.audit.overfitting.majority_vote import boosting_attack
from holdfast.audit.overfitting.membership import membership_analyst
from holdfast.audit.overfitting.naive_bayes import (
    quadratic_adaptive_analyst,
    repeating_analyst,
    single_adaptive_analyst,
)

__all__ = [
    "ANSWERERS",
    "ATTACKS",
    "Answerer",
    "Attack",
    "Audit",
    "Case",
    "Outcome",
    "Referee",
    "Report",
    "Row",
    "boosting_attack",
    "epsilon_lower_bound",
    "feature_selection_analyst",
    "fingerprinting_analyst",
    "hill_climbing_analyst",
    "membership_analyst",
    "play",
    "proportion_interval",
    "quadratic_adaptive_analyst",
    "registry",
    "repeating_analyst",
    "run_all",
    "single_adaptive_analyst",
    "trained_selection_analyst",
]
