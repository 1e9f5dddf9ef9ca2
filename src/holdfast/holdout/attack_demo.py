"""`holdfast demo leaderboard`: an ordinary board and a guarded one under attack, live."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import BudgetError
from holdfast.holdout.attackers import World, log_loss_oracle
from holdfast.holdout.leaderboard import Leaderboard
from holdfast.holdout.metric import log_loss
from holdfast.holdout.race import ATTACKS, DECIMALS, FAILURES, HONEST, Race
from holdfast.noise.bits import Bits, system_bits


def run(rows: int, submissions: int, picture: Path | None) -> None:
    """Run the attacks in the terminal, and write the picture if asked."""
    from rich.console import Console
    from rich.live import Live

    out = Console()
    out.print(
        f"[bold]A leaderboard under attack[/bold]: {rows:,} labels are fair coins, so no attacker's model "
        f"can do better than 0.50.\nEach submits {submissions:,} times to an ordinary and to a guarded board. "
        "The guarded one is Guess-and-Check: its intervals hold, its answers are not private.\n"
    )
    races = tuple(Race(attack, rows, submissions) for attack in ATTACKS)
    with Live(_shown(races), console=out, refresh_per_second=8) as live:
        for race in races:
            while race.step(max(1, submissions // 60)):
                live.update(_shown(races))
            race.end()
        live.update(_shown(races))
    for race in races:
        out.print(
            f"{_name(race)}: the ordinary board says {race.ordinary[-1]:.3f}, on fresh data it is "
            f"{race.ordinary_fresh:.3f}; the guarded board says {race.guarded[-1]:.3f} ± {race.width:.3f}, "
            f"on fresh data it is {race.guarded_fresh:.3f}.\n  An honest model of accuracy {HONEST:.2f} then "
            f"scores {race.honest:.3f} ± {race.width:.3f} on the guarded board."
        )
    asked = min(submissions, -(-rows // 6))
    plain, safe = (oracle(rows, asked, guarded, system_bits()) for guarded in (False, True))
    out.print(
        f"log-loss oracle: {asked:,} submissions read {plain:.1%} of the labels off the ordinary board and "
        f"{safe:.1%} off the guarded one, where guessing gets 50%."
    )
    if picture is not None:
        from holdfast.holdout.picture import draw

        draw(races, picture)
        out.print(f"wrote {picture}")


def oracle(rows: int, submissions: int, guarded: bool, bits: Bits) -> float:
    """The share of labels that the log-loss attack reads right."""
    world = World(rows, 0, bits)
    labels = world.coins(rows)
    board = Leaderboard(labels, log_loss(), queries=submissions, failures=FAILURES, mode="guess-and-check")
    attack = log_loss_oracle(world, submissions)
    with contextlib.suppress(BudgetError):
        try:
            said = next(attack)
            while True:
                exact = -np.log(np.where(labels == 1, said, 1.0 - said)).mean()
                said = attack.send(
                    board.submit("attacker", said).value if guarded else round(exact, DECIMALS)
                )
        except StopIteration as end:
            return float(np.mean(end.value() == labels))
    return 0.5


def _shown(races: tuple[Race, ...]) -> Any:
    from rich.table import Table

    grid = Table("attack", "submitted", "ordinary board", "guarded board", "truth", box=None)
    for column in grid.columns:
        column.no_wrap = True
    for race in races:
        guarded = f"{_bar(race.guarded)} ± {race.width:.3f}" if race.guarded else ""
        submitted = f"{race.done:,}/{race.submissions:,}"
        grid.add_row(_name(race), submitted, _bar(race.ordinary), guarded, "0.50")
    return grid


def _name(race: Race) -> str:
    return race.attack.replace("-", " ")


def _bar(scores: list[float]) -> str:
    """The best score so far as a bar from 0.5 to 1."""
    if not scores:
        return ""
    full = round(10 * min(1.0, max(0.0, 2.0 * scores[-1] - 1.0)))
    return f"{'█' * full}{'·' * (10 - full)} {scores[-1]:.3f}"
