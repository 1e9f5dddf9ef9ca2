"""A session that is opened again goes on as it was planned: other terms are refused in words."""

from __future__ import annotations

import json
from typing import Any

from holdfast.errors import LedgerError
from holdfast.ledger import Account
from holdfast.validity.places import Places


def refuse_other_terms(standing: Account, given: dict[str, Any], places: Places | None) -> None:
    """LedgerError if a session that stands was planned on other terms than are given; those left out are None.

    Its budget and its rows are compared by the ledger.
    """
    promised = json.loads(standing.terms)
    rare = places is not None and bool(places.rare)
    read = _most_read(places)
    stands: dict[str, Any] = {name: promised[name] for name in ("confidence", "queries", "target", "within")}
    differs = {name: own for name, own in stands.items() if given[name] not in (None, own)}
    if given["intervals"] == "rare" and not rare:
        differs["intervals"] = "uniform"
    if given["rows"] is not None and (read is None or read > given["rows"]):
        differs["rows"] = read
    share = promised.get(
        "share"
    )  # of a share that was opened before this was kept, nobody knows which part it was
    if given["share"] is not None and (not standing.is_share or given["share"] != (share or given["share"])):
        differs["share"] = share
    if given["only"] not in (None, only := _only(standing, promised["within"], places)):
        differs["only"] = only
    if differs:
        name, own = next(iter(differs.items()))
        was = f"with {name}={own!r}" if own is not None else f"without {name}="
        raise LedgerError(
            f"session {standing.name!r} exists and was opened {was}, got {given[name]!r}; open it on the same terms, "
            f"by leaving {name}= out, or choose another name"
        )


def _only(standing: Account, within: float | None, places: Places | None) -> str | None:
    """By which mechanism alone it answers, if there is one."""
    if within is not None and places is not None:
        return "votes" if places.by_votes else "gaussian"
    return "gaussian" if standing.currency == "gdp" else None  # a plan may have chosen so


def _most_read(places: Places | None) -> int | None:
    """How many rows an answer of a plan by votes reads at most; None if all are read."""
    if places is None or places.mechanism != "votes":
        return None
    return max((int(epoch.noise) for epoch in places.epochs), default=None)
