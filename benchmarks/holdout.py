"""The figures of the holdout: attacks, coverage, Thresholdout's experiment, Ladders, and time against rows.

`python benchmarks/holdout.py [--runs 1000] [--reps 10] [SECTION ...]`
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.page import titled
from holdfast.errors import BudgetError
from holdfast.holdout import Leaderboard, ReusableHoldout, design
from holdfast.holdout.ladder import proven_ladder
from holdfast.session.answer import Answer
from holdfast.validity.guess_and_check import accept_slack, failure_share
from holdfast.validity.hoeffding import hoeffding
from holdfast.validity.noise_planner import choose
from holdfast.validity.option import Request

Row = dict[str, object]
Coins = NDArray[np.uint8]


def coins(generator: np.random.Generator, *shape: int) -> Coins:
    """Fair coins, eight to a random byte."""
    count = math.prod(shape)
    packed = generator.integers(0, 256, -(-count // 8), dtype=np.uint8)
    return np.unpackbits(packed, count=count).reshape(shape)


def majority(guesses: Coins, kept: NDArray[np.bool_]) -> Coins:
    """The vote of the guesses that were kept. The last of them breaks ties: on a Ladder, where only two or
    three are kept, it is the best one, and the published loss of 0.484 needs that (the first gives 0.493)."""
    votes = 2 * guesses[kept].sum(axis=0, dtype=np.int64) - int(kept.sum())
    last = guesses[np.flatnonzero(kept)[-1] if kept.any() else 0]
    return np.where(votes == 0, last, votes > 0).astype(np.uint8)


def boosting(runs: int, reps: int) -> Iterator[Row]:
    """The loss that the attack reaches on the board's own rows; the truth is 1/2."""
    for queries, figure in ((100, 0.467), (400, 0.427)):
        losses = []
        for seed in range(max(20, min(runs, 100))):
            generator = np.random.default_rng([1, queries, seed])
            labels, guesses = coins(generator, 4000), coins(generator, queries, 4000)
            kept = np.round((guesses != labels).mean(axis=1), 5) <= 0.5
            losses.append(float(np.mean(majority(guesses, kept) != labels)))
        theory = 0.5 - math.sqrt(queries / 4000) / (math.pi * math.sqrt(2))
        yield row("exact scores", losses, k=queries, published=figure, theory=round(theory, 4))
    losses = []
    for seed in range(max(20, min(runs, 100))):
        generator = np.random.default_rng([2, seed])
        labels, guesses = coins(generator, 4000), coins(generator, 400, 4000)
        board = Leaderboard(labels, "error", queries=400, mode="ladder-unproven")
        shown = np.array([board.submit("a", guess).value for guess in guesses])
        losses.append(float(np.mean(majority(guesses, np.diff(shown, prepend=1.0) < 0) != labels)))
    yield row("parameter-free Ladder", losses, k=400, published=0.484)


def coverage(runs: int, reps: int) -> Iterator[Row]:
    """Runs of the attack (n = 4000, k = 400) in which every interval holds the truth, 1/2.

    Guess-and-Check and Thresholdout are asked with the attacker's own training scores as guesses; "probing"
    puts each guess where its failure tells whether the holdout's mean is below 1/2. An attacker who is
    refused stops there. "exact" is an ordinary board, judged by the interval that it would claim itself
    (Hoeffding with a union); our wider intervals would hold its errors too at this size.
    """
    for mode in ("exact", "gaussian", "votes", "guess-and-check", "probing", "thresholdout", "ladder"):
        missed, answered, errors, width = 0, 0, [], 0.0
        for seed in range(runs):
            found, width = _attack(mode, np.random.default_rng([3, seed]))
            missed += any(not low <= 0.5 <= high for _, low, high in found)
            answered += len(found)
            errors.append(max(abs(value - 0.5) for value, _, _ in found))
        facts = {"runs": runs, "held": 1 - missed / runs, "answered": round(answered / runs, 1)}
        yield row(f"{mode}, worst error", errors, k=400, **facts, width=round(width, 4))


def _attack(mode: str, generator: np.random.Generator) -> tuple[list[tuple[float, float, float]], float]:
    """(value, low, high) of every answer, the majority's last, and the width."""
    labels, guesses = coins(generator, 4000), coins(generator, 399, 4000)
    training = generator.binomial(4000, 0.5, 400) / 4000
    answers: list[tuple[float, float, float]] = []
    if mode == "exact":
        width, means = hoeffding(4000, 400, 0.05), (guesses == labels).mean(axis=1)
        final = float(np.mean(majority(guesses, means >= 0.5) == labels))
        return [(v, v - width, v + width) for v in (*means.tolist(), final)], width
    if mode == "ladder":
        board = Leaderboard(labels, queries=400, mode=mode)
        answers = [_ends(board.submit("a", guess)) for guess in guesses]
        kept = np.diff([a[0] for a in answers], prepend=0.0) > 0
        return [*answers, _ends(board.submit("a", majority(guesses, kept)))], board.width
    holdout = ReusableHoldout(labels, queries=400, mode="guess-and-check" if mode == "probing" else mode)
    above: list[bool] = []
    with contextlib.suppress(BudgetError):
        for number, said in enumerate(guesses):
            if mode == "probing":
                if holdout.left.at_most <= 1 or above.count(False) >= holdout.design.failures:
                    break
                share = failure_share(0.05, number + 1, above.count(False), holdout.design.cells)
                guess = 0.5 + accept_slack(holdout.width, 4000, share)
                verdict = holdout.check(guess, said)
                above.append(verdict.fine)
                answers.append(_ends(verdict.answer))
            else:
                answers.append(_ends(holdout.score(said, guess=float(training[number]))))
                above.append(answers[-1][0] >= 0.5)
        final = majority(guesses[: len(above)], np.array(above))
        answers.append(_ends(holdout.score(final, guess=float(training[-1]))))
    return answers, holdout.width


def _ends(answer: Answer) -> tuple[float, float, float]:
    return answer.value, answer.low, answer.high


def freedman(runs: int, reps: int) -> Iterator[Row]:
    """Thresholdout's experiment: n = d = 10 000, tolerance 1/sqrt n, threshold 4/sqrt n (as correlations)."""
    for signal in (False, True):
        played = [_select(seed, signal) for seed in range(reps)]
        for size, name in ((size, name) for size in SIZES for name in ("standard holdout", "Thresholdout")):
            train, held, fresh = np.mean([one[name, size] for one in played], axis=0)
            yield {
                "system": name,
                "signal": signal,
                "features": size,
                "train": round(float(train), 3),
                "holdout_claims": round(float(held), 3),
                "fresh": round(float(fresh), 3),
            }


SIZES = (20, 100, 500)


def _select(seed: int, signal: bool) -> dict[tuple[str, int], tuple[float, float, float]]:
    """(train, claimed by the holdout, fresh) accuracy of the vote of so many features that both like, by holdout."""
    n = d = 10_000
    root = math.sqrt(n)
    generator = np.random.default_rng([4, seed])
    labels = coins(generator, 3, n)
    sets = [coins(generator, d, n) for _ in range(3)]
    if signal:
        for part, label in zip(sets, labels, strict=True):
            # A feature of correlation 6/sqrt(n) copies the label that often.
            copied = generator.random((20, n)) < 6 / root
            part[:20] = np.where(copied, label, part[:20])
    train, held, _ = sets
    seen = (train == labels[0]).mean(axis=1)
    holdout = ReusableHoldout(
        labels[1],
        queries=d + len(SIZES),
        mode="thresholdout",
        threshold=2 / root,
        tolerance=0.5 / root,
        hits=5000,
    )
    told = {
        "standard holdout": (held == labels[1]).mean(axis=1),
        "Thresholdout": np.array([holdout.check(seen[j], held[j]).answer.value for j in range(d)]),
    }
    found = {}
    for name, checked in told.items():
        near = np.minimum(abs(seen - 0.5), abs(checked - 0.5))
        kept = ((seen - 0.5) * (checked - 0.5) > 0) & (near >= 0.5 / root)
        for size in SIZES:
            order = np.argsort(-np.where(kept, abs(seen - 0.5), -1.0))[: min(size, int(kept.sum()))]
            final = [_vote(part, order, seen) for part in sets]
            scores = [float(np.mean(said == label)) for said, label in zip(final, labels, strict=True)]
            guarded = name == "Thresholdout"
            claimed = holdout.check(scores[0], final[1]).answer.value if guarded else scores[1]
            found[name, size] = scores[0], claimed, scores[2]
    return found


def _vote(features: Coins, order: NDArray[np.intp], seen: NDArray[np.float64]) -> Coins:
    total = np.where(seen[order] > 0.5, 1, -1) @ (2 * features[order].astype(np.int32) - 1)
    return np.where(total == 0, features[0], total > 0).astype(np.uint8)


def ladders(runs: int, reps: int) -> Iterator[Row]:
    """The certified error of the Ladder at confidence 0.95."""
    for rows, queries, figure in ((4000, 400, 0.185), (10**5, 10**4, 0.071), (10**6, 10**6, 0.037)):
        found = proven_ladder(rows, queries, 0.95)
        yield {
            "rows": rows,
            "submissions": queries,
            "certified": round(found.width, 4),
            "theory_table": figure,
        }


def scores_per_second(runs: int, reps: int) -> Iterator[Row]:
    """One score with a half-width of 0.1 among 1000: the median of 1000 looks, in memory.

    The sizes take turns, so that a busy machine slows them alike.
    """
    sizes = (10**5, 10**6, 10**7)
    labels = {n: (np.arange(n) % 2).astype(np.int8) for n in sizes}
    holdouts = {n: ReusableHoldout(labels[n], queries=1000, within=0.1) for n in sizes}
    took: dict[int, list[float]] = {n: [] for n in sizes}
    for _ in range(1000):
        for n in sizes:
            begun = time.perf_counter()
            holdouts[n].score(labels[n])
            took[n].append(time.perf_counter() - begun)
    for n in sizes:
        plan = holdouts[n].design
        facts = {"rows": n, "mode": plan.mode, "rows_read": plan.rows_read}
        yield {**facts, "milliseconds": round(1e3 * float(np.median(took[n])), 3)}


OLDER = ("gaussian", "discretised", "guess-and-check")


def widths(runs: int, reps: int) -> Iterator[Row]:
    """The half-width of each of k looks: ours, with the older theorems, and what guesses and comparisons have."""
    for n, k in ((1000, 10), (1000, 100), (10_000, 100), (10_000, 1000), (100_000, 1000), (10**6, 1000)):
        now, request = design(rows=n, queries=k), Request(n, k, 0.95, None, 1 << 17)
        yield {
            "n": n, "k": k, "mode": now.mode, "width": round(now.width, 4),
            **{name: round(choose((name,), request).width, 4) for name in OLDER},
            "not adaptive (Hoeffding)": round(hoeffding(n, k, 0.05), 4),
        }  # fmt: skip


def comparisons(runs: int, reps: int) -> Iterator[Row]:
    """The half-widths of k comparisons of models that differ on a share of the rows."""
    for n, k in ((10_000, 100), (100_000, 1000)):
        draw = np.random.default_rng(4)
        labels = draw.integers(0, 2, n)
        model = np.where(draw.random(n) < 0.85, labels, 1 - labels)
        for share in (0.03, 0.05, 0.1):
            other = np.where(np.arange(n) < share * n, 1 - model, model)
            with ReusableHoldout(labels, queries=k, mode="gaussian") as holdout:
                found = [holdout.compare(model, other).width for _ in range(k)]
            plain = 2 * holdout.width
            yield {
                "n": n, "k": k, "differ on": share, "first": round(found[0], 4), "middle": round(found[k // 2], 4),
                "last": round(found[-1], 4), "as a plain question": round(plain, 4),
            }  # fmt: skip


def guesses(runs: int, reps: int) -> Iterator[Row]:
    """Guesses that are checked: the width before the first alarm and after the last but one, and the privacy."""
    for n, k, alarms in ((100_000, 10_000, 10), (10**6, 10**6, 10), (10_000, 1000, 5)):
        plan = design(rows=n, queries=k, mode="guesses", alarms=alarms)
        made = plan.guesses
        assert made is not None
        yield {
            "n": n, "k": k, "alarms": alarms, "while guesses hold": round(made.width(0), 4),
            "at the last alarm": round(made.width(alarms - 1), 4), "answers then": round(made.answer_width(alarms), 4),
            "epsilon of the checks": round(made.epsilon, 3),
            "falling noise": round(design(rows=n, queries=k).width, 4),
        }  # fmt: skip


def row(system: str, values: list[float], **facts: object) -> Row:
    spread = float(np.std(values)) if len(values) > 1 else 0.0
    return {"system": system, **facts, "mean": round(float(np.mean(values)), 4), "sd": round(spread, 4)}


SECTIONS = {
    f.__name__: f
    for f in (widths, comparisons, guesses, boosting, coverage, freedman, ladders, scores_per_second)
}


def rows(quick: bool = False) -> list[Row]:
    """Every section in turn, in some minutes; `main` plays coverage a thousand times."""
    runs, reps = (10, 1) if quick else (40, 1)
    return [{"part": titled(play), **found} for play in SECTIONS.values() for found in play(runs, reps)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], default=[])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--reps", type=int, default=10)
    arguments = parser.parse_args()
    for name in arguments.sections or SECTIONS:
        for found in SECTIONS[name](arguments.runs, arguments.reps):
            print(json.dumps({"section": name, **found}), flush=True)


if __name__ == "__main__":
    main()
