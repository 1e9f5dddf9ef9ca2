"""Every page with python in it runs from top to bottom, and shows what it says."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, chdir, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from gateway import running
from pages import ROOT, blocks, run, run_blocks, with_python

Names = dict[str, Any]


@dataclass(frozen=True)
class Page:
    """A page: how many blocks it has, what it shows, where it runs, and what else is true at its end."""

    blocks: int
    shows: tuple[str, ...] = ()
    inside: Callable[[], AbstractContextManager[None]] = nullcontext
    holds: Callable[[Names, str], bool] = lambda names, shown: True


@contextmanager
def before_a_gateway() -> Iterator[None]:
    """A gateway with one table and one board of each kind, where the environment says that it is."""
    with running(declared={"target": "table"}) as started:
        started.register_board("board", per_team=3)
        started.register_board("held", "holdout")
        with mock.patch.dict(os.environ, HOLDFAST_URL=started.url, HOLDFAST_TOKEN=started.analyst):
            yield


@contextmanager
def in_a_folder() -> Iterator[None]:
    """Files that a page writes go away with it."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        yield


@contextmanager
def in_the_checkout() -> Iterator[None]:
    """Where `examples` is, which stays out of the path of other tests."""
    with chdir(ROOT), mock.patch.object(sys, "path", [*sys.path]):
        yield


def keeps_its_token(names: Names, shown: str) -> bool:
    return os.environ["HOLDFAST_TOKEN"] not in shown


def counts_its_visits(names: Names, shown: str) -> bool:
    visits = names["visits"]
    return abs(visits.total() - 90) < visits.half_width(1e-9)


PAGES = {
    "docs/answer.md": Page(2, ("of these rows", "north")),
    "docs/choose.md": Page(1, ("<",)),
    "docs/client.md": Page(
        3,
        ("fraction where age >= 41", "1 ann", "fine", "confirm=True agrees"),
        inside=before_a_gateway,
        holds=keeps_its_token,
    ),
    "docs/holdout.md": Page(5, ("500 looks at 100,000 rows by votes", "'red' has 0 looks left", "rank")),
    "docs/keys.md": Page(5, ("keys of 'dest' (gaussian", "(logistic", "epsilon= and delta=")),
    "docs/large.md": Page(1, ("200 answers, each within", "rows read")),
    "docs/learn.md": Page(
        6,
        (
            "wrong on 0.0",
            "excess loss on the population at most",
            "1000 rounds: training error 0.0000",
            "EXPOSED",
        ),
    ),
    "docs/leave-out.md": Page(1, ("n =    10,000, k =   100: 0.0537", "517326 questions")),
    "docs/local.md": Page(3, ("epsilon 0.2007", "50 items together", "is missing")),
    "docs/lookups.md": Page(3, ("carriers.name", "American", "covers the table")),
    "docs/refusals.md": Page(
        2, ("did you mean age", "single quotes", "can be", "promised for 2 queries", "True")
    ),
    "docs/sql.md": Page(
        6,
        (
            "year(visit)",
            "young",
            "2024-10-01",
            "did you mean cost",
            "greatest(cost, 0.1)",
            "floor(cost / 10)",
            "['visits']",
        ),
    ),
    "docs/start.md": Page(3, ("100 answers, each within", "looks left"), inside=in_a_folder),
    "docs/statistics.md": Page(11, ("intercept: ", "share(smoker)", "correlation(visits, cost)", "True")),
    "docs/stream.md": Page(4, holds=counts_its_visits),
    "docs/synthesis.md": Page(7, holds=lambda names, shown: "tiny" in names),
    "docs/tutorials/agent.md": Page(1, ("best score told",)),
    "docs/tutorials/flights.md": Page(5, ("60,000 flights", "of 0.0"), inside=in_the_checkout),
    "docs/tutorials/gateway.md": Page(2, ("free: True",), inside=before_a_gateway, holds=keeps_its_token),
    "docs/tutorials/hospital.md": Page(3, ("100,000 people", "at most 20 a person"), inside=in_the_checkout),
    "docs/tutorials/leaderboard.md": Page(2, ("an ordinary board tells", "mallory")),
    "docs/units.md": Page(
        4, ("20,000 units (person)", "over rows of visits, at most 20 a person", "which is public")
    ),
}
ELSEWHERE = {
    "README.md": 2,  # below, in a process of its own
    "docs/sources.md": 1,  # tests/data/test_spark.py, where Spark and PostgreSQL have been started
}


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_runs_as_it_is_written(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = PAGES[name]
    with page.inside():
        names = run(name)
        shown = capsys.readouterr().out
        assert [words for words in page.shows if words not in shown] == []
        assert page.holds(names, shown)


def test_the_readme_runs_in_a_process_of_its_own() -> None:
    code = "\n".join(blocks((ROOT / "README.md").read_text(encoding="utf-8")))
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    assert "95%" in result.stdout or "confidence 0.95" in result.stdout


def test_every_page_with_python_is_run() -> None:
    assert with_python(ROOT) == {name: page.blocks for name, page in PAGES.items()} | ELSEWHERE


def test_a_new_page_would_be_missed(tmp_path: Path) -> None:
    (tmp_path / "docs" / "more").mkdir(parents=True)
    (tmp_path / "docs" / "more" / "new.md").write_text("# New\n\n```python\nx = 1\n```\n")
    (tmp_path / "docs" / "words.md").write_text("# Words\n\n```sh\nmake\n```\n")
    assert with_python(tmp_path) == {"docs/more/new.md": 1}


@pytest.mark.parametrize(
    "fence", ["   ```python", "> ```python", "```py", "```Python", "~~~python", "```{python}"]
)
def test_a_fence_that_would_be_passed_over_is_refused(fence: str) -> None:
    with pytest.raises(AssertionError, match="margin"):
        blocks(f"{fence}\nx = 1\n```\n")


def test_a_block_that_fails_is_noticed_and_blocks_share_their_names() -> None:
    text = "```python\nx = 1\n```\nand then\n```python\ny = x + 1\n```\n```python\nassert y == 3\n```\n"
    with pytest.raises(AssertionError):
        run_blocks(blocks(text), "page", {})
    assert run_blocks(blocks(text)[:2], "page", {})["y"] == 2
    with pytest.raises(AssertionError, match="no such block"):
        run_blocks([], "page", {})
