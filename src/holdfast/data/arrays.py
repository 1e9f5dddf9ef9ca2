"""Arrays and pandas frames in memory into codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.data.frame import FrameSource, checked_lengths
from holdfast.data.source import Codes
from holdfast.data.unit_key import origin
from holdfast.errors import DataError
from holdfast.query.dictionary import TextCodes, with_words
from holdfast.query.schema import ColumnType, Schema

_PLAIN = {int: np.int64, float: np.float64, bool: np.bool_}


def arrays_source(data: Mapping[Any, Any], schema: Schema) -> FrameSource:
    """A source from a mapping of names to arrays, lists or pandas series. The values are copied."""
    check_names(schema, list(data))
    raw = {name: origin(schema, name) for name in schema}
    checked_lengths({name: _length(name, data[raw[name]]) for name in schema})
    return FrameSource(schema, {name: _codes(schema[name], raw[name], data[raw[name]]) for name in schema})


def pandas_source(frame: Any, schema: Schema) -> FrameSource:
    """A source from a pandas data frame; the index is ignored."""
    names = list(frame.columns)
    check_names(schema, names)
    raw = {name: origin(schema, name) for name in schema}
    for name in raw.values():
        if names.count(name) > 1:
            raise DataError(
                f"expected one column {name!r}, got {names.count(name)} of that name; rename them"
            )
    return FrameSource(schema, {name: _codes(schema[name], raw[name], frame[raw[name]]) for name in schema})


def check_names(schema: Schema, names: Sequence[object]) -> None:
    """Refuse data in which a declared column is missing."""
    missing = [raw for name in schema if (raw := origin(schema, name)) not in names]
    if missing:
        shown = ", ".join(repr(str(name)[:60]) for name in names[:20]) + (", ..." if len(names) > 20 else "")
        raise DataError(f"expected a column {missing[0]!r}, got data with {shown or 'no columns'}")


def _codes(column: ColumnType, name: str, values: Any) -> Codes:
    try:
        if is_pandas(values, "Series"):
            return _series_codes(column, values)
        if isinstance(values, np.ma.MaskedArray):
            return _hidden(column, column.encode_array(values.filled()), np.ma.getmaskarray(values))
        return column.encode_array(plain_array(values))
    except DataError as error:
        raise DataError(f"column {name!r}: {error}") from None


def _length(name: str, values: Any) -> int:
    try:
        shape = (len(values),) if isinstance(values, list | tuple) else np.shape(values)
    except (TypeError, ValueError):
        shape = ()
    if len(shape) != 1:
        raise DataError(f"expected column {name!r} as a flat array, got {type(values).__name__}")
    return int(shape[0])


def plain_array(values: Any) -> NDArray[Any]:
    """Values as an array in which each is what it was."""
    if isinstance(values, np.ndarray):
        return values
    if not isinstance(values, list | tuple):
        return np.asarray(values)
    kinds = set(map(type, values))
    if len(kinds) == 1 and (kind := kinds.pop()) in _PLAIN:
        try:
            return np.array(values, dtype=_PLAIN[kind])
        except OverflowError:
            pass  # integers beyond 64 bits: read one by one below
    # Left to itself, NumPy would turn mixed lists into texts or floats and lose what each value was.
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


def _series_codes(column: ColumnType, series: Any) -> Codes:
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return column.encode_array(series.to_numpy())
    if hasattr(dtype, "categories"):
        return _by_distinct(column, series.cat.categories.to_series(), series.cat.codes.to_numpy())
    if getattr(dtype, "tz", None) is not None:
        return column.encode_array(series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
    plain = getattr(dtype, "numpy_dtype", np.dtype(object))
    if plain.kind in "biuf":
        missing = series.isna().to_numpy(dtype=np.bool_)
        zero = np.zeros(1, dtype=plain)[0].item()
        return _hidden(column, column.encode_array(series.to_numpy(dtype=plain, na_value=zero)), missing)
    if dtype.name in ("str", "string"):
        places, distinct = series.factorize()
        return _by_distinct(column, distinct.to_series(), places)
    return column.encode_array(series.to_numpy(dtype=object, na_value=None))


def _by_distinct(column: ColumnType, distinct: Any, places: NDArray[Any]) -> Codes:
    """Read each distinct value once; -1 among the places stands for a missing one."""
    known = column.encode_array(distinct.to_numpy(dtype=object, na_value=None))
    codes: Codes = np.append(known, np.array([column.null_code], dtype=column.dtype))[places]
    return with_words(codes, known.words) if isinstance(known, TextCodes) else codes


def _hidden(column: ColumnType, codes: Codes, missing: NDArray[np.bool_]) -> Codes:
    codes[missing] = column.null_code
    return codes


def is_pandas(value: Any, kind: str) -> bool:
    """Whether a value is a pandas object, without importing pandas."""
    return any(
        base.__name__ == kind and base.__module__.split(".")[0] == "pandas" for base in type(value).__mro__
    )
