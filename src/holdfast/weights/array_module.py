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
    """`full(count)` makes `count` ones; `send` moves a NumPy array to the device, `fetch` brings one back.

    Everything else that weights do (views by slices, `*=`, `sum`, `reshape`) is spelt alike by all three.
    """

    name: str
    ones: Callable[[int], Any]
    send: Callable[[Any], Any]
    fetch: Callable[[Any], Any]


def array_module(name: str = "numpy", dtype: str = "float64") -> ArrayModule:
    """The operations of one library. Heavy imports happen here, when first asked for."""
    one_of("dtype", dtype, ("float64", "float32"))
    if one_of("device", name, ("numpy", "cupy", "torch")) == "numpy":
        return ArrayModule(name, lambda n: np.ones(n, dtype), lambda a: np.asarray(a, dtype), np.asarray)
    try:
        if name == "cupy":
            import cupy  # type: ignore[import-not-found, unused-ignore]

            return ArrayModule(
                name, lambda n: cupy.ones(n, dtype), lambda a: cupy.asarray(a, dtype), cupy.asnumpy
            )
        import torch  # type: ignore[import-not-found, unused-ignore]

        device, kind = ("cuda" if torch.cuda.is_available() else "cpu"), getattr(torch, dtype)
        return ArrayModule(
            name,
            lambda n: torch.ones(n, dtype=kind, device=device),
            lambda a: torch.as_tensor(np.asarray(a), dtype=kind, device=device),
            lambda a: a.cpu().numpy(),
        )
    except ImportError:
        raise InputError(
            f"cannot import {name}: not installed; add holdfast[gpu], or use device='numpy'"
        ) from None
