"""The house inspects itself: names, doors, imports, randomness, documents."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import holdfast as hf
from holdfast import errors

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src" / "holdfast").rglob("*.py"))

CONTRACT = {
    "": "Schema Integer Real Category Boolean Date Time Timestamp open Table Session Answer Plan",
    "mechanisms": "laplace gaussian exponential permute_and_flip randomized_response SparseVector",
    "privacy": "advanced_composition lecture_composition subsampled group zcdp_to_approx Filter Odometer events",
    "validity": "width most_queries plan bounds max_information corrected_level",
    "local": "RandomizedResponse",
    "stream": "Counter PanPrivateDensity",
    "audit": "epsilon_lower_bound boosting_attack single_adaptive_analyst",
    "holdout": "ReusableHoldout Leaderboard",
    "learn": "FiniteClass minimize margins Monitor",
    "synthesis": "mwem small_database",
}


@pytest.mark.parametrize("room", sorted(CONTRACT))
def test_the_public_names_are_there(room: str) -> None:
    home = getattr(hf, room) if room else hf
    for name in CONTRACT[room].split():
        assert getattr(home, name).__doc__, f"{room}.{name} has no docstring"


def test_every_exported_name_exists() -> None:
    for name in hf.__all__:
        assert getattr(hf, name) is not None


def test_importing_holdfast_imports_nothing_heavy() -> None:
    code = "import sys, holdfast; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    for heavy in (
        "duckdb",
        "sqlglot",
        "scipy",
        "cryptography",
        "rich",
        "click",
        "pandas",
        "pyarrow",
        "pyspark",
    ):
        assert heavy not in loaded


def test_a_question_needs_neither_scipy_nor_pandas() -> None:
    code = (
        "import sys, numpy as np, holdfast as hf\n"
        "t = hf.open({'x': np.arange(1000)}, hf.Schema(x=hf.Integer(0, 999)))\n"
        "t.session(epsilon=1.0, target='table').fraction('x > 3', within=0.1)\n"
        "print(*sorted(sys.modules))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    for heavy in ("pandas", "pyarrow", "polars", "pyspark", "matplotlib"):
        assert heavy not in loaded


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """What a file is made of, the module first."""
    return list(ast.walk(ast.parse(path.read_text())))


def imports(path: Path) -> set[str]:
    """Every module that a file imports, at any depth."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


SIMULATIONS = {"chance.py"}
"""Where attackers and populations are simulated; noise never comes from there."""


def test_randomness_has_one_door() -> None:
    for path in SOURCES:
        banned = {
            name
            for name in imports(path)
            if name.split(".")[0] == "random" or name.startswith("numpy.random")
        }
        uses = re.findall(
            r"np\.random|numpy\.random\.", re.sub(r'""".*?"""', "", path.read_text(), flags=re.S)
        )
        if path.name not in SIMULATIONS:
            assert not banned, path
            assert not [use for use in uses if use == "np.random"], path


def test_the_ban_would_notice(tmp_path: Path) -> None:
    """The broken twin of the rule above: a file that imports `random` is seen."""
    bad = tmp_path / "bad.py"
    bad.write_text("def f():\n    import random\n    from numpy.random import default_rng\n")
    assert {"random", "numpy.random"} <= imports(bad)


UNCHARGED = {
    "weights/weighted_rows.py sample": "rows from public weights",
    "weights/weighted_rows.py _values": "rows from public weights",
    "weights/weighted_rows.py sampled": "rows from public weights",
    "weights/distribution.py sampled": "rows from public weights",
    "weights/factored_weights.py sampled": "rows from public weights",
    "weights/binned_model.py sampled": "rows from a public model",
    "weights/settled_rows.py settled": "rows from a public model",
    "weights/factored.py sample": "rows from a public model",
    "weights/factored.py spread_evenly": "rows from a public model",
    "weights/factored.py _shuffled": "rows from a public model",
    "weights/synthetic.py rows": "rows from public weights",
    "weights/synthetic.py write": "rows from public weights",
    "learn/finite_class.py learn": "a mechanism used alone",
    "learn/finite_class.py _release": "what it shares with learn_in, which gives none",
    "holdout/attack_demo.py oracle": "a simulated population",
    "holdout/attackers.py World": "a simulated population",
    "holdout/race.py __init__": "a simulated population",
}
"""Who takes bits, in the rooms where answers are charged, and why nothing is charged for it."""


def takers_of_bits(path: Path) -> tuple[set[str], set[str]]:
    """The functions (or classes of fields) of a file that can be given bits; and those that take a session too."""
    takers, with_session = set(), set()
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            every = node.args
            given = [*every.posonlyargs, *every.args, *every.kwonlyargs]
            words = {arg.arg: "" if arg.annotation is None else ast.unparse(arg.annotation) for arg in given}
        elif isinstance(node, ast.ClassDef):
            fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
            words = {ast.unparse(part.target): ast.unparse(part.annotation) for part in fields}
        else:
            continue
        if any(name in ("bits", "seed", "random_state") or "Bits" in said for name, said in words.items()):
            takers.add(node.name)
            if any(name == "session" or "Session" in said for name, said in words.items()):
                with_session.add(node.name)
    return takers, with_session


def test_nobody_can_give_bits_to_what_is_charged() -> None:
    """A session and a holdout draw from the system's bits; tests have `noise/_replay.py`, which says so."""
    charging, found = (
        {"planning", "session", "weights", "optimize", "synthesis", "learn", "holdout", "service", "client"},
        set(),
    )
    for path in SOURCES:
        takers, with_session = takers_of_bits(path)
        assert not with_session, path
        place = path.relative_to(ROOT / "src" / "holdfast")
        if place.parts[0] in charging:
            found |= {f"{place} {name}" for name in takers}
    assert found == set(UNCHARGED)


def test_a_taker_of_bits_would_be_noticed(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("def f(session, *, seed=None): ...\nclass G:\n    where: Bits | None\n")
    assert takers_of_bits(bad) == ({"f", "G"}, {"f"})


def test_charges_are_reserved_in_one_place() -> None:
    """So that no charge can forget to say that its noise is replayed. Looks have a place of their own, which says so
    twice: for the opening, whose threshold is drawn, and for a look. A gateway's ledger passes on what it was given."""
    allowed = {
        "holdfast/desk/desk.py": ["Reserve("], "holdfast/holdout/looks.py": [".reserve("] * 2,
        "holdfast/service/public_times.py": [".reserve("],
    }  # fmt: skip
    for path in SOURCES:
        if path.parent.name != "ledger":
            calls = re.findall(r"\bReserve\(|\.reserve\(", path.read_text())
            assert calls == next((found for name, found in allowed.items() if path.match(name)), []), path
    looks = next(path for path in SOURCES if path.match("holdfast/holdout/looks.py")).read_text()
    assert len(re.findall(r"\bnoted\(", looks)) == 2


def keepers(paths: list[Path]) -> set[str]:
    """Files that open a database of their own or lock a file, as a second ledger would."""
    return {
        f"{path.parent.name}/{path.name}" for path in paths if imports(path) & {"sqlite3", "fcntl", "dbm"}
    }


def test_counts_are_kept_in_one_kind_of_ledger() -> None:
    """What was charged, also at holdouts and boards, is counted in `ledger/` and nowhere else."""
    counting = {name for name in keepers(SOURCES) if not name.startswith("ledger/")}
    assert counting == {"service/gateway_database.py"}  # people, tokens and replies


def test_a_second_ledger_would_be_noticed(tmp_path: Path) -> None:
    """The broken twin: what a holdout's own file of looks began with."""
    (tmp_path / "state.py").write_text("def open():\n    import fcntl\n    import sqlite3\n")
    assert keepers([tmp_path / "state.py"]) == {f"{tmp_path.name}/state.py"}


def test_nothing_is_unpickled_or_evaluated() -> None:
    for path in SOURCES:
        assert not imports(path) & {"pickle", "marshal", "shelve", "dill"}, path
        calls = {
            node.func.id
            for node in nodes(path)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not calls & {"eval", "exec", "compile"}, path


def test_every_module_says_what_it_is() -> None:
    for path in SOURCES:
        module = nodes(path)[0]
        assert isinstance(module, ast.Module) and ast.get_docstring(module), path


def test_the_error_tree_is_drawn_as_it_is() -> None:
    drawn = set(re.findall(r"\w+Error", errors.__doc__ or ""))
    real = {name for name in vars(errors) if name.endswith("Error")}
    assert drawn == real
    assert all(issubclass(getattr(errors, name), errors.HoldfastError) for name in real)


def test_documents_name_functions_that_exist() -> None:
    """`holdfast.room.module.name` in docs/*.md can be imported."""
    for page in sorted((ROOT / "docs").glob("*.md")):
        for dotted in set(re.findall(r"`(holdfast(?:\.[a-z_]+)+\.[A-Za-z_]+)`", page.read_text())):
            module, _, name = dotted.rpartition(".")
            try:
                importlib.import_module(dotted)
            except ModuleNotFoundError:
                assert hasattr(importlib.import_module(module), name), f"{page.name}: {dotted}"


def test_the_import_contract_lists_every_room() -> None:
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    listed = {name.strip() for layer in contract["layers"] for name in layer.split("|")}
    rooms = {p.parent.name for p in (ROOT / "src" / "holdfast").glob("*/__init__.py")}
    assert rooms <= listed


def test_files_stay_small() -> None:
    for path in SOURCES:
        assert len(path.read_text().splitlines()) <= 500, path


OUTSIDE_THE_HOUSE = re.compile(
    r"theory(\.md)? [0-9]|theory\.md|seed 00|Theorem 0\.[0-9]|lecture's|the lecture\b|lectures? [0-9]|shared/"
    r"|note that announced",
    re.IGNORECASE,
)


def test_nothing_is_cited_that_nobody_can_read() -> None:
    """A proof is in docs/theorems.md or in a paper that is named."""
    read = [path for room in ("docs", "evidence", "examples") for path in (ROOT / room).rglob("*")]
    pages = [*ROOT.glob("*.md"), *SOURCES, *(ROOT / "src").rglob("*.html"), *read]
    for path in pages:
        if path.suffix in (".md", ".py", ".html"):
            found = OUTSIDE_THE_HOUSE.search(path.read_text())
            assert found is None, f"{path}: {found and found[0]}"


@pytest.mark.parametrize(
    "words",
    [
        "Reference: Theory 2.5",
        "by Theorem 0.2 of the lecture",
        "the box of lecture 13",
        "see shared/theory.md",
        "the lecture's version",
        "the note that announced it",
    ],
)
def test_a_citation_that_nobody_can_read_is_noticed(words: str) -> None:
    assert OUTSIDE_THE_HOUSE.search(words)
