"""What requests hand to threads together: in their order, all of them told, one list under way at a time."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from holdfast.service import together as service_together
from holdfast.service.together import MOST, Together


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
            first = [asyncio.create_task(together.put(item, "p")) for item in (1, 2)]
            await asyncio.sleep(0.05)
            later = [asyncio.create_task(together.put(item, "p")) for item in (3, -4, 5)]
            await asyncio.sleep(0.05)
            assert lists == [[1, 2]]
            later[0].cancel()
            go.set()
            assert await asyncio.gather(*first) == [10, 20]
            four, five = await asyncio.gather(*later[1:])
            assert (str(four), five, lists) == ("-4", 50, [[1, 2], [3, -4, 5]])
            assert await together.put(6, "p") == 60, "and it goes on"

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
        said: list[Any] = await asyncio.gather(together.put(1, "p"), together.put(2, "p"))
        assert [type(one) for one in said] == [OSError, OSError]
        fails.clear()
        assert await together.put(3, "p") == 3

    asyncio.run(all_of_them())


def test_another_loop_does_not_wait_for_what_the_last_one_left() -> None:
    lists, go = list[list[int]](), Event()
    with ThreadPoolExecutor(2) as threads:
        together = started(lists, go, threads)

        async def left() -> None:
            asyncio.create_task(together.put(1, "p"))  # noqa: RUF006  (it goes with its loop)
            await asyncio.sleep(0.02)

        async def again() -> int | Exception:
            go.set()
            return await asyncio.wait_for(together.put(2, "p"), 30)

        asyncio.run(left())
        assert asyncio.run(again()) == 20


def lists_before_bob(crowd: int) -> list[list[int]]:
    """What is handed over where ann asks very often, and bob asks once after all of it."""

    async def all_of_them() -> list[list[int]]:
        lists, go = list[list[int]](), Event()
        with ThreadPoolExecutor(2) as threads:
            together = started(lists, go, threads)
            first = asyncio.create_task(together.put(0, "ann"))
            await asyncio.sleep(0.05)
            anns = [asyncio.create_task(together.put(item, "ann")) for item in range(1, crowd)]
            await asyncio.sleep(0)
            bob = asyncio.create_task(together.put(10**6, "bob"))
            await asyncio.sleep(0)
            go.set()
            assert await asyncio.gather(first, *anns) == [10 * item for item in range(crowd)]
            assert await bob == 10**7
        return lists

    return asyncio.run(all_of_them())


def test_who_asks_once_is_in_the_next_list_however_much_others_ask() -> None:
    lists = lists_before_bob(5 * MOST)
    assert lists[0] == [0] and 10**6 in lists[1]
    assert [len(some) for some in lists] == [1, MOST, MOST, MOST, MOST, MOST]
    assert [item for some in lists for item in some if item < 10**6] == list(range(5 * MOST)), "ann's order"


def test_lists_without_turns_or_without_an_end_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nobody(Together[int, int]):
        async def put(self, item: int, person: str) -> int | Exception:
            return await super().put(item, "everybody")

    with monkeypatch.context() as patch:
        patch.setitem(globals(), "Together", Nobody)
        assert 10**6 not in lists_before_bob(5 * MOST)[1]
    monkeypatch.setattr(service_together, "MOST", 10**9)
    assert max(map(len, lists_before_bob(5 * MOST))) > MOST


def lists_of_two_halves() -> list[int]:
    """How long the lists are where half of eight people begin while the other half is worked for, and each asks again
    as soon as they are told."""

    async def all_of_them() -> list[int]:
        lists, go = list[list[int]](), Event()

        async def asking(person: int) -> None:
            for _ in range(6):
                await together.put(person, str(person))

        with ThreadPoolExecutor(2) as threads:
            together = started(lists, go, threads)
            first = [asyncio.create_task(asking(person)) for person in range(4)]
            while not lists:
                await asyncio.sleep(0.001)
            others = [asyncio.create_task(asking(person)) for person in range(4, 8)]
            await asyncio.sleep(0)
            go.set()
            await asyncio.gather(*first, *others)
        return [len(some) for some in lists]

    return asyncio.run(all_of_them())


def test_who_asks_again_as_soon_as_they_are_told_is_in_the_next_list() -> None:
    assert lists_of_two_halves() == [4, 8, 8, 8, 8, 8, 4]


def test_lists_that_take_turns_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_together, "QUIET", 0)
    assert max(lists_of_two_halves()) < 8
