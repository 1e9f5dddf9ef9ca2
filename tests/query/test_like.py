"""LIKE, beside a plain recursive definition; and no blow-up."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from holdfast.query import like as module
from holdfast.query.like import like


def slow(pattern: str, text: str) -> bool:
    """What LIKE means, letter by letter."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(slow(pattern[1:], text[i:]) for i in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and slow(pattern[1:], text[1:])


@given(st.text("ab%_", max_size=7), st.text("ab%\n", max_size=7))
def test_it_is_what_sql_means(pattern: str, text: str) -> None:
    assert like(pattern)(text) == slow(pattern, text)


def test_signs_of_regular_expressions_are_letters() -> None:
    assert like("a.b_c%")("a.bxc\n") and not like("a.b_c%")("axbxc")
    assert like("[(^$_")("[(^$\n")


def test_many_wildcards_try_nothing_twice(monkeypatch: object) -> None:
    """Steps, not seconds: every piece is looked for once, from where the last one ended."""
    steps = []
    plain = module._piece

    def counted(piece: str) -> object:
        find = plain(piece)

        def counting(text: str, start: int, stop: int) -> int:
            found = find(text, start, stop)
            steps.append((found if found >= 0 else stop) - start + len(piece))
            return found

        return counting

    monkeypatch.setattr(module, "_piece", counted)  # type: ignore[attr-defined]
    text, pattern = "a" * 20_000, "%a" * 200 + "%b%"
    assert not module.like(pattern)(text)
    assert sum(steps) <= len(text) + 2 * len(pattern)
    assert len("a" * 22) == 22 and not re.fullmatch(
        ".*a" * 5 + ".*b.*", "a" * 22
    )  # the twin that tries again
