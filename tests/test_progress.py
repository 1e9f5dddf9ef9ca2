"""Long work is seen while it goes on, where somebody looks."""

from __future__ import annotations

import io
import sys

import pytest

from holdfast.progress import watched


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("somebody", [True, False])
def test_a_bar_is_shown_where_somebody_looks(somebody: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    place = _Terminal() if somebody else io.StringIO()
    monkeypatch.setattr(sys, "stderr", place)
    with watched("fitting", None) as advance:
        advance(1, 3)
        advance(3, 3)
    assert ("fitting" in place.getvalue() and "100%" in place.getvalue()) == somebody
    assert somebody or not place.getvalue()


@pytest.mark.parametrize("place", [None, io.StringIO()], ids=["none", "closed"])
def test_a_process_without_a_place_for_errors_works_on(
    place: io.StringIO | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if place is not None:
        place.close()
    monkeypatch.setattr(sys, "stderr", place)
    with watched("fitting", None) as advance:
        advance(1, 3)


def test_who_asked_to_be_told_is_told_and_sees_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    place, told = _Terminal(), list[tuple[int, int]]()
    monkeypatch.setattr(sys, "stderr", place)
    with watched("fitting", lambda done, of: told.append((done, of))) as advance:
        advance(1, 3)
    assert told == [(1, 3)] and not place.getvalue()
