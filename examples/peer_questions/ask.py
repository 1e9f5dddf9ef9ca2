"""Ask a peer, in an interpreter of its own, and print what it says as lines of JSON: python ask.py opendp folder runs [number ...]

Only the peer and pandas are needed here. `ASKED` of a peer has the lines that a user writes; what they stand on
(reading the files, the budget, declared keys) is made by its `names` before each of them, and is not counted.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from typing import Any


def main(peer: str, folder: str, runs: int, *numbers: int) -> None:
    """For each question (or these alone) the lines, and the value of each group in every run; or what it was refused with."""
    warnings.simplefilter("ignore")
    module = importlib.import_module(f"of_{peer}")
    print(json.dumps({"version": module.version()}), flush=True)
    for number, why in module.NOT.items():
        print(json.dumps({str(number): {"no": why}}), flush=True)
    for number, source in module.ASKED.items():
        if numbers and number not in numbers:
            continue
        lines = source.strip().split("\n")
        try:
            values = [_pairs(_said(lines, module.names(folder, number)), module.pairs) for _ in range(runs)]
            said: dict[str, Any] = {"lines": len(lines), "runs": values}
        except Exception as error:  # whatever a peer raises is its answer
            said = {"no": " ".join(str(error).split())[-300:]}
        print(json.dumps({str(number): said}), flush=True)


def _said(lines: list[str], names: dict[str, Any]) -> Any:
    """Run all lines; the last one is what is said."""
    exec("\n".join(lines[:-1]), names)  # noqa: S102  # the lines of this folder, and no others
    return eval(lines[-1], names)  # noqa: S307


def _pairs(said: Any, pairs: Any) -> list[tuple[list[str], float]]:
    """The keys of each group as texts, and its value."""
    if not isinstance(said, dict):
        said = pairs(said)
    if not isinstance(said, dict):
        said = {(): said}
    keyed = [(key if isinstance(key, tuple) else (key,), value) for key, value in said.items()]
    return [([str(part) for part in key], float(value)) for key, value in keyed]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
