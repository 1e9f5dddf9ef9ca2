"""One door to every way of making synthetic data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Unpack, cast

from holdfast.check import one_of
from holdfast.errors import InputError
from holdfast.planning.keywords import Synthesis
from holdfast.query.calling import fitting
from holdfast.query.universe import MAX_CELLS, universe
from holdfast.synthesis.from_marginals import from_marginals
from holdfast.synthesis.mwem import mwem
from holdfast.synthesis.small_database import small_database
from holdfast.weights.synthetic import SyntheticTable

if TYPE_CHECKING:
    from holdfast.session.session import Session


METHODS = ("marginals", "mwem", "small-database")


@fitting
def synthesize(
    session: Session,
    columns: Sequence[str] | None = None,
    queries: Sequence[str] | None = None,
    **how: Unpack[Synthesis],
) -> SyntheticTable:
    """Synthetic data that answer the queries about as the table does; see `from_marginals`, `mwem`, `small_database`.

    Without queries all pairs of the columns are the workload, and without columns all that are no texts. Without a
    method it is "mwem" where there are queries and their columns have at most 2^26 cells, else "marginals".
    """
    method = how.pop("method", None)
    if method is None:
        method = (
            "marginals" if queries is None or columns is None or _is_wide(session, columns, how) else "mwem"
        )
    one_of("method", method, METHODS)
    if method == "marginals":
        return from_marginals(session, columns, queries, **cast(Any, how))
    if columns is None or queries is None:
        raise InputError(
            f"expected columns and queries for {method!r}, got none; without them use 'marginals'"
        )
    make: Callable[..., SyntheticTable] = mwem if method == "mwem" else small_database
    return make(session, columns, queries, **how)


def _is_wide(session: Session, columns: Sequence[str], how: Synthesis) -> bool:
    """Whether the cells of some columns are too many to hold; or something is asked for that only a model can do."""
    if how.keys() & {"bins", "memory", "progress", "device"}:
        return True
    made = universe(session.schema, columns, how.get("edges"), nulls=how.get("nulls"), most=10**4000)
    return made.size > MAX_CELLS
