"""The system's noise, the same at every run of a test: what passes once passes always; what fails is seen again.

Nothing is marked as replayed, because the whole path of production runs: only the keys of its streams are made from the
name of the test instead of the operating system's entropy. Other processes (servers, forked children) draw their own.
"""

from __future__ import annotations

import hashlib
import os

from holdfast.noise import bits, gaussian, geometric, laplace

_system_key = bits._fresh_key


def begin(name: str | None) -> None:
    """From here on this process draws the noise of `name`; fresh noise where there is none."""
    process, keys = os.getpid(), 0

    def key() -> bytes:
        nonlocal keys
        if os.getpid() != process:
            return os.urandom(32)
        keys += 1
        return hashlib.sha256(f"{name} {keys}".encode()).digest()

    bits._fresh_key = _system_key if name is None else key
    bits._system._stream = bits._Stream()
    for family in (gaussian, geometric, laplace):
        family._cache._kept.clear()
