"""What one charge costs: the first, the 100 000th, and the same in opendp's odometer and Context."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction

from holdfast.privacy import Filter, events

EVENT = events.Gaussian(1, Fraction(10**6))
PEER_QUERIES = 200


def rows() -> list[dict[str, object]]:
    """One row per system: microseconds a charge early and late, and their ratio."""
    return [_holdfast("pure"), _holdfast("zcdp"), _holdfast("gdp"), _opendp_odometer(), _opendp_context()]


def _holdfast(currency: str) -> dict[str, object]:
    start, event = {
        "pure": (Filter.pure(1e6), events.Laplace(1, 10)),
        "zcdp": (Filter.zcdp(1e6), EVENT),
        "gdp": (Filter.gdp(1e6), EVENT),
    }[currency]
    state = start
    early = _best(lambda: _charge(start, event))
    for _ in range(100_000):
        state = state.charge(event)
    late = _best(lambda: _charge(state, event))
    return _row(f"holdfast {currency}", 100_000, early, late)


def _charge(state: Filter, event: events.Event) -> None:
    for _ in range(1000):
        state.charge(event)


def _best(run: Callable[[], None]) -> float:
    """Microseconds a charge, the best of seven thousand-charge runs."""
    times = []
    for _ in range(7):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return min(times) * 1e6 / 1000


def _row(system: str, charges: int, early: float, late: float) -> dict[str, object]:
    return {
        "system": system,
        "charges": charges,
        "first_us": round(early, 2),
        "last_us": round(late, 2),
        "ratio": round(late / early, 2),
    }


def _opendp_odometer() -> dict[str, object]:
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    odometer = dp.c.make_fully_adaptive_composition(
        input_domain=space[0], input_metric=space[1], output_measure=dp.zero_concentrated_divergence()
    )
    queryable = odometer(0)
    measurement = dp.m.make_gaussian(*space, scale=1000.0)
    return _peer("opendp odometer", lambda: queryable(measurement))


def _opendp_context() -> dict[str, object]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    context = dp.Context.compositor(
        data=list(range(100)),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=1.0),
        split_evenly_over=PEER_QUERIES,
    )
    return _peer("opendp Context", lambda: context.query().count().gaussian().release())


def _peer(system: str, ask: Callable[[], object]) -> dict[str, object]:
    times = []
    for _ in range(PEER_QUERIES):
        begun = time.perf_counter()
        ask()
        times.append(time.perf_counter() - begun)
    tenth = PEER_QUERIES // 10
    return _row(system, PEER_QUERIES, sum(times[:tenth]) * 1e6 / tenth, sum(times[-tenth:]) * 1e6 / tenth)


if __name__ == "__main__":
    for row in rows():
        print(row)
