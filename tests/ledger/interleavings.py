"""Every order in which threads can take the steps of a `Batches`.

The threads are real ones and run the real code, but one at a time, and a list of choices says who goes on. A *step*
ends before everything that another thread could notice: a lock that is taken, a field that is read or written. All
choices are walked, depth first. An order that comes to a state where an earlier one was is left there: what follows
depends on what each thread has read and on what is there, and both are part of the state.

Three things are no steps of their own, because no order of them makes a difference: to let go of a lock; to touch the
queue's fields under its lock, while others do the same (whoever looks without the lock takes a step for it); to touch
the leader's fields as the leader. With `coarse` the same goes for all that is done under the queue's lock.

One thread may also be interrupted, once in each order, wherever CPython looks for a signal: in a call, after a call,
while it sleeps; not between two plain assignments, and not where a `with` lets go of its lock.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from holdfast.ledger import batch

Queue = batch.Batches[Any]
Body = Callable[[], object]
_QUEUE_FIELDS = ("_waiting", "_busy", "_leader", "_batch", "_failure", "_closed")
_LEADERS_FIELDS = ("_batch", "_failure")
_CALL_FIELDS = ("leads", "done")
_PLAIN = (bool, str, tuple, BaseException)


class Stuck(AssertionError):
    """Nobody can go on, and somebody has not ended."""


class Left(BaseException):
    """Unwinds the threads of an order that is not walked further."""


def walked(
    kind: type[Queue],
    scenario: Callable[[Order, Callable[..., Queue]], None],
    *,
    coarse: bool = False,
    interrupts: str | None = None,
) -> int:
    """Put a scenario through every order; how many there were. It gets the order and a maker of queues, calls
    `order.walk` and checks what came of it, if the order is `complete`. `interrupts` names who may be interrupted."""
    plans: list[list[int]] = [[]]
    known: set[int] = set()
    number = 0
    while plans:
        plan, number = plans.pop(), number + 1
        order = Order(plan, known, interrupts, coarse)
        with pytest.MonkeyPatch.context() as patch:
            scenario(order, _in_steps(kind, order, patch))
        for place in range(len(plan), len(order.widths)):
            plans += [[*order.choices[:place], other] for other in range(1, order.widths[place])]
    return number


def _taken_lock() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(eq=False)
class Walker:
    """A thread that goes on only when it is its turn."""

    name: str
    body: Body
    ready: Callable[[], bool] = lambda: True
    place: object = None
    """Where it is, and what it knows there: the lines of its functions, and their variables."""
    interruptible: bool = False
    interrupted: bool = False
    ended: bool = False
    outcome: object = None
    turn: threading.Lock = field(default_factory=_taken_lock)


class Order:
    """One order of steps: the choices of `plan` first, then always whoever went before, or the first that can."""

    def __init__(self, plan: list[int], known: set[int], interrupts: str | None, coarse: bool) -> None:
        self._plan, self._known, self._interrupts, self.coarse = plan, known, interrupts, coarse
        self.choices: list[int] = []
        self.widths: list[int] = []
        self._walkers: dict[str, Walker] = {}
        self._threads: dict[int, Walker] = {}
        self.log: set[object] = set()
        """What has happened, for the scenario's check."""
        self.state: Callable[[], object] = lambda: None
        self.interrupted = False
        self.complete, self._over, self._end = False, False, _taken_lock()

    def walk(self, *, alike: int = 0, **bodies: Body) -> dict[str, object]:
        """What comes of each body; Stuck if they wait for each other. The first so many that are `alike` begin in
        turn: another order of theirs is the same with other names."""
        self._walkers = {name: Walker(name, body) for name, body in bodies.items()}
        for before, after in list(pairwise(self._walkers.values()))[: max(0, alike - 1)]:
            after.ready = lambda before=before: before.place is not None  # type: ignore[misc]
        threads = [threading.Thread(target=self._live, args=(w,)) for w in self._walkers.values()]
        for thread in threads:
            thread.start()
        self._pass_on(None)
        self._end.acquire()
        self._over = True
        left = [walker for walker in self._walkers.values() if not walker.ended]
        for walker in left:
            walker.turn.release()
        for thread in threads:
            thread.join()
        if left and self.complete:
            raise Stuck(f"{', '.join(walker.name for walker in left)} wait for ever")
        return {name: walker.outcome for name, walker in self._walkers.items()}

    def me(self) -> Walker | None:
        return self._threads.get(threading.get_ident())

    def step(self, ready: Callable[[], bool] = lambda: True, *, calm: bool = False) -> None:
        """A step ends here. The next is taken once it is `ready`; no interrupt comes before one that is `calm`."""
        me = self.me()
        if me is not None:
            me.place = _place(sys._getframe(1))
            me.ready, me.interruptible = ready, not calm
            self._pass_on(me)
            self._deliver(me)

    @contextmanager
    def unnoticed(self) -> Iterator[None]:
        """What is done here are no steps."""
        me = self._threads.pop(threading.get_ident(), None)
        yield
        if me is not None:
            self._threads[threading.get_ident()] = me

    def look(self) -> None:
        """An interrupt may come here; nobody else goes on."""
        me = self.me()
        if me is not None and me.name == self._interrupts and self._chosen(2):
            me.interrupted, self._interrupts = True, None
            self._deliver(me)

    def _live(self, walker: Walker) -> None:
        self._threads[threading.get_ident()] = walker
        walker.turn.acquire()
        try:
            if self._over:
                return
            try:
                walker.outcome = walker.body()
            except (Exception, KeyboardInterrupt) as error:
                walker.outcome = error
            walker.ended = True
            self._pass_on(walker)
        except Left:
            return

    def _pass_on(self, me: Walker | None) -> None:
        """Choose who goes on, and sleep unless it is this thread."""
        if self._over:
            raise Left
        chosen = self._choose(me)
        if chosen is me and me is not None:
            return
        (self._end if chosen is None else chosen.turn).release()
        if me is not None and not me.ended:
            me.turn.acquire()
            if self._over:
                raise Left

    def _choose(self, me: Walker | None) -> Walker | None:
        live = [walker for walker in self._walkers.values() if not walker.ended]
        live.sort(key=lambda walker: walker is not me)
        possible = [(walker, False) for walker in live if walker.ready()]
        if not possible:
            self.complete = True
            return None
        possible += [(w, True) for w in live if w.name == self._interrupts and w.interruptible]
        if len(self.choices) >= len(self._plan) and self._was_here():
            return None
        walker, interrupt = possible[self._chosen(len(possible))]
        if interrupt:
            walker.interrupted, self._interrupts = True, None
        return walker

    def _chosen(self, width: int) -> int:
        place = len(self.choices)
        self.choices.append(self._plan[place] if place < len(self._plan) else 0)
        self.widths.append(width)
        return self.choices[-1]

    def _deliver(self, me: Walker) -> None:
        if me.interrupted:
            me.interrupted, self.interrupted = False, True
            raise KeyboardInterrupt

    def _was_here(self) -> bool:
        places = tuple(repr(w.outcome) if w.ended else w.place for w in self._walkers.values())
        here, before = hash((places, self._interrupts, frozenset(self.log), self.state())), len(self._known)
        self._known.add(here)
        return len(self._known) == before


class StepLock:
    """`threading.Lock` in steps. That of the queue is taken by `with`, those of calls are not."""

    def __init__(self, order: Order) -> None:
        self.order, self.owner = order, ""

    def acquire(self) -> bool:
        self.order.step(lambda: not self.owner)
        me = self.order.me()
        self.owner = me.name if me else "somebody"
        return True

    def release(self) -> None:
        self.order.look()
        self._let_go()
        self.order.look()

    def locked(self) -> bool:
        if self.order.coarse:
            self.order.look()
        else:
            self.order.step()
        return bool(self.owner)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self._let_go()

    def _let_go(self) -> None:
        if not self.owner:
            raise RuntimeError("release unlocked lock")
        self.owner = ""


class StepCondition:
    """`threading.Condition` in steps."""

    def __init__(self, lock: StepLock) -> None:
        self.lock, self._asleep = lock, set[str]()

    def wait(self) -> None:
        me = self.lock.owner
        self._asleep.add(me)
        self.lock.owner = ""
        self.lock.order.step(lambda: me not in self._asleep and not self.lock.owner, calm=True)
        self.lock.owner = me

    def notify_all(self) -> None:
        self.lock.order.look()
        self._asleep.clear()
        self.lock.order.look()

    def __enter__(self) -> bool:
        return self.lock.__enter__()

    def __exit__(self, *_: object) -> None:
        self.lock.__exit__()


def _in_steps(kind: type[Queue], order: Order, patch: pytest.MonkeyPatch) -> Callable[..., Queue]:
    """Makes queues of a kind, whose locks and fields are the steps of an order."""
    queues: list[Any] = []
    calls: dict[str, Any] = {}

    def alone(name: str) -> bool:
        """Whether nobody else can look at a field now, or will look at it otherwise than in a step."""
        me = order.me()
        if me is None or not queues:
            return True
        inside = queues[0].__dict__
        holds = inside["_idle"].lock.owner == me.name and (order.coarse or name in _QUEUE_FIELDS)
        leader = inside.get("_leader")
        return holds or (name in _LEADERS_FIELDS and leader is not None and leader.by == me.name)

    class StepCall(_noticed(batch.Call, _CALL_FIELDS, order, alone)):  # type: ignore[misc]
        def __init__(self, operations: Any) -> None:
            me = order.me()
            self.by = me.name if me else "nobody"
            with order.unnoticed():  # nobody knows it yet
                super().__init__(operations)
            calls[self.by] = self

    def make(run: Callable[[list[batch.Ticket[Any]]], None]) -> Queue:
        queue: Any = _noticed(kind, _QUEUE_FIELDS, order, alone)(run)
        queues.append(queue)
        order.state = lambda: (_state(queue), *(_call_state(calls[name]) for name in sorted(calls)))
        return queue  # type: ignore[no-any-return]

    patch.setattr(batch, "Lock", lambda: StepLock(order))
    patch.setattr(batch, "Condition", StepCondition)
    patch.setattr(batch, "Call", StepCall)
    return make


def _noticed(base: Any, fields: tuple[str, ...], order: Order, alone: Callable[[str], bool]) -> Any:
    """A class whose fields are read and written in steps."""

    class Noticed(base):  # type: ignore[misc]
        def __getattribute__(self, name: str) -> Any:
            if name in fields and not alone(name):
                order.step()
            return super().__getattribute__(name)

        def __setattr__(self, name: str, value: object) -> None:
            if name in fields and not alone(name):
                order.step()
            super().__setattr__(name, value)

    return Noticed


def _place(frame: Any) -> object:
    """The functions that a thread is in, each with its line and the calls and truth values among its variables."""
    places: list[object] = []
    while frame is not None and frame.f_code is not Order._live.__code__:
        kept = {
            n: _shown(v)
            for n, v in frame.f_locals.items()
            if isinstance(v, bool | list | batch.Call | BaseException)
        }
        places.append((frame.f_code.co_name, frame.f_lasti, tuple(kept.items())))
        frame = frame.f_back
    return tuple(places)


def _shown(value: Any) -> Any:
    """A value as part of a state: calls go by the names of their threads."""
    if isinstance(value, list):
        return tuple(map(_shown, value))
    return value.by if isinstance(value, batch.Call) else repr(value) if isinstance(value, _PLAIN) else None


def _state(queue: Any) -> tuple[Any, ...]:
    inside = queue.__dict__
    return (inside["_idle"].lock.owner, *(_shown(inside.get(name)) for name in _QUEUE_FIELDS))


def _call_state(call: Any) -> tuple[Any, ...]:
    fields = [object.__getattribute__(call, name) for name in _CALL_FIELDS if hasattr(type(call), name)]
    told = [(repr(ticket.result), repr(ticket.error)) for ticket in call.tickets]
    return (call.by, call.woken.owner, *fields, *told)
