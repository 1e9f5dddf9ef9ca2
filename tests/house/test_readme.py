"""What the README opens is walked to its end: a default is a promise."""

from __future__ import annotations

import re
from pathlib import Path

README = (Path(__file__).resolve().parent.parent.parent / "README.md").read_text()


def test_all_planned_questions_of_the_first_session_are_answered() -> None:
    first = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)[0]
    opened = first[: first.index("print(")]
    (said,) = re.findall(r"print\(session\.plan\)\n# (.*)\n", first)
    width = float(re.findall(r"within ([0-9.]+) of", said)[0])
    namespace: dict[str, object] = {}
    exec(opened, namespace)  # noqa: S102  (our own README)
    session = namespace["session"]
    planned = session.queries  # type: ignore[attr-defined]
    assert session.plan == said  # type: ignore[attr-defined]
    for i in range(planned):
        where = f"age >= {i % 30} AND age <= {40 + i // 30} AND smoker = 'yes'"
        answer = session.fraction(where)  # type: ignore[attr-defined]
        assert not answer.repeated and answer.width <= width
    assert len(session.history) == planned == 1000  # type: ignore[attr-defined]
