"""What one charge costs: the first, the 100 000th, and the same in opendp's filter, odometer and Context."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from statistics import median

from holdfast.privacy import Event, Filter, events

BUDGETS: dict[str, tuple[Filter, Event]] = {
    "pure": (Filter.pure(1e6), events.Laplace(1, 10)),
    "zcdp": (Filter.zcdp(1e6), events.Gaussian(1, 10**6)),
    "gdp": (Filter.gdp(1e6), events.Gaussian(1, 10**6)),
    "zcdp, votes": (Filter.zcdp(1e6), events.Votes(10**6, 10**4, Fraction(1, 4))),
}
PEER_QUERIES = 500
CONTEXT_QUERIES = 60  # each takes some 50 ms


def rows() -> list[dict[str, object]]:
    """One row per system: microseconds a charge early and late, and their ratio."""
    return [*map(_holdfast, BUDGETS), *_opendp_compositors(), _opendp_context()]


def _holdfast(currency: str) -> dict[str, object]:
    start, event = BUDGETS[currency]
    full = start
    for _ in range(100_000):
        full = full.charge(event)
    # Early and late runs take turns, so that a busy machine slows both alike.
    runs = [(_charges(start, event), _charges(full, event)) for _ in range(301)]
    return _row(f"holdfast {currency}", 100_000, median(r[0] for r in runs), median(r[1] for r in runs))


def _charges(state: Filter, event: Event) -> float:
    """Microseconds a charge, over a hundred."""
    begun = time.perf_counter()
    for _ in range(100):
        state.charge(event)
    return (time.perf_counter() - begun) * 1e6 / 100


def _row(system: str, charges: int, early: float, late: float) -> dict[str, object]:
    return {
        "system": system,
        "charges": charges,
        "first_us": round(early, 2),
        "last_us": round(late, 2),
        "ratio": round(late / early, 2),
    }


def _opendp_compositors() -> list[dict[str, object]]:
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    odometer = dp.c.make_fully_adaptive_composition(
        input_domain=space[0], input_metric=space[1], output_measure=dp.zero_concentrated_divergence()
    )
    measurement = dp.m.make_gaussian(*space, scale=1000.0)
    open_ended, capped = odometer(0), dp.c.make_privacy_filter(odometer, d_in=1, d_out=0.25)(0)
    return [
        _peer("opendp filter", PEER_QUERIES, lambda: capped(measurement)),
        _peer("opendp odometer, loss never asked", PEER_QUERIES, lambda: open_ended(measurement)),
    ]


def _opendp_context() -> dict[str, object]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    context = dp.Context.compositor(
        data=list(range(100)),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=0.25),
    )
    return _peer(
        "opendp Context, count of 100 rows",
        CONTEXT_QUERIES,
        lambda: context.query(rho=1e-6).count().gaussian().release(),
    )


def _peer(system: str, queries: int, ask: Callable[[], object]) -> dict[str, object]:
    """Early is the median of the first tenth after five warm-up calls, late that of the last tenth."""
    times = []
    for _ in range(queries + 5):
        begun = time.perf_counter()
        ask()
        times.append((time.perf_counter() - begun) * 1e6)
    tenth = queries // 10
    return _row(system, queries, median(times[5 : 5 + tenth]), median(times[-tenth:]))


if __name__ == "__main__":
    for row in rows():
        print(row)
