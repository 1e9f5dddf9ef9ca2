"""Run alone, in a process without threads: forks children and prints what parent and children drew.

Argument: the defence to leave out ("none", "stream" or "draws"), so that the test can see that it is needed.
"""

from __future__ import annotations

import json
import os
import sys
from fractions import Fraction

from holdfast import process
from holdfast.noise import kept_draws
from holdfast.noise.bits import SystemBits, system_bits
from holdfast.noise.gaussian import gaussian
from holdfast.noise.laplace import laplace

CHILDREN = 8
SCALE = Fraction(2**50)


def main(broken: str) -> None:
    own = SystemBits()
    for _ in range(50):  # fill every buffer before the fork
        laplace(SCALE), gaussian(SCALE**2), own.below(2**60), system_bits().below(2**60)
    if broken == "stream":
        SystemBits._own = lambda self: self._stream  # type: ignore[method-assign]
    if broken == "draws":
        kept_draws.KeptDraws.forget = lambda self: None  # type: ignore[method-assign]
    if broken == "id":  # only the hook is left
        here = os.getpid()
        os.getpid = lambda: here
    if broken == "hook":  # only the process id is left
        kept_draws.DrawCache.forget = lambda self: None  # type: ignore[method-assign]
        process._count_fork.__code__ = (lambda: None).__code__
    # One bound method was registered when the family was made; patched classes reach it through self.
    pipes = []
    for _ in range(CHILDREN):
        read, write = os.pipe()
        if os.fork() == 0:
            os.write(write, json.dumps(draw(own)).encode())
            os._exit(0)
        os.close(write)
        pipes.append(read)
    drawn = [draw(own)]
    for read in pipes:
        with os.fdopen(read, "rb") as pipe:
            drawn.append(json.loads(pipe.read()))
        os.wait()
    print(json.dumps(drawn))


def draw(own: SystemBits) -> dict[str, list[int]]:
    return {
        "own": [own.below(2**60) for _ in range(3)],
        "system": [system_bits().below(2**60) for _ in range(3)],
        "words": system_bits().words(3).tolist(),
        "laplace": [laplace(SCALE) for _ in range(3)],
        "gaussian": [gaussian(SCALE**2) for _ in range(3)],
    }


if __name__ == "__main__":
    main(sys.argv[1])
