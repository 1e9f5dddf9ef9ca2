"""Events are facts: checked when made, equal when equal, the same after JSON."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from holdfast.errors import InputError
from holdfast.privacy import events, from_json, to_json

from .strategies import all_events

BAD_NUMBERS = [
    math.nan, math.inf, -math.inf, -1, -0.5, Fraction(-1, 3), 0, 0.0, True, False, None, "1", b"1", [1], 1j,
    5e-324, 1e-310, 1.1e300, 10**301, Fraction(1, 10**400), Fraction(2**5000 + 1, 2**5000), np.nan,
    np.float64(-1), np.bool_(True), 10**5000,
]  # fmt: skip
BAD_COUNTS = [0, -1, 1.0, 1.5, math.nan, True, None, "3", Fraction(3), 10**301, np.float64(2), np.bool_(True)]
ONE = events.PureMechanism(1)


@pytest.mark.parametrize("bad", BAD_NUMBERS, ids=lambda b: type(b).__name__)
def test_bad_numbers_never_become_events(bad: object) -> None:
    makers = [
        lambda x: events.Laplace(x, 1),
        lambda x: events.Laplace(1, x),
        lambda x: events.Gaussian(x, 1),
        lambda x: events.Gaussian(1, x),
        lambda x: events.Votes(10, 10, x),
        lambda x: events.BoundedRange(x),
        lambda x: events.PureMechanism(x),
        lambda x: events.ApproxMechanism(x, 0.1),
        lambda x: events.ApproxMechanism(1, x),
        lambda x: events.ConcentratedMechanism(x),
    ]
    for make in makers:
        with pytest.raises(InputError):
            make(bad)


@pytest.mark.parametrize("bad", BAD_COUNTS, ids=lambda b: type(b).__name__)
def test_bad_counts_never_become_events(bad: object) -> None:
    makers = [
        lambda x: events.Votes(x, 1, Fraction(1, 4)),
        lambda x: events.Votes(1, x, Fraction(1, 4)),
        lambda x: events.Subsampled(ONE, x, 10),
        lambda x: events.Subsampled(ONE, 1, x),
        lambda x: events.SubsampledWithReplacement(ONE, x, 10),
        lambda x: events.SubsampledWithReplacement(ONE, 1, x),
        lambda x: events.Group(ONE, x),
        lambda x: events.Repeat(ONE, x),
    ]
    for make in makers:
        with pytest.raises(InputError):
            make(bad)


def test_the_rest_of_the_bad_input() -> None:
    for flip in (Fraction(1, 2), 0.5, 0.75, 1, 2):
        with pytest.raises(InputError, match="flip"):
            events.Votes(10, 1, flip)
    for delta in (1, 1.0, 2):
        with pytest.raises(InputError, match="delta"):
            events.ApproxMechanism(1, delta)
        with pytest.raises(InputError, match="delta"):
            events.ConcentratedMechanism(1, delta)
    with pytest.raises(InputError, match="fewer rows"):
        events.Subsampled(ONE, 11, 10)
    for not_an_event in (None, 1, "pure", {"type": "nothing"}, events.PureMechanism):
        for make in (
            lambda e: events.Group(e, 2),
            lambda e: events.Repeat(e, 2),
            lambda e: events.Subsampled(e, 1, 2),
            lambda e: events.SubsampledWithReplacement(e, 1, 2),
            lambda e: events.Sequence((ONE, e)),
            to_json,
        ):
            with pytest.raises(InputError):
                make(not_an_event)
    with pytest.raises(InputError, match="tuple"):
        events.Sequence([ONE])


@pytest.mark.parametrize("kind", [events.Subsampled, events.SubsampledWithReplacement])
def test_a_group_is_never_inside_a_subsample(kind: type) -> None:
    """A unit of m rows is drawn up to m times as often as one row: amplifying inside claims too little."""
    group = events.Group(ONE, 3)
    for hidden in (group, events.Sequence((ONE, group)), events.Repeat(events.Sequence((group,)), 2)):
        with pytest.raises(InputError, match="outside"):
            kind(hidden, 1, 10)
    assert events.Group(kind(ONE, 1, 10), 3).size == 3


def test_numbers_are_read_exactly() -> None:
    assert (
        events.Laplace(1, 10)
        == events.Laplace(1.0, Fraction(10))
        == events.Laplace(np.int64(1), np.float64(10))
    )
    assert events.PureMechanism(0.1).epsilon == Fraction(0.1) != Fraction(1, 10)
    assert events.PureMechanism(Fraction("0.1")).epsilon == Fraction(1, 10)
    assert events.PureMechanism(np.float32(0.5)).epsilon == Fraction(1, 2)
    assert type(events.Votes(np.int32(7), 2, 0.25).rows) is int
    assert len({events.Laplace(1, 10), events.Laplace(1.0, 10.0), events.Laplace(1, 11)}) == 2


def test_events_are_frozen_and_slotted() -> None:
    event = events.Laplace(1, 10)
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.scale = Fraction(1)  # type: ignore[misc]
    assert not hasattr(event, "__dict__")
    nested = events.Group(events.Sequence((event, events.Nothing())), 2)
    assert pickle.loads(pickle.dumps(nested)) == copy.deepcopy(nested) == nested  # noqa: S301  # our own bytes


@given(all_events)
def test_json_round_trip(event: events.Event) -> None:
    record = to_json(event)
    again = from_json(json.loads(json.dumps(record)))
    assert again == event
    assert hash(again) == hash(event)
    assert to_json(again) == record


def test_json_by_example() -> None:
    event = events.Group(events.Sequence((events.Votes(10, 2, Fraction(1, 4)), events.Nothing())), 2)
    assert to_json(event) == {
        "type": "group",
        "event": {
            "type": "sequence",
            "events": [{"type": "votes", "rows": 10, "votes": 2, "flip": "1/4"}, {"type": "nothing"}],
        },
        "size": 2,
    }


@pytest.mark.parametrize(
    "record",
    [
        None, [], "nothing", {}, {"type": "magic"}, {"type": None}, {"type": ["nothing"]},
        {"type": "nothing", "extra": 1}, {"type": "pure"}, {"type": "pure", "epsilon": 1},
        {"type": "pure", "epsilon": 0.5}, {"type": "pure", "epsilon": "0.5"},
        {"type": "pure", "epsilon": "1/0"},
        {"type": "pure", "epsilon": "-1/2"}, {"type": "pure", "epsilon": "0/1"},
        {"type": "pure", "epsilon": "1 /2"},
        {"type": "pure", "epsilon": "١/٢"}, {"type": "pure", "epsilon": "9" * 5000 + "/1"},
        {"type": "pure", "epsilon": "1/2\n"}, {"type": "repeat", "event": {"type": "nothing"}, "count": "2"},
        {"type": "repeat", "event": {"type": "nothing"}, "count": 2.0},
        {"type": "repeat", "event": {"type": "nothing"}, "count": True},
        {"type": "repeat", "event": None, "count": 2}, {"type": "sequence", "events": {"type": "nothing"}},
        {"type": "votes", "rows": "10", "votes": 2, "flip": "1/4"},
        {"type": "subsampled", "event": {"type": "nothing"}, "rows": 3, "of": 2},
    ],
    ids=str,
)  # fmt: skip
def test_a_foreign_record_is_refused(record: object) -> None:
    with pytest.raises(InputError):
        from_json(record)


def test_deep_nesting_is_refused() -> None:
    record: dict[str, object] = {"type": "nothing"}
    for _ in range(31):
        record = {"type": "repeat", "event": record, "count": 1}
    assert from_json(record) is not None
    with pytest.raises(InputError, match="deep"):
        from_json({"type": "repeat", "event": record, "count": 1})
    for _ in range(5000):
        record = {"type": "sequence", "events": [record]}
    with pytest.raises(InputError, match="deep"):
        from_json(record)


@pytest.mark.parametrize(
    "value", ["x" * 10_000, 10**5000, Fraction(10**4000, 3)], ids=["text", "int", "fraction"]
)
def test_messages_are_short_whatever_came(value: object) -> None:
    with pytest.raises(InputError) as caught:
        events.PureMechanism(value)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 200
