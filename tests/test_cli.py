"""The command line, as a person would use it: real files, a real process, the same budget tomorrow."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from holdfast.cli import main

SCHEMA = """
[columns.age]
type = "integer"
lo = 0
hi = 99

[columns.smoker]
type = "category"
labels = ["no", "yes"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    draw = np.random.default_rng(0)
    lines = [
        f"{age},{'yes' if smokes else 'no'}"
        for age, smokes in zip(draw.integers(0, 100, 20_000), draw.random(20_000) < 0.3, strict=True)
    ]
    (tmp_path / "people.csv").write_text("age,smoker\n" + "\n".join(lines) + "\n")
    (tmp_path / "people.toml").write_text(SCHEMA)
    return tmp_path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def ingested(folder: Path) -> Path:
    result = run("ingest", folder / "people.csv", folder / "people.hf", "--schema", folder / "people.toml")
    assert result.exit_code == 0, result.output
    return folder / "people.hf"


def test_ingest_then_ask_then_ask_again_tomorrow(folder: Path) -> None:
    store = ingested(folder)
    first = run("ask", store, "age >= 50", "--within", 0.05, "--epsilon", 1, "--json")
    assert first.exit_code == 0, first.output
    answer = json.loads(first.output)
    assert answer["low"] <= 0.5 <= answer["high"]
    # Another process, the next day: the same budget goes on, and may be left out.
    command = [sys.executable, "-m", "holdfast", "ask", str(store), "age >= 60", "--within", "0.05"]
    tomorrow = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "left in session 'ask'" in tomorrow.stdout
    repeated = run("ask", store, "NOT age < 50", "--within", 0.05, "--json")
    assert json.loads(repeated.output)["value"] == answer["value"]


def test_the_budget_ends(folder: Path) -> None:
    store = ingested(folder)
    budget = ("--epsilon", 0.02)
    results = [run("ask", store, f"age >= {age}", "--within", 0.1, *budget) for age in range(60)]
    codes = [result.exit_code for result in results]
    assert codes[0] == 0
    assert codes[-1] == 1
    assert "is left" in results[-1].output
    assert "Traceback" not in results[-1].output


def test_a_plain_ask_is_planned_and_covered_by_the_theorem(folder: Path) -> None:
    """Also with delta 0, whose answers have logistic noise: the Laplace noise before it ended the theorem for all."""
    store = ingested(folder)
    first = run("ask", store, "age >= 50", "--epsilon", 1)
    assert first.exit_code == 0 and "gaussian" in first.output and "99 answers left within" in first.output
    pure = run("ask", store, "age >= 50", "--epsilon", 1, "--delta", 0, "--session", "pure", "--within", 0.2)
    assert pure.exit_code == 0 and "logistic" in pure.output


def test_estimate_charges_nothing(folder: Path) -> None:
    store = ingested(folder)
    plan = run("ask", store, "age >= 50", "--within", 0.05, "--epsilon", 1, "--estimate")
    assert plan.exit_code == 0
    assert "rows" in plan.output
    assert "left in session 'ask': rho 0.02436 (epsilon 1)" in plan.output
    assert "100 answers left" in plan.output


def test_sql(folder: Path) -> None:
    result = run(
        "ask",
        ingested(folder),
        "SELECT smoker, count(*) FROM t GROUP BY smoker",
        "--within",
        2000,
        "--epsilon",
        1,
    )
    assert result.exit_code == 0, result.output
    assert "yes" in result.output


def test_advice_on_a_mean_that_tells_nothing_is_printed_and_helps(folder: Path) -> None:
    store = ingested(folder)
    command = (
        "ask",
        store,
        "SELECT smoker, avg(age) FROM t GROUP BY smoker",
        "--epsilon",
        1,
        "--queries",
        500,
    )
    advised = re.search(r"tells next to nothing; ask it with within=(\S+) ", run(*command).output)
    assert advised is not None
    helped = run(*command, "--within", advised[1])
    assert helped.exit_code == 0 and "next to nothing" not in helped.output


def test_suggest_prints_a_schema_that_works(folder: Path) -> None:
    result = run("ingest", folder / "people.csv", "--suggest")
    assert result.exit_code == 0, result.output
    assert "for your eyes only" in result.output
    (folder / "suggested.toml").write_text(result.output)
    written = run("ingest", folder / "people.csv", folder / "b.hf", "--schema", folder / "suggested.toml")
    assert written.exit_code == 0, written.output


def test_mistakes_get_one_clear_line(folder: Path) -> None:
    store = ingested(folder)
    for arguments in (
        ("ingest", folder / "people.csv", folder / "people.hf", "--schema", folder / "people.toml"),
        ("ingest", folder / "people.csv"),
        ("ask", store, "agee > 1", "--within", 0.1, "--epsilon", 1),
        ("ask", store, "age > 1", "--within", 0.1, "--session", "never opened"),
        ("ask", folder / "people.csv", "age > 1", "--within", 0.1, "--epsilon", 1),
        ("plan", "--rows", "-1", "--within", "0.1"),
    ):
        result = run(*arguments)
        assert result.exit_code != 0
        assert "Traceback" not in result.output
        assert "Error" in result.output


def test_plan_needs_no_data() -> None:
    result = run("plan", "--rows", "1e6", "--within", "0.05", "--queries", "30000")
    assert result.exit_code == 0, result.output
    assert "chosen: leave-out, 51" in result.output
    assert "39,7" in result.output  # one Gaussian noise by T1*
    assert "5,52" in result.output  # Rogers et al., the best published bound
    assert run("plan", "--rows", "1e4", "--within", "0.05", "--queries", "30000").exit_code == 1


def test_demo_runs_to_the_end() -> None:
    result = run("demo", "--rows", "200000")
    assert result.exit_code == 0, result.output
    assert "intervals hold the truth" in result.output
    assert "outside" in result.output
    assert "inside" in result.output


def test_people_with_several_tables_are_ingested_and_asked(folder: Path) -> None:
    draw = np.random.default_rng(1)
    (folder / "patients.csv").write_text("person,age\n" + "".join(f"{n},{n % 100}\n" for n in range(500)))
    visits = "".join(f"{n},{n % 7}\n" for n in draw.integers(0, 500, 3000))
    (folder / "visits.csv").write_text("person,cost\n" + visits)
    (folder / "age.toml").write_text('[columns.age]\ntype = "integer"\nlo = 0\nhi = 99\n')
    (folder / "cost.toml").write_text('[columns.cost]\ntype = "integer"\nlo = 0\nhi = 6\n')
    store = folder / "hospital.hf"
    events = ("--events", "visits", folder / "visits.csv", folder / "cost.toml", 5)
    of_people = (
        "ingest",
        folder / "patients.csv",
        store,
        "--schema",
        folder / "age.toml",
        "--unit",
        "person",
    )
    made = run(*of_people, *events, "--order", "visits.cost")
    assert made.exit_code == 0, made.output
    assert "3000" not in made.output
    asked = run("ask", store, "SELECT count(*) FROM visits", "--within", 700, "--epsilon", 1000, "--json")
    assert asked.exit_code == 0, asked.output
    assert 1500 < json.loads(asked.output)["value"] <= 2500
    last = run(
        "ask", store, "SELECT avg(last(cost)) FROM patients", "--within", 3, "--epsilon", 1000, "--json"
    )
    assert last.exit_code == 0, last.output
    for wrong_order in (["cost"], ["visits.age"], ["patients.age"]):
        refused = run(*of_people, "--overwrite", *events, "--order", *wrong_order)
        assert refused.exit_code == 1 and "order=" in refused.output
    lone = run(
        "ingest",
        folder / "visits.csv",
        folder / "v.hf",
        "--schema",
        folder / "cost.toml",
        "--unit",
        "person",
        "--rows-per-unit",
        3,
        "--order",
        "cost",
    )
    assert lone.exit_code == 0, lone.output
    twice = ("--unit", "person", "--order", "cost", "--order", "age")
    assert (
        run(
            "ingest", folder / "visits.csv", folder / "w.hf", "--schema", folder / "cost.toml", *twice
        ).exit_code
        == 2
    )
    wrong = run("ingest", folder / "patients.csv", folder / "w.hf", "--schema", folder / "age.toml", *events)
    assert wrong.exit_code == 1 and "unit=" in wrong.output
    alone = ("ingest", folder / "visits.csv", folder / "w.hf", "--schema", folder / "cost.toml", "--unit")
    no_bound = run(*alone, "person")
    assert no_bound.exit_code == 1 and "rows_per_unit" in no_bound.output
    of_both = run(*of_people, "--overwrite", *events, "--rows-per-unit", 3)
    assert of_both.exit_code == 2 and "--events" in of_both.output
    named_alike = run(*of_people, "--overwrite", *events, *events)
    assert named_alike.exit_code == 2 and "a name of its own" in named_alike.output
    for bad in ("0", "many"):
        refused = run(
            "ingest",
            folder / "patients.csv",
            folder / "w.hf",
            "--schema",
            folder / "age.toml",
            "--unit",
            "person",
            *events[:-1],
            bad,
        )
        assert refused.exit_code == 1 and "rows_per_unit" in refused.output
    assert not (folder / "w.hf").exists()
