"""The rule that says whether a gateway was flat over a day: it lets noise pass, and finds what leaks."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

LEAKY = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}]
from evidence.fast_clock import hasten
hasten(float(sys.argv.pop(1)))
from holdfast.cli import main
from holdfast.service import envelope
kept, note = [], envelope.note
def leaking(*given, **named):
    kept.append((open("/dev/null"), bytes(range(256)) * 1000))
    note(*given, **named)
envelope.note = leaking
main()
"""
"""A gateway that keeps a file and a quarter of a megabyte of each request."""


@pytest.fixture
def soak(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script lives beside the package, not in it."""
    monkeypatch.syspath_prepend(str(ROOT))
    from evidence import soak

    return soak


def minutes(soak: Any, **growing: float) -> list[Any]:
    """An hour whose measures go up and down, and grow by so much a minute."""
    made = []
    for place in range(60):
        odd = (place * 7) % 5 - 2
        own = 150 + 0.5 * odd + place * growing.get("own", 0)
        handles = 230 + (place % 2) + int(place * growing.get("handles", 0))
        slowest = 0.2 + 0.01 * odd + place * growing.get("seconds", 0) + (1.0 if place in (20, 40) else 0)
        one = soak.Minute(
            [0.1, slowest], Counter(new=2), Counter(), own, 200.0, handles, place * 1000, 1.0, 1.0
        )
        made.append(one)
    return made


def test_noise_and_odd_minutes_are_flat(soak: Any) -> None:
    assert soak.verdict(minutes(soak)) == []


@pytest.mark.parametrize(
    ("leak", "said"),
    [({"own": 0.3}, "own MB"), ({"handles": 0.1}, "handles"), ({"seconds": 0.002}, "p99 ms")],
)
def test_what_grows_is_found(soak: Any, leak: dict[str, float], said: str) -> None:
    assert [found.split(" grew")[0] for found in soak.verdict(minutes(soak, **leak))] == [said]


def test_what_went_wrong_is_told(soak: Any) -> None:
    hour = minutes(soak)
    hour[3].wrong["new: 503 unavailable"] += 2
    assert soak.verdict(hour) == ["2 times new: 503 unavailable"]


def test_a_gateway_that_leaks_is_caught_and_ours_keeps_no_handle(soak: Any, tmp_path: Path) -> None:
    """The same short day of both: what was told is what was charged, tokens end, and the log is moved away."""
    grew: dict[str, dict[str, float]] = {}
    said: list[str] = []
    for name, program in {"ours": [], "leaky": [sys.executable, "-c", LEAKY]}.items():
        folder = tmp_path / name
        owner, people = soak.prepare(folder)

        async def day(folder: Path, owner: str, people: list[str], program: list[str]) -> Any:
            with soak.serving(folder, 240, program) as server:
                return await soak.soak(
                    server, soak.Load(server.port, owner, people, connections=8), 60, 20, 0.25
                )

        found, wrong = asyncio.run(day(folder, owner, people, program))
        assert wrong == [], "all was charged that was told"
        assert not sum((one.wrong for one in found), Counter[str]())
        assert sum((one.kinds for one in found), Counter[str]())["token ended"] > 0
        assert (folder / "gateway.log.1").read_text() and (folder / "gateway.log").read_text()
        grew[name] = {measure: by for measure, (_, by, most) in soak.growths(found).items()}
        said = soak.verdict(found)
    assert any(one.startswith("handles") for one in said), "the leaky one's"
    # A short day is still warming up: threads that come under load open a few files each, and keep them.
    for measure, times in (("handles", 8), ("own MB", 4)):
        assert grew["leaky"][measure] > times * abs(grew["ours"][measure])
    assert grew["leaky"]["handles"] > 100


def test_a_ledger_is_filled_by_many_and_what_grows_too_much_is_told(tmp_path: Path, soak: Any) -> None:
    from evidence.large_ledger import Measured, fill
    from holdfast.ledger import SqliteLedger, verify

    soak.prepare(tmp_path / "server")
    for entries in (70, 100):
        fill(tmp_path / "server", entries)
    found = SqliteLedger(tmp_path / "server/data/people.hf/ledger.sqlite", tmp_path / "server/anchors")
    assert verify(found).answered == 100 and {found.totals(one.name).entries for one in found.accounts()} <= {
        4,
        5,
    }
    found.close()
    small = Measured(100, *([1.0] * 9))
    assert Measured(1000, 2.0, 2.0, 2.0, 15.0, 1.5, 15.0, 1.5, 15.0, 1.5).problems(small) == []
    slow = Measured(1000, 2.1, 1.0, 1.0, 15.1, 1.0, 1.0, 1.6, 1.0, 1.0).problems(small)
    assert [one.split(" grew")[0] for one in slow] == ["start_s", "answers_s", "verify_mb"]


def test_a_command_is_charged_with_its_own_memory_alone(tmp_path: Path, soak: Any) -> None:
    """The twin is what the system says of a child: in it is what its parent had, before it became another program."""
    from evidence.large_ledger import _command

    soak.prepare(tmp_path / "server")
    ledger = tmp_path / "server/data/people.hf/ledger.sqlite"
    ballast = bytearray(b"x" * 300 * 2**20)
    for verb in ("verify", "export"):
        assert 20 < _command(verb, ledger, tmp_path / "server")[1] < 200
    started = os.posix_spawn(sys.executable, [sys.executable, "-c", ""], os.environ)
    assert os.wait4(started, 0)[2].ru_maxrss / 1024 > len(ballast) / 2**20
