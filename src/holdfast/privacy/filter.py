"""The filter: a budget that refuses before it would be overspent, whatever the analyst chooses next."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Literal

from holdfast.check import LARGEST, Number, exact_positive, integer, one_of, refusal, written
from holdfast.errors import BudgetError, InputError
from holdfast.privacy.event import Event
from holdfast.privacy.loss import Approx, Gdp, Loss, Pure, Zcdp
from holdfast.privacy.rounding import down, float_up, units_up
from holdfast.privacy.rule import Notion, value

Currency = Literal["pure", "zcdp", "approx", "gdp"]

UNITS = 10**9  # one unit is 1e-9 in the filter's currency
DELTA_UNITS = 10**18  # one unit of delta is 1e-18
_HIGHEST = 9 * 10**9  # the units of a larger limit would not fit 63 bits

_CURRENCIES: dict[Currency, Notion] = {
    "pure": "pure",
    "zcdp": "zcdp",
    "approx": "squares",
    "gdp": "gdp",
}
_AMOUNTS = {"pure": "epsilon", "zcdp": "rho", "approx": "epsilon squared", "gdp": "mu squared"}
_PROMISES: dict[str, type[Loss]] = {
    "pure": Pure,
    "zcdp": Zcdp,
    "approx": Approx,
    "gdp": Gdp,
}


@dataclass(frozen=True, slots=True)
class Filter:
    """How much may be spent and how much was, in whole units; immutable, a charge returns the next filter.

    Guarantee: as long as every release was charged first, the whole transcript satisfies `promise`, although
    each event (its mechanism, its noise, whether there is one) was chosen after seeing the earlier answers.
    What charges with a delta of their own may use up (`delta_limit_units`) comes on top of a promise of mu-GDP.
    `currency` names what is added: "pure" epsilon, "zcdp" rho, "approx" epsilon squared, "gdp" mu squared.
    Limits are rounded down, costs up; a charge that touches rows costs at least one unit. A float limit is
    read as the decimal it prints as, so that ten charges of 1/10 fit a limit of 1.0.
    Reference: pure: Rogers et al. 2016. (epsilon, delta) and zCDP (sums of rho and of delta within their
    limits): Whitehouse et al. 2023. GDP: Smith and Thakurta 2022; Koskela et al. 2023; with other kinds of noise
    docs/theorems.md, Theorem 290.
    Cost: a charge is O(1), the thousandth as the first.
    """

    currency: Currency
    promise: Loss
    limit_units: int
    delta_limit_units: int = 0
    spent_units: int = 0
    delta_spent_units: int = 0

    @staticmethod
    def pure(epsilon: Number) -> Filter:
        """Charges of pure epsilon; the transcript is epsilon-DP."""
        limit = _limit("epsilon", epsilon)
        return Filter("pure", Pure(_printed(epsilon)), math.floor(limit * UNITS))

    @staticmethod
    def zcdp(rho: Number, delta: Number = 0.0) -> Filter:
        """Charges of rho, and delta if a mechanism has one; the transcript is delta-approximate rho-zCDP."""
        limit, delta_limit = _limit("rho", rho), _failure("delta", delta)
        promise = Zcdp(_printed(rho), _printed(delta))
        return Filter("zcdp", promise, math.floor(limit * UNITS), math.floor(delta_limit * DELTA_UNITS))

    @staticmethod
    def approx(epsilon: Number, delta: Number, *, reserve: Number = 0.0) -> Filter:
        """Charges of pure epsilon, counted by their squares; the transcript is (epsilon, delta)-DP.

        Requires: sqrt(2 ln(1/d) V) + V/2 <= epsilon for V the sum of epsilon squared, where d = delta -
        reserve; `reserve` is the part of delta that charges with a delta of their own may use up.
        """
        _limit("epsilon", epsilon)
        kept = _failure("reserve", reserve)
        d = _failure("delta", delta) - kept
        if d <= 0:
            raise refusal("more than reserve", "delta", delta, "leave some for the sum itself")
        eps, root = float(epsilon), math.sqrt(-2.0 * math.log(float(d)))
        # The positive root of sqrt(V) root + V/2 = epsilon, written without cancellation.
        v = down((2.0 * eps / (root + math.sqrt(root * root + 2.0 * eps))) ** 2)
        promise = Approx(_printed(epsilon), _printed(delta))
        limit_units, delta_units = math.floor(Fraction(v) * UNITS), math.floor(kept * DELTA_UNITS)
        return Filter("approx", promise, limit_units, delta_units)

    @staticmethod
    def gdp(mu_squared: Number, delta: Number = 0.0) -> Filter:
        """Charges of mu squared; the transcript is mu-GDP but for an event of chance delta, the exact profile holds.

        Gaussian noise costs its own (docs/theorems.md, Lemma 7); what has another law, as much as the Gaussian noise
        that shows at least as much (Theorem 290).
        """
        limit, delta_limit = _limit("mu_squared", mu_squared), _failure("delta", delta)
        promise = Gdp(_printed(mu_squared))
        return Filter("gdp", promise, math.floor(limit * UNITS), math.floor(delta_limit * DELTA_UNITS))

    def cost(self, event: Event) -> int:
        """What the event costs here, in units, rounded up. NoRuleError if it has no loss in this currency."""
        return units_up(value(event, _CURRENCIES[self.currency]), UNITS)

    def delta_cost(self, event: Event) -> int:
        """The event's own delta, in units of 1e-18, rounded up; 0 for nearly every mechanism."""
        if self.currency == "pure":
            return 0
        return units_up(value(event, "failure"), DELTA_UNITS)

    def affords(self, event: Event) -> bool:
        """Whether `charge` would succeed."""
        return self._fits(self.cost(event), self.delta_cost(event))

    def charge(self, event: Event) -> Filter:
        """The filter after this event. BudgetError, and no change, if it would overspend."""
        return self._spend(self.cost(event), self.delta_cost(event))

    def charge_units(self, units: int, delta_units: int = 0) -> Filter:
        """The filter after a charge already priced by `cost` and `delta_cost`."""
        return self._spend(integer("units", units, 0), integer("delta_units", delta_units, 0))

    @property
    def limit(self) -> float:
        """The limit in the currency; the float nearest to the exact units, as `spent` and `remaining`."""
        return self.limit_units / UNITS

    @property
    def spent(self) -> float:
        """What was spent, in the currency."""
        return self.spent_units / UNITS

    @property
    def remaining(self) -> float:
        """What is left, in the currency."""
        return (self.limit_units - self.spent_units) / UNITS

    def to_json(self) -> dict[str, object]:
        """A JSON-able record of what was promised, what may be spent and what was."""
        return {**asdict(self), "promise": asdict(self.promise)}

    @staticmethod
    def from_json(record: object) -> Filter:
        """The filter that `to_json` wrote. InputError for anything else."""
        if not isinstance(record, dict) or set(record) != {f.name for f in fields(Filter)}:
            raise InputError(
                "expected exactly the fields that Filter.to_json wrote, got others; read it again"
            )
        currency, promise = one_of("currency", record["currency"], _CURRENCIES), record["promise"]
        kind = _PROMISES[currency]
        if not isinstance(promise, dict) or set(promise) != {f.name for f in fields(kind)}:
            raise InputError(
                f"expected a promise with the fields of {kind.__name__}, got others; read it again"
            )
        units = {name: integer(name, record[name], 0) for name in record if name.endswith("_units")}
        if (
            units["spent_units"] > units["limit_units"]
            or units["delta_spent_units"] > units["delta_limit_units"]
        ):
            raise InputError("expected at most the limit as spent, got more; check the ledger")
        return Filter(currency, kind(**promise), **units)

    def _fits(self, units: int, delta_units: int) -> bool:
        return (
            self.spent_units + units <= self.limit_units
            and self.delta_spent_units + delta_units <= self.delta_limit_units
        )

    def _spend(self, units: int, delta_units: int) -> Filter:
        if not self._fits(units, delta_units):
            requested = min(units, LARGEST) / UNITS
            message = self._refusal(requested, delta_units)
            raise BudgetError(message, requested=requested, remaining=self.remaining)
        return Filter(
            self.currency,
            self.promise,
            self.limit_units,
            self.delta_limit_units,
            self.spent_units + units,
            self.delta_spent_units + delta_units,
        )

    def _refusal(self, requested: float, delta_units: int) -> str:
        if self.delta_spent_units + delta_units <= self.delta_limit_units:
            return (
                f"expected a charge of at most {self.remaining:.9g} in {_AMOUNTS[self.currency]}, "
                f"got {requested:.9g}; ask with less accuracy, or open a larger budget"
            )
        left = (self.delta_limit_units - self.delta_spent_units) / DELTA_UNITS
        return (
            f"expected a charge of at most {left:.9g} delta, got {delta_units / DELTA_UNITS:.9g}; "
            "use a mechanism without a delta, or open a budget with more"
        )


def _limit(name: str, value: Number) -> Fraction:
    exact_positive(name, value)
    limit = written(name, value)
    if limit > _HIGHEST or limit * UNITS < 1:
        raise refusal("a number from 1e-9 to 9e9", name, value, "epsilon is usually near 1")
    return limit


def _failure(name: str, value: Number) -> Fraction:
    delta = written(name, value)
    if delta >= 1:
        raise refusal("a number below 1", name, value, "1e-6 is usual")
    return delta


def _printed(value: Number) -> float:
    return float(value) if isinstance(value, float) else float_up(Fraction(value))
