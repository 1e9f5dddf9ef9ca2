"""What holds noise or a count goes on in the process that opened it and in no other, whatever forks."""

from __future__ import annotations

import ast
import copy
import functools
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from forking import CASES

from holdfast import process
from holdfast.errors import HoldfastError, LedgerError
from holdfast.stream import Counter, PanPrivateDensity

SCRIPT = Path(__file__).with_name("forking.py")
SOURCE = Path(__file__).resolve().parents[1] / "src" / "holdfast"


@functools.cache
def run(guard: str) -> dict[str, Any]:
    """What a process without threads, which forks, has seen; see `forking`."""
    folder = Path(os.environ["HOLDFAST_ANCHORS"]) / f"forking {guard} {os.getpid()}"
    folder.mkdir()
    environment = os.environ | {"HOLDFAST_ANCHORS": str(folder)}
    found = subprocess.run(
        [sys.executable, str(SCRIPT), guard], capture_output=True, text=True, env=environment
    )
    assert found.returncode == 0, found.stderr
    seen: dict[str, Any] = json.loads(found.stdout)
    return seen


@pytest.mark.parametrize("case", CASES)
def test_a_forked_child_is_refused_before_a_row_is_touched_and_the_parent_goes_on(case: str) -> None:
    seen = run("guarded")["cases"][case]
    for action, told in seen["child"]["told"].items():
        assert "in this process, got its parent's" in told, action
    assert seen["child"]["rows"] == []
    assert set(seen["parent"].values()) == {"went on"}, seen["parent"]


@pytest.mark.parametrize("case", CASES)
def test_without_the_guard_the_child_goes_on(case: str) -> None:
    """The broken twin: so the refusals are the guard's, and the actions are sound."""
    assert "went on" in run("open")["cases"][case]["child"]["told"].values()


def test_workers_cannot_spend_one_budget_again_and_again() -> None:
    told = run("guarded")["attacks"]["workers"]
    assert all(str(answer).startswith("LedgerError: ") for answer in told)


def test_two_copies_of_a_counter_cannot_be_subtracted() -> None:
    assert run("guarded")["attacks"]["child"].startswith("MechanismError: ")


def test_without_the_guard_both_attacks_succeed() -> None:
    """The broken twin. 25 answers of epsilon 1 under a limit of 1 average to within 2 of the truth (7 standard
    errors); the totals of two copies of a counter differ by exactly what they counted."""
    seen = run("open")["attacks"]
    assert len(set(seen["workers"])) > 1
    assert abs(sum(seen["workers"]) / 25 - seen["truth"]) < 2
    assert seen["spent"] == 0
    assert [p - c for p, c in zip(seen["parent"], seen["child"], strict=True)] == [1, 2, 3]


@pytest.mark.parametrize("sign", ["id", "count"])
def test_each_of_the_two_signs_of_a_fork_is_enough(sign: str, monkeypatch: pytest.MonkeyPatch) -> None:
    home = process.Home("a thing", "do another thing", LedgerError)
    home.check()
    if sign == "id":
        monkeypatch.setattr("os.getpid", lambda: -1)
    else:
        monkeypatch.setattr(process, "_forks", process._forks + 1)
    with pytest.raises(LedgerError, match=r"expected a thing .* got its parent's; do another thing"):
        home.check()


@pytest.mark.parametrize("make", [lambda: Counter(9, rho=1), lambda: PanPrivateDensity(9, epsilon=1)])
@pytest.mark.parametrize("copied", [copy.deepcopy, pickle.dumps])
def test_what_holds_noise_is_neither_copied_nor_pickled(make: Any, copied: Any) -> None:
    with pytest.raises((HoldfastError, TypeError)):
        copied(make())


ROOMS = (
    "noise",
    "mechanisms",
    "data",
    "ledger",
    "desk",
    "planning",
    "local",
    "stream",
    "session",
    "weights",
    "optimize",
    "synthesis",
    "learn",
    "holdout",
)

GUARDED = {
    "ledger.MemoryLedger", "ledger.ChainedLedger", "stream.Counter", "stream.UnboundedCounter",
    "stream.PanPrivateDensity", "mechanisms.SparseVector",
}  # fmt: skip
"""Classes with a Home of their own."""

DROPPED = {
    "noise.SystemBits",
    "noise._Stream",
    "noise.KeptDraws",
    "noise.DrawCache",
    "data.Pool",
    "data._Supply",
}
"""What these hold was drawn ahead and told to nobody, so a child drops it (tests/noise/test_fork.py,
tests/data/test_pool.py)."""

INSIDE = {
    "stream.Tree": "Counter", "stream.SquareRoot": "Counter", "stream.HistogramCounter": "Counter",
    "desk.Paid": "a ledger",
    "session.Session": "a ledger", "session.Table": "a ledger", "session.AboveThreshold": "SparseVector, a ledger",
    "weights.MultiplicativeWeights": "SparseVector, a ledger", "holdout.Asker": "SparseVector, a ledger",
    "holdout.Looks": "a ledger", "holdout.Race": "a ledger",
    "ledger.Writer": "ChainedLedger", "ledger.Batches": "ChainedLedger", "ledger.Ticket": "ChainedLedger",
    "ledger.Call": "ChainedLedger",
    "ledger.Anchor": "ChainedLedger", "ledger.PostgresDatabase": "ChainedLedger",
    "ledger.SqliteDatabase": "ChainedLedger", "ledger.Readers": "ChainedLedger",
}  # fmt: skip
"""What holds noise or a count only through another one, which refuses."""

HARMLESS = {
    "noise.ReplayedBits": "nothing secret: it repeats itself on purpose", "data.Engine": "a connection",
    "data._Refill": "whether rows were drawn",
    "data.PostgresSource": "a layout", "data.PooledSource": "a pool, which a child drops",
    "data.Link": "connections", "data.StoreWriter": "files",
    "data.SparkSource": "a connection", "data.StoreSource": "mapped columns", "data.DeferredSource": "the rows",
    "data.PartSource": "which places are in a part", "data.Division": "a permutation by a key",
    "data.LookedUp": "a public table", "ledger.Timed": "a connection",
    "weights.Factored": "a function of what was told",
    "planning.Amount": "a number", "weights.Weights": "a function of what was told",
    "weights.FactoredWeights": "a function of what was told", "weights._Held": "rows that are drawn from what was told",
    "ledger.SeenKeys": "what one walk has seen",
    "learn._Descent": "the steps of one fit",
    "holdout.KeptPredictions": "what teams sent",
    "holdout.HoldoutScorer": "public answers", "holdout.Summary": "public answers",
    "holdout.OptunaCallback": "public answers", "learn._Private": "a public model",
    "learn.PrivateScaler": "public ranges", "session.KeptPlans": "public plans",
    "data.UnitSource": "rows and offsets", "data.UnitWriter": "files", "data._Building": "files that are written",
    "data.KeptTexts": "files that are written",
    "data.UnitKeys": "keys of one ingest", "data.Places": "how far one ingest is",
    "data.Beginnings": "how far one ingest is",
    "learn.PrivateLogisticRegression": "a public model", "learn.PrivateLinearRegression": "a public model",
    "ledger.Walk": "public facts", "optimize.Search": "public plans",
    "session.Opening": "whether a warning was given",
}  # fmt: skip
"""What changes and holds neither noise nor a count, with what it holds. RAPPOR's permanent bits are an array that
the client keeps: reports from it by two processes cost what two reports by one do."""


def stateful(path: Path) -> set[str]:
    """The classes of a file that change after they were made, or that have a Home."""
    classes = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef))
    return {
        node.name
        for node in classes
        if any(_changes(method) for method in node.body if isinstance(method, ast.FunctionDef))
    }


CHANGING = {"add", "append", "clear", "extend", "insert", "pop", "popleft", "remove", "setdefault", "update"}


def _changes(method: ast.FunctionDef) -> bool:
    """Whether a method other than the first changes what an object holds, or any sets its home."""
    made = method.name in ("__init__", "__post_init__")
    for part in ast.walk(method):
        called = part.func if isinstance(part, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in CHANGING:
            changed: ast.AST | None = called.value
        elif isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store):
            changed = part.value
        else:
            changed = part if isinstance(getattr(part, "ctx", None), ast.Store) else None
        if isinstance(changed, ast.Attribute) and (not made or changed.attr == "_home"):
            return True
    return False


def test_every_class_that_changes_is_known_to_be_safe_under_a_fork() -> None:
    """A new one is noticed here: give it a Home and a case in `forking`, or say why it needs none."""
    found = {
        f"{room}.{name}"
        for room in ROOMS
        for path in (SOURCE / room).rglob("*.py")
        for name in stateful(path)
    }
    assert found == GUARDED | DROPPED | set(INSIDE) | set(HARMLESS)
    cases = {case.split(",")[0] for case in CASES}
    assert {name.split(".")[1] for name in GUARDED} <= cases


def test_the_list_would_notice_a_new_class(tmp_path: Path) -> None:
    for change in ("self.seen = 1", "self.seen += 1", "self.seen[0] = 1", "self.seen.append(1)"):
        (tmp_path / "new.py").write_text(f"class New:\n    def see(self) -> None:\n        {change}\n")
        assert stateful(tmp_path / "new.py") == {"New"}
