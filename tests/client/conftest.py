"""One gateway for each file of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from gateway import Running, running

import holdfast as hf
from holdfast.client import RemoteSession


@pytest.fixture(scope="module")
def house() -> Iterator[Running]:
    """A running gateway with one table and one board of each kind."""
    with running(declared={"target": "table"}) as started:
        started.register_board("board", per_team=3)
        started.register_board("held", "holdout")
        yield started


@pytest.fixture(scope="module")
def remote(house: Running) -> Iterator[RemoteSession]:
    """The analyst's session over HTTP."""
    with hf.connect(house.url, house.analyst) as connection:
        yield connection.session()
