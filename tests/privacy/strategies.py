"""Events for Hypothesis: every type, nested, with honest and with awkward numbers."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from holdfast.privacy import events
from holdfast.privacy.event import Event

positive = st.one_of(
    st.fractions(min_value=Fraction(1, 10**6), max_value=1000),
    st.integers(1, 10**6).map(Fraction),
    st.floats(1e-6, 1e3).map(Fraction),
)
epsilon = st.fractions(min_value=Fraction(1, 10**6), max_value=5)
sizes = st.tuples(st.integers(1, 10**6), st.integers(1, 10**6)).map(sorted)

laplace = st.builds(events.Laplace, positive, positive)
gaussian = st.builds(events.Gaussian, st.integers(1, 10**6), st.fractions(min_value=5, max_value=10**9))
votes = st.builds(
    events.Votes,
    st.integers(1, 10**9),
    st.integers(1, 10**5),
    st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(499, 1000)),
)
pure_leaf = st.one_of(
    laplace, votes, st.builds(events.BoundedRange, epsilon), st.builds(events.PureMechanism, epsilon)
)
concentrated_leaf = st.one_of(pure_leaf, gaussian, st.builds(events.ConcentratedMechanism, epsilon))
any_leaf = st.one_of(
    concentrated_leaf,
    st.builds(events.Nothing),
    st.builds(events.ApproxMechanism, epsilon, st.fractions(Fraction(1, 10**9), Fraction(1, 10))),
    st.builds(events.ConcentratedMechanism, epsilon, st.fractions(Fraction(0), Fraction(1, 10))),
)


def row_level(leaf: st.SearchStrategy[Event]) -> st.SearchStrategy[Event]:
    """Nested events without Group, fit to be subsampled."""
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4).map(lambda parts: events.Sequence(tuple(parts))),
            st.builds(events.Repeat, inner, st.integers(1, 50)),
            st.builds(lambda e, s: events.Subsampled(e, s[0], s[1]), inner, sizes),
            st.builds(lambda e, s: events.SubsampledWithReplacement(e, s[0], s[1]), inner, sizes),
        ),
        max_leaves=6,
    )


def unit_level(leaf: st.SearchStrategy[Event]) -> st.SearchStrategy[Event]:
    """`row_level`, and groups of them, and sequences of those."""
    inner = row_level(leaf)
    unit = st.one_of(inner, st.builds(events.Group, inner, st.integers(1, 20)))
    return st.one_of(unit, st.lists(unit, max_size=3).map(lambda parts: events.Sequence(tuple(parts))))


pure_events = unit_level(pure_leaf)
concentrated_events = unit_level(pure_leaf) | st.lists(concentrated_leaf, max_size=5).map(
    lambda parts: events.Sequence(tuple(parts))
)
gaussian_events = st.one_of(
    gaussian,
    st.builds(events.Repeat, gaussian, st.integers(1, 100)),
    st.builds(events.Group, gaussian, st.integers(1, 20)),
    st.lists(gaussian, max_size=5).map(lambda parts: events.Sequence(tuple(parts))),
)
all_events = unit_level(any_leaf)
