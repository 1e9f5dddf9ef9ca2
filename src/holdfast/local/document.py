"""Oracles as JSON, so that clients and server agree on every number."""

from __future__ import annotations

import json
from dataclasses import fields
from fractions import Fraction
from typing import Any

from holdfast.errors import InputError
from holdfast.local.coin import RandomizedResponse
from holdfast.local.hadamard import HadamardResponse
from holdfast.local.hashing import LocalHashing
from holdfast.local.hitters import HeavyHitters
from holdfast.local.kary import KaryResponse
from holdfast.local.onebit import OneBitMean
from holdfast.local.rappor import Rappor
from holdfast.local.sketch import CountMeanSketch, HadamardSketch
from holdfast.local.subset_selection import SubsetSelection
from holdfast.local.unary import OptimisedUnary, SymmetricUnary

Oracle = (
    RandomizedResponse
    | KaryResponse
    | SymmetricUnary
    | OptimisedUnary
    | LocalHashing
    | HadamardResponse
    | SubsetSelection
    | Rappor
    | CountMeanSketch
    | HadamardSketch
    | OneBitMean
    | HeavyHitters
)

_BY_NAME: dict[str, type[Any]] = {kind.__name__: kind for kind in Oracle.__args__}


def to_json(oracle: Oracle) -> str:
    """Its name and its parameters, hash seed included; all of it public. Fractions are written "11/20"."""
    if type(oracle) not in _BY_NAME.values():
        raise InputError(f"expected an oracle of holdfast.local, got {type(oracle).__name__}")
    parameters = {field.name: getattr(oracle, field.name) for field in fields(oracle)}
    return json.dumps({"oracle": type(oracle).__name__, **parameters}, default=_written)


def from_json(text: str) -> Oracle:
    """The oracle that `to_json` wrote, checked like a new one."""
    try:
        document = json.loads(text)
        kind = _BY_NAME[document.pop("oracle")]
        if set(document) != {field.name for field in fields(kind)}:
            raise KeyError
        found: Oracle = kind(**{name: _read(value) for name, value in document.items()})
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError):
        raise InputError(
            "expected the JSON text of an oracle with all its parameters, got something else; use to_json"
        ) from None
    return found


def _written(value: object) -> str:
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    raise TypeError(type(value).__name__)


def _read(value: object) -> object:
    return Fraction(value) if isinstance(value, str) else value
