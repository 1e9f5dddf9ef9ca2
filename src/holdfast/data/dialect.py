"""What one engine's SQL spells in its own way: all that the encoder and the questions must know of it."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from holdfast.query.wording import always_quoted, string

NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?"
"""What a text must match to be a number; infinities apart."""

_WORD = re.compile(
    r"""(?P<name>"(?:[^"]|"")*")|(?P<text>'(?:[^']|'')*')|(?P<type>\bDOUBLE\b)"""
    r"""|(?P<number>\b[0-9]+(?:\.[0-9]*)?[eE][+-]?[0-9]+)"""
)
Key = TypeVar("Key", str, float)
EVER = ("TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'")
"""All moments that can be declared."""


def clamped(value: str, lo: str, hi: str) -> str:
    """Not of NULL, which LEAST and GREATEST skip."""
    return f"LEAST(GREATEST({value}, {lo}), {hi})"


@dataclass(frozen=True, kw_only=True)
class Dialect(ABC):
    """The spellings of one engine; what stands here is what most engines share.

    Guarantee: no expression raises, whatever the value, if it stands behind the test that its method names.
    Where a method takes bounds, a number outside them may become any other on the same side.
    """

    families: Mapping[str, str]
    """How the engine's types are read; what is not here cannot be."""

    code_types: Mapping[str, int]
    """The types that hold codes, narrowest first, and their bits."""

    text_type: str
    double_type: str = "DOUBLE"
    wide_type: str
    """Whole numbers of 38 digits or more."""

    try_cast: str = "TRY_CAST"
    """A cast that gives NULL instead of an error; the plain one where every use is tested before."""

    remedy: str = "convert it before opening"
    """What to do about a column that cannot be read."""

    def family(self, engine_type: str) -> str:
        """How a type is read; "other" for nested types, blobs and the like."""
        name = engine_type.lower()
        return "other" if name.endswith("]") else self.families.get(name.split("(")[0], "other")

    def code_type(self, largest: int) -> str:
        """The narrowest type that holds codes up to this one."""
        return next(name for name, bits in self.code_types.items() if largest < 2**bits)

    def quoted(self, name: str) -> str:
        """An identifier."""
        return always_quoted(name)

    def text(self, text: str) -> str:
        """A text literal."""
        return string(text)

    def double(self, number: float) -> str:
        """A literal of exactly this double."""
        return f"CAST('{number!r}' AS {self.double_type})"

    def question(self, sql: str) -> str:
        """What `holdfast.query` renders, for this engine: only names, doubles and their type are respelled."""

        def respelled(word: re.Match[str]) -> str:
            if word["name"]:
                return self.quoted(word["name"][1:-1].replace('""', '"'))
            if word["number"]:
                return self.double(float(word["number"]))
            return self.double_type if word["type"] else word[0]

        return _WORD.sub(respelled, sql)

    @abstractmethod
    def texts(self, x: str) -> tuple[str, ...]:
        """A text without blanks around it; first as it is, where trimming costs more than trying twice."""

    @abstractmethod
    def matches(self, text: str, pattern: str) -> str:
        """Whether the whole text matches, where a dot is any character."""

    def bytes_of(self, text: str) -> str:
        """How many bytes a text takes."""
        return f"OCTET_LENGTH({text})"

    def known(self, x: str, family: str) -> str:
        """Whether a value is neither NULL nor NaN."""
        return f"{x} IS NOT NULL" + (f" AND NOT ISNAN({x})" if family == "float" else "")

    @abstractmethod
    def rounded(self, decimal: str, lo: int, hi: int) -> str:
        """A known decimal rounded half up, within bounds."""

    def nearest(self, decimal: str, lo: float, hi: float) -> str:
        """The double nearest to a known decimal or wide integer, within bounds."""
        # By way of text: the direct casts round twice.
        return f"{self.try_cast}(CAST({decimal} AS {self.text_type}) AS {self.double_type})"

    def numbers(self, text: str, lo: float, hi: float) -> list[tuple[str, str]]:
        """Tests whose OR is that a text is a NUMBER, and behind each the nearest double, within bounds."""
        return [(self.matches(text, NUMBER), f"{self.try_cast}({text} AS {self.double_type})")]

    @abstractmethod
    def digest(self, text: str, first: int, digits: int) -> str:
        """Hexadecimal digits (at most 15) of a text's SHA-256, counted from 1, as a whole number."""

    @abstractmethod
    def utc_day(self, instant: str) -> str:
        """The day of an instant in UTC; a plain cast would follow the session's time zone."""

    @abstractmethod
    def microseconds(self, x: str, family: str) -> str:
        """Since 1970-01-01 of a timestamp, in UTC where it is an instant; since midnight of a time of day."""

    def quotient(self, whole: str, divisor: int) -> str:
        """A whole number that is not negative by another, rounded down."""
        return f"({whole}) / {divisor}"

    def days(self, day: str, first: str) -> str:
        """How many days a day comes after the first."""
        return f"{day} - {first}"

    def lookup(self, key: str, codes: Mapping[Key, int]) -> str:
        """The code of a text or a double; NULL if it has none."""
        # Python sorts texts by code points, which is the order of their bytes in UTF-8.
        return self._halved(key, sorted(codes.items()))

    def _halved(self, key: str, codes: Sequence[tuple[Key, int]]) -> str:
        if len(codes) <= 4:
            cases = " ".join(f"WHEN {key} = {self.literal(value)} THEN {code}" for value, code in codes)
            return f"CASE {cases} END"
        middle = len(codes) // 2
        below, above = self._halved(key, codes[:middle]), self._halved(key, codes[middle:])
        return f"CASE WHEN {key} < {self.literal(codes[middle][0])} THEN {below} ELSE {above} END"

    def literal(self, value: str | float) -> str:
        """A text or a double."""
        return self.text(value) if isinstance(value, str) else self.double(value)
