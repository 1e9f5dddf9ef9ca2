"""The demo shows what it claims: the ordinary board climbs, the guarded one stays, both are worth 1/2."""

from __future__ import annotations

import math

import numpy as np
import pytest

from holdfast.holdout.attack_demo import oracle
from holdfast.holdout.attackers import World, log_loss_oracle, majority_vote
from holdfast.holdout.race import ATTACKS, HONEST, Race
from holdfast.noise.bits import ReplayedBits


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_ordinary_board_climbs_and_the_guarded_one_holds(attack: str) -> None:
    race = Race(attack, 1000, 1000, ReplayedBits(4))
    race.end()
    assert race.ordinary[-1] > 0.68
    assert abs(race.ordinary_fresh - 0.5) < 0.02
    assert abs(race.guarded_fresh - 0.5) < 0.02
    assert max(race.guarded) <= 0.5 + race.width
    assert race.inside
    assert abs(race.honest - HONEST) <= race.width
    assert len(race.ordinary) == len(race.guarded) == 1000


def test_the_majority_vote_reaches_its_formula() -> None:
    """Phi(sqrt(2k/(pi n))) on exact scores: 0.79 at k = n."""
    world = World(2000, 10, ReplayedBits(8))
    labels = world.coins(2000)
    attack, best = majority_vote(world, 2000), 0.0
    said = next(attack)
    with pytest.raises(StopIteration):
        while True:
            score = float(np.mean(said == labels))
            best = max(best, score)
            said = attack.send(score)
    expected = 0.5 * (1 + math.erf(math.sqrt(1 / math.pi)))
    assert expected == pytest.approx(0.7875, abs=1e-3)
    assert best == pytest.approx(expected, abs=0.02)


def test_the_log_loss_oracle_reads_labels_off_an_ordinary_board_only() -> None:
    assert oracle(600, 100, False, ReplayedBits(2)) == 1.0
    assert abs(oracle(600, 100, True, ReplayedBits(2)) - 0.5) < 0.12


def test_the_oracle_spells_labels_in_binary() -> None:
    world = World(6, 0, ReplayedBits(3))
    labels = np.array([1, 0, 1, 1, 0, 1])
    attack = log_loss_oracle(world, 1)
    said = next(attack)
    with pytest.raises(StopIteration) as end:
        attack.send(float(-np.log(np.where(labels == 1, said, 1 - said)).mean()))
    assert end.value.value().tolist() == labels.tolist()
