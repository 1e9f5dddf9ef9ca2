"""Synthetic data: weights or small databases that answer a list of questions about as the table does."""

from holdfast.synthesis.from_marginals import from_marginals
from holdfast.synthesis.from_marginals import plan as plan_marginals
from holdfast.synthesis.marginal_plan import MarginalPlan
from holdfast.synthesis.measured_marginals import MeasuredMarginal
from holdfast.synthesis.mwem import mwem
from holdfast.synthesis.quality import Quality, quality
from holdfast.synthesis.small_database import small_database
from holdfast.synthesis.synthesize import synthesize
from holdfast.synthesis.workload import Workload, all_marginals
from holdfast.weights.synthetic import SyntheticTable
from holdfast.weights.terms_choice import Comparison, compare

__all__ = [
    "Comparison",
    "MarginalPlan",
    "MeasuredMarginal",
    "Quality",
    "SyntheticTable",
    "Workload",
    "all_marginals",
    "compare",
    "from_marginals",
    "mwem",
    "plan_marginals",
    "quality",
    "small_database",
    "synthesize",
]
