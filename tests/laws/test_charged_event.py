"""The event that was charged is what the release did: nothing leaves beside its doors, and they say no more than that.

Every question, mechanism and currency, every version of everything else, on every neighbour of a small table. The
broken twins at the end are undercharges that were planted in the code.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, get_args

import numpy as np
import pytest
from laws import releases, unit_releases
from laws.judge import Verdict, asked, guarded, judged
from laws.releases import CURRENCIES, KINDS, TABLE, Release
from oracles.tape import DOORS, LawBroken, Tape, doors, playing

from holdfast.data.lookup_join import LookedUp
from holdfast.data.unit_cap import Cap
from holdfast.errors import MechanismError
from holdfast.mechanisms.selection import exponential
from holdfast.mechanisms.sparse_vector import SparseVector
from holdfast.mechanisms.sparse_vector_terms import Version
from holdfast.noise import bernoulli, laplace
from holdfast.noise.subset import with_replacement
from holdfast.optimize import descent
from holdfast.optimize.plan_search import Search
from holdfast.planning import recipe_bought, recipe_event
from holdfast.privacy import event as events
from holdfast.query import sums
from holdfast.query.joint import Joint
from holdfast.query.measurement import Measurement
from holdfast.query.running import FINENESS, strategy
from holdfast.query.statistic import Kind, Sensitivity, Workload
from holdfast.session import keys as keys_room
from holdfast.session import price, release
from holdfast.session import session as session_room
from holdfast.weights import terms_choice
from holdfast.weights.versions import WeightsTerms

mwem, quality, small_database, marginal_plan = (
    importlib.import_module(f"holdfast.synthesis.{name}")
    for name in ("mwem", "quality", "small_database", "marginal_plan")
)
ANSWERED = list(releases.answered())
RELEASES: dict[str, Release] = {
    one.name: one
    for one in (
        *(one for *_, one in ANSWERED),
        *releases.others(),
        *releases.owned_in_pairs(),
        *releases.planned_for_validity(),
        *unit_releases.units(),
        *releases.for_the_population(),
        *releases.discoveries(),
    )
}


@cache
def verdict(name: str) -> Verdict | None:
    return judged(RELEASES[name])


@cache
def verdicts() -> list[Verdict]:
    """Of all that is not refused."""
    return [found for found in map(verdict, RELEASES) if found is not None]


@pytest.mark.parametrize("name", RELEASES)
def test_what_was_charged_is_what_was_done(name: str) -> None:
    """It is refused without a charge; or charged for at least what the worst neighbour shows, and not vastly more."""
    found = verdict(name)
    assert found is None or found.overcharge <= RELEASES[name].slack


def test_everything_but_the_questions_is_answered_where_it_is_said_to_be() -> None:
    silent = [name for name in RELEASES if verdict(name) is None]
    by_plan = {one.name for *_, one in ANSWERED}
    assert [name for name in silent if name not in by_plan and "intervals" not in name] == []


def test_whoever_has_room_for_more_says_why() -> None:
    assert [one.name for one in RELEASES.values() if one.slack > 1.01 and not one.because] == []


# Nothing is left out.


def test_every_function_that_charges_or_reads_rows_is_under_the_law() -> None:
    """By their source text; the four that are left tell public facts and what the ledger holds."""
    seen = frozenset().union(*(found.functions for found in verdicts()))
    left = guarded() - seen
    assert left == {asked()[name] for name in ("left", "opened", "report", "close")}


def test_every_question_is_answered_in_every_currency_that_can_count_it() -> None:
    kinds = {question.split()[0] for question in releases.QUESTIONS}
    assert kinds == {*get_args(Kind), "statistic", "sql"}
    by_plan = {(question, currency): False for question, _, currency, _ in ANSWERED}
    for question, _, currency, one in ANSWERED:
        by_plan[question, currency] |= verdict(one.name) is not None
    silent = {pair for pair, heard in by_plan.items() if not heard}
    assert silent == {(question, "pure") for question in releases.SUMMED}


def test_every_mechanism_is_taken_in_every_currency_that_can_count_it() -> None:
    for currency in ("pure", "zcdp", "gdp"):
        session = Release("", lambda s: None, currency, TABLE).opened(KINDS)
        heard = {m for _, m, c, one in ANSWERED if c == currency and verdict(one.name) is not None and m}
        assert heard - {"exponential", "smoothed"} == set(session._terms.mechanisms)
    assert {m for _, m, _, one in ANSWERED if m and verdict(one.name)} == set(releases.MECHANISMS)


def test_every_version_has_a_release() -> None:
    names = " ".join(releases.OTHERS)
    for version in {*get_args(Version)} - {"gaussian"}:
        assert f"sparse vector, {version}" in names
    for version in terms_choice.VERSIONS:
        assert f"weights, {version}" in names
    for way in small_database._SEARCHES:
        assert f"small database, {way}" in names


def test_a_sparse_vector_with_a_delta_of_its_own_is_refused() -> None:
    how = {"hits": 1, "epsilon": 2.0, "delta": 0.01, "version": "gaussian", "questions": 5}
    session = Release("", lambda s: None, "zcdp", TABLE).opened(KINDS)
    with pytest.raises(MechanismError):
        session.sparse_vector(0.5, **how)
    assert session.spent == 0


def test_every_event_is_charged_somewhere_or_never() -> None:
    def types(record: Any) -> set[str]:
        if isinstance(record, list):
            return set().union(*map(types, record))
        return {record["type"], *types(list(record.values()))} if isinstance(record, dict) else set()

    charged = set().union(*(types(json.loads(text)) for found in verdicts() for text in found.events))
    never = {"approx", "concentrated", "subsampled_with_replacement"}
    assert charged == set(events._TYPES) - never


def test_every_door_is_passed() -> None:
    assert frozenset().union(*(found.doors for found in verdicts())) == DOORS


# Broken twins.


def halved(scores: Any, *, sensitivity: Any, epsilon: Any, **more: Any) -> int:
    return exponential(scores, sensitivity=sensitivity / 2, epsilon=epsilon)


def of_one(scores: Any, *, sensitivity: Any, epsilon: Any, **more: Any) -> int:
    return exponential(scores, sensitivity=1, epsilon=epsilon)


def gradient_of_one_row(search: Search, mechanism: str, iterations: int, noise: Any) -> events.Event:
    return events.Repeat(events.Gaussian(search.loss.norm**2, noise), iterations * search.runs)


def one_cell(budget: Callable[..., Any]) -> Callable[..., Any]:
    def planned(session: Any, rho: float, epsilon: Any, rounds: int) -> Any:
        choosing, noise, _, amount = budget(session, rho, epsilon, rounds)
        parts = events.BoundedRange(choosing), events.Gaussian(1, noise.variance)
        return choosing, noise, events.Repeat(events.Sequence(parts), rounds), amount

    return planned


def measured_only(plan: Any) -> events.Event:
    return events.Sequence((*plan.columns, events.Repeat(plan.noise, plan.rounds)))


def chosen_only(plan: Any) -> events.Event:
    one = events.Sequence((events.BoundedRange(plan.choosing), plan.noise))
    return events.Sequence((*plan.columns, events.Repeat(one, plan.rounds)))


def one_group(workload: Workload, neighbours: str = "replace") -> Sensitivity:
    return Sensitivity(
        sum(max(-m.low, m.high) for m in workload.measurements),
        sum(max(-m.low, m.high) ** 2 for m in workload.measurements),
    )


def bare(vector: SparseVector, units: int) -> bool:
    """A sparse vector without noise on its questions."""
    vector._asked += 1
    above = units >= vector._noisy_threshold
    vector._left -= above
    return above


def by_place(hashes: Callable[..., Any]) -> Callable[..., Any]:
    def planted(cap: Cap, units: Any, rows: Any, copies: Any) -> Any:
        return hashes(cap, units, rows, np.arange(len(copies)))

    return planted


def tells_how_many(answered: Callable[..., Any]) -> Callable[..., Any]:
    def planted(planned: Any, paid: Any, terms: Any) -> Any:
        events = sum(int(part["visits"].sum()) for part in paid.scan(["visits"]))
        return replace(answered(planned, paid, terms), rows_read=events)

    return planted


def rows_as_keys(codes: Any, lengths: Any, size: int, event: Any) -> Any:
    """Not the keys of a unit but its rows, each of which weighs as much as a unit's only key."""
    return np.bincount(codes[codes < size], minlength=size) * event.scale


def first_of_all(columns: Callable[..., Any]) -> Callable[..., Any]:
    """A public table that gives every row what the first of all rows finds."""

    def planted(table: LookedUp, block: Any, names: Any, words: Any) -> Any:
        found = columns(table, block, names, words)
        return {name: np.full_like(codes, codes[0] if codes.size else 0) for name, codes in found.items()}

    return planted


BY_ROOT = sums._by_root
TWINS: dict[str, tuple[list[tuple[Any, str, Any]], str]] = {
    "a quantile by groups is charged once": (
        [(room, "selections", lambda totals: 3) for room in (recipe_event, recipe_bought)],
        "quantile by, as planned, pure",
    ),
    "a sample with replacement at the price of one without": (
        [(release, "without_replacement", with_replacement)],
        "fraction, subsampled-laplace, pure",
    ),
    "half of the sensitivity where runs are chosen from": (
        [(descent, "exponential", halved)],
        "minimize, best of runs, zcdp",
    ),
    "a greedy small database of sensitivity 1": (
        [(small_database, "exponential", of_one)],
        "small database, greedy, pure",
    ),
    "a gradient that comes or goes, not one that is replaced": (
        [(Search, "_event", gradient_of_one_row)],
        "minimize, line, zcdp",
    ),
    "a marginal of which one row moves one cell": (
        [(mwem, "_budget", one_cell(mwem._budget))],
        "mwem, zcdp",
    ),
    "marginals of which one row moves one cell": (
        [(marginal_plan, "_gaussian", lambda rho: events.Gaussian(1, 1 / (2 * Fraction(rho))))],
        "marginals, all of them, zcdp",
    ),
    "columns that are not charged beside their marginals": (
        [
            (
                marginal_plan.MarginalPlan,
                "event",
                property(lambda plan: events.Repeat(plan.noise, plan.rounds)),
            )
        ],
        "marginals, all of them, zcdp",
    ),
    "marginals that are chosen for nothing": (
        [(marginal_plan.MarginalPlan, "event", property(measured_only))],
        "marginals, zcdp",
    ),
    "marginals that were not chosen, measured for nothing": (
        [(marginal_plan.MarginalPlan, "event", property(chosen_only))],
        "marginals, zcdp",
    ),
    "weights whose noisy answer is not charged": (
        [(WeightsTerms, "event", property(lambda terms: events.PureMechanism(terms.run_epsilon)))],
        "weights, best, pure",
    ),
    "weights that pay for a third of a run": (
        [(WeightsTerms, "event", property(lambda terms: events.PureMechanism(terms.run_epsilon / 3)))],
        "weights, logistic, zcdp",
    ),
    "two errors charged as one": (
        [(quality, "Gaussian", lambda squared, variance: events.Gaussian(1, variance))],
        "quality, zcdp",
    ),
    **{
        f"one row of a person's two is charged: {name}": (
            [(price, "Group", lambda event, size: event)],
            f"{name}, two rows",
        )
        for name in ("select, exponential, pure", "sparse vector, best, pure", "weights, lecture, zcdp")
    },
    "a histogram of which one row moves one cell": (
        [(Workload, "sensitivity", one_group)],
        "histogram, as planned, pure",
    ),
    "running totals of which one row moves one": (
        [(sums, "_by_root", lambda *given: Joint((3,), *(Fraction(FINENESS**2),) * 3))],
        "sum that runs by, as planned, zcdp",
    ),
    "quantiles by groups at the price of one line": (
        [(sums, "_by_root", lambda *given: BY_ROOT(*given[:-1], 1))],
        "quantiles by, as planned, zcdp",
    ),
    "quantiles at the price of rows that come or go": (
        [(sums, "strategy", lambda groups: replace(strategy(groups), apart=0))],
        "quantiles, as planned, gdp",
    ),
    "a sparse vector without noise on its questions": (
        [(SparseVector, "_test", bare)],
        "sparse vector, best, pure",
    ),
    "one row of a unit's two is charged": (
        [(Measurement, "most", 1)],
        "count of events, pure",
    ),
    "one row of a unit's two is charged: a quantile": (
        [(Workload, "most", 1)],
        "quantile of events, zcdp",
    ),
    "what is kept of a unit depends on the units before it": (
        [
            (Cap, "hashes", by_place(Cap.hashes)),
            (unit_releases, "source_of", unit_releases.source_of.__wrapped__),
        ],
        "sum over events, pure",
    ),
    "each row of a unit counts for a key": (
        [(keys_room, "unit_weights", rows_as_keys)],
        "keys of events, gaussian",
    ),
    "what a row looks up depends on the other rows": (
        [
            (LookedUp, "columns", first_of_all(LookedUp.columns)),
            (unit_releases, "source_of", unit_releases.source_of.__wrapped__),
        ],
        "sum of what events look up, pure",
    ),
    "the number of events is told for nothing": (
        [(session_room, "release", tells_how_many(release.release))],
        "fraction of units, pure",
    ),
    "a disagreement that is told almost exactly": (
        [(release, "DISAGREEMENT_NOISE", Fraction(1, 9))],
        "difference after its disagreement, zcdp",
    ),
    "logistic noise at half of its price": (
        [(recipe_event, "Logistic", lambda l1, l2, scale: events.Logistic(l1, l2, 2 * scale))],
        "fraction, logistic, pure",
    ),
    "three votes at the price of two": (
        [(recipe_event, "Votes", lambda rows, votes, flip: events.Votes(rows, votes - 1, flip))],
        "fraction, votes, pure",
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_an_undercharge_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    planted, where = TWINS[name]
    assert verdict(where) is not None
    for owner, attribute, broken in planted:
        monkeypatch.setattr(owner, attribute, broken)
    with pytest.raises(LawBroken):
        judged(RELEASES[where])


LEAKS: dict[str, tuple[Any, str]] = {
    "no noise": (lambda values, scale: np.asarray(values), "told something else"),
    "one draw for all groups": (lambda values, scale: values + laplace.laplace(scale), "spread over several"),
    "a draw that is used twice": (
        lambda values, scale: [z + v for z in [laplace.laplace(scale)] for v in values],
        "twice",
    ),
    "noise that follows the rows": (
        lambda values, scale: np.array([int(v) + laplace.laplace(scale * (1 + abs(int(v)))) for v in values]),
        "depend on the rows",
    ),
    "a sampler without a law": (lambda values, scale: values + bernoulli.bernoulli(scale), "has no law"),
}


@pytest.mark.parametrize("name", LEAKS)
def test_what_leaves_beside_the_doors_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    leaking, words = LEAKS[name]
    monkeypatch.setattr(release, "add_laplace", leaking)
    with pytest.raises(LawBroken, match=words):
        judged(RELEASES["histogram, laplace, pure"])


def test_rows_of_unknown_law_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    first = lambda rows, count: np.arange(count)  # noqa: E731  (always the same rows)
    monkeypatch.setattr(release, "without_replacement", first)
    with pytest.raises(LawBroken, match="unknown law"):
        judged(RELEASES["fraction, subsampled-laplace, pure"])


def test_a_vote_that_looks_at_other_rows_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Measurement.contributions

    def neighbouring(measurement: Measurement, block: Any) -> Any:
        return np.roll(told(measurement, block), 1)

    monkeypatch.setattr(Measurement, "contributions", neighbouring)
    with pytest.raises(LawBroken, match="its own row"):
        judged(RELEASES["mean, votes, pure"])


def test_the_tape_repeats_what_was_said_and_shows_what_was_asked() -> None:
    """By hand: a count of 2 on one table and of 3 on its neighbour, through one Laplace door."""
    one = RELEASES["count, laplace, pure"]
    with doors():
        with playing(Tape()) as first:
            one.ask(one.opened([KINDS[1]] * 2 + [KINDS[0]] * 4))
        with playing(Tape(script=first)) as second:
            one.ask(one.opened([KINDS[1]] * 3 + [KINDS[0]] * 3))
    assert [int(step.secret) for step in (*first.steps, *second.steps)] == [2, 3]
    assert int(first.steps[0].said) == int(second.steps[0].said)


def test_budgets_here_are_never_the_limit() -> None:
    assert set(CURRENCIES) == {"pure", "zcdp", "gdp", "validity"}
    assert all(max(found.charged) < 1e6 for found in verdicts())
