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
from mcp import Client, StdioServerParameters

from holdfast.errors import InputError
from holdfast.holdout import ReusableHoldout
from holdfast.holdout.mcp import server

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
        assert "unknown metric" in unknown["error"]
        await call(client, "score", predictions=LABELS.tolist())
        refused = await call(client, "score", predictions=LABELS.tolist())
        assert "fresh holdout" in refused["refused"]
        assert refused["looks_left"] == 0

    talk(server(holdout), conversation)


def test_the_server_runs_over_stdio(tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", LABELS)
    ReusableHoldout(LABELS, queries=2, state=tmp_path / "state").close()
    script = "from holdfast.holdout.command import holdout; holdout()"
    target = StdioServerParameters(
        command=sys.executable,
        args=["-c", script, "serve", str(tmp_path / "labels.npy"), "--state", str(tmp_path / "state")],
        env={"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "PATH": os.environ.get("PATH", "")},
    )

    async def conversation(client: Any) -> None:
        scored = await call(client, "score", predictions=LABELS.tolist())
        assert scored["looks_left"] == 1

    talk(target, conversation)
    with ReusableHoldout(LABELS, state=tmp_path / "state") as holdout:
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
