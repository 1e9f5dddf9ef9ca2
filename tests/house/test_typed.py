"""Questions are typed: keywords are seen by a type checker and by help(), and no Any leaves a public method."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from matplotlib.figure import Figure
from mypy import api

import holdfast as hf
from holdfast.client import Connection, RemoteHoldout, RemoteLeaderboard, RemoteSession, RemoteTable
from holdfast.client.above_threshold import RemoteAboveThreshold
from holdfast.client.session import RemoteEstimate
from holdfast.client.weights import RemoteWeights
from holdfast.learn import linear_loss
from holdfast.mechanisms import SparseVector
from holdfast.optimize import Minimum, plan_minimize
from holdfast.planning import keywords
from holdfast.planning.request import Request
from holdfast.session.above_threshold import AboveThreshold
from holdfast.session.estimate import Estimate, Known
from holdfast.session.price import Price
from holdfast.session.private_choice import choice_of
from holdfast.session.report import Report
from holdfast.synthesis import SyntheticTable, from_marginals, mwem, small_database
from holdfast.weights.answerer import MultiplicativeWeights

ROOT = Path(__file__).resolve().parents[2]

CALLS = """
import holdfast as hf
from holdfast.client import RemoteSession
from holdfast.optimize import Loss

def ask(table: hf.Table, session: hf.Session, remote: RemoteSession, loss: Loss) -> None:
    session.fraction("x > 1", within=0.1, by="g", edges=[1, 2], mechanism="votes", rows=100)
    session.fraction("x > 1", wihtin=0.1)  # call-arg
    session.count("x > 1", within="0.1")  # arg-type
    session.mean("x", rho=1, epsilon=None)
    session.mean("x", roh=1)  # call-arg
    session.histogram("x", by="g")  # call-arg
    session.quantile("x", 0.5, edges=3)  # arg-type
    session.estimate.sum("x", epsilon=0.1).cost
    session.estimate.sum("x", epsilno=0.1)  # call-arg
    session.statistic(lambda rows: rows["x"], ["x"], withn=3)  # call-arg
    session.sql("SELECT count(*) FROM t", within=3)[0].value
    session.sql("SELECT count(*) FROM t").value  # attr-defined
    session.sql_one("SELECT count(*) FROM t").value
    session.sample("x > 1", keys="a")  # call-arg
    session.select(["a", "b"], epsilon=0.1).candidate.upper()
    session.select([1, 2], ["a", "b"], epsilon=0.1).candidate.upper()  # attr-defined
    session.select(["a"], mechanisms="exponential")  # call-arg
    session.sparse_vector(0.3, 10, epsilon=1.0, version="lecture").above("x > 1")
    session.sparse_vector(0.3, 10, version="lectures")  # arg-type
    session.multiplicative_weights(["x"], queries=10, rho=1.0, device="cupy").within
    session.multiplicative_weights(["x"], queries=10, nul=[])  # call-arg
    session.minimize(loss, within=0.1, runs=1).theta
    session.minimize(loss, iteration=3)  # call-arg
    session.synthesize(["x"], ["x > 1"], method="mwem", rho=1.0, rounds=3).fraction("x > 1")
    session.synthesize(["x"], ["x > 1"], round=3)  # call-arg
    remote.fraction("x > 1", within=0.1).value
    remote.fraction("x > 1", wihtin=0.1)  # call-arg
    remote.estimate.mean("x", within=0.1).cost
    remote.sql("SELECT count(*) FROM t").value  # attr-defined
    remote.select(["a"], mechanisms="exponential")  # call-arg
    remote.multiplicative_weights(["x"], queries=10, device="cupy")  # call-arg
    table.session(epsilon=1.0, query=3)  # call-arg
    hf.open("people.csv", table.schema, tabel="x")  # call-arg
    hf.learn.logistic(table.schema, ["x"], "y", raduis=1.0)  # call-arg
"""


def errors_of(code: str, folder: Path) -> set[tuple[int, str]]:
    """Line and kind of each error that mypy finds."""
    path = folder / "calls.py"
    path.write_text(code)
    options = [
        "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache"),
        "--follow-imports=silent", "--hide-error-context",
    ]  # fmt: skip
    said, crashed, _ = api.run([*options, str(path)])
    assert not crashed, crashed
    return {(int(line), kind) for line, kind in re.findall(r"calls\.py:(\d+): error: .*\[([a-z-]+)\]", said)}


def test_mypy_knows_every_keyword(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Good calls pass, and each bad one is an error of its kind. The calls that must fail are the broken twins."""
    monkeypatch.chdir(ROOT)
    lines = enumerate(CALLS.splitlines(), 1)
    marked = {(i, line.rpartition("# ")[2]) for i, line in lines if "# " in line}
    assert len(marked) == 22
    assert errors_of(CALLS, tmp_path) == marked


ASKED = (hf.Session, Estimate, Known, RemoteSession, RemoteEstimate)
PUBLIC = (
    *ASKED, hf.Table, hf.Answer, hf.Plan, Price, Report, AboveThreshold, MultiplicativeWeights, Minimum, SyntheticTable,
    Connection, RemoteTable, RemoteAboveThreshold, RemoteWeights, RemoteHoldout, RemoteLeaderboard,
)  # fmt: skip


def public(kind: type) -> dict[str, Callable[..., Any]]:
    """The public methods of a class, and the functions behind its properties."""
    found = {name: part for name, part in inspect.getmembers(kind) if not name.startswith("_")}
    opened = {n: getattr(part, "fget", None) or getattr(part, "func", part) for n, part in found.items()}
    return {name: part for name, part in opened.items() if inspect.isroutine(part)}


@pytest.mark.parametrize("kind", ASKED)
def test_help_shows_every_keyword(kind: type) -> None:
    for name, method in public(kind).items():
        parameters = inspect.signature(method).parameters.values()
        assert not [p for p in parameters if p.kind is inspect.Parameter.VAR_KEYWORD], name
    assert "within: 'float | None' = ..." in str(inspect.signature(kind.fraction))  # type: ignore[attr-defined]


NAMES: dict[str, Any] = {}
for _room in pkgutil.walk_packages(hf.__path__, "holdfast."):
    if _room.name.split(".")[1] in ("planning", "session", "weights", "optimize", "client", "data", "ledger"):
        NAMES |= vars(importlib.import_module(_room.name))
# What a type checker alone imports: an answer can become each of these.
NAMES |= {"pandas": pandas, "polars": polars, "pyarrow": pyarrow, "Figure": Figure}


def has_any(hint: Any) -> bool:
    """Whether Any is part of a type; the shape and the kind of an array are not looked at."""
    if hint is Any:
        return True
    return get_origin(hint) is not np.ndarray and any(has_any(part) for part in get_args(hint))


def leaks(kind: type) -> set[str]:
    """The public methods and properties of a class that give Any."""
    hints = {
        name: get_type_hints(part, NAMES | vars(sys.modules[part.__module__]))
        for name, part in public(kind).items()
    }
    return {name for name, found in hints.items() if has_any(found.get("return", Any))}


@pytest.mark.parametrize("kind", PUBLIC)
def test_no_any_leaves_a_public_method(kind: type) -> None:
    assert leaks(kind) == set()


def test_a_leak_would_be_noticed() -> None:
    class Leaky:
        def plain(self) -> Any: ...
        def listed(self) -> list[dict[str, Any]]: ...
        def unsaid(self): ...  # type: ignore[no-untyped-def]
        @property
        def hidden(self) -> Any: ...
        def well(self) -> list[str]: ...
        def array(self) -> np.ndarray[Any, Any]: ...
        def _private(self) -> Any: ...

    assert leaks(Leaky) == {"plain", "listed", "unsaid", "hidden"}


def words(function: Callable[..., Any]) -> set[str]:
    """The keywords that a function takes."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def test_the_typed_keywords_are_those_that_are_taken() -> None:
    """A keyword that was forgotten here would be refused where it is taken."""
    said = {
        name: set(kind.__annotations__) for name, kind in vars(keywords).items() if isinstance(kind, type)
    }
    assert said["Accuracy"] == set(Request.__dataclass_fields__)
    assert said["Grouped"] == said["Accuracy"] | {"by", "edges"}
    assert said["Descent"] == words(plan_minimize)
    assert said["Choice"] == words(choice_of)
    assert said["Threshold"] == words(SparseVector.__init__) - {
        "sensitivity",
        "hits",
        "monotone",
        "numeric",
        "bits",
        "threshold_share",  # for the weights, whose plan chooses it
    }
    assert said["ManyFrom"] == words(MultiplicativeWeights.__init__) - {"queries", "device"}
    assert said["Many"] == said["ManyFrom"] - {"start", "uniform", "memory"}  # in process only
    assert said["Synthesis"] == words(from_marginals) | words(mwem) | words(small_database) | {"method"}
    assert set(linear_loss.Shape.__annotations__) == words(linear_loss.linear) - {"condition"}


@pytest.mark.parametrize("kind", ASKED)
def test_a_misspelt_keyword_gets_advice_and_goes_no_further(kind: type) -> None:
    """The object has no session and no connection: what got past the keywords would fail on that."""
    empty = kind.__new__(kind)
    tried = 0
    for name, method in public(kind).items():
        for word in words(method) & {"within", "epsilon", "mechanism", "key"}:
            given = [p for p in inspect.signature(method).parameters.values() if p.default is p.empty]
            others = {p.name: None for p in given if p.name not in ("self", word)}
            if name != "pay":  # for other rooms of the house
                tried += 1
                with pytest.raises(hf.InputError, match=f"did you mean [a-z_ ]*{word}"):
                    method(empty, **others, **{word[:-2] + word[-1] + word[-2]: 1})
    assert tried > 20
