"""What requests hand to threads together: in their order, all of them told, one list under way at a time."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from holdfast.service.together import Together


def started(lists: list[list[int]], go: Event, threads: ThreadPoolExecutor) -> Together[int, int]:
    def work(items: list[int]) -> list[int | Exception]:
        lists.append(items)
        assert go.wait(30)
        return [ValueError(str(item)) if item < 0 else 10 * item for item in items]

    return Together(lambda items: threads.submit(work, items))


def test_what_comes_while_a_list_is_under_way_is_the_next_list() -> None:
    async def all_of_them() -> None:
        lists, go = list[list[int]](), Event()
        with ThreadPoolExecutor(2) as threads:
            together = started(lists, go, threads)
            first = [asyncio.create_task(together.put(item)) for item in (1, 2)]
            await asyncio.sleep(0.05)
            later = [asyncio.create_task(together.put(item)) for item in (3, -4, 5)]
            await asyncio.sleep(0.05)
            assert lists == [[1, 2]]
            later[0].cancel()
            go.set()
            assert await asyncio.gather(*first) == [10, 20]
            four, five = await asyncio.gather(*later[1:])
            assert (str(four), five, lists) == ("-4", 50, [[1, 2], [3, -4, 5]])
            assert await together.put(6) == 60, "and it goes on"

    asyncio.run(all_of_them())


@pytest.mark.parametrize("early", [True, False])
def test_a_hand_over_that_fails_is_told_to_all_and_ends_nothing(early: bool) -> None:
    fails = [True]

    def hand_over(items: list[int]) -> Future[list[int | Exception]]:
        done = Future[list[int | Exception]]()
        if not fails:
            done.set_result(list(items))
        elif early:
            raise OSError("before")
        else:
            done.set_exception(OSError("after"))
        return done

    async def all_of_them() -> None:
        together: Together[int, int] = Together(hand_over)
        said: list[Any] = await asyncio.gather(together.put(1), together.put(2))
        assert [type(one) for one in said] == [OSError, OSError]
        fails.clear()
        assert await together.put(3) == 3

    asyncio.run(all_of_them())


def test_another_loop_does_not_wait_for_what_the_last_one_left() -> None:
    lists, go = list[list[int]](), Event()
    with ThreadPoolExecutor(2) as threads:
        together = started(lists, go, threads)

        async def left() -> None:
            asyncio.create_task(together.put(1))  # noqa: RUF006  (it goes with its loop)
            await asyncio.sleep(0.02)

        async def again() -> int | Exception:
            go.set()
            return await asyncio.wait_for(together.put(2), 30)

        asyncio.run(left())
        assert asyncio.run(again()) == 20
