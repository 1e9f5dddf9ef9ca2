"""Answers that go on while the data arrive: counters under continual observation, pan-private density.

Neighbouring streams differ in one arrival (counters) or in all appearances of one user (density).
"""

from holdfast.stream.counter import Counter
from holdfast.stream.density import PanPrivateDensity
from holdfast.stream.histogram_counter import HistogramCounter
from holdfast.stream.unbounded import UnboundedCounter

__all__ = ["Counter", "HistogramCounter", "PanPrivateDensity", "UnboundedCounter"]
