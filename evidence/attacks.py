"""A thousand attacked sessions for each mode of the leave-out plan, beside exact answers.

python evidence/attacks.py    some minutes; writes evidence/attacks.md

The attack is the strongest that we know of: 499 coins are compared with a label that is a coin too, each answer weighs
its coin by the log-likelihood ratio, and the last question is whether the weighted vote agrees with the label. Of the
population that is true of one half. Noise and half-widths are those of the plan that a session would make; the games
are played with NumPy's Gaussian noise instead of the exact sampler, for speed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "evidence" / "attacks.md"
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from holdfast.validity.falling import falling_noise  # noqa: E402  (the path must be set first)
from holdfast.validity.normal_quantile import upper_quantile  # noqa: E402
from holdfast.validity.places import Places, by_gaussian  # noqa: E402

ROWS, QUERIES, BETA, GAMES = 2000, 500, 0.05, 1000


def modes() -> dict[str, Places]:
    """The plans of the first session on a table, of one that comes after it, and of one of two shares."""
    first = _planned()
    half = first.told_by_itself / 2
    return {
        "the first session, m by place": first,
        "a later session, the mixture": _planned(begun=first.told_by_itself, mixed=True),
        "one of two shares": _planned(begun=half, most_information=half),
    }


def _planned(**how: float) -> Places:
    schedule = falling_noise(ROWS, QUERIES, BETA, **how)
    assert schedule is not None
    return by_gaussian(schedule)


def noises(places: Places) -> np.ndarray:
    """The noise of each place, on the scale of a fraction."""
    each = ([float(epoch.noise) ** 0.5 / places.rows] * epoch.answers for epoch in places.epochs)
    return np.array([sigma for epoch in each for sigma in epoch])


def play(places: Places | None, games: int, seed: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """(the error of the last answer, how much of it is bias of the rows) in each game; None answers exactly."""
    draw = np.random.default_rng(seed)  # noqa: TID251  (an attacker's coins)
    sigma = np.zeros(QUERIES) if places is None else noises(places)
    errors, biases = np.empty(games), np.empty(games)
    for game in range(games):
        features = draw.integers(0, 2, (ROWS, QUERIES - 1), dtype=np.int8)
        labels = draw.integers(0, 2, ROWS, dtype=np.int8)
        agreement = (features == labels[:, None]).mean(axis=0)
        told = agreement + sigma[:-1] * draw.standard_normal(QUERIES - 1)
        weights = (told - 0.5) / (sigma[:-1] ** 2 + 0.25 / ROWS)
        guess = (features - 0.5) @ weights > 0
        biases[game] = np.mean(guess == labels) - 0.5
        errors[game] = biases[game] + sigma[-1] * draw.standard_normal()
    return errors, biases


def page(games: int = GAMES) -> str:
    lines = [
        "## The plan under attack",
        "",
        f"Written by `python evidence/attacks.py`: n = {ROWS:,}, k = {QUERIES}, beta = {BETA}, {games:,} games each.",
        "The last answer is attacked; *outside* counts the games in which it leaves the half-width of the plan (of all",
        "500 answers together 5% may). *Bias* is how far the rows are from the population on the last question,",
        "*certified* the part of the half-width that is for this.",
        "",
        "| answers | half-width | outside | error, 95% | largest error | mean bias | largest bias | certified |",
        "|---|---|---|---|---|---|---|---|",
    ]
    plans = modes()
    widest = plans["the first session, m by place"].width
    for name, places in {"exact (naive)": None, **plans}.items():
        errors, biases = play(places, games)
        width = widest if places is None else places.width
        part = "-"
        if places is not None:
            part = f"{width - upper_quantile(BETA / QUERIES / 2) * noises(places)[-1]:.3f}"
        shown = "none" if places is None else f"{width:.3f}"
        lines.append(
            f"| {name} | {shown} | {np.mean(errors > width):.1%} | {np.quantile(errors, 0.95):.3f} "
            f"| {errors.max():.3f} | {biases.mean():.3f} | {biases.max():.3f} | {part} |"
        )
        print(lines[-1], flush=True)
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    RECORD.write_text(page())
    print(f"wrote {RECORD.relative_to(ROOT)}")
