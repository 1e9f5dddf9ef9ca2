"""The opponent: it tries to break what the other rooms promise.

`epsilon_lower_bound` measures the privacy of any mechanism, `exact_epsilon` computes it where the law is
finite, `run_all` audits every mechanism of the package. `holdfast.audit.overfitting` plays adaptive analysts
against answering mechanisms.
"""

from holdfast.audit.epsilon import Audit, epsilon_lower_bound
from holdfast.audit.exact import ExactAudit, exact_epsilon

__all__ = ["Audit", "ExactAudit", "epsilon_lower_bound", "exact_epsilon"]
