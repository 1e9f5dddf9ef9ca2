"""Synthetic data: weights or small databases that answer a list of questions about as the table does."""

from holdfast.synthesis.mwem import mwem
from holdfast.synthesis.quality import Quality, quality
from holdfast.synthesis.small_database import small_database
from holdfast.synthesis.synthesize import synthesize
from holdfast.synthesis.workload import Workload, all_marginals
from holdfast.weights.synthetic import SyntheticTable
from holdfast.weights.terms_choice import Comparison, compare

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
