"""One door to every way of making synthetic data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.session.request import one_of
from holdfast.synthesis.mwem import mwem
from holdfast.synthesis.small_database import small_database
from holdfast.synthesis.synthetic import SyntheticTable

if TYPE_CHECKING:
    from holdfast.session.session import Session


def synthesize(
    session: Session, columns: Sequence[str], queries: Sequence[str], *, method: str = "mwem", **how: Any
) -> SyntheticTable:
    """Synthetic data that answer the queries about as the table does; see `mwem` and `small_database`."""
    if one_of("method", method, ("mwem", "small-database")) == "mwem":
        return mwem(session, columns, queries, **how)
    return small_database(session, columns, queries, **how)
