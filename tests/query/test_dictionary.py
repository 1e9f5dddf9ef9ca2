"""Dictionaries of texts: what is a text, what is NULL, and that nothing of them shows."""

from __future__ import annotations

import numpy as np
import pytest

import holdfast as hf
from holdfast.data.open import open_source
from holdfast.desk import RowAccess
from holdfast.errors import DataError, InputError, SchemaError
from holdfast.query.dictionary import Words, encoded, with_words
from holdfast.query.evaluate import evaluate
from holdfast.query.parse import parse_predicate

KIND = hf.Text(4)
RAW = [
    "caf\u00e9",
    "cafe\u0301",
    "a\0b",
    "\ud800",
    b"ok",
    b"\xff",
    7,
    np.int64(7),
    True,
    1,
    1.5,
    None,
    "12345",
    "",
]
TEXTS = ["caf\u00e9", "caf\u00e9", None, None, "ok", None, "7", "7", None, "1", None, None, None, ""]


def test_every_value_is_a_text_or_null() -> None:
    codes = encoded(RAW, KIND)  # type: ignore[arg-type]
    found = [None if code == KIND.null_code else codes.words.texts[code] for code in codes.tolist()]
    assert found == TEXTS
    assert list(codes.words.texts) == sorted({text for text in TEXTS if text is not None})


def test_a_megabyte_is_null_at_once() -> None:
    marks = "a" + "\u0315\u0300" * 500_000  # NFC of which takes quadratic time
    assert encoded([marks, "x" * 10**6, "b"], KIND).tolist() == [KIND.null_code, KIND.null_code, 0]


def test_four_code_points_may_become_one() -> None:
    assert encoded(["\u03b1\u0313\u0300\u0345" * 4], KIND).words.texts == ("\u1f82" * 4,)


def test_a_slice_keeps_its_dictionary_and_bare_codes_are_refused() -> None:
    schema = hf.Schema(t=KIND)
    codes = encoded(["b", None, "a", "b"], KIND)
    asked = parse_predicate("t <> 'a'", schema)
    assert evaluate(asked, {"t": codes[1:]}, schema).tolist() == [False, False, True]
    with pytest.raises(InputError, match="desk"):
        evaluate(asked, {"t": np.asarray(codes)}, schema)


def test_texts_show_nowhere() -> None:
    codes = encoded(["a secret"], hf.Text(10))
    assert "secret)" in repr(codes.words) and "a secret" not in repr(codes.words) + repr(codes) + str(codes)
    source = open_source({"t": ["a secret"]}, hf.Schema(t=hf.Text(10)))
    block = RowAccess(source).gather(["t"], np.array([0]))
    assert "a secret" not in repr(block) + repr(source) + repr(source.schema)


def test_null_is_never_like_anything() -> None:
    codes = with_words(np.array([0, 2**32 - 1], dtype=np.uint32), Words(["x"]))
    for test, value in (("=", "x"), ("LIKE", "%"), ("starts_with", ""), ("length >=", 0)):
        assert codes.passing(test, value).tolist() == [True, False]


@pytest.mark.parametrize("length", [0, -1, 2**16 + 1, "3", True, 2.0])
def test_a_length_is_declared(length: object) -> None:
    with pytest.raises(SchemaError, match="max_length"):
        hf.Text(length)  # type: ignore[arg-type]


def test_floats_are_no_texts() -> None:
    with pytest.raises(DataError, match="text"):
        open_source({"t": np.array([1.0])}, hf.Schema(t=KIND))
