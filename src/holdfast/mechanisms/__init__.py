"""The only way out: exact mechanisms that turn secret integers into public ones.

Integers in, integers out, a scalar or an array. Each is usable alone; a session charges for it first.
"""

from holdfast.mechanisms.gaussian import gaussian
from holdfast.mechanisms.laplace import laplace

__all__ = ["gaussian", "laplace"]
