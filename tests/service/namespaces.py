"""Hosts with a network of their own: Linux network namespaces where we are root, or else this machine twice."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Host:
    """Where a host is reached, and what starts a command on it."""

    address: str
    command: tuple[str, ...]


HERE = Host("127.0.0.1", ())


@contextmanager
def hosts_apart(many: int) -> Iterator[list[Host]]:
    """So many hosts, each joined to this one by a cable of its own. Without the right to make networks all are here."""
    program, name = shutil.which("ip", path="/usr/sbin:/sbin:/usr/bin:/bin"), f"holdfast-{os.getpid()}"
    if program is None or os.getuid() != 0 or not _runs(program, "netns", "add", name):
        yield [HERE] * many
        return
    _runs(program, "netns", "del", name)
    with ExitStack() as stack:
        yield [stack.enter_context(_apart(program, name, number)) for number in range(many)]


@contextmanager
def _apart(program: str, name: str, number: int) -> Iterator[Host]:
    name, cable, process = f"{name}-{number}", f"hf{os.getpid() % 10**7}-{number}", os.getpid()
    net = f"10.{100 + process // 250 % 100}.{process % 250}.{4 * number}".rsplit(".", 1)
    here, there = (f"{net[0]}.{int(net[1]) + place}" for place in (1, 2))
    inside = (program, "netns", "exec", name)
    try:
        for command in (
            (program, "netns", "add", name),
            (program, "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name),
            (program, "address", "add", f"{here}/30", "dev", cable),
            (program, "link", "set", cable, "up"),
            (*inside, program, "link", "set", "lo", "up"),
            (*inside, program, "address", "add", f"{there}/30", "dev", "eth0"),
            (*inside, program, "link", "set", "eth0", "up"),
        ):
            subprocess.run(command, check=True)
        yield Host(there, inside)
    finally:
        _runs(program, "netns", "del", name)  # its end of the cable goes with it, and so does ours


def _runs(*command: str) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
