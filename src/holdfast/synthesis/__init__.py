"""Synthetic data: weights or small databases that answer a list of questions about as the table does."""

from holdfast.session.synthetic import SyntheticTable
from holdfast.session.weights_plan import Comparison, compare
from holdfast.synthesis.mwem import mwem
from holdfast.synthesis.quality import Quality, quality
from holdfast.synthesis.small_database import small_database
from holdfast.synthesis.synthesize import synthesize
from holdfast.synthesis.workload import Workload, all_marginals

__all__ = [
    "Comparison",
    "Quality",
    "SyntheticTable",
    "Workload",
    "all_marginals",
    "compare",
    "mwem",
    "quality",
    "small_database",
    "synthesize",
]
