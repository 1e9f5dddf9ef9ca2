"""A thousand looks by an agent that trains a model and keeps what scores better, over MCP, against an ordinary holdout.

Two hundred features are noise and three carry a little signal. In each round the agent takes a gradient step on a few
of its training rows and a random one, writes the predictions to a file, has it scored (`score_file`), and keeps the
step if the score went up. The truth is the score on 100,000 fresh rows. The ordinary holdout tells exact scores and
claims the usual 95% interval; ours runs behind its MCP server.
"""

from __future__ import annotations

import asyncio
import json
import math
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.holdout import ReusableHoldout
from holdfast.holdout.mcp import server
from holdfast.holdout.submission_file import SubmissionFolder

Row = dict[str, object]
Score = Callable[[NDArray[np.int64]], Awaitable[tuple[float, float, float]]]
FEATURES, SIGNAL = 203, 3


@dataclass
class World:
    """Rows to train on, to hold out, and fresh ones; labels follow three of the features a little."""

    seed: int
    held: int
    features: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    labels: dict[str, NDArray[np.int64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        draw = np.random.default_rng([17, self.seed])
        for name, rows in (("train", 200), ("held", self.held), ("fresh", 100_000)):
            features = draw.normal(size=(rows, FEATURES))
            chance = 1 / (1 + np.exp(-0.2 * features[:, :SIGNAL].sum(axis=1)))
            self.features[name] = features
            self.labels[name] = (draw.random(rows) < chance).astype(np.int64)

    def said(self, name: str, weights: NDArray[np.float64]) -> NDArray[np.int64]:
        return (self.features[name] @ weights > 0).astype(np.int64)

    def truth(self, weights: NDArray[np.float64]) -> float:
        return float(np.mean(self.said("fresh", weights) == self.labels["fresh"]))


async def climb(
    world: World, looks: int, score: Score
) -> tuple[list[tuple[float, float, float]], NDArray[np.float64]]:
    """The best score told after each look, with its interval, and the weights that had it."""
    draw = np.random.default_rng([18, world.seed])
    weights, best, told = draw.normal(size=FEATURES) / 10, (-1.0, 0.0, 1.0), []
    train, labels = world.features["train"], world.labels["train"]
    for _ in range(looks):
        some = draw.integers(0, len(labels), 16)
        wrong = labels[some] - 1 / (1 + np.exp(-train[some] @ weights))
        step = 0.2 * train[some].T @ wrong / 16 + 0.15 * draw.normal(size=FEATURES)
        found = await score(world.said("held", weights + step))
        if found[0] > best[0]:
            best, weights = found, weights + step
        told.append(best)
    return told, weights


def ordinary(world: World) -> Score:
    """Exact scores with the interval that people put around them."""

    async def score(said: NDArray[np.int64]) -> tuple[float, float, float]:
        value = float(np.mean(said == world.labels["held"]))
        reach = 1.96 * math.sqrt(value * (1 - value) / len(said))
        return value, value - reach, value + reach

    return score


async def guarded(world: World, looks: int) -> tuple[list[tuple[float, float, float]], NDArray[np.float64]]:
    """The same climber before our server; predictions travel as files."""
    from mcp import Client

    with (
        tempfile.TemporaryDirectory() as folder,
        ReusableHoldout(world.labels["held"], queries=looks) as holdout,
    ):
        path = Path(folder) / "predictions.npy"
        async with Client(server(holdout, files=SubmissionFolder(folder))) as client:

            async def score(said: NDArray[np.int64]) -> tuple[float, float, float]:
                np.save(path, said)
                answer = await client.call_tool("score_file", {"path": path.name})
                told: dict[str, Any] = json.loads(answer.content[0].text)
                return told["value"], told["low"], told["high"]

            return await climb(world, looks, score)


def played(held: int, looks: int, seed: int) -> dict[str, tuple[list[tuple[float, float, float]], float]]:
    """Of both holdouts what was told after each look, and the truth of the last model."""
    world = World(seed, held)
    both = {
        "ordinary": asyncio.run(climb(world, looks, ordinary(world))),
        "ours": asyncio.run(guarded(world, looks)),
    }
    return {name: (told, world.truth(weights)) for name, (told, weights) in both.items()}


def rows(quick: bool = False) -> list[Row]:
    """How each ended, for several agents."""
    found: list[Row] = []
    held, looks = (2000, 60) if quick else (10_000, 1000)
    for seed in range(1 if quick else 5):
        for name, (told, truth) in played(held, looks, seed).items():
            value, low, high = told[-1]
            found.append(
                {
                    "agent": seed, "holdout": name, "rows": held, "looks": looks, "says": round(value, 4),
                    "low": round(low, 4), "high": round(high, 4), "truth": round(truth, 4),
                    "inside": low <= truth <= high,
                }
            )  # fmt: skip
    return found


def plot(found: list[Row], folder: Path) -> list[str]:
    """The first agent before both holdouts, look by look."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    for axis, (name, (told, truth)) in zip(axes, played(10_000, 1000, 0).items(), strict=True):
        values, lows, highs = (np.array(part) for part in zip(*told, strict=True))
        axis.fill_between(range(1, 1001), lows, highs, alpha=0.25, label="its interval")
        axis.plot(range(1, 1001), values, label="best score told")
        axis.axhline(truth, color="black", linestyle="--", label="the model on fresh rows")
        axis.set(
            title=f"{name} holdout" if name == "ordinary" else "reusable holdout over MCP", xlabel="looks"
        )
    axes[0].set_ylabel("accuracy")
    axes[0].legend(loc="lower right", fontsize=8)
    figure.tight_layout()
    (folder / "pictures").mkdir(exist_ok=True)
    figure.savefig(folder / "pictures" / "agent.png", dpi=120)
    plt.close(figure)
    return ["pictures/agent.png"]
