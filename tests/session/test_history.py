"""What the history tells of releases that are no answers."""

from __future__ import annotations

import json

import pytest

import holdfast as hf
from holdfast.privacy.event import Gaussian
from holdfast.session.history import Release, history_texts


@pytest.mark.parametrize(
    ("recorded", "told"),
    [("[1, 2]", [1, 2]), ('{"excess": Infinity}', {"excess": None}), (json.dumps("x" * 5000), None)],
    ids=["short", "infinite", "long"],
)
def test_what_was_recorded_is_told_if_it_is_short_and_json(
    table: hf.Table, recorded: str, told: object
) -> None:
    session = table.session(target="table", rho=1.0)
    session.pay("fit", "a fit", Gaussian(1, 100)).record(recorded)
    (release,) = session.history
    assert isinstance(release, Release) and release.told == told
    (text,) = history_texts(session._ledger.entries(session.name), session.currency)

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    assert Release.from_parts(json.loads(text, parse_constant=refuse)) == release


def test_what_is_secret_is_not_told(table: hf.Table) -> None:
    session = table.session(target="table", rho=1.0)
    session.pay("fit", "a fit", Gaussian(1, 100)).record("[1]", secret=True)
    assert [each.told for each in session.history if isinstance(each, Release)] == [None]
