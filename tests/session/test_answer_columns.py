"""An answer as a number, as columns, as a data frame and as a picture."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from holdfast.session import Answer
from holdfast.session.answer_columns import PARTS


@pytest.fixture
def session(table: hf.Table) -> hf.Session:
    return table.session(target="table", rho=1.0)


def test_one_number_is_a_float(session: hf.Session) -> None:
    answer = session.fraction("age > 40", within=0.02)
    assert float(answer) == answer.value
    assert len(answer) == 1
    assert round(float(answer), 3) == round(answer.value, 3)
    for other in (session.histogram("smoker", within=300), session.quantile("visit", within=0.1)):
        with pytest.raises(hf.InputError, match="one number"):
            float(other)


def test_an_answer_of_zero_is_an_answer(session: hf.Session) -> None:
    assert session.count("age > 120", within=300)
    assert session.sql("SELECT count(*) FROM t GROUP BY smoker HAVING count(*) < 0", within=300)[0]


def answers(session: hf.Session) -> list[Answer]:
    return [
        session.fraction("age > 40", within=0.02),
        session.histogram("smoker", within=300),
        session.quantile("visit", 0.5, within=0.1, by="insured"),
        session.mean("income", by="smoker", within=300),
    ]


def test_every_frame_holds_the_same_columns(session: hf.Session) -> None:
    for answer in answers(session):
        columns = answer.to_dict()
        assert list(columns) == ([] if answer.labels is None else ["group"]) + list(PARTS)
        assert columns["low"] == np.atleast_1d(answer.low).tolist()
        pandas, polars, arrow = answer.to_pandas(), answer.to_polars(), answer.to_arrow()
        assert len(pandas) == len(polars) == arrow.num_rows == len(answer)
        for name, column in columns.items():
            assert pandas[name].tolist() == polars[name].to_list() == arrow[name].to_pylist() == column
    assert isinstance(answers(session)[2].to_pandas()["value"][0], datetime.date)


def test_a_picture_has_a_line_for_each_group(session: hf.Session, tmp_path: Path) -> None:
    for i, answer in enumerate(answers(session)):
        figure = answer.plot(tmp_path / f"{i}.png")
        assert (tmp_path / f"{i}.png").read_bytes().startswith(b"\x89PNG")
        (axes,) = figure.axes
        assert len(axes.collections[0].get_segments()) == len(answer)
        assert [tick.get_text() for tick in axes.get_yticklabels()] == list(answer.labels or [""])


def test_what_is_not_installed_is_named(session: hf.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = session.fraction("age > 40", within=0.02)
    for module, call in [
        ("pandas", answer.to_pandas),
        ("polars", answer.to_polars),
        ("pyarrow", answer.to_arrow),
        ("matplotlib", answer.plot),
    ]:
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(hf.InputError, match="pip install"):
            call()
