"""`holdfast`, where a day passes in an hour: python evidence/fast_clock.py 24 serve --folder …

Every clock that Holdfast's own code reads runs so many times faster, and every nap that it takes is as much shorter:
tokens and visits expire, and quanta pass, in the service's own time. SQLite, sockets and the event loop keep to the
right time; so do time-outs of locks.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any


def hasten(times: float) -> None:
    """Let this process's clocks run faster from now on. To be called before Holdfast is imported."""

    def faster(clock: Callable[[], float]) -> Callable[[], float]:
        begun = clock()
        return lambda: begun + times * (clock() - begun)

    monotonic, nap, sleep = time.monotonic, time.sleep, asyncio.sleep

    async def shorter(delay: float, result: Any = None) -> Any:
        return await sleep(delay / times, result)

    time.time, time.monotonic, time.perf_counter = map(faster, (time.time, monotonic, time.perf_counter))
    time.sleep = lambda seconds: nap(seconds / times)
    asyncio.sleep = shorter  # type: ignore[assignment]
    asyncio.BaseEventLoop.time = lambda self: monotonic()  # type: ignore[method-assign]


if __name__ == "__main__":
    hasten(float(sys.argv.pop(1)))
    from holdfast.cli import main

    sys.argv[0] = "holdfast"
    main()
