"""Functions, signs and words of SQL that the language has not, each with the way that works."""

from __future__ import annotations

_ENDS = (
    "min and max of a truth value belong to single rows; write avg({}), the share of the rows where it holds"
)
_ONE_ROW = "{} is the value of one row, which is never told; ask for a median, a quantile or the counts of each value"
_LIST = "{} lists the values of single rows, which are never told; write SELECT x, count(*) FROM t GROUP BY x"
_BY_HAND = "{0} is {1}; ask for these, and what is worked out from answers is free"
_ROUND = "{0} of an answer is free and yours: ask for the number, and round what you get"

_TEXTS = "{} makes texts, which the language only compares; write LIKE, ILIKE, starts_with or a CASE"
_PARTS = "{0} makes texts of dates; group by {1}, and write the names yourself"
_CURVE = "{} has no whole numbers to add up; declare a column of it before the rows are opened"
_NOW = "{} changes from call to call, and a question has one answer; write the date, as in '2024-01-31'"
_FRAMES = "{} looks from row to row; groups are ordered by ORDER BY over what was released"
_SETS = "{} asks for several sets of groups; ask for each in a SELECT of its own"

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
    "round": f"{_ROUND.format('round')}; a column is rounded by floor(x + 0.5)",
    "trunc": "trunc is floor(x) of what is not negative; write that",
    "mod": "the rest of a division is x - 12 * floor(x / 12); group by a date's part with hour(x), dow(x), month(x)",
    "sign": "the sign of a number is CASE WHEN x > 0 THEN 1 WHEN x < 0 THEN -1 ELSE 0 END",
    "isnull": "write x IS NULL",
    "width_bucket": "equal bins are floor(x / 10); others are by= with edges=, or a CASE",
    "cast": "a cast is to a number (DOUBLE, INTEGER) or to DATE; texts are compared as they are",
    "try_cast": "a cast is to a number (DOUBLE, INTEGER) or to DATE; texts are compared as they are",
    "contains": "write x LIKE '%word%'",
    "ends_with": "write x LIKE '%word'",
    "suffix": "write x LIKE '%word'",
    "regexp_matches": "patterns are LIKE and ILIKE, where % stands for any text",
    **{name: f"{name} is written out: x * x" for name in ("power", "pow", "square")},
    **{name: _CURVE.format(name) for name in ("sqrt", "exp", "ln", "log", "log10", "log2", "sin", "cos")},
    **{name: _TEXTS.format(name) for name in ("concat", "substring", "substr", "left", "right", "trim", "replace")},
    **{name: f"write x ILIKE 'word', which takes {name} and other case for the same" for name in ("lower", "upper")},
    **{name: _PARTS.format(name, "date_trunc('month', d)") for name in ("strftime", "to_char", "date_format")},
    "dayname": _PARTS.format("dayname", "dow(d)"),
    "monthname": _PARTS.format("monthname", "month(d)"),
    **{name: _NOW.format(name) for name in ("now", "today", "current_date", "current_timestamp", "random")},
    **{
        name: f"{name} is compared as dates are: d >= '2024-01-31'; days of a year are doy(d)"
        for name in ("date_diff", "datediff", "date_sub", "date_add", "dateadd", "age", "timestampdiff")
    },
    **{
        name: _FRAMES.format(name)
        for name in ("row_number", "rank", "dense_rank", "ntile", "lag", "lead", "percent_rank", "first_value")
    },
    **{name: _SETS.format(name) for name in ("rollup", "cube", "grouping_sets")},
    **{name: _ENDS.format("x") for name in ("bool_and", "bool_or", "every", "logical_and", "logical_or")},
    **{
        name: _ONE_ROW.format(name)
        for name in ("any_value", "first", "last", "arg_max", "arg_min", "max_by", "min_by")
    },
    **{name: _LIST.format(name) for name in ("string_agg", "group_concat", "array_agg", "list", "listagg")},
}  # fmt: skip
"""By the function's name, what is said in its place."""

OTHER_SIGNS = {
    "%": "; the rest of a division is x - 12 * floor(x / 12)",
    "//": "; whole parts are floor(x / 60)",
    "**": "; write a power out: x * x",
    "^": "; write a power out: x * x",
    "::": "; a cast is to a number (DOUBLE, INTEGER) or to DATE",
    "||": "; texts are compared, and not put together",
    "~": "; patterns are LIKE and ILIKE, where % stands for any text",
    ".": "; a column is written without its table where there is one table",
}
"""By the sign, what is said behind that it is not in the language."""

OTHER_CLAUSES = {
    "distinct": "declared labels are public, and keys that nobody declared are SELECT x, count(*) FROM t GROUP BY x",
    "union": "two SELECTs are two questions: ask one after the other",
    "intersect": "two SELECTs are two questions: ask one after the other",
    "except": "two SELECTs are two questions: ask one after the other",
    "interval": "write the date itself, as in '2024-01-31'",
    "qualify": "the first groups are ORDER BY and LIMIT",
    "fetch": "the first groups are LIMIT",
    "rlike": "patterns are LIKE and ILIKE, where % stands for any text",
    "current_date": _NOW.format("it"),
    "current_timestamp": _NOW.format("it"),
}
"""By the word, what is said behind that it is not in the language."""
