"""Claimed against measured, for every mechanism."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.audit.case import Case
from holdfast.audit.epsilon import LEAST_RUNS, Audit, epsilon_lower_bound
from holdfast.audit.power import noticed
from holdfast.check import probability

CONFIDENCE = 1.0 - 1e-6
"""Of each audit by itself: a hundred of them raise a false alarm once in ten thousand reports."""

NOTICES = "notices: a loss of so many times the claim would be refuted by as many runs, nine times in ten"

Progress = Callable[[str, int, int], None]
"""Called with the name of a case, how many are done and how many there are."""


@dataclass(frozen=True, slots=True)
class Row:
    """One mechanism: what is claimed for it and what was measured."""

    name: str
    origin: str
    epsilon: float
    delta: float
    audit: Audit
    seconds: float

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted."""
        return self.audit.violates(self.epsilon)

    @property
    def alarming(self) -> bool:
        """Whether something is wrong here: a claim of ours is refuted, or a control passed."""
        return self.violated if self.origin == "holdfast" else self.origin == "control" and not self.violated

    @property
    def notices(self) -> float:
        """How many times too large the loss would have to be for these runs to refute the claim: `power.noticed`."""
        return noticed(self.audit, self.epsilon)

    @property
    def verdict(self) -> str:
        """In one or two words."""
        if self.origin == "control":
            return "caught" if self.violated else "NOT CAUGHT"
        return "VIOLATED" if self.violated else "holds"


@dataclass(frozen=True, slots=True)
class Report:
    """All rows of one run; iterates over them."""

    rows: tuple[Row, ...]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def exit_status(self) -> int:
        """0 if no claim of Holdfast was refuted and every control was caught, else 1. Peers do not count."""
        return int(any(row.alarming for row in self.rows))

    def __str__(self) -> str:
        width = max((len(row.name) for row in self.rows), default=4)
        lines = [
            f"{'mechanism':<{width}}  {'claimed':>8}  {'measured':>8}  {'delta':>8}  {'notices':>8}  verdict"
        ]
        for row in self.rows:
            numbers = (
                f"{row.epsilon:>8.4f}  {row.audit.epsilon_lower:>8.4f}  {row.delta:>8.2g}  {_times(row):>8}"
            )
            lines.append(f"{row.name:<{width}}  {numbers}  {row.verdict}")
        return "\n".join([*lines, NOTICES])

    def to_markdown(self) -> str:
        """The table, with the events that told most."""
        lines = [
            "| mechanism | claimed ε | measured ε ≥ | δ | notices | runs | told by | verdict |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for row in self.rows:
            lines.append(
                f"| {row.name} | {row.epsilon:.4f} | {row.audit.epsilon_lower:.4f} | {row.delta:.3g} | "
                f"{_times(row)} | {row.audit.runs} | {row.audit.event} | {row.verdict} |"
            )
        return "\n".join(lines) + "\n"

    def plot(self, path: str | Path | None = None) -> Any:
        """Bars of what was measured, marks at what was claimed. Returns the figure; saves it to `path`."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8, 1 + 0.28 * len(self.rows)), layout="constrained")
        axes = figure.subplots()
        places = range(len(self.rows))
        colours = {"holdfast": "#2a6f97", "control": "#c1666b"}
        axes.barh(
            places,
            [row.audit.epsilon_lower for row in self.rows],
            color=[colours.get(row.origin, "#8d99ae") for row in self.rows],
            label="measured, at least",
        )
        axes.plot([row.epsilon for row in self.rows], list(places), "k|", markersize=10, label="claimed")
        axes.set_yticks(list(places), [row.name for row in self.rows], fontsize=7)
        axes.invert_yaxis()
        axes.margins(y=0.01)
        axes.set_xlabel("epsilon")
        axes.legend(loc="lower right")
        if path is not None:
            figure.savefig(path, dpi=120)
        return figure


def _times(row: Row) -> str:
    """The power of a row as it is printed; a claim that is refuted was noticed already."""
    if row.violated:
        return "-"
    return f"x{row.notices:.2f}" if row.notices < math.inf else "none"


def registry() -> list[Case]:
    """Every mechanism of the package, then the controls, then the peers that are installed."""
    from holdfast.audit.central_cases import additive, sampled, selection, sparse_vectors
    from holdfast.audit.control_cases import controls
    from holdfast.audit.holdout_cases import holdouts
    from holdfast.audit.local_cases import local
    from holdfast.audit.moment_cases import moments
    from holdfast.audit.peer_cases import peers
    from holdfast.audit.release_cases import releases
    from holdfast.audit.session_cases import sessions
    from holdfast.audit.stream_cases import streams
    from holdfast.audit.unit_cases import units

    rooms = (
        additive,
        sampled,
        selection,
        sparse_vectors,
        streams,
        local,
        sessions,
        moments,
        units,
        holdouts,
        releases,
        controls,
        peers,
    )
    return [case for room in rooms for case in room()]


def run_all(
    progress: Progress | None = None,
    *,
    cases: list[Case] | None = None,
    effort: float = 1.0,
    confidence: float = CONFIDENCE,
) -> Report:
    """Audit every case of the registry, or those given, with `effort` times the usual number of runs.

    Controls never get less than the usual number: with few runs the innocent and the guilty look alike.

    Guarantee: a claim that is true is refuted with probability at most 1 - confidence, each.
    """
    effort = probability("effort", effort, 1e6, "1 is the usual one")
    chosen = registry() if cases is None else cases
    rows = []
    for done, case in enumerate(chosen):
        if progress is not None:
            progress(case.name, done, len(chosen))
        share = max(effort, 1.0) if case.origin == "control" else effort
        rows.append(audit_case(case, max(LEAST_RUNS, round(share * case.runs)), confidence))
    if progress is not None:
        progress("", len(chosen), len(chosen))
    return Report(tuple(rows))


def audit_case(case: Case, runs: int, confidence: float = CONFIDENCE) -> Row:
    """One row."""
    start = time.perf_counter()
    audit = epsilon_lower_bound(
        None, case.first, case.second, runs=runs, confidence=confidence, delta=case.delta, many=case.many
    )
    return Row(case.name, case.origin, case.epsilon, case.delta, audit, time.perf_counter() - start)
