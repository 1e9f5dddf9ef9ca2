"""The gateway: many analysts, one budget, nothing lost. `create_app(settings)` is the whole service."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.service.app import create_app
    from holdfast.service.settings import Settings

__all__ = ["Settings", "create_app"]

# Imported when first used: the command line must start without the `server` extra.
_HOME = {"create_app": "holdfast.service.app", "Settings": "holdfast.service.settings"}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(_import_module(_HOME[name]), name)
    raise AttributeError(f"module 'holdfast.service' has no attribute {name!r}")
