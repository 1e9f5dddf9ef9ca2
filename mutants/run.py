"""Run the tests that reach a function against each of its faults: killed, survived, timed out, or never reached."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType

from mutants.plant import ROOT, SOURCES, Fault, Function, faulty_code

QUICK, LONG = 5.0, 40.0
"""Seconds of tests (as they took without a fault) in the first try, and in the second for what survived it."""
PATIENCE = 30.0
"""Seconds beyond four times what the tests took without a fault, before a run is ended as timed out."""

_NOT_PLANTED = 99


@dataclass(frozen=True, slots=True)
class Test:
    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Verdict:
    fault: Fault
    outcome: str  # "killed", "survived", "timed out", "unreached", "not planted"
    tests: int


class Tests:
    """Which tests call a function, the quickest first."""

    def __init__(self, parts: Iterable[Path], known: set[str] | None = None) -> None:
        self._of: dict[str, list[Test]] = {}
        for part in parts:
            for name, test in json.loads(part.read_text()).items():
                if not test.get("failed") and (known is None or name in known):
                    for function in test["functions"]:
                        self._of.setdefault(function, []).append(Test(name, test["seconds"]))
        for found in self._of.values():
            found.sort(key=lambda test: test.seconds)

    def of(self, function: Function, seconds: float) -> list[Test]:
        """Tests that call it, as many as fit and at least one: those of its own room first, the quickest first."""
        room = f"tests/{function.file.relative_to(SOURCES).parts[0]}/"
        chosen, total = [], 0.0
        for test in sorted(self._of.get(str(function), []), key=lambda test: not test.name.startswith(room)):
            total += test.seconds + 0.01
            if chosen and total > seconds:
                break
            chosen.append(test)
        return chosen


def judge(
    faults: Sequence[Fault], tests: Tests, workers: int = 2, patience: float = PATIENCE
) -> Iterator[Verdict]:
    """A verdict for each fault, as they come. The package is imported once; every fault has its own fork.

    A run that is ended for its time says nothing: the fault may run for ever, or the machine was busy.
    """
    _warm_up({fault.function.file for fault in faults})
    waiting = [(fault, QUICK) for fault in reversed(faults)]
    running: dict[int, tuple[Fault, float, int, float]] = {}
    late: set[int] = set()
    while waiting or running:
        while waiting and len(running) < workers:
            fault, seconds = waiting.pop()
            chosen = tests.of(fault.function, seconds)
            if not chosen:
                yield Verdict(fault, "unreached", 0)
                continue
            limit = time.monotonic() + patience + 4 * sum(test.seconds for test in chosen)
            running[_start(fault, chosen)] = (fault, seconds, len(chosen), limit)
        if not running:
            continue
        done, status = os.waitpid(-1, os.WNOHANG)
        if done == 0:
            for child, (_, _, _, limit) in running.items():
                if time.monotonic() > limit:
                    late.add(child)
                    os.killpg(child, signal.SIGKILL)
            time.sleep(0.01)
            continue
        fault, seconds, count, _ = running.pop(done)
        ended = os.waitstatus_to_exitcode(status)
        if done in late:
            late.remove(done)
            yield Verdict(fault, "timed out", count)
            continue
        if ended == _NOT_PLANTED:
            yield Verdict(fault, "not planted", count)
            continue
        if ended >= 3:
            raise RuntimeError(f"pytest ended with {ended} on {fault}; run its tests by hand")
        if ended != 0:  # a failure, an error at collection, or a crash
            yield Verdict(fault, "killed", count)
        elif seconds == QUICK and len(tests.of(fault.function, LONG)) > count:
            waiting.append((fault, LONG))
        else:
            yield Verdict(fault, "survived", count)


def _warm_up(files: Iterable[Path]) -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.chdir(ROOT)
    importlib.import_module("hypothesis")
    importlib.import_module("scipy.stats")
    for file in files:
        place = file.relative_to(SOURCES.parent).with_suffix("")
        importlib.import_module(".".join(place.parts).removesuffix(".__init__"))


def _start(fault: Fault, tests: Sequence[Test]) -> int:
    sys.stdout.flush()
    child = os.fork()
    if child:
        with contextlib.suppress(OSError):  # the child may have been quicker
            os.setpgid(child, child)
        return child
    os.setpgid(0, 0)
    code = 3
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        try:
            plant(fault)
        except ValueError:  # the change leaves a function with another closure, which no object can take
            os._exit(_NOT_PLANTED)
        import pytest

        quietly = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=no"]
        quietly += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # hypothesis is imported already
        code = int(pytest.main([*quietly, *(test.name for test in tests)]))
    finally:
        os._exit(code)


def plant(fault: Fault) -> None:
    """Give every function object that was made from the original text the faulty code; forget what was cached."""
    code, planted = faulty_code(fault), 0
    for thing in gc.get_objects():
        if isinstance(thing, functools._lru_cache_wrapper):
            thing.cache_clear()
        if (
            isinstance(thing, FunctionType)
            and thing.__code__.co_qualname == fault.function.name
            and thing.__code__.co_filename == str(fault.function.file)
        ):
            thing.__code__ = code
            planted += 1
    if not planted:
        raise RuntimeError(f"no function {fault.function} is alive")
