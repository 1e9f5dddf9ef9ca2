"""What is installed here: the core, each extra, and the programs that some of them start."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec

from holdfast import __version__

_CORE = ("numpy", "scipy", "cryptography", "duckdb", "sqlglot", "click", "rich")
_EXTRAS = {
    "plot": ("matplotlib",),
    "postgres": ("psycopg",),
    "spark": ("pyspark",),
    "sklearn": ("scikit-learn",),
    "mcp": ("mcp",),
    "mlflow": ("mlflow-skinny",),
    "wandb": ("wandb",),
    "sqlalchemy": ("sqlalchemy",),
    "server": ("fastapi", "uvicorn", "jinja2", "python-multipart", "psycopg"),
    "oidc": ("authlib", "joserfc", "httpx2"),
    "gpu": ("cupy-cuda13x",),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked for, and what to do if it is not there."""

    name: str
    fine: bool
    said: str
    needed: bool = False

    def __str__(self) -> str:
        mark = "ok" if self.fine else "missing" if self.needed else "-"
        return f"{mark:8} {self.name:14} {self.said}"


def examine() -> list[Finding]:
    """Everything that can be looked at without reading any data."""
    found = [
        Finding("holdfast", True, __version__, needed=True),
        Finding(
            "python",
            sys.version_info >= (3, 11),
            f"{platform.python_version()} on {platform.platform()}",
            True,
        ),
    ]
    found += [_packages(name, (name,), f"pip install {name}", needed=True) for name in _CORE]
    found.append(_tried("noise", _draws, needed=True))
    found += [_packages(extra, names, f"pip install 'holdfast[{extra}]'") for extra, names in _EXTRAS.items()]
    java = shutil.which("java")
    found.append(
        Finding("java", java is not None, java or "needed by the extra 'spark': install a Java runtime")
    )
    if find_spec("cupy") is None:
        found.append(Finding("GPU", False, "needed by the extra 'gpu', which finds it"))
    else:
        found.append(_tried("GPU", _device))
    return found


def _packages(name: str, packages: tuple[str, ...], how: str, *, needed: bool = False) -> Finding:
    """Whether all packages are installed, and in which versions."""
    versions = []
    for package in packages:
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            return Finding(name, False, how, needed)
    return Finding(name, True, ", ".join(versions), needed)


def _tried(name: str, attempt: Callable[[], str], *, needed: bool = False) -> Finding:
    """What an attempt says, or why it failed: whatever is broken here is what a doctor must be able to say."""
    try:
        return Finding(name, True, attempt(), needed)
    except Exception as error:
        return Finding(name, False, f"{type(error).__name__}: {error}", needed)


def _draws() -> str:
    from holdfast.mechanisms import gaussian

    gaussian(0, rho=1.0)
    return "exact, from the operating system's entropy by AES-CTR"


def _device() -> str:
    import cupy

    return f"{cupy.cuda.runtime.getDeviceCount()} for the extra 'gpu'"
