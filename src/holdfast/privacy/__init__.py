"""The arithmetic of privacy: what was run, what it costs by which theorem, budgets; no data, no chance."""

from __future__ import annotations

from holdfast.privacy import event as events
from holdfast.privacy.approximate import approx
from holdfast.privacy.composition import (
    advanced_composition,
    basic_composition,
    lecture_composition,
    optimal_composition,
)
from holdfast.privacy.conversion import (
    approx_to_gdp,
    approx_to_zcdp,
    gdp_delta,
    gdp_epsilon,
    pure_to_zcdp,
    zcdp_delta,
    zcdp_to_approx,
)
from holdfast.privacy.event import Event, from_json, to_json
from holdfast.privacy.filter import Filter
from holdfast.privacy.group import group
from holdfast.privacy.loss import Approx, Gdp, Loss, Pure, Zcdp
from holdfast.privacy.odometer import Odometer
from holdfast.privacy.rule import gdp, pure, zcdp
from holdfast.privacy.subsampling import subsampled, subsampled_with_replacement

__all__ = [
    "Approx",
    "Event",
    "Filter",
    "Gdp",
    "Loss",
    "Odometer",
    "Pure",
    "Zcdp",
    "advanced_composition",
    "approx",
    "approx_to_gdp",
    "approx_to_zcdp",
    "basic_composition",
    "events",
    "from_json",
    "gdp",
    "gdp_delta",
    "gdp_epsilon",
    "group",
    "lecture_composition",
    "optimal_composition",
    "pure",
    "pure_to_zcdp",
    "subsampled",
    "subsampled_with_replacement",
    "to_json",
    "zcdp",
    "zcdp_delta",
    "zcdp_to_approx",
]
