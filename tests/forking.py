"""Run alone, in a process without threads: opens one of everything that holds noise or a count, forks, and prints
what the child was told when it went on with it, and what the parent was told afterwards.

Argument: "guarded", or "open" to leave the guard out, so that the test can see that it is needed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import holdfast as hf
from holdfast import process
from holdfast.data.frame import FrameSource
from holdfast.errors import HoldfastError
from holdfast.holdout import Leaderboard, ReusableHoldout
from holdfast.learn import FiniteClass, Thresholds, logistic
from holdfast.ledger import Account, Charge, Commit, MemoryLedger, Record, Reserve, SqliteLedger
from holdfast.mechanisms import SparseVector
from holdfast.stream import Counter, HistogramCounter, PanPrivateDensity, UnboundedCounter
from holdfast.synthesis import quality

Action = Callable[[Any], object]
LABELS = np.random.default_rng(1).integers(0, 2, 20_000)
SCHEMA = hf.Schema(age=hf.Integer(0, 120), smoker=hf.Boolean())
ROWS = {
    "age": np.random.default_rng(2).integers(0, 100, 3000),
    "smoker": np.random.default_rng(3).random(3000) < 0.4,
}


def ledger_with(ledger: Any) -> Any:
    ledger.open(Account("s", "zcdp", 1000))
    ledger.reserve("s", "paid", "{}", "{}", Charge(1, 1))
    return ledger


def together(ledger: Any, commit: Commit) -> None:
    """Raise what becomes of a commit, if it is an error."""
    (outcome,) = ledger.commit_all([commit])
    if isinstance(outcome, Exception):
        raise outcome


LEDGER: dict[str, Action] = {
    "reserve": lambda x: x.reserve("s", f"new {os.getpid()}", "{}", "{}", Charge(1, 1)),
    "record": lambda x: x.record(next(iter(x.entries())).id, "1"),
    "together": lambda x: together(x, Reserve("s", f"another {os.getpid()}", "{}", "{}", Charge(1, 1))),
    "record together": lambda x: together(x, Record(next(iter(x.entries())).id, "1")),
    "find": lambda x: x.find("s", "paid"),
    "answered": lambda x: list(x.answered()),
    "turn": lambda x: x.turn().__enter__(),
    "moment": lambda x: x.moment("s"),
    "open": lambda x: x.open(Account(f"t {os.getpid()}", "zcdp", 5)),
    "set_limit": lambda x: x.set_limit(Account("the table", "zcdp", 10**6)),
}  # fmt: skip


class Asked:
    """A session in memory, with what it has opened."""

    def __init__(self) -> None:
        self.table = hf.open(ROWS, SCHEMA)
        self.session = self.table.session(rho=50.0, target="table")
        self.session.count("age > 50", rho=0.01)
        self.watch = self.session.sparse_vector(0.5, 3, epsilon=0.1)
        self.watch.above("age > 70")
        self.weights = self.session.multiplicative_weights(["smoker"], queries=100, within=0.2)
        self.weights.fraction("smoker")
        self.synthetic = self.session.synthesize(["smoker"], ["smoker"], rho=0.01)


SESSION: dict[str, Action] = {
    "a question": lambda x: x.session.count("age > 20", rho=0.01),
    "a question asked before": lambda x: x.session.count("age > 50", rho=0.01),
    "several questions": lambda x: x.session.sql("SELECT avg(age), sum(age) FROM t", rho=0.01),
    "statistic": lambda x: x.session.statistic(lambda rows: rows["age"] / 120, ["age"], rho=0.01),
    "sample": lambda x: x.session.sample("smoker"),
    "sample with a key": lambda x: x.session.sample("smoker", key="1"),
    "select": lambda x: x.session.select(["age > 3", "smoker"], epsilon=0.1),
    "above": lambda x: x.watch.above("age > 71"),
    "the same sparse vector": lambda x: x.session.sparse_vector(0.5, 3, epsilon=0.1),
    "another sparse vector": lambda x: x.session.sparse_vector(0.5, 3, epsilon=0.1, name="b"),
    "the weights": lambda x: x.weights.fraction("NOT smoker"),
    "other weights": lambda x: x.session.multiplicative_weights(["smoker"], queries=9, within=0.2, name="b"),
    "synthesize": lambda x: x.session.synthesize(["smoker"], ["NOT smoker"], rho=0.01),
    "small database": lambda x: x.session.synthesize(
        ["smoker"], ["smoker"], epsilon=0.1, size=2, method="small-database"
    ),
    "quality": lambda x: quality(x.session, x.synthetic, ["smoker"], rho=0.01),
    "minimize": lambda x: x.session.minimize(logistic(SCHEMA, ["age"], "smoker"), rho=0.5),
    "learn_in": lambda x: FiniteClass(Thresholds([20.0, 50.0])).learn_in(
        x.session, ["age"], "smoker", epsilon=0.5
    ),
    "another session": lambda x: x.table.session(rho=0.1, target="table"),
    "limit": lambda x: x.table.limit(rho=90.0),
}

LOOKS: dict[str, Action] = {
    "score": lambda x: x.score(LABELS),
    "a look with a key": lambda x: x.score(LABELS, key="1"),
    "check": lambda x: x.check(0.9, LABELS),
    "compare": lambda x: x.compare(LABELS, 1 - LABELS),
    "looks_left": lambda x: x.looks_left,
}


def holdout(mode: str, **more: Any) -> Callable[[], ReusableHoldout]:
    def make() -> ReusableHoldout:
        made = ReusableHoldout(LABELS, queries=20, mode=mode, **more)
        made.score(LABELS, key="1")
        return made

    return make


COUNTING: dict[str, Action] = {
    "add": lambda x: x.add(1),
    "total": lambda x: x.total(),
    "to_json": lambda x: x.to_json(),
}
EXTENDING = COUNTING | {"extend": lambda x: x.extend([1, 0, 1])}


def counted(make: Callable[[], Any]) -> Callable[[], Any]:
    def made() -> Any:
        counter = make()
        for _ in range(5):
            counter.add(1)
        return counter

    return made


FOLDER = Path(os.environ["HOLDFAST_ANCHORS"])

CASES: dict[str, tuple[Callable[[], Any], dict[str, Action]]] = {
    "MemoryLedger": (lambda: ledger_with(MemoryLedger()), LEDGER | {"retire": lambda x: x.retire(False)}),
    "ChainedLedger": (lambda: ledger_with(SqliteLedger(FOLDER / "ledger.sqlite")), LEDGER),
    "Session": (Asked, SESSION),
    "MemoryLedger, votes": (holdout("votes"), LOOKS),
    "MemoryLedger, gaussian": (holdout("gaussian"), LOOKS),
    "MemoryLedger, discretised": (holdout("discretised"), LOOKS),
    "MemoryLedger, thresholdout": (holdout("thresholdout"), LOOKS),
    "MemoryLedger, guess-and-check": (holdout("guess-and-check"), LOOKS),
    "ChainedLedger, looks": (holdout("gaussian", ledger=FOLDER / "looks.sqlite"), LOOKS),
    "ChainedLedger, looks in turn": (holdout("thresholdout", ledger=FOLDER / "turns.sqlite"), LOOKS),
    "MemoryLedger, ladder": (
        lambda: Leaderboard(LABELS, queries=20, mode="ladder"),
        {"submit": lambda x: x.submit("team", LABELS), "looks_left": lambda x: x.looks_left()},
    ),
    "Counter, sqrt": (counted(lambda: Counter(1000, rho=0.5)), EXTENDING),
    "Counter, tree": (counted(lambda: Counter(1000, rho=0.5, method="tree")), EXTENDING),
    "Counter, pure": (counted(lambda: Counter(1000, epsilon=0.5)), EXTENDING),
    "UnboundedCounter": (counted(lambda: UnboundedCounter(rho=0.5)), COUNTING),
    "UnboundedCounter, pure": (counted(lambda: UnboundedCounter(epsilon=0.5)), COUNTING),
    "HistogramCounter": (
        counted(lambda: HistogramCounter([1, 2], 1000, rho=0.5)),
        {"add": COUNTING["add"], "totals": lambda x: x.totals(), "to_json": COUNTING["to_json"]},
    ),
    "PanPrivateDensity": (
        lambda: PanPrivateDensity(100, epsilon=0.5),
        {
            "see": lambda x: x.see(3),
            "state": lambda x: x.state,
            "to_json": COUNTING["to_json"],
            "density": lambda x: x.density(),
        },
    ),
    "SparseVector": (
        lambda: SparseVector(100, epsilon=0.5, hits=10, numeric=True),
        {"above": lambda x: x.above(3), "answer": lambda x: x.answer(3), "to_json": COUNTING["to_json"]},
    ),
}  # fmt: skip
"""The class that guards it and a word on its kind: (how it is opened, what may be done with it)."""


def told(thing: Any, actions: dict[str, Action]) -> dict[str, str]:
    """What each action says: the kind of its refusal and the words, or that it went on."""
    found = {}
    for name, action in actions.items():
        try:
            action(thing)
            found[name] = "went on"
        except HoldfastError as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


def watch_rows() -> list[str]:
    """The names of all accesses to rows in memory from now on."""
    touched: list[str] = []

    def told_of(name: str) -> Callable[..., Any]:
        original = getattr(FrameSource, name)

        def call(*arguments: Any, **more: Any) -> Any:
            touched.append(name)
            return original(*arguments, **more)

        return call

    for name in ("scan", "gather", "draw", "totals"):
        setattr(FrameSource, name, told_of(name))
    return touched


def in_child(work: Callable[[], object]) -> Any:
    """What a forked child makes of it."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.close(read)
        with os.fdopen(write, "w") as pipe:
            try:
                json.dump(work(), pipe)
            except BaseException as error:
                json.dump(f"{type(error).__name__}: {error}", pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        found = json.load(pipe)
    os.wait()
    return found


def attacks() -> dict[str, Any]:
    """What two attackers gain: workers who all spend one budget, and two copies of one counter."""
    table = hf.open(ROWS, SCHEMA)
    table.limit(epsilon=1.0)
    asked = table.session(epsilon=1.0, target="table")
    workers = [in_child(lambda: float(asked.count("age > 50", epsilon=1.0).value)) for _ in range(25)]
    counter = Counter(1000, rho=0.5)
    counter.extend([1] * 100)
    child = in_child(lambda: counter.extend([0] * 3).tolist())
    return {
        "workers": workers,
        "truth": int((ROWS["age"] > 50).sum()),
        "spent": float(table.spent),
        "child": child,
        "parent": counter.extend([1] * 3).tolist(),
    }


def main(guard: str) -> None:
    if guard == "open":
        process.Home.check = lambda self: None  # type: ignore[method-assign]
    found: dict[str, Any] = {}
    for name, (make, actions) in CASES.items():
        thing = make()

        def child(thing: Any = thing, actions: dict[str, Action] = actions) -> dict[str, Any]:
            touched = watch_rows()
            return {"told": told(thing, actions), "rows": touched}

        found[name] = {"child": in_child(child), "parent": told(thing, actions)}
    print(json.dumps({"cases": found, "attacks": attacks()}))


if __name__ == "__main__":
    main(sys.argv[1])
