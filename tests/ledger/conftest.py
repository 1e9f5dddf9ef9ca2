"""A ledger of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.ledger import Ledger
from ledger.makers import MAKERS


@pytest.fixture(params=sorted(MAKERS))
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    made = MAKERS[request.param](tmp_path)
    yield made
    made.close()
