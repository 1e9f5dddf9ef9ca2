"""The few array operations that weights need, on NumPy, CuPy or torch: one code path for all three."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.check import one_of
from holdfast.errors import InputError


@dataclass(frozen=True, slots=True)
class ArrayModule:
    """`ones(count)` makes `count` ones; `send` moves a NumPy array to the device, `fetch` brings one back.

    `exp` is in place, `largest(array, axes)` keeps the axes, with one place each. Everything else that weights and
    models do (views by slices, `*=`, `sum`, `reshape`) is spelt alike by all three.
    """

    name: str
    ones: Callable[[int], Any]
    send: Callable[[Any], Any]
    fetch: Callable[[Any], Any]
    exp: Callable[[Any], Any]
    log: Callable[[Any], Any]
    largest: Callable[[Any, tuple[int, ...]], Any]


def array_module(name: str = "numpy", dtype: str = "float64") -> ArrayModule:
    """The operations of one library. Heavy imports happen here, when first asked for."""
    one_of("dtype", dtype, ("float64", "float32"))
    if one_of("device", name, ("numpy", "cupy", "torch")) == "numpy":
        return _of_numpy(name, np, dtype, np.asarray)
    try:
        if name == "cupy":
            import cupy  # type: ignore[import-not-found, unused-ignore]

            return _of_numpy(name, cupy, dtype, cupy.asnumpy)
        import torch  # type: ignore[import-not-found, unused-ignore]

        device, kind = ("cuda" if torch.cuda.is_available() else "cpu"), getattr(torch, dtype)
        return ArrayModule(
            name,
            lambda n: torch.ones(n, dtype=kind, device=device),
            lambda a: torch.as_tensor(np.asarray(a), dtype=kind, device=device),
            lambda a: a.cpu().numpy(),
            lambda a: a.exp_(),
            torch.log,
            lambda a, axes: a.amax(axes, keepdim=True),
        )
    except ImportError:
        raise InputError(
            f"cannot import {name}: not installed; add holdfast[gpu], or use device='numpy'"
        ) from None


def _of_numpy(name: str, library: Any, dtype: str, fetch: Callable[[Any], Any]) -> ArrayModule:
    return ArrayModule(
        name,
        lambda n: library.ones(n, dtype),
        lambda a: library.asarray(a, dtype),
        fetch,
        lambda a: library.exp(a, out=a),
        library.log,
        lambda a, axes: a.max(axis=axes, keepdims=True),
    )


HOST = array_module()
"""NumPy, in the memory of this machine."""
