"""The evidence script: it runs, resumes, repeats itself, and condemns what it should."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripts live beside the package, not in it."""
    monkeypatch.syspath_prepend(str(ROOT))


def run(folder: Path, *more: str) -> str:
    command = [sys.executable, str(ROOT / "evidence" / "run.py"), "--scale", "0.003", "--audit", "0"]
    command += ["--processes", "1", "--only", "single-adaptive", "--cache", str(folder / "cache"), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_runs_resumes_and_repeats_itself(tmp_path: Path, evidence: None) -> None:
    from evidence.cells import cells

    few = ("--only", "coverage.single-adaptive")
    run(tmp_path, *few, "--output", str(tmp_path / "first"))
    kept = sorted((tmp_path / "cache").rglob("*.json"))
    assert len(kept) == len([cell for cell in cells(0.003) if "coverage.single-adaptive" in cell.key])
    kept[0].unlink()
    marked = json.loads(kept[1].read_text())
    marked[0][0] = 0.987654  # a finished job must be read, not played again
    kept[1].write_text(json.dumps(marked))
    run(tmp_path, *few, "--output", str(tmp_path / "second"))
    first, second = ((tmp_path / name / "evidence.md").read_text() for name in ("first", "second"))
    changed = [line for line in second.splitlines() if line not in first.splitlines()]
    assert len(changed) == 1
    assert "0.988" in changed[0]
    assert (tmp_path / "first" / "evidence-coverage.png").exists()


def test_wrong_results_are_condemned(evidence: None) -> None:
    """Twins: naive answers that hold, and Gaussian answers that miss a tenth of the time."""
    from evidence.cells import Cell
    from evidence.summary import Summary, verdicts

    def summary(answerer: str, misses: int, runs: int = 1000) -> Any:
        games = [[0.3 if i < misses else 0.1, 0.1, 0.2, 5.0] for i in range(runs)]
        return Summary.of(Cell("coverage", "boosting", answerer, 100, 5, runs), games)

    assert verdicts([summary("naive", 1000), summary("gaussian", 0), summary("gaussian", 50)]) == []
    assert len(verdicts([summary("naive", 30)])) == 1
    assert len(verdicts([summary("gaussian", 100)])) == 1
    assert summary("gaussian", 0).high == pytest.approx(0.0037, abs=1e-4)


def test_the_fingerprint_follows_the_code_and_not_its_comments(tmp_path: Path, evidence: None) -> None:
    from evidence.cache import fingerprint

    room = tmp_path / "noise"
    room.mkdir()

    def written(text: str) -> str:
        (room / "a.py").write_text(text)
        return fingerprint(tmp_path)

    assert written("def f():\n    '''One.'''\n    return 1\n") == written(
        "def f():\n    '''Two.'''\n    return 1  # why\n"
    )
    assert written("def f():\n    return 1\n") != written("def f():\n    return 2\n")


def test_every_attack_and_mechanism_is_played_a_thousand_times(evidence: None) -> None:
    from evidence.cells import cells, jobs
    from holdfast.audit.overfitting import ANSWERERS, ATTACKS

    full = [cell for cell in cells() if cell.experiment == "coverage"]
    assert {(cell.attack, cell.answerer) for cell in full} == {(a, m) for a in ATTACKS for m in ANSWERERS}
    assert min(cell.runs for cell in full) >= 1000
    assert sum(job.count for job in jobs(full)) == sum(cell.runs for cell in full)


def test_exact_answers_leave_the_plan_under_attack_and_planned_ones_do_not(evidence: None) -> None:
    """Ten games each. The twin has a hundredth of the noise beside the same half-width, and leaves it."""
    from evidence.attacks import Mode, Rows, modes, play

    draw, found = np.random.default_rng(3), modes()
    games = [Rows.drawn(draw, 500) for _ in range(10)]
    width = found["a plain session"].places.width
    assert sum(play(found["exact (naive)"], rows).error > width for rows in games) > 5
    for name, mode in found.items():
        outcomes = [play(mode, rows) for rows in games]
        assert sum(o.last or bool(o.any) for o in outcomes) <= 2, name
    places = found["a plain session"].places
    quiet = replace(places, epochs=tuple(replace(e, noise=e.noise / 10**4) for e in places.epochs))
    assert sum(play(Mode(quiet), rows).last for rows in games) > 3


def test_tests_keep_their_level_where_the_analyst_looks_for_what_differs(evidence: None) -> None:
    """Ten of the sessions of evidence/nulls.py: true nulls, chosen by the answers. The broken twin, which is about the
    rows on which the choice was made, rejects them."""
    from evidence.nulls import played

    assert not any(any(played(seed, "population")) for seed in range(10))
    assert sum(all(played(seed, "table")) for seed in range(10)) >= 8
