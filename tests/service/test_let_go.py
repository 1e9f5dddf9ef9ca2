"""What a refused request was made of is free when the reply has left, not when Python's collector comes: between two of
its long visits a busy gateway has some ten thousand requests."""

from __future__ import annotations

import gc
from collections import Counter

import pytest
from starlette.requests import Request

from holdfast.errors import HoldfastError
from holdfast.service import envelope
from service.site import site

TIMES = 10
REFUSED = {
    "a column that is not there": {"kind": "fraction", "where": "height > 3", "rho": 1e-6},
    "half a question": {"kind": "fraction", "where": "age >", "rho": 1e-6},
    "more than there is": {"kind": "fraction", "where": "age > 3", "rho": 1e6, "confirm": True},
}


def left(question: object) -> Counter[str]:
    """How many requests and errors the collector finds after so many refusals."""
    with site() as here:
        assert here.ask(question).status_code in (402, 422)
        gc.collect()
        gc.disable()
        try:
            for _ in range(TIMES):
                here.ask(question)
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            found = (
                kind.__name__
                for one in gc.garbage
                for kind in (Request, HoldfastError)
                if isinstance(one, kind)
            )
            return Counter(found)
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()


@pytest.mark.parametrize("question", REFUSED.values(), ids=REFUSED)
def test_a_refusal_leaves_nothing_to_the_collector(question: object) -> None:
    assert not left(question)


def test_an_error_that_keeps_its_frames_keeps_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin."""
    monkeypatch.setattr(envelope, "let_go", lambda error: None)
    assert left(REFUSED["a column that is not there"])["Request"] >= TIMES
