"""Tests mirror the sources: who knows the file of a source knows the file of its tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = {"house", "laws", "docs"}
"""Folders of tests for no one room: the house itself, what every release keeps, what the pages say."""

LAWS = {
    "data/agreement": "one table through every door has the same codes",
    "data/laws": "every source",
    "ledger/agreement": "the same operations in every ledger",
    "ledger/laws": "every ledger",
    "local/epsilon": "every oracle's loss, exactly",
    "privacy/logistic": "logistic noise: its exact divergences against its two rules",
    "local/unbiased": "every oracle's expectation and variance, exactly",
    "ledger/turn": "every ledger: who waits, and who goes first",
    "mechanisms/laws": "every mechanism",
    "noise/choice_tree": "the walker that computes the law of whatever draws",
    "noise/fork": "whatever draws, in a forked child",
    "noise/laws": "every sampler",
    "privacy/range": "whatever has a loss in a range: its worst laws against what mu squared counts",
    "privacy/rule_formulas": "every rule against its formula in sixty digits",
    "session/bad_input": "every question: refused before anything is charged",
    "session/extremes": "every question, however large or small its numbers are",
    "session/mu_squared": "every kind of release in a session whose plan counts mu squared",
    "session/memory": "whatever a session keeps",
    "session/replayed": "every charge and every answer while a test replays noise (desk/replayed.py)",
    "session/unit_bad_input": "tables around one unit: refused, or by their rule, at every door",
    "session/wrong_kinds": "every method and each of its parameters",
    "validity/published": "every published bound and its premises",
    "validity/tables": "every bound against the theory's printed numbers",
}
"""What every implementer keeps, or all of them together; of whom or of what."""

JOURNEYS = {
    "audit/svt_variants": "the auditor before the six published sparse vectors",
    "data/unit_ingest": "from events in any order by a process that is killed to a store sorted by unit",
    "holdout/ledger": "a holdout's looks through verify, export, move and acknowledge",
    "holdout/adapters": "where people already work: scikit-learn, Optuna, logs, test suites",
    "ledger/crash": "killed at every step",
    "ledger/race": "two processes and the last unit",
    "session/pure_meter": "pure sessions on the meter, to their end",
    "mechanisms/svt_variants": "the six published sparse vectors, for the auditor's journey",
    "service/aside": "units that are set aside at a gateway, from a registration to an answer",
    "service/aside_doors": "the same by stores, servers, the client, the page and the machine",
    "service/crash": "killed at every step of an answer",
    "service/mishaps": "a full disk and a clock that is set back, from the request to the ledger",
    "service/lookups": "public tables, from a registration to an answer",
    "service/work_lists": "what is asked at once, from its steps to the ledger, beside each alone",
    "service/hosts": "two gateways over one database, behind a proxy",
    "service/fuzz": "whatever may be sent over HTTP",
    "service/page_axe": "every page before axe-core",
    "service/page_browser": "a visitor, an owner and an attacker in a browser",
    "session/advice": "from a refusal by way of its words to an answer",
    "session/derived": "from a question by all its sums, told together, to an interval (query/derived.py)",
    "session/difference": "from two conditions by their disagreement to what later answers pay for",
    "session/left_out": "from the opening of a session by its plan to its last answer",
    "session/moments": "from moments and times of day by every door to answers that are such (query/temporal.py)",
    "session/population": "from what was spent to intervals of the population",
    "session/rare": "from a plan for rare events by what each answer tells to the next interval",
    "session/units": "people with many rows in several tables, from the opening to answers of every kind",
    "session/statistic": "a function of one's own, from the call to the answer",
    "weights/holders": "several holders of one name of weights",
    "weights/potential": "the potential argument over weights, updates and terms",
    "weights/when_spent": "weights that go on while they can: from the session through the answerer to the ledger",
    "weights/universe": "universe and regions (query/) against weights and cells",
}
"""What goes through several files on purpose; from where to where."""

THREAT = re.compile(r'"""(?:Row \d+|Rows [\d, ]+ and \d+) of docs/threats\.md: ')


def is_mirror(test: Path, sources: Path) -> bool:
    """Whether `room/test_x.py` stands for `room/x.py`, `room/_x.py`, the folder `room/x` or a file in one."""
    room, name = sources / test.parent.name, test.stem.removeprefix("test_")
    if any(
        place.exists() for place in (room / f"{name}.py", room / f"_{name}.py", room / name / "__init__.py")
    ):
        return True
    folder, _, inside = name.partition("_")
    return bool(inside) and (room / folder / f"{inside}.py").exists()


def strays(tests: Path, sources: Path, threats: str, known: set[str]) -> set[str]:
    """The files of tests that stand for no source and for no row of the threats, and are not known either."""
    found = set()
    for test in tests.glob("*/test_*.py"):
        place = f"{test.parent.name}/{test.stem.removeprefix('test_')}"
        threat = f"tests/{test.parent.name}/{test.name}" in threats and THREAT.match(test.read_text())
        if test.parent.name not in OUTSIDE and not threat and not is_mirror(test, sources):
            found.add(place)
    return found ^ known


def test_every_test_names_its_source() -> None:
    threats = (ROOT / "docs" / "threats.md").read_text()
    assert strays(ROOT / "tests", ROOT / "src" / "holdfast", threats, {*LAWS, *JOURNEYS}) == set()
    assert not LAWS.keys() & JOURNEYS.keys()


@pytest.fixture
def small(tmp_path: Path) -> Path:
    for place in (
        "src/room/answer.py",
        "src/room/_replay.py",
        "src/room/page/__init__.py",
        "src/room/page/forms.py",
    ):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).touch()
    (tmp_path / "tests" / "room").mkdir(parents=True)
    for name in ("answer", "replay", "page", "page_forms", "laws"):
        (tmp_path / "tests" / "room" / f"test_{name}.py").touch()
    (tmp_path / "tests" / "room" / "test_money.py").write_text('"""Row 4 of docs/threats.md: caps hold."""')
    return tmp_path


def stray_in(small: Path) -> set[str]:
    return strays(small / "tests", small / "src", "`tests/room/test_money.py::test_x`", {"room/laws"})


def test_a_file_that_is_named_after_a_review_would_be_noticed(small: Path) -> None:
    assert stray_in(small) == set()
    (small / "tests" / "room" / "test_review.py").touch()
    (small / "tests" / "room" / "test_poverty.py").write_text(
        '"""Row 4 of docs/threats.md: nobody says so."""'
    )
    assert stray_in(small) == {"room/review", "room/poverty"}


def test_a_source_that_is_gone_and_a_reason_that_is_not_needed_would_be_noticed(small: Path) -> None:
    (small / "src" / "room" / "answer.py").unlink()
    (small / "src" / "room" / "laws.py").touch()
    assert stray_in(small) == {"room/answer", "room/laws"}
