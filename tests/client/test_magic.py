"""SQL cells in a real IPython shell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway import Running
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

import holdfast as hf

COUNT = "SELECT count(*) FROM people WHERE age > 40"


class Notebook:
    """A shell, and what its last cell returned, printed and displayed."""

    def __init__(self, folder: Path) -> None:
        config = Config()
        config.HistoryManager.enabled = False
        config.BaseIPythonApplication.ipython_dir = str(folder)
        self.shell: Any = InteractiveShell.instance(config=config, ipython_dir=str(folder))
        self.printed = ""
        self.displayed: list[Any] = []

    def run(self, cell: str) -> Any:
        """The result of a cell; its error is raised."""
        with capture_output() as captured:
            done = self.shell.run_cell(cell)
        self.printed, self.displayed = captured.stdout, captured.outputs
        if done.error_in_exec is not None:
            raise done.error_in_exec
        assert done.error_before_exec is None
        return done.result


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    """A notebook with the extension."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = Notebook(tmp_path)
    notebook.run("%load_ext holdfast")
    yield notebook
    InteractiveShell.clear_instance()


@pytest.fixture
def notebook(empty: Notebook, house: Running, monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """A notebook that is connected as the analyst."""
    monkeypatch.setenv("HOLDFAST_TOKEN", house.analyst)
    empty.run(f"%holdfast {house.url}")
    return empty


def test_a_cell_is_answered_and_displayed(notebook: Notebook) -> None:
    assert notebook.printed == "connected as ann; tables: people (20,000 rows)\n"
    answer = notebook.run(f"%%holdfast --within 1000\n{COUNT}")
    assert isinstance(answer, hf.Answer)
    assert abs(answer.value - 20_000 * 0.59) < 5000
    shown, _ = notebook.shell.display_formatter.format(answer)
    assert shown["text/html"] == answer._repr_html_()


def test_an_answer_gets_a_name(notebook: Notebook) -> None:
    for line in ("grown =  --within 1000", "--within 1000 --out grown", "grown= --within 1000"):
        answer = notebook.run(f"%%holdfast {line}\n{COUNT}")
        assert isinstance(answer, hf.Answer)
        assert notebook.shell.user_ns.pop("grown") == [answer], line


def test_several_answers_are_displayed_one_below_the_other(notebook: Notebook) -> None:
    result = notebook.run(
        "%%holdfast both = --rho 1e-4\nSELECT count(*), avg(age) FROM people GROUP BY smoker"
    )
    both = notebook.shell.user_ns["both"]
    assert result is None and len(both) == 2
    assert [shown.data["text/html"] for shown in notebook.displayed] == [each._repr_html_() for each in both]


def test_an_estimate_costs_nothing(notebook: Notebook, house: Running) -> None:
    session = hf.connect(house.url, house.analyst, table="people")
    before = session.spent
    assert notebook.run(f"%%holdfast plan = --estimate --within 700 --table people\n{COUNT}") is None
    (plan,) = notebook.shell.user_ns["plan"]
    assert plan.explain() in notebook.printed and plan.cost > 0
    assert session.spent == before


def test_a_dear_question_is_confirmed_on_the_line(notebook: Notebook, house: Running) -> None:
    token = house.somebody("cleo", {"epsilon": 1.0, "delta": 1e-6})
    notebook.run(f"%holdfast {house.url} {token} --table people")
    assert token not in notebook.printed
    half = float(hf.connect(house.url, token, table="people").limit) / 2
    with pytest.raises(hf.BudgetError, match="confirm"):
        notebook.run(f"%%holdfast --rho {half}\n{COUNT}")
    assert notebook.run(f"%%holdfast --rho {half} --confirm\n{COUNT}").rho == pytest.approx(half, rel=1e-4)


def test_a_wrong_line_is_an_error_and_no_exit(notebook: Notebook) -> None:
    for line in ("--within", "--within x", "--wat 3", "'", "a b"):
        with pytest.raises(hf.InputError, match="expected"):
            notebook.run(f"%%holdfast {line}\n{COUNT}")


def test_a_wrong_question_is_the_error_of_a_session(notebook: Notebook) -> None:
    with pytest.raises(hf.QueryError, match="agee"):
        notebook.run("%%holdfast\nSELECT count(*) FROM people WHERE agee > 40")


def test_a_token_is_not_repeated_in_errors(house: Running, empty: Notebook) -> None:
    with pytest.raises(hf.InputError, match="expected a gateway"):
        empty.run(f"%%holdfast\n{COUNT}")
    with pytest.raises(hf.InputError) as refused:
        empty.run(f"%holdfast {house.url} {house.analyst} {house.analyst}")
    assert house.analyst not in str(refused.value)
