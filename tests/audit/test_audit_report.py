"""The registry of mechanisms and its report."""

from __future__ import annotations

import importlib
import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from laws import releases
from laws.judge import asked

import holdfast as hf
from holdfast.audit.audit_report import NOTICES, Report, audit_case, registry, run_all
from holdfast.audit.case import Case, one_by_one
from holdfast.audit.control_cases import controls
from holdfast.audit.session_cases import sessions
from holdfast.errors import InputError
from holdfast.noise.bits import ReplayedBits
from holdfast.noise.laplace import laplace_vector
from holdfast.session import release

small_database = importlib.import_module("holdfast.synthesis.small_database")
SURE = 1.0 - 1e-9


def noisy(scale: int, value: int, runs: int) -> np.ndarray:
    return value + laplace_vector(scale, runs, ReplayedBits(value))


HONEST = Case("honest", partial(noisy, 1), 0, 1, 1.0, runs=20_000)
LIAR = Case("liar", partial(noisy, 1), 0, 2, 1.0, runs=20_000)


def test_every_mechanism_of_the_package_keeps_its_promise() -> None:
    """With few runs each, so that it is quick; `holdfast audit` takes all of them."""
    cases = [case for case in registry() if case.origin == "holdfast"]
    report = run_all(cases=cases, effort=0.01, confidence=SURE)
    assert [row.name for row in report if row.violated] == []
    assert len({row.name for row in report}) == len(report) >= 60
    assert report.exit_status == 0


def test_every_control_is_caught() -> None:
    report = run_all(cases=controls(), effort=0.3, confidence=SURE)
    assert [row.name for row in report if not row.violated] == []
    assert [row.verdict for row in report] == ["caught"] * len(report)
    assert report.exit_status == 0


def test_a_broken_mechanism_turns_the_exit_status() -> None:
    assert run_all(cases=[HONEST], confidence=SURE).exit_status == 0
    assert run_all(cases=[HONEST, LIAR], confidence=SURE).exit_status == 1


def test_a_control_that_passes_turns_it_too_and_a_peer_never() -> None:
    asleep = Case("asleep", partial(noisy, 1), 0, 1, 1.0, runs=2000, origin="control")
    peer = Case("peer", partial(noisy, 1), 0, 2, 1.0, runs=20_000, origin="elsewhere")
    assert run_all(cases=[asleep]).exit_status == 1
    assert run_all(cases=[peer]).exit_status == 0
    assert run_all(cases=[peer]).rows[0].verdict == "VIOLATED"


def test_a_session_that_spends_three_times_its_claim_is_caught() -> None:
    """End to end, from text to number: the honest one passes, its twin does not."""

    def ask(epsilon: float, values: tuple[bool, ...]) -> float:
        table = hf.open({"a": np.array(values)}, hf.Schema(a=hf.Boolean()))
        session = table.session(epsilon=epsilon, target="table", queries=1)
        return float(session.fraction("a", epsilon=epsilon).value)

    low, high = (False, False), (False, True)
    honest, twin = (
        Case("session", one_by_one(partial(ask, epsilon)), low, high, 1.0, runs=500) for epsilon in (1.0, 3.0)
    )
    assert run_all(cases=[honest]).exit_status == 0
    assert run_all(cases=[twin]).exit_status == 1


def test_every_way_to_be_told_something_has_a_session_case() -> None:
    """Every public method of a session, every mechanism, version and search; and what stands above a session."""
    names = [case.name.removeprefix("session: ") for case in registry() if case.name.startswith("session: ")]
    silent = {
        "pay",
        "promise",
        "left",
        "opened",
        "report",
        "put",
        "close",
        "looking_up",
    }  # public facts, what the ledger holds, and the doors behind all questions
    for method in set(asked()) - silent:
        assert any(name.startswith(method.replace("_", " ")) for name in names), method
    for words in (
        "learn",
        "quality",
        "two rows",
        *releases.MECHANISMS,
        "runs",
        *small_database._SEARCHES,
        "of events",
    ):
        assert any(words in name for name in names), words
    for version in ("sparse vector, best", "sparse vector, lecture", "permute-and-flip", "by groups", "mwem"):
        assert any(version in name for name in names), version


def test_a_session_is_audited_against_what_it_was_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of a scale that is 4 times too small is caught, by a fifth of the case's runs."""
    honest = next(case for case in sessions() if case.name == "session: fraction, laplace")
    assert honest.epsilon == pytest.approx(2.0)
    few = honest.runs // 5
    assert not audit_case(honest, few).violated
    add = release.add_laplace
    monkeypatch.setattr(release, "add_laplace", lambda values, scale: add(values, scale / 4))
    assert audit_case(honest, few).verdict == "VIOLATED"


def test_it_states_its_power() -> None:
    honest, liar = run_all(cases=[HONEST, LIAR], confidence=SURE)
    assert 1.0 < honest.notices < 1.5
    assert f"x{honest.notices:.2f}" in str(Report((honest,)))
    assert NOTICES in str(Report((honest,)))
    assert f"| x{honest.notices:.2f} |" in Report((honest,)).to_markdown()
    assert " - " in Report((liar,)).to_markdown()


def test_it_tells_how_far_it_is() -> None:
    heard: list[tuple[str, int, int]] = []
    run_all(lambda *place: heard.append(place), cases=[HONEST, LIAR], effort=0.01)
    assert heard == [("honest", 0, 2), ("liar", 1, 2), ("", 2, 2)]


def test_it_prints_and_plots(tmp_path: Path) -> None:
    report = run_all(cases=[HONEST, LIAR], effort=0.5)
    assert "VIOLATED" in str(report)
    assert str(report).count("\n") == 3
    assert report.to_markdown().count("\n") == 4
    report.plot(tmp_path / "audit.png")
    assert (tmp_path / "audit.png").read_bytes()[:4] == b"\x89PNG"
    assert str(Report(())).startswith("mechanism")


def test_mechanisms_that_answer_one_by_one() -> None:
    assert one_by_one(lambda value: value + 1)(1, 3) == [2, 2, 2]


@pytest.mark.parametrize("effort", [0, -1.0, math.nan, math.inf, True, "much"])
def test_nonsense_is_refused(effort: float) -> None:
    with pytest.raises(InputError):
        run_all(cases=[HONEST], effort=effort)
