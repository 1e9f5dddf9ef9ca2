"""A process of its own that looks at a holdout; for tests of crashes and races.

usage: looker.py LEDGER QUERIES LOOKS [FAILPOINT]
Prints one line for each answer it gets. FAILPOINT "after-charge" or "before-settle" kills it there, hard.
"""

from __future__ import annotations

import os
import signal
import sys

import numpy as np

from holdfast.errors import BudgetError
from holdfast.holdout import ReusableHoldout
from holdfast.holdout.looks import Looks

LABELS = np.random.default_rng(11).integers(0, 2, 3000)


def dying(ids: np.ndarray) -> np.ndarray:
    """A model that is fine when it is tried, and kills the process when it is asked after the charge."""
    if len(ids) > 2:
        die()
    return LABELS[ids]


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(ledger: str, queries: int, looks: int, failpoint: str = "") -> None:
    mode = os.environ.get("LOOKER_MODE", "votes")
    with ReusableHoldout(LABELS, queries=queries, mode=mode, ledger=ledger) as holdout:
        if failpoint == "before-settle":
            Looks.settle = die  # type: ignore[method-assign, assignment]
        said = dying if failpoint == "after-charge" else LABELS
        for _ in range(looks):
            try:
                answer = holdout.score(said, guess=1.0)
            except BudgetError:
                print("refused", flush=True)
                return
            print(answer.value, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
