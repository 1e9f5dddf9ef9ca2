"""Every order in which more threads than the tests have time for can take the steps of the group commit.

python evidence/interleavings.py    about a minute; exit status 1 if an order leaves somebody without an answer
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from ledger.interleavings import walked  # noqa: E402  (the path must be set first)
from ledger.test_batch import many_put  # noqa: E402

from holdfast.ledger.batch import Batches  # noqa: E402

LARGER = {
    "four threads": (many_put(4), None),
    "three threads, while another closes the queue": (many_put(3, closes=True), None),
    **{f"three threads, thread{who} is interrupted": (many_put(3), f"thread{who}") for who in range(3)},
}


def main() -> None:
    """Walk them all; an order that leaves somebody without an answer raises."""
    for words, (scenario, interrupted) in LARGER.items():
        orders = walked(Batches, scenario, coarse=True, interrupts=interrupted)
        print(f"{words}: everybody is told in all of {orders:,} orders", flush=True)


if __name__ == "__main__":
    main()
