"""Counts of all workers together, and the files of deploy/ that read them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.service.metrics import EDGES, KINDS, Metrics

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
ROUTE = ("GET", "/v1/x", 200)


def values(text: str) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    }


def together(folder: Path) -> list[float]:
    """What each of two workers says of one route, after each has counted; and a third after the first has ended."""
    first, second = Metrics(folder), Metrics(folder)
    for worker, times in ((first, 3), (second, 4)):
        for _ in range(times):
            worker.count(*ROUTE, 0.003)
        worker.flush(now=True)
    del first
    third = Metrics(folder)
    name = 'holdfast_requests_total{method="GET",route="/v1/x",status="200"}'
    return [values(worker.text()).get(name, 0.0) for worker in (second, third)]


def test_all_workers_say_the_same(tmp_path: Path) -> None:
    assert together(tmp_path) == [7, 7]


def test_workers_that_count_alone_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Metrics, "_others", lambda self: [])
    assert together(tmp_path) == [4, 0]


def test_an_earlier_start_and_another_release_do_not_count(tmp_path: Path) -> None:
    together(tmp_path)
    (tmp_path / "1-aa.json").write_text(
        json.dumps({"version": "0.0.0", "requests": [["GET", "/v1/x", "200", 5]]})
    )
    (tmp_path / "1-bb.json").write_text("{half")
    assert together(tmp_path) == [14, 14]
    Metrics(tmp_path).clear()
    assert together(tmp_path) == [7, 7]


def test_each_route_has_a_histogram(tmp_path: Path) -> None:
    worker = Metrics(tmp_path)
    for seconds in (0.0005, 0.3, 99.0):
        worker.count("GET", "/v1/x", 200, seconds)
    worker.count("POST", "/v1/y", 503, 0.2)
    worker.failed("503")
    told = values(worker.text([("ready", {"check": "disk"}, 1)]))
    bucket = 'holdfast_request_seconds_bucket{{method="GET",route="/v1/x",le="{}"}}'
    assert [told[bucket.format(edge)] for edge in ("0.001", "0.25", "0.5", "5", "+Inf")] == [1, 1, 2, 2, 3]
    assert told['holdfast_request_seconds_count{method="POST",route="/v1/y"}'] == 1
    assert told['holdfast_request_seconds_sum{method="GET",route="/v1/x"}'] == pytest.approx(99.3005)
    assert told['holdfast_failures_total{code="503"}'] == 1
    assert told['holdfast_ready{check="disk"}'] == 1
    assert list(EDGES) == sorted(EDGES)


def exported() -> set[str]:
    """Every name that a query may use."""
    names = {f"holdfast_{name}" for name in KINDS}
    return names | {f"holdfast_request_seconds_{part}" for part in ("bucket", "sum", "count")}


def queries(found: Any) -> list[str]:
    """Every `expr` within a document."""
    if isinstance(found, dict):
        own = [found["expr"]] if "expr" in found else []
        return own + [one for part in found.values() for one in queries(part)]
    return [one for part in found for one in queries(part)] if isinstance(found, list) else []


def promtool(rules: Path) -> int:
    """What Debian's reader of Prometheus' rules says: 0 if it can read them. tools/setup.sh puts it into .venv."""
    found = shutil.which("promtool", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if found is None:
        raise RuntimeError(
            "expected promtool, got none; run make test, or install Debian's package prometheus"
        )
    return subprocess.run([found, "check", "rules", rules], check=False).returncode


def unknown(expressions: list[str]) -> set[str]:
    return {name for text in expressions for name in re.findall(r"\bholdfast_\w+", text)} - exported()


@pytest.mark.parametrize("file", ["alerts.yml", "grafana.json"])
def test_what_operators_look_at_is_what_is_exported(file: str) -> None:
    found = queries(yaml.safe_load((DEPLOY / file).read_text()))
    assert len(found) >= 9
    assert unknown(found) == set()
    assert unknown(["rate(holdfast_requests[5m])"]) == {"holdfast_requests"}, "the twin: a name that is gone"
    for text in found:
        assert text.count("(") == text.count(")") and text.count("[") == text.count("]")


def test_alert_rules_have_the_form_that_prometheus_reads(tmp_path: Path) -> None:
    """The keys of its documentation; and Debian's promtool reads the rules, and the board's queries as rules."""
    (group,) = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(set(names)) == len(names) >= 8
    for rule in group["rules"]:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"].endswith(".")
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))
    asked = [
        re.sub(r"\$\w+", "5m", text) for text in queries(json.loads((DEPLOY / "grafana.json").read_text()))
    ]
    rules = [{"record": f"board:{place}", "expr": text} for place, text in enumerate(asked)]
    (tmp_path / "board.yml").write_text(json.dumps({"groups": [{"name": "board", "rules": rules}]}))
    (tmp_path / "wrong.yml").write_text((DEPLOY / "alerts.yml").read_text().replace("rate(", "rat(", 1))
    assert promtool(DEPLOY / "alerts.yml") == promtool(tmp_path / "board.yml") == 0
    assert promtool(tmp_path / "wrong.yml") != 0, "the twin: no such function"


def test_the_board_shows_every_metric() -> None:
    board = json.loads((DEPLOY / "grafana.json").read_text())
    shown = set(re.findall(r"\bholdfast_\w+", json.dumps([p["targets"] for p in board["panels"]])))
    assert {re.sub("_(bucket|sum|count)$", "", name) for name in shown} == {
        f"holdfast_{name}" for name in KINDS
    }
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
