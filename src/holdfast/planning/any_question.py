"""All questions that travel, in one union: what a gateway parses."""

from __future__ import annotations

from holdfast.planning.cell_question import Independence
from holdfast.planning.distinct_question import Distinct
from holdfast.planning.quantile_question import Quantile
from holdfast.planning.question import (
    Above,
    Count,
    Difference,
    DiscoverKeys,
    Fraction,
    Histogram,
    OpenSparseVector,
    OpenWeights,
    Paired,
    Ratio,
    Regression,
    Sample,
    Select,
    Spread,
    Top,
    Total,
    Weigh,
)
from holdfast.planning.sql_question import Sql

AnyQuestion = (
    Fraction | Count | Difference | Total | Ratio | Spread | Paired | Regression | Top | Histogram | Quantile | Sql
    | Independence | Distinct | DiscoverKeys | Sample | Select | OpenSparseVector | Above | OpenWeights | Weigh
)  # fmt: skip
