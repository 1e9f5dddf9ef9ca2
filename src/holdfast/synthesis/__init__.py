"""Synthetic data: weights or small databases that answer a list of questions about as the table does."""

from holdfast.synthesis.mwem import mwem
from holdfast.synthesis.synthetic import SyntheticTable
from holdfast.synthesis.workload import Workload, all_marginals

__all__ = ["SyntheticTable", "Workload", "all_marginals", "mwem"]
