"""What higher rooms offer to a session by name. The front door says where each is, and loads it when it is used."""

from collections.abc import Callable
from typing import Any

_OFFERED: dict[str, Callable[[], Callable[..., Any]]] = {}


def offer(name: str, load: Callable[[], Callable[..., Any]]) -> None:
    """Have it found under this name."""
    _OFFERED[name] = load


def offered(name: str) -> Callable[..., Any]:
    """What was offered under this name."""
    return _OFFERED[name]()
