"""The examples run, at small sizes, and their answers are near what is true."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pages import ROOT


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_hospital(capsys: pytest.CaptureFixture[str]) -> None:
    module = example("hospital")
    frequent, _, _, surgery, *_ = module.main(5_000)
    assert "5,000 units (person)" in capsys.readouterr().out
    assert 0 < frequent.value < 0.3
    assert frequent.low <= frequent.value <= frequent.high
    visits = module.tables(5_000)["visits"]
    treated = len(
        {p for p, w in zip(visits["person"].tolist(), visits["ward"].tolist(), strict=True) if w == "surgery"}
    )
    assert (
        surgery.value <= treated + 250 and surgery.value > treated / 2
    )  # of some, the surgery is beyond the bound


def test_the_flights(capsys: pytest.CaptureFixture[str]) -> None:
    module = example("flights")
    late, _, carriers, _, _, foggy, modern, large, dests = module.main(20_000)
    frame = module.flights(20_000)
    aircraft = frame["tailnum"].nunique()
    assert f"{aircraft:,} aircraft" in capsys.readouterr().out
    kept = frame.dropna(subset=["tailnum"]).groupby("tailnum").size().clip(upper=20).sum()
    allowed = 0.15 * kept + 3 * float(np.max(carriers.noise)) * len(carriers.labels)
    assert abs(carriers.value.sum() - kept) < allowed
    assert late.low <= float((frame["dep_delay"] > 15).mean()) + 0.05
    # Destinations are discovered: none is made up, and those of many aircraft are there.
    assert {"ATL", "ORD"} <= set(dests.labels) <= set(frame["dest"])
    # What is looked up is what pandas merges.
    planes = pd.read_csv(module.folder() / "planes.csv", usecols=["tailnum", "year"])
    years = frame[["tailnum"]].drop_duplicates().merge(planes, how="left")
    assert modern.low <= float((years.dropna(subset=["tailnum"])["year"] >= 2000).mean()) <= modern.high
    weather = pd.read_csv(module.folder() / "weather.csv")
    merged = frame.merge(weather, on=["origin", "month", "day", "hour"])
    delay = float(merged["dep_delay"].clip(-60, 600)[merged["visib"] < 5].mean())
    assert foggy.low - 5 <= delay <= foggy.high + 5
    assert len(large.labels) == 3 and set(large.labels) <= set(
        pd.read_csv(module.folder() / "airlines.csv")["name"]
    )


def test_the_forty_questions() -> None:
    """All of them are answered, in Python and in SQL, by intervals that hold the truth and would not hold another."""
    module = example("forty_questions")
    found = module.outcomes(20_000, epsilon=20.0, confidence=1 - 1e-11)
    assert [one.question.number for one in found] == list(range(1, 44))
    assert [one.question.asks for one in found if one.sql is None] == ["regression"]
    for one in found:
        assert all(way is None or way[0] == way[1] > 0 for way in (one.python, one.sql)), one
    assert module.table(found).count("1 line") == 2 * 42 - 1
    narrow = [one for one in found if 0 < one.width < one.truth / 4]
    assert len(narrow) > 20  # and a truth that is twice as large would be missed by each of these


def test_what_peers_say_is_put_beside_the_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is not installed is said to be missing, and one that was not asked or cannot be is no answer."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    module = example("forty_peers")
    assert module.asked("opendp", tmp_path / "python", tmp_path) is None
    (tmp_path / "opendp.json").write_text(
        '{"version": "1"}\n{"2": {"lines": 1, "runs": [[[["a"], 3], [["b.0"], 5]]]}}\n'
    )
    said = module.asked("opendp", tmp_path / "python", tmp_path)
    true = [{("a",): 2.0, ("b",): 5.0, ("c",): 9.0}]
    assert module.error(said["2"], [{("a",): 2.0, ("c",): 9.0}]) == (1.0, 1)
    assert module._cell(said["2"], said, true) == "1 line, 0.5, 2 of 3 groups"
    assert module._cell(None, None, true) == "not installed"
    assert module._cell(None, said, true) == "not run"
    assert module._cell({"no": "refused"}, said, true) == "no"
