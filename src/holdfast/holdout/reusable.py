"""A holdout that may be looked at again and again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from numpy.typing import ArrayLike, NDArray

from holdfast.check import between, positive
from holdfast.errors import InputError
from holdfast.holdout.design import Design, design, not_private
from holdfast.holdout.guesser import Guesser, Read, first_state
from holdfast.holdout.label_release import Rows, noisy_mean, rounded_mean
from holdfast.holdout.labels import Labels
from holdfast.holdout.left import Left
from holdfast.holdout.look_meter import Means, Meter
from holdfast.holdout.look_meter import Place as Seat
from holdfast.holdout.looks import Looks, Place, place_of
from holdfast.holdout.measured import Reading
from holdfast.holdout.metric import Metric, RowValues, known_name, metric_named
from holdfast.holdout.outcome import Outcome
from holdfast.holdout.paired_difference import Comparison, compared
from holdfast.holdout.predictions import (
    Predictions,
    cells_of,
    half_difference,
    known_disagreement,
    refuse_labels,
    row_values,
    weighted,
)
from holdfast.holdout.refusal import forgotten
from holdfast.holdout.scores import as_planned, difference, ratio, single
from holdfast.holdout.table_score import tabled
from holdfast.holdout.unit_rows import UnitRows
from holdfast.ledger import Ledger
from holdfast.session.answer import Answer

AnyMetric = str | Metric | RowValues
COMPARED = 2
"""With how many others a submission is compared: the next above, and the next below."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `check` says: the training score is fine, or what the holdout says instead."""

    fine: bool
    answer: Answer

    def __str__(self) -> str:
        return f"fine: {self.answer}" if self.fine else f"not fine, the holdout says {self.answer}"


class ReusableHoldout:
    """Scores on one holdout that stay true of the population, however often and adaptively they are asked.

    Guarantee: with probability `confidence`, all answers together have their population value between `low`
    and `high`. The population of a score is the law that the rows were drawn from; for predictions that
    belong to the row numbers of this holdout (an array) it is the law of the labels of these rows.
    Requires: independent rows; nobody learns about the labels in any other way. A function of row numbers is
    called with the rows drawn, which must stay secret from the analyst: use it on your own machine only.
    Cost: one look for a score, a check or a comparison, two for precision and recall. Charged before the
    labels are read, never refunded. With votes a score reads no more rows of 1e7 than of 1e5; a comparison reads all.
    Answers are differentially private for the labels, unless a mode that is not was named or private=False said;
    those say "not private". Which classes the labels have is public, and so is their number.

    Where several rows belong to one unit (a person), `units` has the key of each row and `rows_per_unit` how many are
    kept of one, the first in order: then units are independent and protected, and an answer is about the mean of
    their means (weighted scores and ratios: about their rows; AUC and other tables: about a row of a unit). Reference:
    docs/theorems.md, Theorem 185.

    `ledger` is where the looks are counted, shared by all processes and by every later run: a file, a folder,
    "postgresql://…#name" or a ledger; one for each set of labels. Without it they are forgotten with the object.
    Trust: this object holds the labels, so it guards an honest analyst from fooling themselves; to guard the labels
    from others, serve it elsewhere.
    The other parameters are those of `design`, and may be left out when the ledger knows them; so may `metric`.
    """

    def __init__(
        self,
        labels: ArrayLike,
        *,
        units: ArrayLike | None = None,
        rows_per_unit: int | None = None,
        metric: AnyMetric | None = None,
        queries: int | None = None,
        within: float | None = None,
        confidence: float = 0.95,
        mode: str | None = None,
        private: bool | None = None,
        failures: int | None = None,
        threshold: float | None = None,
        tolerance: float | None = None,
        hits: int | None = None,
        expect: float | None = None,
        alarms: int | None = None,
        answers: int | None = None,
        features: Any = None,
        ledger: Place = None,
        anchors: Path | str | None = None,
    ) -> None:
        self._labels = Labels(labels)
        self._keys: dict[str, Any] = {"units": units, "rows_per_unit": rows_per_unit}
        if units is not None:
            self._labels.units = UnitRows(units, len(self._labels), rows_per_unit)
        elif rows_per_unit is not None:
            raise InputError("expected units= beside rows_per_unit=, got none; give the key of each row")
        first = metric_named("accuracy" if metric is None else metric)
        refuse_labels(first, self._labels)
        self.features = features
        self._place = ledger, anchors
        if features is not None and len(features) != len(self._labels):
            raise InputError(
                f"expected features of {len(self._labels)} rows like the labels, got {len(features)}"
            )
        asked = None
        if queries is not None:
            asked = design(
                rows=self._labels.independent, queries=queries, within=within, confidence=confidence, mode=mode,
                private=private, failures=failures, threshold=threshold, tolerance=tolerance, hits=hits,
                expect=expect, alarms=alarms, answers=answers,
            )  # fmt: skip
        self.looks = Looks(self._labels, ledger, anchors)
        try:
            name = metric if isinstance(metric, str) else known_name(first)
            terms = None if asked is None else _terms(asked)
            found = self.looks.agree("holdout", terms, _first_state, metric=name)
            self.design = _design(found)
            if private and not self.design.private:  # as it was opened before
                raise not_private(self.design.mode)
            if self.looks.lost and not (self.design.metered or self.design.mode == "discretised"):
                raise forgotten(self.design.mode)
        except BaseException:
            self.looks.abandon()
            raise
        self.metric = first if metric is not None else metric_named(found["note"]["metric"] or "accuracy")
        if self.design.metered:
            self.looks.count_on(Meter(self.design))
        self._guesser = Guesser(self.design)

    def __repr__(self) -> str:
        return f"<holdfast holdout: {self.design}>"

    @property
    def rows(self) -> int:
        """How many rows the holdout has. Public."""
        return len(self._labels)

    @property
    def units(self) -> int:
        """How many units they belong to, each a row unless units= says otherwise. Public."""
        return self.design.rows

    @property
    def width(self) -> float:
        """The certified half-width of every score, for values in [0,1]."""
        return self.design.width

    @property
    def looks_used(self) -> int:
        """How many looks were charged, by all who share the ledger, or passed over because others told more."""
        return self.looks.used

    @property
    def ledger(self) -> Ledger:
        """Where the looks are counted."""
        return self.looks.ledger

    @property
    def private(self) -> bool:
        """Whether answers are differentially private for the labels."""
        return self.design.private

    @property
    def classes(self) -> NDArray[Any]:
        """The classes of the labels, in order: the columns of chances for each class. Public."""
        return self._labels.classes

    @property
    def left(self) -> Left:
        """What is left: looks, and where they depend on guesses, how many of those may fail."""
        plan, left = self.design, self.looks.left
        if plan.mode == "discretised":
            return Left(left, left)
        seen, meter = self.looks.transcript(), self.looks.meter
        if meter is not None:
            if not self.looks.lost:  # else they go on with wider intervals
                left = min(left, meter.left(seen.charged, plan.queries - left))
            return Left(left, left)
        return self._guesser.left(left, seen)

    @property
    def alarms_left(self) -> int | None:
        """How many guesses may still fail with all looks answered; None where looks do not depend on guesses."""
        return self.left.failures

    @property
    def looks_left(self) -> int:
        """How many looks will surely be answered, whatever is asked: 0 when no further one can be.

        Where looks depend on guesses this is the number if every guess fails; `left` has the others.
        """
        return self.left.looks

    def score(
        self,
        predictions: Predictions,
        *,
        metric: AnyMetric | None = None,
        guess: float | None = None,
        sample_weight: ArrayLike | None = None,
        most_weight: float = 1.0,
        key: str | None = None,
        team: str = "",
        team_most: int | None = None,
    ) -> Answer:
        """The metric on the population, with its interval.

        `guess` is your own estimate (from training data, say): the modes of guesses answer it back while the holdout
        agrees. Without one, mode="guesses" takes the last value told, the others the middle of the range. A repeated
        `key` returns the stored answer at no cost, whatever the predictions. `sample_weight` has a weight from 0 to
        `most_weight` for each row: the weighted mean takes two looks.
        """
        kind = self._kind(metric, plain_for=None if sample_weight is None else "weights")
        if kind.table is not None:
            return self._tabled(kind, predictions, key, team, team_most)
        sides, named = self._sides(predictions, kind, sample_weight, most_weight)
        guessed = self._last(kind) if guess is None else kind.as_mean(between("guess", guess))

        def read(means: list[float], told: Reading) -> Answer:
            if len(means) == 2:
                return ratio(self.design, named, means, told)
            return single(self.design, named, means[0], told)

        question = kind.terms if sample_weight is None else f"weighted {kind.terms}"
        return self._ask(question, sides, guessed, read, key, team, team_most).answer

    def check(
        self,
        train_score: float,
        predictions: Predictions,
        *,
        metric: AnyMetric | None = None,
        key: str | None = None,
        team: str = "",
    ) -> Verdict:
        """Is the training score true of the population? "Fine", or what the holdout says instead.

        Thresholdout and Guess-and-Check say nothing more than that. The other modes answer as `score` does,
        and call fine what lies inside the interval.
        """
        kind = self._kind(metric, plain_for="check")
        guess = kind.as_mean(between("train_score", train_score))
        sides, named = self._sides(predictions, kind)
        told = self._ask(
            f"check {kind.terms}", sides, guess,
            lambda means, told: single(self.design, named, means[0], told), key, team,
        )  # fmt: skip
        inside = told.answer.low <= train_score <= told.answer.high
        return Verdict(inside if told.failed is None else not told.failed, told.answer)

    def compare(
        self,
        first: Predictions,
        second: Predictions,
        *,
        metric: AnyMetric | None = None,
        expect: float | None = None,
        key: str | None = None,
        team: str = "",
        team_most: int | None = None,
    ) -> Answer:
        """By how much the first score exceeds the second, in one look; narrow where they agree on most rows.

        With votes and gaussian noise the interval is by the variance of the difference. Two arrays of classes or
        chances: on how many rows they differ is known, and the interval is for the law of the labels of these rows.
        Otherwise, or if you give `expect`, the disagreement is told with noise as well; `expect` is your guess of it
        from before (the design's unless you say more). Models that differ on more rows than expected tell more, and
        cost more than one of the looks left. The other modes answer half the difference, twice as wide as a score.
        """
        kind = self._kind(metric, plain_for="compare")
        ((a,), named), ((b,), _) = (self._sides(side, kind) for side in (first, second))
        question, plan, meter = f"compare {kind.terms}", self.design, self.looks.meter
        if meter is None:
            return self._ask(
                question, [half_difference(a, b)], None,
                lambda means, told: difference(plan, named, means[0], told), key, team, team_most,
            ).answer  # fmt: skip
        known = known_disagreement(first, second, self._labels, kind) if expect is None else None
        share = plan.expect if expect is None else between("expect", expect, plan.expect, 0.5)
        asked = Comparison(named, a, b, known, share)
        return self._on_meter(
            question, 1,
            lambda number: compared(meter, asked, meter.place(number), self.looks.transcript().charged),
            key, team, team_most,
        )[1].answer  # fmt: skip

    def submit(
        self,
        predictions: Predictions,
        rivals: Callable[[Answer], Sequence[tuple[int, Predictions]]],
        *,
        key: str | None = None,
        team: str = "",
        team_most: int | None = None,
    ) -> tuple[int, Outcome]:
        """(the number of this look, its outcome): a score, and by how much it exceeds those of its rivals.

        `rivals` is asked once the score is known, for at most two others with their numbers. Three looks.
        """
        kind, meter, labels = self._kind(None, plain_for="submit"), self.looks.meter, self._labels
        assert meter is not None
        (own,), named = self._sides(predictions, kind)

        def release(number: int) -> Outcome:
            found = self._scored(
                meter,
                [own],
                lambda means, told: single(self.design, named, means[0], told),
                meter.place(number),
            )
            against = {}
            for place, (other, array) in enumerate(rivals(found.answer)[:COMPARED], number + 1):
                (rival,), _ = self._sides(array, kind)
                known = known_disagreement(predictions, array, labels, kind)
                asked = Comparison(named, own, rival, known, self.design.expect)
                # Whom it is compared with may depend on all that was told by now, and on this look's own answers.
                charged = self.looks.transcript().charged
                for part in found.told:
                    charged = meter.after(charged, part)
                difference = compared(meter, asked, meter.place(place), charged)
                against[other] = difference.answer
                found = replace(found, told=(*found.told, *difference.told))
            return replace(found, against=against)

        return self._on_meter(kind.terms, 1 + COMPARED, release, key, team, team_most)

    def scorer(
        self, metric: AnyMetric | None = None, *, features: Any = None, method: str = "predict"
    ) -> Any:
        """A scikit-learn scorer: use it as `scoring=` in GridSearchCV or cross_val_score."""
        from holdfast.holdout.scorer import HoldoutScorer

        return HoldoutScorer(self, metric, self.features if features is None else features, method)

    def history(self) -> list[tuple[str, Answer]]:
        """(team, answer) of every answer, in the order given."""
        return [(team, outcome.answer) for _, _, team, outcome in self.looks.outcomes()]

    def close(self) -> None:
        """Let go of the ledger."""
        self.looks.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """How it travels to worker processes: they open the same ledger, so the looks stay one count."""
        place, anchors = self._place
        if not isinstance(place, str | Path):
            raise InputError(
                "expected a ledger that other processes reach, got none; give ledger=, a file or an address"
            )
        terms = {"metric": self.metric, "features": self.features, "ledger": place, "anchors": anchors}
        return partial(type(self), **self._keys, **terms), (self._labels.values,)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _kind(self, metric: AnyMetric | None, plain_for: str | None = None) -> Metric:
        kind = self.metric if metric is None else metric_named(metric)
        if plain_for is not None and not kind.plain:
            raise InputError(
                f"expected a mean over rows for {plain_for}, got {kind.name}; use score, without weights"
            )
        # Several outputs are averaged, which is no longer 0 or 1.
        return replace(kind, exact=False) if self._labels.columns else kind

    def _sides(
        self, predictions: Predictions, kind: Metric, weights: ArrayLike | None = None, most: float = 1.0
    ) -> tuple[list[Rows], Metric]:
        """The values of each unit, and the metric by the name of what they estimate."""
        sides = row_values(predictions, self._labels, kind)
        if weights is not None:
            sides = weighted(sides[0], weights, positive("most_weight", most), self.rows)
            kind = replace(kind, roundings=kind.roundings + 1)
        units = self._labels.units
        return (sides, kind) if units is None else (units.values(sides), units.told(kind, len(sides) == 2))

    def _ask(
        self,
        question: str,
        sides: list[Rows],
        guess: float | None,
        read: Read,
        key: str | None,
        team: str,
        team_most: int | None = None,
    ) -> Outcome:
        """Charge, release, settle."""
        looks, plan, meter = self.looks, self.design, self.looks.meter
        if meter is not None:
            return self._on_meter(
                question, len(sides),
                lambda number: self._scored(meter, sides, read, meter.place(number, len(sides))),
                key, team, team_most,
            )[1]  # fmt: skip
        if plan.mode == "discretised":
            look = looks.charge(team, question, len(sides), team_most=team_most, key=key)
            if look.answer is not None:
                return Outcome.from_json(look.answer, repeated=True)
            means = [rounded_mean(plan, side) for side in sides]
            return looks.settle(look, Outcome(read(means, as_planned(plan, len(sides)))))
        # The next look depends on which guesses failed, so looks are taken one at a time.
        with looks.ledger.turn():
            known = None if key is None else looks.find(team, key)
            if known is None or known.answer is None:
                self._guesser.refuse_beyond(len(sides), looks.transcript())
            look = looks.charge(team, question, len(sides), team_most=team_most, key=key)
            if look.answer is not None:
                return Outcome.from_json(look.answer, repeated=True)
            return looks.settle_in_turn(look, lambda seen: self._guesser.release(sides, guess, read, seen))

    def _on_meter(
        self,
        question: str,
        looks: int,
        release: Callable[[int], Outcome],
        key: str | None,
        team: str,
        team_most: int | None,
    ) -> tuple[int, Outcome]:
        """Charge, release in the place that came with the charge, settle; with the number of the look.

        What was told is read in `release`, after the charge: all that this question can depend on, also of a look that
        is resumed.
        """
        look = self.looks.charge(team, question, looks, team_most=team_most, key=key)
        if look.answer is not None:
            return look.id, Outcome.from_json(look.answer, repeated=True)
        return look.id, self.looks.settle(look, release(place_of(look)))

    def _last(self, kind: Metric) -> float | None:
        """The last value that was told of this metric, as a guess for mode="guesses"."""
        if self.design.guesses is None:
            return None
        value = self.looks.transcript().last.get(kind.terms)
        return None if value is None else kind.as_mean(value)

    def _tabled(
        self, kind: Metric, predictions: Predictions, key: str | None, team: str, team_most: int | None
    ) -> Answer:
        """A function of a table that is told at once."""
        meter, plan, classes = self.looks.meter, self.design, len(self._labels.classes)
        if meter is None or plan.mode != "gaussian":
            raise InputError(
                f"expected a holdout with mode='gaussian' for {kind.name}, got mode={plan.mode!r}"
            )
        rows, named, units = cells_of(predictions, self._labels, kind), kind, self._labels.units
        if units is not None:
            rows, named = units.cells(rows), units.tabled(kind)
        return self._on_meter(
            kind.terms, kind.looks,
            lambda number: tabled(
                meter, named, rows, classes, meter.place(number, kind.looks), self.looks.transcript().charged
            ),
            key, team, team_most,
        )[1].answer  # fmt: skip

    def _scored(self, meter: Meter, sides: list[Rows], read: Read, place: Seat) -> Outcome:
        """Means with the noise of a place, told together."""
        plan, count, charged = self.design, len(sides), self.looks.transcript().charged
        read_rows = int(place.epoch.noise) if plan.mode == "votes" else plan.rows
        told = Reading(meter.half_width(charged, place), count * meter.rho(place), count * read_rows)
        means = [noisy_mean(plan, place.epoch, side) for side in sides]
        return Outcome(read(means, told), told=(Means(count, place.index),))


def _terms(plan: Design) -> dict[str, Any]:
    """What is promised, as JSON: the design, and what all looks together cost in zCDP; null where not private."""
    return {
        "queries": plan.queries,
        "rho": plan.compared_rho if plan.private else None,
        "design": plan.facts(),
    }


def _design(terms: dict[str, Any]) -> Design:
    return Design.from_json(json.dumps(terms["design"]))


def _first_state(terms: dict[str, Any]) -> str | None:
    return first_state(_design(terms))
