"""The answers of one SELECT, side by side: a list of them, and one table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.query.arrangement import Arrangement
from holdfast.session import answer_columns, display
from holdfast.session.answer import Answer

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class AnswerTable(list[Answer]):
    """A list of answers about the same groups. `names` are their columns' names, which a SELECT may choose with AS;
    `shown` are all columns of the SELECT in its order, as in an `Arrangement`."""

    def __init__(
        self, answers: Iterable[Answer], names: tuple[str, ...], shown: tuple[tuple[str, int], ...] = ()
    ) -> None:
        super().__init__(answers)
        self.names = names
        self.shown = shown

    def to_rows(self) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The names of the columns as the SELECT has them, and the rows: one, or one for each group."""
        columns: list[list[Any]] = []
        for _, place in self.shown:
            part, index = divmod(place, len(self))
            if place < 0:
                keys = self[0].keys or [(label,) for label in self[0].labels or ()]
                columns.append([key[-1 - place] for key in keys])
            else:
                columns.append(self[index].to_dict()[("value", "low", "high")[part]])
        return [name for name, _ in self.shown], list(zip(*columns, strict=True))

    def to_dict(self) -> dict[str, list[object]]:
        """Columns by name: `group` (with groups), then for each answer its name, `low_` and `high_` before it."""
        return answer_columns.table_columns(self, self.names)

    def to_pandas(self) -> pandas.DataFrame:
        """The columns of `to_dict` as a pandas DataFrame, a row for each group."""
        return answer_columns.pandas_frame(self.to_dict())

    def to_polars(self) -> polars.DataFrame:
        """The columns of `to_dict` as a Polars DataFrame."""
        return answer_columns.polars_frame(self.to_dict())

    def to_arrow(self) -> pyarrow.Table:
        """The columns of `to_dict` as an Arrow table."""
        return answer_columns.arrow_table(self.to_dict())

    def __str__(self) -> str:
        return display.plain_text(self.__rich__())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """In the terminal of IPython."""
        printer.text(str(self))

    def __rich__(self) -> Any:
        return display.table_rich(self, self.names)

    def _repr_html_(self) -> str:
        return display.table_html(self, self.names)


def arranged(answers: list[Answer], arrangement: Arrangement | None) -> list[Answer]:
    """The answers of a SELECT with the groups that it shows, in its order.

    Guarantee: what each interval covers does not change. All groups' intervals hold at once, so those that were
    chosen by their released values hold as well.
    """
    if arrangement is None:
        return answers
    if arrangement.changes and answers[0].labels is not None:
        columns = [list(getattr(each, part)) for part in ("value", "low", "high") for each in answers]
        places = arrangement.places(columns, answers[0].keys)
        answers = [_picked(answer, places) for answer in answers]
    return AnswerTable(answers, arrangement.names, arrangement.shown)


def _picked(answer: Answer, places: list[int]) -> Answer:
    """An answer about some of its groups."""
    assert answer.labels is not None
    parts = {name: getattr(answer, name) for name in answer_columns.PARTS}
    picked = {name: part[places] if np.ndim(part) else part for name, part in parts.items()}
    keys = None if answer.keys is None else tuple(answer.keys[place] for place in places)
    return replace(answer, labels=tuple(answer.labels[place] for place in places), keys=keys, **picked)
