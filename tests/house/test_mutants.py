"""The tool that plants faults: it finds them all, kills what a test notices, and lets survive what none does."""

from __future__ import annotations

import fnmatch
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from mutants import run as mutants_run  # noqa: E402
from mutants.__main__ import report  # noqa: E402
from mutants.listed import HARMLESS, LISTED, is_listed, names, reason  # noqa: E402
from mutants.plant import SOURCES, Function, faults, faulty_code, functions  # noqa: E402
from mutants.run import Verdict  # noqa: E402

LAPLACE = Function(SOURCES / "privacy" / "rule.py", "_laplace")
GROUP = Function(SOURCES / "privacy" / "rule.py", "_group_pure")


def everything() -> list[Function]:
    return [function for file in sorted(SOURCES.rglob("*.py")) for function in functions(file)]


def test_faults_of_a_function_are_found_and_compiled(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    file.write_text(
        "def f(x: int, y: float = 2.0) -> float:\n"
        '    """Words 3 + 4."""\n'
        "    if x < 3 and not y:\n"
        '        raise ValueError(f"{x + 1}")\n'
        "    return min(x * 2.5, -y)\n"
    )
    function = Function(file, "f")
    found = [(fault.before, fault.after) for fault in faults(function)]
    assert found == [
        ("x < 3 and (not y)", "x < 3 or not y"),
        ("x < 3", "x >= 3"),
        ("3", "4"),
        ("3", "2"),
        ("not y", "y"),
        ("raise ValueError(f'{x + 1}')", "pass"),
        ("min", "max"),
        ("x * 2.5", "x / 2.5"),
        ("2.5", "5.0"),
        ("-y", "y"),
    ]
    for fault in faults(function):
        assert faulty_code(fault).co_qualname == "f"


def test_every_listed_pattern_names_a_function_and_every_reason_a_fault() -> None:
    known = everything()
    written = [str(function) for function in known]
    for pattern in LISTED:
        assert fnmatch.filter(written, pattern), pattern
    planted = [fault for function in known if is_listed(function) for fault in faults(function)]
    assert set(HARMLESS) <= {name for fault in planted for name in names(fault)}
    assert len([fault for fault in planted if reason(fault)]) == len(HARMLESS), "a number tells them apart"


def test_a_fault_is_killed_by_a_test_that_looks_and_survives_one_that_does_not(tmp_path: Path) -> None:
    tests = {"test_a_rule_is_its_theorem": LAPLACE, "test_every_rule_has_a_case": GROUP}
    page, status = planted(tmp_path, tests, patience=60)
    survivors = len(faults(GROUP))
    assert f"| listed functions | {1 + survivors} | 1 | 0 | {survivors} | 0 | 0 |" in page
    assert status == 1 and len(json.loads((tmp_path / "kills").read_text())) == 1


def test_a_run_that_is_ended_for_its_time_is_no_kill(tmp_path: Path) -> None:
    page, status = planted(tmp_path, {"test_a_rule_is_its_theorem": LAPLACE}, patience=0)
    assert "| listed functions | 1 | 0 | 0 | 0 | 1 | 0 |" in page
    assert status == 1 and not (tmp_path / "kills").exists()


def planted(folder: Path, tests: dict[str, Function], patience: int) -> tuple[str, int]:
    """(the page, the exit status) of a run in which each test is all that is known to reach its function."""
    touched = {
        f"tests/privacy/test_rule_formulas.py::{test}": {"seconds": 0.0, "functions": [str(function)]}
        for test, function in tests.items()
    }
    (folder / "touched.main").write_text(json.dumps(touched))
    command = [sys.executable, "-m", "mutants", "--only", ",".join(map(str, tests.values())), "--share", "0"]
    command += ["--patience", str(patience), "--processes", "1"]
    ran = subprocess.run(
        [*command, "--touched", str(folder / "touched"), "--cache", str(folder / "kills")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
    )
    return ran.stdout + ran.stderr, ran.returncode


def test_a_listed_fault_that_survives_fails_the_run() -> None:
    (fault,) = faults(LAPLACE)
    for outcome, failed in (("killed", False), ("survived", True), ("timed out", True), ("unreached", True)):
        page, broken = report([Verdict(fault, outcome, 1)], 0, 0, 0.0, "x")
        assert broken is failed and (str(fault) in page) is failed


def test_what_a_test_calls_is_seen(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(
        "from holdfast.validity.splitting import splitting\n\n\n"
        "def test_it() -> None:\n    assert splitting(100, 2, 0.05) < 1\n"
    )
    places = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    alone = {name: value for name, value in os.environ.items() if name != "PYTEST_XDIST_WORKER"}
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "mutants.touch", "-p", "no:cacheprovider", "test_one.py"],
        cwd=tmp_path, check=True, capture_output=True,
        env=alone | {"MUTANTS_TOUCHED": str(tmp_path / "touched"), "PYTHONPATH": places},
    )  # fmt: skip
    ((name, seen),) = json.loads((tmp_path / "touched.main").read_text()).items()
    assert name == "test_one.py::test_it" and not seen["failed"]
    assert {"validity/splitting:splitting", "validity/hoeffding:hoeffding"} <= set(seen["functions"])


def test_what_no_test_reaches_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # and back: who judges goes where the sources are
    found = list(mutants_run.judge(faults(GROUP), mutants_run.Tests([])))
    assert {verdict.outcome for verdict in found} == {"unreached"} and len(found) == len(faults(GROUP))
