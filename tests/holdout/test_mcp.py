"""The MCP server: an agent scores through the official client and never sees a label."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcp import Client, StdioServerParameters
from oracles.statistics import FALSE_ALARM, binomial

from holdfast.errors import InputError, MechanismError
from holdfast.holdout import ReusableHoldout
from holdfast.holdout.guess import check_guess
from holdfast.holdout.mcp import server
from holdfast.holdout.metric import GRID
from holdfast.holdout.submission_file import SubmissionFolder

LABELS = np.random.default_rng(4).integers(0, 2, 500)


def talk(target: Any, conversation: Callable[[Any], Awaitable[None]]) -> None:
    async def run() -> None:
        async with Client(target) as client:
            await conversation(client)

    asyncio.run(run())


async def call(client: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    return dict(json.loads(result.content[0].text))


def test_an_agent_scores_checks_and_is_refused_at_the_end() -> None:
    holdout = ReusableHoldout(LABELS, queries=3)

    async def conversation(client: Any) -> None:
        tools = await client.list_tools()
        assert {tool.name for tool in tools.tools} == {"score", "check", "status"}
        status = await call(client, "status")
        assert (status["rows"], status["looks_left"]) == (500, 3)
        scored = await call(client, "score", predictions=LABELS.tolist(), key="first")
        assert scored["low"] <= 1.0 <= scored["high"] + 1e-9
        again = await call(client, "score", predictions=LABELS.tolist(), key="first")
        assert (again["value"], again["repeated"], again["looks_left"]) == (scored["value"], True, 2)
        checked = await call(client, "check", train_score=0.0, predictions=LABELS.tolist())
        assert checked["fine"] is False
        wrong = await call(client, "score", predictions=[1, 0])
        assert "500 rows" in wrong["error"]
        unknown = await call(client, "score", predictions=LABELS.tolist(), metric="nonsense")
        assert "for metric, got" in unknown["error"]
        await call(client, "score", predictions=LABELS.tolist())
        refused = await call(client, "score", predictions=LABELS.tolist())
        assert "fresh holdout" in refused["refused"]
        assert refused["looks_left"] == 0

    talk(server(holdout), conversation)


def test_the_server_runs_over_stdio(tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", LABELS)
    ReusableHoldout(LABELS, queries=2, ledger=tmp_path / "looks.sqlite").close()
    script = "from holdfast.holdout.command import holdout; holdout()"
    target = StdioServerParameters(
        command=sys.executable,
        args=[
            "-c",
            script,
            "serve",
            str(tmp_path / "labels.npy"),
            "--ledger",
            str(tmp_path / "looks.sqlite"),
        ],
        env={"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "PATH": os.environ.get("PATH", "")},
    )

    async def conversation(client: Any) -> None:
        scored = await call(client, "score", predictions=LABELS.tolist())
        assert scored["looks_left"] == 1

    talk(target, conversation)
    with ReusableHoldout(LABELS, ledger=tmp_path / "looks.sqlite") as holdout:
        assert holdout.looks_used == 1


def replies(holdout: ReusableHoldout) -> str:
    """Everything that the server says to an agent that tries right and wrong things."""
    told: list[str] = []

    async def conversation(client: Any) -> None:
        for predictions in (["plain"] * 500, ["plain"], [1] * 500):
            told.append(json.dumps(await call(client, "score", predictions=predictions)))
        told.append(json.dumps(await call(client, "status")))

    talk(server(holdout), conversation)
    assert len(told) == 4
    return " ".join(told)


def test_nothing_but_released_answers_leaves() -> None:
    labels = np.array(["canary-51", "plain"] * 250)
    assert "canary" not in replies(ReusableHoldout(labels, queries=2))


def test_an_error_that_quotes_a_label_would_be_caught() -> None:
    """The broken twin of the test above."""
    labels = np.array(["canary-51", "plain"] * 250)

    class Talkative(ReusableHoldout):
        def score(self, *arguments: Any, **more: Any) -> Any:
            raise InputError(f"expected something like {labels[0]}")

    assert "canary" in replies(Talkative(labels, queries=2))


def refusal_of(guarded: ReusableHoldout, **terms: Any) -> str:
    with pytest.raises(MechanismError) as refused:
        server(guarded, **terms)
    return str(refused.value)


@pytest.mark.parametrize("mode", ["discretised", "guess-and-check"])
def test_a_mode_that_is_not_private_is_served_on_the_owners_word_only(mode: str) -> None:
    holdout = ReusableHoldout(LABELS, queries=3, mode=mode)
    assert "not private" in refusal_of(holdout)
    told: list[dict[str, Any]] = []

    async def conversation(client: Any) -> None:
        told.append(await call(client, "status"))
        told.append(await call(client, "score", predictions=LABELS.tolist(), key="once"))
        told.append(await call(client, "score", predictions=LABELS.tolist(), key="once"))
        told.append(await call(client, "check", train_score=0.5, predictions=LABELS.tolist()))
        assert "not private" in client.instructions

    talk(server(holdout, private=False), conversation)
    assert all(reply["privacy"].startswith("not private") for reply in told)


def test_all_planned_looks_are_served_and_each_says_that_it_is_private() -> None:
    holdout = ReusableHoldout(LABELS, queries=60)

    async def conversation(client: Any) -> None:
        assert "private: rho" in client.instructions
        for left in reversed(range(60)):
            scored = await call(client, "score", predictions=LABELS.tolist())
            assert (scored["looks_left"], scored["privacy"][:12]) == (left, "private: rho")
        assert "refused" in await call(client, "score", predictions=LABELS.tolist())

    talk(server(holdout), conversation)


def labels_read(holdout: ReusableHoldout, looks: int, **terms: Any) -> int:
    """How many of the first labels an agent tells right, one a look, who knows the plan and the attack of p = 1/2.

    A row at p = 1 among p = 1/2 moves a Brier score by 1/n. Where a guess can be checked, it is placed so that it
    just stands for label 0 and fails for label 1; else the score is compared with the middle of the two.
    """
    plan, rows = holdout.design, holdout.rows
    one = (rows - 1) * GRID // 4
    zero = one + GRID
    read: list[int] = []

    async def conversation(client: Any) -> None:
        failed = 0
        for row in range(looks):
            said = [0.5] * rows
            said[row] = 1.0
            if plan.mode == "guess-and-check":
                low, high = 0.25, 1.0
                for _ in range(60):
                    middle = (low + high) / 2
                    stands = check_guess(plan, row + 1, failed, zero, middle) is None
                    low, high = (middle, high) if stands else (low, middle)
                found = await call(client, "check", train_score=low, predictions=said, metric="brier")
                failed += not found["fine"]
                read.append(int(not found["fine"]))
            else:
                found = await call(client, "score", predictions=said, metric="brier")
                read.append(int(found["value"] < (one + zero) / 2 / rows / GRID))

    talk(server(holdout, **terms), conversation)
    return int(np.sum(np.array(read) == LABELS[:looks]))


def test_an_agent_that_reads_labels_one_a_look_does_no_better_than_guessing() -> None:
    """One look moves the law of an answer by a rho of a few ten-thousandths: a guess is right in 51 of 100."""
    right = labels_read(ReusableHoldout(LABELS, queries=100), 100)
    assert binomial(right, 100, 0.5) > FALSE_ALARM


def test_the_same_agent_reads_every_label_where_answers_are_not_private() -> None:
    """The broken twin serves Guess-and-Check."""
    holdout = ReusableHoldout(LABELS, queries=100, mode="guess-and-check")
    assert labels_read(holdout, 40, private=False) == 40
    assert binomial(40, 40, 0.5) < FALSE_ALARM


def test_an_agent_scores_files_below_the_declared_folder_by_ids(tmp_path: Path) -> None:
    ids = np.array([f"row{i}" for i in range(500)])
    order = np.random.default_rng(1).permutation(500)
    text = "\n".join(f"{ids[i]},{LABELS[i]}" for i in order)
    (tmp_path / "sub.csv").write_text(f"id,prediction\n{text}\n")
    (tmp_path / "short.csv").write_text("id,prediction\nrow1,1\n")
    (tmp_path / "link.csv").symlink_to("/etc/passwd")
    holdout = ReusableHoldout(LABELS, queries=5, mode="gaussian")

    async def conversation(client: Any) -> None:
        tools = await client.list_tools()
        assert {tool.name for tool in tools.tools} == {
            "score",
            "check",
            "status",
            "score_file",
            "compare_files",
        }
        assert (await call(client, "status"))["ids"] is True
        scored = await call(client, "score_file", path="sub.csv")
        assert scored["low"] > 0.6
        assert scored["looks_left"] == 4
        same = await call(client, "compare_files", first="sub.csv", second="sub.csv")
        assert same["low"] <= 0 <= same["high"]
        for wrong in ("short.csv", "link.csv", "/etc/passwd", "../x.csv", "none.csv"):
            refused = await call(client, "score_file", path=wrong)
            assert "expected" in refused["error"]
            assert "root" not in refused["error"]
        assert (await call(client, "status"))["looks_left"] == 3

    talk(server(holdout, files=SubmissionFolder(tmp_path, ids)), conversation)


def test_where_the_server_starts_it_says_who_can_read_the_labels(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from holdfast.holdout.command import holdout as command

    told = CliRunner().invoke(command, ["serve", str(tmp_path / "none.npy")])
    assert "under this user can read the labels" in told.stderr
    assert told.exit_code == 1
