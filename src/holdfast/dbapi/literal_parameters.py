"""Parameters in the place of question marks, written as literals of the language."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from holdfast.dbapi.standard_errors import ProgrammingError
from holdfast.query.wording import string

_MARK = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\?""")


def with_parameters(statement: str, parameters: Sequence[Any] | None) -> str:
    """The statement with a literal for each ? that stands outside quotes."""
    if parameters is not None and (isinstance(parameters, str) or not isinstance(parameters, Sequence)):
        raise ProgrammingError("expected parameters as a tuple or a list, got another; write one for each ?")
    if not isinstance(statement, str):
        raise ProgrammingError(
            f"expected the text of a statement, got {type(statement).__name__}; write SELECT ..."
        )
    given = list(parameters or ())
    marks = sum(found == "?" for found in _MARK.findall(statement))
    if parameters is None or not (marks or given):
        return statement
    if marks != len(given):
        raise ProgrammingError(f"expected {marks} parameters, got {len(given)}; give one for each ?")
    rest = iter(given)
    return _MARK.sub(lambda found: literal(next(rest)) if found[0] == "?" else found[0], statement)


def literal(value: Any) -> str:
    """A value as the language writes it. What is NULL compares with nothing, and is refused."""
    if isinstance(value, bool):
        return str(value).upper()
    for kind, word in ((datetime.datetime, "TIMESTAMP"), (datetime.date, "DATE"), (datetime.time, "TIME")):
        if isinstance(value, kind):
            return f"{word} {string(str(value))}"
    if isinstance(value, str):
        return string(value)
    if hasattr(value, "item"):  # NumPy's numbers
        return literal(value.item())
    if isinstance(value, int | Decimal) or (isinstance(value, float) and math.isfinite(value)):
        text = format(value, "f") if isinstance(value, Decimal) else repr(value)
        return f"({text})" if text.startswith("-") else text
    raise ProgrammingError(
        f"expected a number, a text, a date or a truth value as a parameter, got {type(value).__name__}; write IS NULL "
        "for what is NULL"
    )
