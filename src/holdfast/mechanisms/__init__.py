"""The only way out: exact mechanisms that turn secret integers into public ones.

Integers in, integers out, a scalar or an array. Each is usable alone; a session charges for it first.
"""

from holdfast.mechanisms.gaussian import gaussian
from holdfast.mechanisms.laplace import laplace
from holdfast.mechanisms.logistic import logistic
from holdfast.mechanisms.noisy_max import report_noisy_max
from holdfast.mechanisms.rejection_sampling import lecture_rejection_sampler
from holdfast.mechanisms.response import randomized_response
from holdfast.mechanisms.selection import exponential, permute_and_flip, selection_loss
from holdfast.mechanisms.sparse_vector import SparseVector
from holdfast.mechanisms.votes import votes

__all__ = [
    "SparseVector",
    "exponential",
    "gaussian",
    "laplace",
    "lecture_rejection_sampler",
    "logistic",
    "permute_and_flip",
    "randomized_response",
    "report_noisy_max",
    "selection_loss",
    "votes",
]
