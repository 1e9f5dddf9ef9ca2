"""The texts of units: of all that occur, the dictionary of those in the rows that are kept."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from holdfast.data.source import BLOCK_ROWS, Block
from holdfast.query.column import Text
from holdfast.query.dictionary import Words

_CODE = Text(1).dtype
_NULL = Text(1).null_code


class KeptTexts:
    """Collects the codes of some text columns, block by block, and gives them back as places in smaller dictionaries.

    A dictionary of what was left out too would tell, by its size, how many rows somebody has. Codes wait in unnamed
    files inside `folder`, or in memory.
    """

    def __init__(self, words: Mapping[str, Words], folder: Path | None = None) -> None:
        self._words, self._folder = dict(words), folder
        self._used = {name: np.zeros(len(each.texts), dtype=np.bool_) for name, each in words.items()}
        self._files: dict[str, Any] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for name in self._words:
            spilled = (
                tempfile.SpooledTemporaryFile()
                if self._folder is None
                else tempfile.TemporaryFile(dir=self._folder)
            )
            self._files[name] = self._stack.enter_context(spilled)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def without(self, block: Block) -> Block:
        """The other columns of a block; the codes of its texts are kept here."""
        for name, file in self._files.items():
            codes = np.ascontiguousarray(block[name], dtype=_CODE)
            used = self._used[name]
            used[codes[codes < len(used)]] = True
            file.write(codes.view(np.uint8).data)
        return {name: codes for name, codes in block.items() if name not in self._files}

    def columns(self) -> Iterator[tuple[str, Words, Iterator[NDArray[Any]]]]:
        """Each column, its dictionary, and its codes in the order in which they came."""
        for name, words in self._words.items():
            used = self._used[name]
            kept = Words([words.texts[place] for place in np.flatnonzero(used)])
            table = np.full(len(used) + 1, _NULL, dtype=_CODE)
            table[:-1][used] = np.arange(len(kept.texts))
            yield name, kept, self._codes(name, table)

    def _codes(self, name: str, table: NDArray[Any]) -> Iterator[NDArray[Any]]:
        file = self._files[name]
        file.seek(0)
        while raw := file.read(BLOCK_ROWS * _CODE.itemsize):
            yield table.take(np.frombuffer(raw, dtype=_CODE), mode="clip")


def kept_texts(block: Block, words: Mapping[str, Words]) -> tuple[Block, dict[str, Words]]:
    """The same columns with smaller dictionaries, in memory."""
    with KeptTexts(words) as texts:
        found, kept = dict(texts.without(block)), {}
        for name, smaller, codes in texts.columns():
            found[name] = np.concatenate([np.empty(0, _CODE), *codes])
            kept[name] = smaller
    return {name: found[name] for name in block}, kept
