"""Answers straight from the sample: what everybody does, and what is safe but wasteful."""

from __future__ import annotations

import numpy as np

from holdfast.audit.overfitting.game import Answerer, Truths, Vector
from holdfast.noise.bits import Bits
from holdfast.validity.discretised import discretised as discretised_width
from holdfast.validity.hoeffding import hoeffding
from holdfast.validity.splitting import splitting as splitting_width


def naive(rows: int, queries: int, beta: float, bits: Bits | None = None) -> Answerer:
    """The sample mean with Hoeffding's interval and a union: wrong as soon as questions are adaptive."""

    def answer(truths: Truths, guesses: Vector | None) -> Vector:
        return proportions(truths)

    return Answerer("naive", hoeffding(rows, queries, beta), answer)


def splitting(rows: int, queries: int, beta: float, bits: Bits | None = None) -> Answerer:
    """Fresh rows for each question; says nothing when there are fewer rows than questions.

    Reference: `holdfast.validity.splitting`.
    """
    part = rows // queries
    asked = 0

    def answer(truths: Truths, guesses: Vector | None) -> Vector:
        nonlocal asked
        if part == 0:
            return np.full(truths.shape[1], np.nan)
        places = (asked + np.arange(truths.shape[1])) * part
        asked += truths.shape[1]
        own = places[None, :] + np.arange(part)[:, None]
        return proportions(np.take_along_axis(truths, own, axis=0))

    return Answerer("splitting", splitting_width(rows, queries, beta), answer)


def discretised(rows: int, queries: int, beta: float, bits: Bits | None = None) -> Answerer:
    """The centre of the cell that holds the sample mean: few transcripts, so a union over them. Not private.

    Reference: `holdfast.validity.discretised` (Theorem D).
    """
    cells, alpha = min(
        ((c, discretised_width(rows, queries, beta, c)) for c in range(2, 64)), key=lambda pair: pair[1]
    )
    size = 2.0 * alpha / cells

    def answer(truths: Truths, guesses: Vector | None) -> Vector:
        cell: Vector = np.floor(proportions(truths) / size)
        return (cell + 0.5) * size

    return Answerer("discretised", alpha, answer)


def proportions(truths: Truths) -> Vector:
    """The share of true values in each column."""
    shares: Vector = np.count_nonzero(truths, axis=0) / truths.shape[0]
    return shares
