"""Tables full of edges, and Hypothesis strategies for questions about them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from holdfast.query.schema import Boolean, Category, Date, Integer, Real, Schema, Time, Timestamp

SCHEMA = Schema.from_mapping(
    {
        "age": Integer(0, 120),
        "small": Integer(-3, 3),
        "wide": Integer(-5, 70_000),
        "big": Integer(-(2**61), 2**61 - 1),
        "income": Real(-10, 1e6),
        "rate": Real(0, 1),
        "smoker": Category("no", "yes", "it's", 7),
        "insured": Boolean(),
        "visit": Date("2020-01-01", "2026-12-31"),
        'next "one"': Date("2021-06-01", "2030-01-01"),
        "left": Timestamp("1969-12-31", "2021-12-31"),
        "back": Timestamp("1960-02-29 12:00", "2030-01-01 12:00:00"),
        "at": Time("06:30", "22:00:00"),
    }
)

EDGES: dict[str, list[Any]] = {
    "age": [0, 1, 39, 40, 41, 119, 120, -5, 500, None],
    "small": [-3, -2, -1, 0, 1, 2, 3, None],
    "wide": [-5, 0, 1, 255, 256, 65_535, 65_536, 70_000, None],
    "big": [-(2**61), -(2**53) - 1, -1, 0, 1, 2**53, 2**53 + 1, 2**61 - 1, 2**63, None],
    "income": [-10.0, -0.0, 5e-324, 0.1, 0.3, 40.5, 1e6, 1e300, float("inf"), float("nan"), None],
    "rate": [0.0, 0.1, 0.5, 1 / 3, 1.0, None],
    "smoker": ["no", "yes", "it's", "7", "unknown", None],
    "insured": [True, False, None],
    "visit": ["2020-01-01", "2021-06-01", "2024-02-29", "2026-12-31", "1990-01-01", "2024-02-30", None],
    'next "one"': ["2021-06-01", "2024-02-29", "2030-01-01", None],
    "left": [
        "1969-12-31 23:59:59",
        "1969-12-31T00:00Z",
        "2020-02-29 08:30:00.25",
        "2021-01-03 23:00+02",
        "9999-01-01",
    ],
    "back": [
        "1960-02-29 13:59:59.9",
        "2020-02-29 08:30",
        "2021-01-03 21:00:00",
        "2024-12-30",
        "2021-01-03 24:00",
        None,
    ],
    "at": ["06:30", "00:00", "08:30:59.999", "12:00:00", "22:00", "23:59", "24:00", "8:30", None],
}


def block_of(columns: dict[str, list[Any]]) -> dict[str, np.ndarray]:
    """Codes of a table of raw values."""
    return {
        name: SCHEMA[name].encode_array(np.array(column, dtype=object)) for name, column in columns.items()
    }


def rows_of(block: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """The rows of a block as decoded values."""
    decoded = {name: SCHEMA[name].decode(codes) for name, codes in block.items()}
    return [dict(zip(decoded, row, strict=True)) for row in zip(*decoded.values(), strict=True)]


def edge_block(rows: int, seed: int = 7) -> dict[str, np.ndarray]:
    """A table of edge cases in random combination, the same at every run."""
    generator = np.random.default_rng(seed)
    picked = {
        name: [edges[i] for i in generator.integers(0, len(edges), rows)] for name, edges in EDGES.items()
    }
    return block_of(picked)


tables = st.lists(st.tuples(*(st.sampled_from(edges) for edges in EDGES.values())), max_size=12).map(
    lambda rows: block_of({name: [row[i] for row in rows] for i, name in enumerate(EDGES)})
)

_WHOLE = ["age", "small", "wide", "big"]
_REAL = ["income", "rate"]
_DATES = ["visit", 'next "one"']
_NUMBERS = ["0", "1", "-1", "2", "40", "40.5", "-0.5", "0.1", "0.3", "1e2", "119", "120", "121", "2.50"]
_LARGE = [
    "9007199254740993",
    "-2305843009213693952",
    "2305843009213693951.5",
    "1e300",
    "99999999999999999999",
]
_DAYS = ["2019-12-31", "2020-01-01", "2021-06-01", "2024-02-29", "2026-12-31", "2031-01-01"]
_MOMENTS = [
    "1969-12-31 23:59:59",
    "2020-02-29 08:30:00",
    "2021-01-03 21:00:00",
    "2021-01-03 21:00:00.5",
    "2040-01-01",
]
_TIMES = ["00:00:00", "08:30:59", "08:30:59.5", "12:00:00", "21:59:59", "23:59:59"]
_OPS = st.sampled_from(["<", "<=", ">", ">=", "=", "<>"])

_columns = st.sampled_from(_WHOLE + _REAL).map(lambda name: ("column", name))
_small_numbers = st.sampled_from(_NUMBERS).map(lambda text: ("number", text))
_numbers = st.sampled_from(_NUMBERS + _LARGE).map(lambda text: ("number", text))
_days = st.sampled_from(_DAYS).map(lambda text: ("text", text))

arithmetic = st.recursive(
    _columns | _small_numbers,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from("+-*"), inner, inner),
        st.tuples(st.sampled_from(["negate", "abs"]), inner),
        st.tuples(st.sampled_from(["least", "greatest"]), st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=4,
)

_moderate = st.sampled_from(["age", "small", "wide", "income", "rate"]).map(lambda name: ("column", name))
_parts = st.tuples(
    st.just("part"),
    st.sampled_from(["year", "quarter", "month", "week", "day", "doy", "dow", "isodow"]),
    st.sampled_from([*_DATES, "left", "back"]),
) | st.tuples(
    st.just("part"), st.sampled_from(["hour", "minute", "second"]), st.sampled_from(["left", "back", "at"])
)
_when = st.one_of(
    st.tuples(st.just("compare"), _OPS, _moderate, _small_numbers),
    st.tuples(st.just("compare"), st.just("="), st.just(("column", "smoker")), st.just(("text", "yes"))),
    st.tuples(st.just("null"), st.booleans(), st.sampled_from(["small", "income"])),
    st.just(("not", ("column", "insured"))),
)
richer = st.recursive(
    _moderate | _small_numbers | _parts,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from("+-*/"), inner, inner),
        st.tuples(st.just("/"), inner, st.just(("column", "small"))),
        st.tuples(st.just("floor"), st.lists(inner, min_size=1, max_size=1)),
        st.tuples(st.just("coalesce"), st.lists(inner, min_size=1, max_size=3)),
        st.tuples(st.just("nullif"), st.lists(inner, min_size=2, max_size=2)),
        st.tuples(
            st.just("case"),
            st.lists(st.tuples(_when, inner), min_size=1, max_size=3),
            st.none() | inner,
        ),
        st.tuples(st.sampled_from(["least", "greatest"]), st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=5,
)
"""Arithmetic that may be NULL where no column is: divisions, CASE and its kin; and parts of dates."""

_labels = st.sampled_from(SCHEMA["smoker"].labels).map(lambda text: ("text", text))
_equality = st.sampled_from(["=", "<>"])
_smoker, _insured = st.just(("column", "smoker")), st.just(("column", "insured"))
_dates = st.sampled_from(_DATES).map(lambda name: ("column", name))
_moments = st.sampled_from(_MOMENTS).map(lambda text: ("text", text))
_times = st.sampled_from(_TIMES).map(lambda text: ("text", text))
_left, _at = st.sampled_from([("column", "left"), ("column", "back")]), st.just(("column", "at"))
_truths = st.booleans().map(lambda value: ("truth", value))

leaves = st.one_of(
    st.tuples(st.just("compare"), _OPS, arithmetic, _numbers),
    st.tuples(st.just("compare"), _OPS, _numbers, arithmetic),
    st.tuples(st.just("compare"), _OPS, arithmetic, arithmetic),
    st.tuples(st.just("between"), st.booleans(), arithmetic, _numbers, _numbers),
    st.tuples(st.just("in"), st.booleans(), arithmetic, st.lists(_numbers, min_size=1, max_size=4)),
    st.tuples(st.just("compare"), _equality, _smoker, _labels),
    st.tuples(st.just("compare"), _equality, _labels, _smoker),
    st.tuples(st.just("in"), st.booleans(), _smoker, st.lists(_labels, min_size=1, max_size=3)),
    _insured,
    st.tuples(st.just("compare"), _equality, _insured, _truths),
    st.tuples(st.just("is"), st.booleans(), st.just("insured"), st.booleans()),
    st.tuples(st.just("compare"), _OPS, _dates, _days | _dates),
    st.tuples(st.just("compare"), _OPS, _days, _dates),
    st.tuples(st.just("between"), st.booleans(), _dates, _days, _days),
    st.tuples(st.just("in"), st.booleans(), _dates, st.lists(_days, min_size=1, max_size=3)),
    st.tuples(st.just("compare"), _OPS, _left, _moments | _left),
    st.tuples(st.just("between"), st.booleans(), _left, _moments, _moments),
    st.tuples(st.just("compare"), _OPS, _times, _at),
    st.tuples(st.just("in"), st.booleans(), _at, st.lists(_times, min_size=1, max_size=3)),
    st.tuples(st.just("null"), st.booleans(), st.sampled_from(list(SCHEMA))),
    st.tuples(st.just("compare"), _OPS, richer, _numbers),
    st.tuples(st.just("compare"), _OPS, richer, richer),
    st.tuples(st.just("missing"), st.booleans(), richer),
    _truths,
)

questions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=4)),
        st.tuples(st.just("not"), inner),
    ),
    max_leaves=6,
)
