"""`holdfast demo leaderboard`: an ordinary board and a guarded one under attack, live."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.errors import BudgetError
from holdfast.holdout.attackers import Attack, Labels, World, hill_climbing, log_loss_oracle, majority_vote
from holdfast.holdout.leaderboard import Leaderboard
from holdfast.holdout.metric import log_loss
from holdfast.noise.bits import Bits, system_bits

if TYPE_CHECKING:
    from rich.console import Console

FRESH = 20_000
HONEST = 0.8
"""After the attack somebody submits a model that is really this good: the board must not be deaf."""

_DECIMALS = 5
_FAILURES = 5


@dataclass(slots=True)
class Race:
    """One attack on both boards: the best score shown after each submission, and the truth on fresh rows."""

    attack: str
    ordinary: list[float] = field(default_factory=list)
    guarded: list[float] = field(default_factory=list)
    width: float = 0.0
    """The certified half-width of the guarded board."""
    ordinary_fresh: float = 0.5
    guarded_fresh: float = 0.5
    honest: float = 0.5
    """What the guarded board then said of a model whose accuracy is really HONEST."""
    inside: bool = True
    """Whether every interval of the guarded board held the truth."""


def run(
    rows: int = 4000,
    submissions: int = 4000,
    *,
    picture: Path | str | None = None,
    bits: Bits | None = None,
    console: Console | None = None,
) -> tuple[Race, ...]:
    """Run the attacks in the terminal, write the picture if asked, and return what happened."""
    from rich.console import Console
    from rich.live import Live

    out = Console() if console is None else console
    out.print(
        f"[bold]A leaderboard under attack[/bold]: {rows:,} labels are fair coins, so no attacker's model "
        f"can do better than 0.50.\nEach submits {submissions:,} times to an ordinary and to a guarded board. "
        "The guarded one is Guess-and-Check: its intervals hold, its answers are not private.\n"
    )
    races = (Race("majority vote"), Race("hill climbing"))
    attacks = (majority_vote, hill_climbing)
    with Live(_shown(races, submissions), console=out, refresh_per_second=8) as live:
        for race, attack in zip(races, attacks, strict=True):
            for _ in contest(race, attack, rows, submissions, bits or system_bits()):
                live.update(_shown(races, submissions))
    for race in races:
        out.print(
            f"{race.attack}: the ordinary board says {race.ordinary[-1]:.3f}, on fresh data it is "
            f"{race.ordinary_fresh:.3f}; the guarded board says {race.guarded[-1]:.3f} ± {race.width:.3f}, "
            f"on fresh data it is {race.guarded_fresh:.3f}.\n  An honest model of accuracy {HONEST:.2f} then "
            f"scores {race.honest:.3f} ± {race.width:.3f} on the guarded board."
        )
    asked = min(submissions, -(-rows // 6))
    plain, safe = (oracle(rows, asked, guarded, bits or system_bits()) for guarded in (False, True))
    out.print(
        f"log-loss oracle: {asked:,} submissions read {plain:.1%} of the labels off the ordinary board and "
        f"{safe:.1%} off the guarded one, where guessing gets 50%."
    )
    if picture is not None:
        from holdfast.holdout.picture import draw

        draw(races, Path(picture))
        out.print(f"wrote {picture}")
    return races


def contest(
    race: Race, attack: Callable[[World, int], Attack], rows: int, submissions: int, bits: Bits
) -> Iterator[int]:
    """Play the attack against both boards on the same labels; yields now and then for the screen."""
    world = World(rows, FRESH, bits)
    labels, fresh = world.coins(rows), world.coins(FRESH)
    for guarded in (False, True):
        board = Leaderboard(labels, queries=submissions + 1, failures=_FAILURES, mode="guess-and-check")
        race.width = board.width
        climb, shown = attack(world, submissions), race.guarded if guarded else race.ordinary
        try:
            said = next(climb)
            while True:
                score = _ask(board, said, race) if guarded else _exact(said, labels)
                shown.append(max(score, shown[-1]) if shown else score)
                if len(shown) % max(1, submissions // 60) == 0:
                    yield len(shown)
                said = climb.send(score)
        except StopIteration as end:
            truth = float(np.mean(end.value() == fresh))
        except BudgetError:
            truth = 0.5
        if guarded:
            race.guarded_fresh = truth
            right = bits.integers_below(1000, rows) < round(1000 * HONEST)
            race.honest = _ask(board, np.where(right, labels, 1 - labels), race, HONEST)
        else:
            race.ordinary_fresh = truth
    yield submissions


def oracle(rows: int, submissions: int, guarded: bool, bits: Bits) -> float:
    """The share of labels that the log-loss attack reads right."""
    world = World(rows, 0, bits)
    labels = world.coins(rows)
    board = Leaderboard(labels, log_loss(), queries=submissions, failures=_FAILURES, mode="guess-and-check")
    attack = log_loss_oracle(world, submissions)
    with contextlib.suppress(BudgetError):
        try:
            said = next(attack)
            while True:
                exact = -np.log(np.where(labels == 1, said, 1.0 - said)).mean()
                said = attack.send(
                    board.submit("attacker", said).value if guarded else round(exact, _DECIMALS)
                )
        except StopIteration as end:
            return float(np.mean(end.value() == labels))
    return 0.5


def _ask(board: Leaderboard, said: Any, race: Race, truth: float = 0.5) -> float:
    answer = board.submit("somebody", said)
    race.inside = race.inside and answer.low <= truth <= answer.high
    return float(answer.value)


def _exact(said: Any, labels: Labels) -> float:
    """An ordinary board: the score on the test set, rounded as most boards do."""
    return round(float(np.mean(said == labels)), _DECIMALS)


def _shown(races: tuple[Race, ...], submissions: int) -> Any:
    from rich.table import Table

    grid = Table("attack", "submitted", "ordinary board", "guarded board", "truth", box=None)
    for column in grid.columns:
        column.no_wrap = True
    for race in races:
        done = max(len(race.ordinary), len(race.guarded))
        guarded = f"{_bar(race.guarded)} ± {race.width:.3f}" if race.guarded else ""
        grid.add_row(race.attack, f"{done:,}/{submissions:,}", _bar(race.ordinary), guarded, "0.50")
    return grid


def _bar(scores: list[float]) -> str:
    """The best score so far as a bar from 0.5 to 1."""
    if not scores:
        return ""
    full = round(10 * min(1.0, max(0.0, 2.0 * scores[-1] - 1.0)))
    return f"{'█' * full}{'·' * (10 - full)} {scores[-1]:.3f}"
