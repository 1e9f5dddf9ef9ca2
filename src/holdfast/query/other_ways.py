"""Functions of SQL that the language has not, each with the way that works."""

from __future__ import annotations

_ENDS = (
    "min and max of a truth value belong to single rows; write avg({}), the share of the rows where it holds"
)
_ONE_ROW = "{} is the value of one row, which is never told; ask for a median, a quantile or the counts of each value"
_LIST = "{} lists the values of single rows, which are never told; write SELECT x, count(*) FROM t GROUP BY x"
_BY_HAND = "{0} is {1}; ask for these, and what is worked out from answers is free"
_ROUND = "{0} of an answer is free and yours: ask for the number, and round what you get"

OTHER_WAYS = {
    "mode": "the most frequent value is SELECT x, count(*) AS n FROM t GROUP BY x ORDER BY n DESC LIMIT 1",
    "histogram": "a histogram is SELECT x, count(*) FROM t GROUP BY x, or floor(x / 10) for bins of ten",
    "approx_top_k": "the largest groups are SELECT x, count(*) AS n FROM t GROUP BY x ORDER BY n DESC LIMIT 3",
    "regr_sxx": _BY_HAND.format("regr_sxx", "regr_count(y, x) times the var_pop of x"),
    "regr_syy": _BY_HAND.format("regr_syy", "regr_count(y, x) times the var_pop of y"),
    "regr_sxy": _BY_HAND.format("regr_sxy", "regr_count(y, x) * covar_pop(y, x)"),
    "sem": _BY_HAND.format("sem", "stddev(x) over the root of count(x)"),
    "mad": "mad is no sum over rows; ask for quantile_cont(x, [0.25, 0.5, 0.75])",
    "skewness": _BY_HAND.format("skewness", "read off avg(x), avg(x * x) and avg(x * x * x)"),
    "kurtosis": _BY_HAND.format("kurtosis", "read off the averages of the first four powers"),
    "entropy": _BY_HAND.format("entropy", "read off SELECT x, count(*) FROM t GROUP BY x"),
    "round": _ROUND.format("round"),
    "row_number": "rows are not numbered for anybody; groups are ordered by ORDER BY over what was released",
    "rank": "rows are not ranked for anybody; groups are ordered by ORDER BY over what was released",
    **{name: _ENDS.format("x") for name in ("bool_and", "bool_or", "every", "logical_and", "logical_or")},
    **{
        name: _ONE_ROW.format(name)
        for name in ("any_value", "first", "last", "arg_max", "arg_min", "max_by", "min_by")
    },
    **{name: _LIST.format(name) for name in ("string_agg", "group_concat", "array_agg", "list", "listagg")},
}  # fmt: skip
"""By the function's name, what is said in its place."""
