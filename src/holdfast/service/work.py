"""Work beside the event loop: in turns for each person, by the clock of its request, and committed together."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from fastapi import Request

from holdfast.desk.steps import Done, Next, Step, Steps, advance
from holdfast.errors import LedgerError
from holdfast.ledger import Moment, Outcome, Record, Reserve, Survey, Surveyed, Totals
from holdfast.service.clock import Release
from holdfast.service.parts import table_of
from holdfast.service.public_times import PublicTimesLedger
from holdfast.service.together import Together

Result = TypeVar("Result")
_Taking = tuple[Steps[Any], Step, bool]
"""Steps, the one to be taken, and whether an answer may be recorded at any time."""
_PLANNING_THREADS = 4
_WAITING_THREADS = 8
LEDGER, REPLIES = Next(math.inf, "ledger"), Next(math.inf, "replies")
"""Steps that read a ledger, and such that read or write replies. Who waits at one keeps nobody from the other."""
QUICK = 1 << 18
"""Steps of so much work (`Next`) take about a millisecond. The table is small then, so that it is in memory."""


class Work:
    """Threads for charged work, for plans, and for what reads or writes databases meanwhile.

    Guarantee: of the first two nobody has more than half, and no table or board more than three quarters. So nobody has
    all, and one that must be waited for keeps nobody from the others.
    """

    def __init__(self, threads: int) -> None:
        self._answering = ThreadPoolExecutor(threads, thread_name_prefix="answering")
        self._planning = ThreadPoolExecutor(_PLANNING_THREADS, thread_name_prefix="planning")
        self._waiting = {
            step.place: ThreadPoolExecutor(_WAITING_THREADS, thread_name_prefix=step.place)
            for step in (LEDGER, REPLIES)
        }
        self._lists: dict[str, Together[_Taking, Step | Done[Any]]] = {}
        self._most = max(1, threads // 2)
        self._turns: dict[tuple[str, int, str], asyncio.Semaphore] = {}
        self._under_way: set[asyncio.Future[Any]] = set()

    async def charged(self, request: Request, work: Callable[[], Result]) -> Result:
        """Do charged work. It goes on if the one who asked goes away: what was paid for is answered."""
        release: Release = request.state.release

        def timed() -> Result:
            with release.during():
                return work()

        return await self._beside(request, self._answering, self._most, timed)

    async def _beside(
        self, request: Request, threads: ThreadPoolExecutor, most: int, work: Callable[[], Result]
    ) -> Result:
        """Do work in one of the threads when it is the turn of whoever asks, and of what is asked."""
        place = table_of(next(iter(request.path_params.values()), ""))
        async with (
            self._turn("person", id(threads), request.state.person.id, most),
            self._turn("place", id(threads), place, most + most // 2 + most % 2),
        ):
            loop = asyncio.get_running_loop()
            return _told(await asyncio.shield(loop.run_in_executor(threads, _outcome, work)))

    def _turn(self, kind: str, threads: int, name: str, most: int) -> asyncio.Semaphore:
        return self._turns.setdefault((kind, threads, name), asyncio.Semaphore(most))

    async def stepwise(self, request: Request, steps: Steps[Result], ledger: PublicTimesLedger) -> Result:
        """The same for an answer in steps, the quick ones of which are taken here, in the event loop.

        Requires: steps that wait for a database say so.
        """
        first = advance(steps, None)
        asked: asyncio.Future[Done[Result] | Exception] = asyncio.get_running_loop().create_future()
        self._under_way.add(asked)
        asked.add_done_callback(self._under_way.discard)
        if (
            first == LEDGER
        ):  # as nearly always: one list takes all of it, and nothing has to look after it meanwhile
            self._list_of(request, ledger).hand(
                (steps, first, request.state.release.at_any_time), request.state.person.id,
                lambda step: self._go_on(request, steps, step, ledger, asked),
            )  # fmt: skip
        else:
            self._go_on(request, steps, first, ledger, asked)
        return _told(await asyncio.shield(asked))

    def _go_on(
        self,
        request: Request,
        steps: Steps[Result],
        step: Step | Done[Result] | Exception,
        ledger: PublicTimesLedger,
        asked: asyncio.Future[Done[Result] | Exception],
    ) -> None:
        """Have the rest done, whether or not the one who asked is still there; then `asked` is told."""
        if isinstance(step, Done | Exception):
            asked.set_result(step)
            return
        task = asyncio.create_task(self._taken(request, steps, step, ledger))
        task.add_done_callback(
            lambda done: asked.cancel() if done.cancelled() else asked.set_result(done.result())
        )

    async def _taken(
        self, request: Request, steps: Steps[Result], step: Step | Done[Result], ledger: PublicTimesLedger
    ) -> Done[Result] | Exception:
        release: Release = request.state.release
        try:
            with release.during():
                while not isinstance(step, Done):
                    if isinstance(step, Record):
                        await release.until_record()
                        step = await self._in_a_list(request, steps, step, ledger)
                    elif isinstance(step, Reserve | Survey) or step == LEDGER:
                        step = await self._in_a_list(request, steps, step, ledger)
                    elif step.work <= QUICK:
                        step = advance(steps, None)
                    elif math.isinf(step.work):  # it reads no rows, and need not queue behind what does
                        threads = self._waiting[step.place]
                        step = await asyncio.get_running_loop().run_in_executor(threads, advance, steps, None)
                    else:
                        step = await self._beside(
                            request, self._answering, self._most, lambda: advance(steps, None)
                        )
                return step
        except Exception as error:
            return error

    async def _in_a_list(
        self, request: Request, steps: Steps[Result], step: Step, ledger: PublicTimesLedger
    ) -> Step | Done[Result]:
        """Take a step that reads or writes the ledger of one table, and those after it, as far as they are quick, in a
        thread. Whatever is asked of that table meanwhile is taken together next: what is charged is committed at once,
        and so is what is answered."""
        together, release = self._list_of(request, ledger), request.state.release
        taken = await together.put((steps, step, release.at_any_time), request.state.person.id)
        if isinstance(taken, Exception):
            raise taken
        return taken

    def _list_of(self, request: Request, ledger: PublicTimesLedger) -> Together[_Taking, Step | Done[Any]]:
        table = table_of(next(iter(request.path_params.values()), ""))
        known = self._lists.get(table)
        if known is None:
            known = self._lists[table] = Together(
                lambda taking: self._waiting[LEDGER.place].submit(_all_taken, taking, ledger)
            )
        return known

    async def planned(self, request: Request, work: Callable[[], Result]) -> Result:
        """Do work that reads no rows and charges nothing."""
        return await self._beside(request, self._planning, _PLANNING_THREADS // 2, work)

    async def close(self) -> None:
        """Finish what is under way."""
        await asyncio.gather(*self._under_way, return_exceptions=True)
        self._planning.shutdown(wait=True, cancel_futures=True)
        for threads in (self._answering, *self._waiting.values()):
            threads.shutdown(wait=True)


def _all_taken(taking: list[_Taking], ledger: PublicTimesLedger) -> list[Step | Done[Any] | Exception]:
    """Take steps side by side, each until it is done or has to wait for something else than this ledger.

    Who comes again because others were charged first is told where the ledger will stand after those who come again
    before them. So all of them are charged with the next commit, where one after the other would be, each with a commit
    of their own: a plan for the population holds while no more is told than it was made for.
    """
    taken: list[Step | Done[Any] | Exception] = [step for _, step, _ in taking]
    going, again = list(range(len(taking))), set[int]()
    while going:
        said, before = _said([taken[place] for place in going], ledger), _Ahead()
        for place, outcome in zip(going, said, strict=True):
            steps, last = taking[place][0], taken[place]
            if place in again and isinstance(last, Survey) and isinstance(outcome, Surveyed):
                outcome = before.told(outcome, last.session)
            try:
                step = advance(steps, outcome)
                while isinstance(step, Next) and step.work <= QUICK:
                    step = advance(steps, None)
            except Exception as error:
                taken[place] = error
                continue
            taken[place] = step
            if isinstance(step, Reserve) and place in again:
                before.charge(step)
            elif isinstance(step, Survey) and isinstance(last, Reserve):
                again.add(place)
        going = [place for place in going if _goes_on(taken[place], at_any_time=taking[place][2])]
    return taken


class _Ahead:
    """Charges that are about to be committed, in their order: where the ledger will stand after them."""

    def __init__(self) -> None:
        self._all = Totals()
        self._sessions: dict[str, Totals] = {}

    def charge(self, one: Reserve) -> None:
        """One more."""
        self._all = self._all.of_table(one.charge)
        self._sessions[one.session] = self._sessions.get(one.session, Totals()).of_session(one.charge)

    def told(self, surveyed: Surveyed, session: str) -> Surveyed:
        """What a ledger said, with these charges."""
        if not self._all.entries:
            return surveyed
        moment = surveyed.moment
        mine = moment.session.plus(self._sessions.get(session, Totals()))
        return Surveyed(surveyed.asked, Moment(mine, moment.table.plus(self._all), moment.cap), expected=True)


def _said(steps: list[Any], ledger: PublicTimesLedger) -> list[Outcome | None]:
    """What the ledger says to each of some steps, of which it is asked all at once."""
    commits = [step for step in steps if isinstance(step, Reserve | Record)]
    surveys = [step for step in steps if isinstance(step, Survey)]
    committed = iter(ledger.commit_all(commits) if commits else ())
    surveyed = iter(_surveyed(surveys, ledger))
    return [
        next(committed)
        if isinstance(step, Reserve | Record)
        else next(surveyed)
        if isinstance(step, Survey)
        else None
        for step in steps
    ]


def _surveyed(surveys: list[Survey], ledger: PublicTimesLedger) -> Sequence[Outcome]:
    """What the ledger says to surveys. If it cannot be read, what it has committed is told all the same."""
    try:
        return ledger.survey_all(surveys) if surveys else ()
    except LedgerError as error:
        return [LedgerError(*error.args) for _ in surveys]


def _goes_on(step: object, *, at_any_time: bool) -> bool:
    """Whether a step is the ledger's, and may be taken now."""
    return isinstance(step, Reserve | Survey) or (isinstance(step, Record) and at_any_time)


def _outcome(work: Callable[[], Result]) -> Done[Result] | Exception:
    """What comes of work. Errors are outcomes: of those that nobody waits for, asyncio might log the words."""
    try:
        return Done(work())
    except Exception as error:
        return error


def _told(outcome: Done[Result] | Exception) -> Result:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome.result
