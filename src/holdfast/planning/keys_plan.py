"""The terms of a discovery of keys: noise for its rho, and the least threshold for its delta."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from holdfast.check import exact_positive, refusal
from holdfast.errors import InputError, MechanismError
from holdfast.ledger import UNCOVERED
from holdfast.planning.recipe_information import units_told
from holdfast.planning.terms import Terms
from holdfast.privacy.event import KeysByGaussian, KeysByLogistic
from holdfast.privacy.filter import DELTA_UNITS, UNITS
from holdfast.privacy.rounding import round_down, round_up
from holdfast.privacy.rule import range_of_gdp, value
from holdfast.query.schema import Schema, Text
from holdfast.query.unit_schema import UnitSchema, table_of
from holdfast.validity.leave_out_keys import keys_told

TABLE_SHARE, POPULATION_SHARE = 10, 1000
"""A discovery that says no rho takes this part of the session's: in a session for the population a small one, because
what it tells widens every later interval."""

MOST_KEYS = 64
"""So many keys of one unit count at most; where it has more, its own coins choose them."""
_GRID = 2**12
"""The weight of a unit's only key, where units may have several."""
_LEAST = 5
"""Keys of fewer than 5/rate units are never shown: all of them together tell little then."""
_FARTHEST = 2**52


def keys_event(terms: Terms, column: str, rho: object, delta: object) -> KeysByGaussian | KeysByLogistic:
    """What a discovery runs: logistic noise for the population, Gaussian for a table or rows that share owners.

    Of events a unit has as many keys as it may have rows, and at most MOST_KEYS of them count.
    """
    if terms.session.currency == "pure" or not terms.session.delta_limit_units:
        raise MechanismError(
            "expected a session that keeps a part of its delta for keys, got one without; open it with epsilon= and "
            "delta= (or rho= and delta=), not with epsilon= alone or keys_delta=0"
        )
    population = terms.target == "population" and terms.rows_per_unit == 1
    part = POPULATION_SHARE if population else TABLE_SHARE
    exactly = terms.session.currency == "gdp"  # half of mu squared is what rho= says there
    spare = Fraction(terms.session.limit_units, UNITS * part * (2 if exactly else 1))
    cost = spare if rho is None else exact_positive("rho", rho)
    chance = Fraction(terms.session.delta_limit_units, DELTA_UNITS * len(terms.schema.texts))
    if delta is not None:
        chance = exact_positive("delta", delta)
        if chance >= 1:
            raise refusal("a number below 1", "delta", delta, "1e-7 is usual")
    m, keys = terms.rows_per_unit, _keys_of_a_unit(terms.schema, column)
    if not population:
        scale = 1 if keys == 1 else _GRID
        variance = round_up(Fraction((m * scale) ** 2) / cost) + (4 if exactly else 0)
        return _least(lambda threshold: KeysByGaussian(keys, m, scale, variance, threshold), chance)
    # One key of a unit moves two that are shown or not, each with a range of the rate.
    ranged = range_of_gdp(cost / keys) if exactly else 2 * math.sqrt(cost / keys)
    rate = round_down(ranged * (1 - 2**-40))
    return _least(
        lambda threshold: KeysByLogistic(keys, m, max(2, math.ceil(_LEAST / rate)), rate, threshold), chance
    )


def _keys_of_a_unit(schema: Schema, column: str) -> int:
    table = table_of(schema, column)
    return (
        1
        if table is None or not isinstance(schema, UnitSchema)
        else min(schema.events[table].most, MOST_KEYS)
    )


def keys_information(event: KeysByGaussian | KeysByLogistic, column: Text, terms: Terms) -> int:
    """How much a discovery tells, in the ledger's units; UNCOVERED for Gaussian noise, which no theorem covers."""
    if isinstance(event, KeysByGaussian) or terms.rows_per_unit > 1:
        return UNCOVERED
    return units_told(keys_told(terms.rows, event, column.max_length), terms.rows)


def _least(
    made: Callable[[int], KeysByGaussian | KeysByLogistic], chance: Fraction
) -> KeysByGaussian | KeysByLogistic:
    """The event with the least threshold whose delta is at most the chance."""
    high = 1
    while value(made(high), "failure") > chance:
        high *= 2
        if high > _FARTHEST:
            raise InputError(
                "expected a delta that some threshold keeps, got a smaller one; give more rho or delta"
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if value(made(middle), "failure") <= chance else (middle, high)
    return made(high)
