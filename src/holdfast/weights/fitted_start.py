"""Weights that begin at a released synthetic table instead of at the uniform one."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from holdfast.check import probability, shown
from holdfast.errors import InputError
from holdfast.query.universe import Universe

if TYPE_CHECKING:
    from holdfast.weights.distribution import Weights
    from holdfast.weights.synthetic import SyntheticTable

UNIFORM = 0.1
"""The part of the uniform table in the start: it costs ln 10 of the potential at the worst."""


def begin(weights: Weights, start: SyntheticTable, uniform: float = UNIFORM) -> dict[str, object]:
    """Set weights to (1 - uniform) of a synthetic table and `uniform` of the uniform one; what tells this start apart.

    Guarantee: every point has at least the chance uniform/N, so that the divergence of any distribution over the N
    points from the start is at most ln N + ln(1/uniform).
    Requires: `start` is public, that is, released before.
    Reference: docs/theorems.md, Theorem 150.
    Cost: one pass over the cells.
    """
    if not hasattr(start, "weights"):
        raise InputError(f"expected a released SyntheticTable as start=, got {shown(start)}")
    part, universe = probability("uniform", uniform), weights.universe
    axes = _axes(universe, start.universe)
    order = np.argsort(np.argsort(axes))  # marginals come by sorted axes
    cells = start.weights.marginals([tuple(sorted(axes))])[tuple(sorted(axes))].transpose(order)
    inside, even = np.maximum(cells.reshape(-1), 0.0), part / universe.points
    outside = 0.0 if universe.is_complete else max(0.0, 1.0 - float(inside.sum()))
    scale = (1 - part) / (float(inside.sum()) + outside)
    inside = inside * scale + even
    weights.set(inside, 0.0 if universe.is_complete else outside * scale + even)
    return {"uniform": part, "cells": hashlib.sha256(inside.tobytes()).hexdigest()}


def _axes(universe: Universe, other: Universe) -> tuple[int, ...]:
    """Where the columns of a universe are in another one, with the same groups."""
    there = {str(axis[0]): (place, axis) for place, axis in enumerate(other.identity())}
    found = []
    for own in universe.identity():
        place, axis = there.get(str(own[0]), (-1, None))
        if axis != own:
            raise InputError(
                f"expected a start with the groups of column {own[0]!r}, got one "
                f"{'without it' if axis is None else 'with others'}; give both the same columns, edges= and nulls="
            )
        found.append(place)
    return tuple(found)
