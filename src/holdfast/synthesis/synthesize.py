"""One door to every way of making synthetic data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Unpack

from holdfast.check import one_of
from holdfast.planning.keywords import Synthesis
from holdfast.query.calling import fitting
from holdfast.synthesis.mwem import mwem
from holdfast.synthesis.small_database import small_database
from holdfast.weights.synthetic import SyntheticTable

if TYPE_CHECKING:
    from holdfast.session.session import Session


@fitting
def synthesize(
    session: Session, columns: Sequence[str], queries: Sequence[str], **how: Unpack[Synthesis]
) -> SyntheticTable:
    """Synthetic data that answer the queries about as the table does; see `mwem` and `small_database`."""
    method = one_of("method", how.pop("method", "mwem"), ("mwem", "small-database"))
    make: Callable[..., SyntheticTable] = mwem if method == "mwem" else small_database
    return make(session, columns, queries, **how)
