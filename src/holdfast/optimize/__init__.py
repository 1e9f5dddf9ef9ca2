"""Optimisation queries: the least average loss over a bounded set, by gradient descent in private steps.

One step asks for the mean gradient of all rows, every coordinate of it a whole number on a grid, answered by
exact Gaussian noise over all rows or by votes of a few drawn rows.
"""

from holdfast.optimize.certificate import table_excess
from holdfast.optimize.descent_plan import DescentPlan
from holdfast.optimize.minimum import Minimum, minimize, plan_minimize
from holdfast.optimize.objective import Loss, Region

__all__ = [
    "DescentPlan",
    "Loss",
    "Minimum",
    "Region",
    "minimize",
    "plan_minimize",
    "table_excess",
]
