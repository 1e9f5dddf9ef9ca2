"""Where simulated worlds get their luck.

Populations and analysts are simulations: they take a seeded NumPy generator as an argument, so that a run can
be repeated. The noise of the answering mechanisms never comes from here.
"""

from __future__ import annotations

from numpy.random import Generator, default_rng  # noqa: TID251  (simulated data and opponents, not noise)

__all__ = ["Generator", "fresh_generator"]


def fresh_generator() -> Generator:
    """A generator that nobody can repeat, for demonstrations."""
    return default_rng()
