"""The functions none of whose faults may survive, and the faults that are no faults, each with its reason."""

from __future__ import annotations

from fnmatch import fnmatchcase

from mutants.plant import Fault, Function

ROOMS = ("privacy", "mechanisms", "planning", "session", "weights", "optimize", "validity", "ledger")
"""Elsewhere in these a share of the faults is drawn."""

LISTED = (
    # privacy: every rule, and what the filters admit
    "privacy/rule:*",
    "privacy/filter:Filter._fits",
    "privacy/filter:Filter._spend",
    "privacy/filter:Filter.cost",
    "privacy/filter:Filter.delta_cost",
    "privacy/filter:Filter.pure",
    "privacy/filter:Filter.zcdp",
    "privacy/filter:Filter.gdp",
    "privacy/subsampling:subsampled",
    "privacy/subsampling:subsampled_with_replacement",
    "privacy/conversion:pure_to_zcdp",
    # sensitivities
    "query/statistic:Workload.sensitivity",
    "query/measurement:Measurement.low",
    "query/measurement:Measurement.high",
    # losses and charges
    "planning/recipe_event:*",
    "planning/recipe_information:*",
    "planning/plain_answer:*",
    "validity/told:*",
    "session/session:Session.pay",
    "session/session:Session._resumable",
    "desk/desk:Desk.*",
    "desk/paid:Paid.*",
    "session/price:priced",
    "session/session:Session._priced_vote",
    "session/session:Session._until",
    "session/session:Session._left",
    "session/session:Session._refuse_beyond_the_promise",
    "optimize/plan_search:Search._event",
    "weights/versions:WeightsTerms.event",
    "ledger/entry:Charge.__post_init__",
    "ledger/entry:Totals.of_session",
    "ledger/entry:Totals.of_table",
    "ledger/entry:Precondition.check",
    "ledger/entry:refuse_overspending",
    "ledger/memory:MemoryLedger.reserve",
    "ledger/memory:MemoryLedger.record",
    "ledger/writer:Writer.reserve",
    "ledger/writer:Writer._charge",
    "ledger/writer:Writer.record",
    "ledger/chained:_charge_what_was_lost",
    # widths, promises, certificates
    "planning/promise:*",
    "session/footing:*",
    "planning/mean:mean_width",
    "planning/mean:least_rows",
    "session/standing_answers:_suffices",
    "planning/width:widths",
    "planning/width:_reach",
    "planning/width:_selection",
    "optimize/certificate:*",
    "learn/finite_class:_claims",
    "learn/finite_class:_error_by_union",
    "mechanisms/selection:selection_loss",
    "mechanisms/sparse_vector:SparseVector.half_width",
    "validity/gaussian_answers:gaussian_width",
    "validity/gaussian_answers:population_term",
    "validity/vote_answers:votes_width",
    "validity/transfer:concentrated_term",
    "validity/ladder_bound:ladder",
    "validity/guess_and_check:holdout_width",
    "validity/guess_and_check:accept_slack",
)

_LIMIT = "of Filter.zcdp(1): what a delta costs is the same at any limit"
_SEARCH = "where and how long is searched: every place that is met gives a valid bound"
HARMLESS = {
    "privacy/rule:_log_one_plus: 1000 -> 999": "either formula is right there, and rounded up",
    "privacy/rule:_log_one_plus: 1000 -> 1001": "either formula is right there, and rounded up",
    "privacy/rule:_log_one_plus: numerator + denominator -> numerator - denominator": (
        "the logarithms differ by less than 2^-996, far less than is added to round up"
    ),
    "planning/mean:least_rows: 1 -> 2": "one more number of rows is tried, above `rows`: still None",
    "session/price:priced: 1 -> 2 [2]": _LIMIT,
    "session/price:priced: 1 -> 2 [10]": _LIMIT,
    "validity/ladder_bound:ladder: 8.0 -> 16.0": _SEARCH,
    "validity/ladder_bound:ladder: 2.0 -> 4.0 [13]": _SEARCH,
    "validity/ladder_bound:ladder: 2.0 -> 4.0 [16]": _SEARCH,
    "validity/ladder_bound:ladder: 1.0 -> 2.0 [18]": _SEARCH,
    "validity/ladder_bound:ladder: 0.0 -> 1.0": _SEARCH,
    "validity/ladder_bound:ladder: 30 -> 31": _SEARCH,
    "validity/ladder_bound:ladder: 30 -> 29": _SEARCH,
    "validity/transfer:concentrated_term: 1 -> 2": "the rows count only where a sensitivity is given",
    "validity/transfer:concentrated_term: 2.0 -> 4.0": _SEARCH,
    "validity/transfer:concentrated_term: 0.05 -> 0.1": _SEARCH,
    "validity/transfer:concentrated_term: 20.0 * scale -> 20.0 / scale": _SEARCH,
    "validity/transfer:concentrated_term: 20.0 -> 40.0": _SEARCH,
    "validity/transfer:concentrated_term: 4.0 * rho -> 4.0 / rho": _SEARCH,
    "validity/transfer:concentrated_term: 4.0 -> 8.0": _SEARCH,
}
"""Faults that change nothing that is promised, and the reason: `str(fault)`, and its number in the function in brackets
where others of the same words are no such."""


def is_listed(function: Function) -> bool:
    name = str(function)
    return any(fnmatchcase(name, pattern) for pattern in LISTED)


def names(fault: Fault) -> tuple[str, str]:
    """How a fault may be named in HARMLESS."""
    return str(fault), f"{fault} [{fault.number}]"


def reason(fault: Fault) -> str | None:
    return next((HARMLESS[name] for name in names(fault) if name in HARMLESS), None)
