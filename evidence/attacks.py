"""A thousand attacked sessions for each mode of the leave-out plan, beside exact answers.

python evidence/attacks.py            a thousand games: a quarter of an hour; writes evidence/attacks.md
python evidence/attacks.py 100 40     fewer games, of 500 and of 2,000 questions; 0 keeps the table that stands

Games are kept in build/evidence by parts of fifty, with a digest of the code, so that an interrupted run goes on.

The attack is the strongest that we know of: 499 coins are compared with a label that is a coin too, each answer weighs
its coin by the log-likelihood ratio, and the last question is whether the weighted vote agrees with the label. Of the
population that is true of one half; of a part of it (`rare`, `differences`), of half of the part. Plans, noise and
intervals are those of the package: the plan is that of a session on so many rows, the noise comes from its exact
samplers, and every interval from the function that a session reads it with. All modes of a game have the same rows.

Against checked guesses (a plan of a holdout, docs/theorems.md, Theorem 55) every coin is guessed just so high that
about as many checks raise an alarm as may; an alarm is answered, and silence says a little. The last guess is the rows'
own value, which no analyst knows: the most that silence can be wrong by.
"""

from __future__ import annotations

import json
import math
import os
import sys
import textwrap
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "evidence" / "attacks.md"
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import holdfast as hf  # noqa: E402  (the path must be set first)
from evidence.cache import fingerprint  # noqa: E402
from holdfast.holdout.checked_guess import check_guess, open_threshold  # noqa: E402
from holdfast.ledger import Moment, Totals  # noqa: E402
from holdfast.mechanisms.gaussian import add_gaussian  # noqa: E402
from holdfast.mechanisms.logistic import add_logistic  # noqa: E402
from holdfast.mechanisms.votes import unbiased, votes  # noqa: E402
from holdfast.noise.subset import with_replacement  # noqa: E402
from holdfast.planning.budget import budget  # noqa: E402
from holdfast.planning.plain_answer import plain_recipe  # noqa: E402
from holdfast.planning.plan import DISAGREEMENT_NOISE, Recipe  # noqa: E402
from holdfast.planning.promise import LEFT_OUT, Promise  # noqa: E402
from holdfast.planning.recipe_information import units_told  # noqa: E402
from holdfast.planning.session_plan import Room, session_plan  # noqa: E402
from holdfast.planning.terms import Terms  # noqa: E402
from holdfast.planning.width import deviation, disagreement_interval  # noqa: E402
from holdfast.privacy.filter import Filter  # noqa: E402
from holdfast.privacy.rounding import miss  # noqa: E402
from holdfast.query.parse import parse_predicate  # noqa: E402
from holdfast.query.statistic import Statistic, workload  # noqa: E402
from holdfast.validity.checked_guesses import GuessPlan, plan_guesses  # noqa: E402
from holdfast.validity.leave_out_intervals import rare_interval  # noqa: E402
from holdfast.validity.normal_quantile import upper_quantile  # noqa: E402
from holdfast.validity.option import Epoch  # noqa: E402
from holdfast.validity.places import Places  # noqa: E402
from holdfast.validity.told import difference_told, rare_told  # noqa: E402

ROWS, QUERIES, BETA, GAMES = 2000, 500, 0.05, 1000
PART_OF_A_RUN = 50
ALARMS = 20
"""So many guesses may be wrong; a plan for more is wider than naive errors are large."""
PART = 10
"""One row in so many is what rare questions and differences are about."""
Vector = NDArray[Any]


def terms_of(queries: int, epsilon: float | None = None) -> Terms:
    """The terms of a session whose budget is no limit; validity alone."""
    return Terms(
        schema=hf.Schema(x=hf.Integer(0, 1), y=hf.Integer(0, 1)),
        rows=ROWS,
        rows_per_unit=1,
        session=(budget(rho=1e6) if epsilon is None else budget(epsilon=epsilon)).filter,
        table=Filter.zcdp(9e9),
        queries=queries,
        confidence=1 - BETA,
        target="population",
    )


def planned(terms: Terms, rows: int | None = None, room: Room | None = None, *, rare: bool = False) -> Places:
    """What such a session plans, after what was told."""
    told = 0 if room is None or room.share is not None else room.begun
    moment = Moment(Totals(), Totals(entries=int(told > 0), information=told))
    made = session_plan(terms, moment, rows, room, rare=rare)
    assert made is not None and made.epochs
    return made


@dataclass(frozen=True)
class Mode:
    """One way to answer: its plan, and how a game is played with it."""

    places: Places | None
    """None answers exactly."""
    kind: str = "plain"
    """How answers are asked for and read: "plain", "rare", "differences", "by turns" or "guesses"."""
    guesses: GuessPlan | None = None


def modes(queries: int = QUERIES) -> dict[str, Mode]:
    terms = terms_of(queries)
    first = planned(terms)
    told = units_told(first.told_by_itself, ROWS)
    found = {
        "exact (naive)": Mode(None),
        "a plain session": Mode(first),
        "a later session, the mixture": Mode(planned(terms, room=Room(told))),
        "one of two shares": Mode(planned(terms, room=Room(share=0.5))),
        "votes": Mode(planned(terms, rows=ROWS - 1)),
        "logistic, a pure session": Mode(planned(terms_of(queries, 1e4))),
        "Gaussian and logistic noise by turns": Mode(first, "by turns"),
    }
    guesses = plan_guesses(ROWS, queries, ALARMS, 1, BETA, 1)
    if queries == QUERIES:
        found |= {
            "exact (naive), a tenth of the rows": Mode(None, "rare"),
            'intervals="rare", a tenth of the rows': Mode(planned(terms, rare=True), "rare"),
            "exact (naive), differences": Mode(None, "differences"),
            "differences that disagree on a tenth": Mode(first, "differences"),
        }
    return found | {f"checked guesses, {ALARMS} alarms": Mode(None, "guesses", guesses)}


@dataclass
class Rows:
    """A sample: coins, a label, and whether a row is in the part. All are public in law, none in fact."""

    coins: NDArray[np.bool_]
    label: NDArray[np.bool_]
    part: NDArray[np.bool_]
    signs: NDArray[np.float32]

    @classmethod
    def drawn(cls, draw: Any, queries: int) -> Rows:
        coins = np.unpackbits(draw.integers(0, 256, (ROWS, -(-queries // 8)), np.uint8), axis=1)[
            :, : queries - 1
        ]
        label = draw.integers(0, 2, ROWS, np.uint8).astype(bool)
        part = draw.integers(0, PART, ROWS, np.uint8) == 0
        return cls(coins.astype(bool), label, part, coins.astype(np.float32) - np.float32(0.5))

    def guess(self, weights: Vector) -> NDArray[np.bool_]:
        """What the weighted vote says of each row's label."""
        return np.asarray(self.signs @ weights.astype(np.float32) > 0)


@dataclass(frozen=True)
class Outcome:
    """Of one game: how far the last answer is from the truth, how much of it is bias of the rows, whether the last
    interval misses it, whether any of the session does (None: not computed), and half of the length of the last."""

    error: float
    bias: float
    last: bool
    any: bool | None
    half: float


def play(mode: Mode, rows: Rows) -> Outcome:
    """One game."""
    if mode.guesses is not None:
        return _guesses(mode.guesses, rows)
    kinds = {"plain": _plain, "rare": _rare, "differences": _differences, "by turns": _by_turns}
    return kinds[mode.kind](mode.places, rows)


def _sigmas(places: Places) -> Vector:
    """The deviation of each place's noise, on the scale of a fraction."""
    each = []
    for epoch in places.epochs:
        noise, n = float(epoch.noise), places.rows
        sigma = math.sqrt(noise) / n
        if places.mechanism == "logistic":
            sigma = noise / n * math.pi / math.sqrt(3)
        elif places.mechanism == "votes":
            sigma = 1 / (2 * (1 - 2 * float(places.flip)) * math.sqrt(noise))
        each += [sigma] * epoch.answers
    return np.array(each)


def _answers(places: Places | None, agree: NDArray[np.bool_], first: int) -> Vector:
    """The shares of columns of truth values, in the places from `first` on, as the plan's mechanism tells them."""
    counts, n = agree.sum(axis=0, dtype=np.int64), len(agree)
    if places is None:
        return np.asarray(counts / n)
    told, last = [], 0
    for epoch in places.epochs:
        start, last = max(first, last + 1), last + epoch.answers
        columns = slice(start - first, max(last - first + 1, 0))
        some = counts[columns]
        if start > last or not some.size:
            continue
        if places.mechanism == "gaussian":
            told += list(np.asarray(add_gaussian(some, epoch.noise)) / n)
        elif places.mechanism == "logistic":
            told += list(np.asarray(add_logistic(some, epoch.noise)) / n)
        else:
            many = int(epoch.noise)
            for column in agree[:, columns].T:
                ones = votes(column[with_replacement(n, many)], flip=places.flip)
                told.append(unbiased(ones, many, places.flip))
    return np.array(told)


def _plain(places: Places | None, rows: Rows) -> Outcome:
    agree = rows.coins == rows.label[:, None]
    told = _answers(places, agree, 1)
    sigma = np.zeros(len(told)) if places is None else _sigmas(places)[:-1]
    guess = rows.guess((told - 0.5) / (sigma**2 + 0.25 / ROWS)) == rows.label
    bias = float(guess.mean()) - 0.5
    answer = float(_answers(places, guess[:, None], len(told) + 1)[0])
    width = math.inf if places is None else places.width
    missed = bool(abs(answer - 0.5) > width)
    return Outcome(abs(answer - 0.5), bias, missed, missed or bool((abs(told - 0.5) > width).any()), width)


def _by_turns(places: Places | None, rows: Rows) -> Outcome:
    """Every other coin by logistic noise that tells as much as the place was planned for."""
    assert places is not None
    agree, gaussian = rows.coins == rows.label[:, None], _sigmas(places)
    logistic, terms = gaussian.copy(), replace(terms_of(len(gaussian)), places=places)
    told = _answers(places, agree, 1)
    for column in range(0, len(told), 2):
        scale = _logistic_scale(terms, places.epoch_of(column + 1)[1])
        told[column] = int(add_logistic(int(agree[:, column].sum()), scale)) / ROWS
        logistic[column] = float(scale) / ROWS * math.pi / math.sqrt(3)
    guess = rows.guess((told - 0.5) / (logistic[:-1] ** 2 + 0.25 / ROWS)) == rows.label
    answer = float(_answers(places, guess[:, None], len(told) + 1)[0])
    missed = bool(abs(answer - 0.5) > places.width)
    any_ = missed or bool((abs(told[1::2] - 0.5) > places.width).any())
    return Outcome(abs(answer - 0.5), float(guess.mean()) - 0.5, missed, any_, places.width)


@lru_cache(maxsize=64)
def _logistic_scale(terms: Terms, last: int) -> Fraction:
    """Of an answer with `epsilon=` in the epoch that ends with this place, if it tells what the place may tell."""
    asked = Statistic("fraction", parse_predicate("x = 1", terms.schema))
    moment = Moment(Totals(answers=last - 1), Totals())
    recipe = plain_recipe("logistic", workload(asked, terms.schema, ROWS), moment, terms)
    assert recipe is not None
    return recipe.noise


def _guesses(plan: GuessPlan, rows: Rows) -> Outcome:
    """Coins until all alarms but one are used, each guessed so high that about as many are left at the end."""
    counts = (rows.coins == rows.label[:, None]).sum(axis=0, dtype=np.int64)
    secret, failures, missed = open_threshold(plan), 0, False
    weights = np.zeros(len(counts))
    for column, count in enumerate(counts):
        left = plan.alarms - 1 - failures
        if not left:
            break
        often = min(0.5, left / (len(counts) - column))
        rate = plan.rate(failures)
        guess = 0.5 + plan.threshold(failures) - math.log(1 / often - 1) / rate
        stage, claimed = failures, 0.5
        value, reading = check_guess(plan, secret, failures, int(count), guess, 0.0)
        if value is None:
            weights[column] = rate * often  # how much likelier silence is where more agree
            claimed = guess
        else:
            weights[column] = (value - 0.5) / (plan.sigma(stage) ** 2 + 0.25 / ROWS)
            claimed, failures = value, failures + 1
        missed = missed or abs(claimed - 0.5) > reading.width
    last = rows.guess(weights) == rows.label
    held = int(last.sum())
    value, reading = check_guess(plan, secret, failures, held, held / ROWS, 0.0)
    error = abs((held / ROWS if value is None else value) - 0.5)
    outside = error > reading.width
    return Outcome(error, held / ROWS - 0.5, outside, missed or outside, reading.width)


def _rare(places: Places | None, rows: Rows) -> Outcome:
    """About rows of the part only, so that all questions are true of 5%; what each tells is read off its answer."""
    truth, inside = 0.5 / PART, rows.part
    agree = (rows.coins == rows.label[:, None]) & inside[:, None]
    told = _answers(places, agree, 1)
    sigma = np.zeros(len(told)) if places is None else _sigmas(places)
    guess = rows.guess((told - truth) / (sigma[: len(told)] ** 2 + truth / ROWS))
    last = (guess == rows.label) & inside
    answer = float(_answers(places, last[:, None], len(told) + 1)[0])
    bias, error = float(last.mean()) - truth, abs(answer - truth)
    if places is None:
        return Outcome(error, bias, False, False, math.inf)
    beta, before = miss(1 - BETA) * LEFT_OUT / (len(told) + 1), zip(sigma, told, strict=False)
    spent = math.fsum(rare_told(ROWS, float(each), float(np.clip(value, 0, 1))) for each, value in before)
    left_out = places.left_out(len(told) + 1)
    low, high = rare_interval(left_out, left_out.charges(spent), float(sigma[-1]), answer, beta, 1 / ROWS)
    return Outcome(error, bias, not low <= truth <= high, None, max(high - answer, answer - low))


def _differences(places: Places | None, rows: Rows) -> Outcome:
    """Whether a coin agrees with the label in the part, less whether it does not: they disagree on a tenth."""
    inside = rows.part.astype(np.int64)

    def difference(agree: NDArray[np.bool_]) -> Vector:
        return np.asarray((inside[:, None] * np.where(agree, 1, -1)).sum(axis=0))

    sums = difference(rows.coins == rows.label[:, None])
    if places is None:
        last = int(difference((rows.guess(sums) == rows.label)[:, None])[0])
        return Outcome(abs(last) / ROWS, last / ROWS, False, False, math.inf)
    counted, weights, spent, start = int(inside.sum()), list[float](), 0.0, 0
    for epoch in places.epochs:
        recipe = _difference_recipe(places, epoch)
        sigma, variance = 2 * deviation(2, recipe, ROWS), recipe.noise * (2 if recipe.per_span else 1) ** 2
        some, start = sums[start : start + epoch.answers], start + epoch.answers
        values = np.asarray(add_gaussian(some, variance)) / ROWS
        weights += list(values / (sigma**2 + 1 / (PART * ROWS)))
        spread, guess = sigma * math.sqrt(DISAGREEMENT_NOISE), float(recipe.expect or 0)
        noisy = np.asarray(add_gaussian(np.full(len(some), counted), DISAGREEMENT_NOISE * variance)) / ROWS
        spent += math.fsum(difference_told(ROWS, float(e), spread, sigma, guess) for e in noisy)
    last = int(difference((rows.guess(np.array(weights)) == rows.label)[:, None])[0])
    disagreement = int(add_gaussian(counted, DISAGREEMENT_NOISE * variance)) / ROWS
    value = int(add_gaussian(last, variance)) / ROWS
    each = miss(1 - BETA) * LEFT_OUT / (len(sums) + 1)
    left_out, told = places.left_out(len(sums) + 1), units_told(spent, ROWS)
    promise = Promise("population", each, left_out=left_out, information=told)
    low, high = disagreement_interval(recipe, promise, ROWS, disagreement, value)
    return Outcome(abs(value), last / ROWS, not low <= 0 <= high, None, (high - low) / 2)


@lru_cache(maxsize=64)
def _difference_recipe(places: Places, epoch: Epoch) -> Recipe:
    """The recipe of a difference whose conditions are said to disagree on a tenth, in the places of an epoch."""
    terms = replace(terms_of(sum(each.answers for each in places.epochs)), places=places)
    where, other = (parse_predicate(f"{name} = 1", terms.schema) for name in "xy")
    asked = Statistic("difference", where, other=other, expect=Fraction(1, PART))
    before = sum(each.answers for each in places.epochs[: places.epochs.index(epoch)])
    moment = Moment(Totals(answers=before), Totals())
    recipe = plain_recipe("gaussian", workload(asked, terms.schema, ROWS), moment, terms)
    assert recipe is not None
    return recipe


def noise_part(mode: Mode) -> float:
    """The part of the last half-width that is for the noise of the last answer alone."""
    places = mode.places
    if places is None:
        return 0.0
    chance = BETA / sum(epoch.answers for epoch in places.epochs) / 2
    epoch = places.epochs[-1]
    if mode.kind == "differences":
        return upper_quantile(chance) * 2 * deviation(2, _difference_recipe(places, epoch), ROWS)
    if places.mechanism == "logistic":
        return float(epoch.noise) / ROWS * math.log(1 / chance)
    return upper_quantile(chance) * float(_sigmas(places)[-1])


def played(queries: int, games: int, seed: int = 7) -> dict[str, list[Outcome]]:
    """The outcomes of every mode, by parts that are kept; the rows of a game are the same for all of them."""
    found, all_ = modes(queries), dict[str, list[Outcome]]()
    for part in range(0, games, PART_OF_A_RUN):
        many = min(PART_OF_A_RUN, games - part)
        for name, outcomes in _part(found, queries, (seed, part), many).items():
            all_.setdefault(name, []).extend(outcomes)
    return all_


def _part(
    found: dict[str, Mode], queries: int, seed: tuple[int, int], games: int
) -> dict[str, list[Outcome]]:
    folder = ROOT / "build" / "evidence" / fingerprint(ROOT / "src" / "holdfast")
    path = folder / f"attacks-{queries}-{seed[0]}-{seed[1]}-{games}.json"
    if path.exists():
        return {name: [Outcome(**one) for one in kept] for name, kept in json.loads(path.read_text()).items()}
    draw = np.random.default_rng(seed)  # noqa: TID251  (an attacker's coins)
    outcomes: dict[str, list[Outcome]] = {name: [] for name in found}
    for _ in range(games):
        rows = Rows.drawn(draw, queries)
        for name, mode in found.items():
            outcomes[name].append(play(mode, rows))
    folder.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps({name: [asdict(one) for one in many] for name, many in outcomes.items()}))
    draft.replace(path)
    return outcomes


def table(games: int, queries: int = QUERIES) -> list[str]:
    """A line for each mode."""
    found, outcomes_of = modes(queries), played(queries, games)
    naive = {mode.kind: outcomes_of[name] for name, mode in found.items() if "naive" in name}
    lines = []
    for name, mode in found.items():
        outcomes = outcomes_of[name]
        errors, biases = (np.array([getattr(o, part) for o in outcomes]) for part in ("error", "bias"))
        cells = [f"{np.quantile(errors, 0.95):.3f}", f"{errors.max():.3f}", f"{biases.mean():.3f}"]
        cells.append(f"{biases.max():.3f}")
        if "naive" in name:
            lines.append(f"| {name} | none | - | - | {' | '.join(cells)} | - | - |")
            continue
        half = float(np.mean([o.half for o in outcomes]))
        left = np.mean([o.error > half for o in naive.get(mode.kind, naive["plain"])])
        outside = [o.any for o in outcomes if o.any is not None]
        missed = f"{sum(o.last for o in outcomes)} | {sum(outside) if outside else '-'}"
        part = "-" if mode.places is None else f"{half - noise_part(mode):.3f}"
        lines.append(f"| {name} | {half:.3f} | {missed} | {' | '.join(cells)} | {part} | {left:.1%} |")
    return lines


ABOUT = """\
Written by `python evidence/attacks.py`. n = 2,000 rows, k questions, beta = 0.05, validity alone (no limit of
privacy). The plans are those of sessions, the noise that of the exact samplers, and every interval is computed by
the function that a session reads it with; what is left out is the ledger. The last answer is attacked, with weights
from all others. *Last outside* counts games in which the last interval misses, *any outside* those in which any of
the k does (5% may; of rare events and differences only the last is computed). *Bias* is how far the rows are from
the population on the last question, *certified* the part of the half-width that is for this; *exact outside* says
how often exact answers, attacked in the same way, leave that half-width. `rare` asks about a tenth of the rows, so
that all answers are near 5%, and differences are of two conditions that disagree on a tenth; their half-widths are
read off the answers, and the mean is shown. By turns, *any outside* counts the Gaussian answers. A guess that is not
contradicted is right within its half-width, an answer to another within its own; the mean of the last is shown."""


def page(games: int = GAMES, later: int = GAMES) -> str:
    head = ["answers", "half-width", "last outside", "any outside", "error, 95%", "largest error"]
    head += ["mean bias", "largest bias", "certified", "exact outside"]
    lines = ["## The plan under attack", "", *textwrap.wrap(ABOUT, 116), ""]
    for queries, many in ((QUERIES, games), (4 * QUERIES, later)):
        if not many:
            lines += [*_standing(queries), ""]
            continue
        lines += [
            f"k = {queries:,}, {many:,} games:",
            "",
            f"| {' | '.join(head)} |",
            "|---" * len(head) + "|",
        ]
        lines += [*table(many, queries), ""]
    return "\n".join(lines)


def _standing(queries: int) -> list[str]:
    """The table of an earlier run."""
    lines = RECORD.read_text().splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith(f"k = {queries:,},"))
    length = next((many for many, line in enumerate(lines[start + 2 :]) if not line), len(lines))
    return lines[start : start + 2 + length]


if __name__ == "__main__":
    RECORD.write_text(page(*map(int, sys.argv[1:3])))
    print(f"wrote {RECORD.relative_to(ROOT)}")
