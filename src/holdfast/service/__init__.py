"""The gateway: many analysts, one budget, nothing lost. `create_app(settings)` is the whole service."""

from holdfast.service.app import create_app
from holdfast.service.settings import Settings

__all__ = ["Settings", "create_app"]
