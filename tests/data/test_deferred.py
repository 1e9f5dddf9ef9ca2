"""Rows that are not looked for before they are needed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from holdfast.data.deferred import DeferredSource, look


def test_rows_are_looked_for_when_they_are_needed(tmp_path: Path) -> None:
    table = hf.open({"age": np.arange(200) % 100}, hf.Schema(age=hf.Integer(0, 99)))
    place = str(tmp_path / "people.hf")
    table.save(place)
    seen = look(place, None)
    assert (seen.rows, seen.schema, seen.store) == (table.rows, table.schema, True)
    absent = DeferredSource(seen.schema, seen.rows, str(tmp_path / "elsewhere.hf"))
    assert (absent.rows, absent.schema) == (seen.rows, seen.schema)
    with pytest.raises(hf.DataError):
        absent.draw(["age"], 1)
    with pytest.raises(hf.DataError, match="registered"):
        DeferredSource(seen.schema, seen.rows + 1, place).draw(["age"], 1)
    source = DeferredSource(seen.schema, seen.rows, place)
    np.testing.assert_array_equal(
        source.gather(["age"], np.arange(5))["age"], table._source.gather(["age"], np.arange(5))["age"]
    )
    source.close()
    source.close()
