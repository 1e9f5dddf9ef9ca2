"""A session's or a table's budget, from the words that the user chose."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from holdfast.check import one_of, positive, probability
from holdfast.errors import InputError, LedgerError
from holdfast.ledger import LOOKS, Account
from holdfast.ledger.entry import MOST
from holdfast.privacy.conversion import (
    approx_to_gdp,
    approx_to_zcdp,
    gdp_epsilon,
    pure_to_zcdp,
    zcdp_to_approx,
)
from holdfast.privacy.filter import DELTA_UNITS, UNITS, Filter
from holdfast.privacy.rounding import down

AMOUNT = {"pure": "epsilon", "zcdp": "rho", "gdp": "mu squared"}
"""What is counted in each currency."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit in one currency, with the (epsilon, delta) it stands for.

    `filter` counts billionths of its currency: "pure" (epsilon), "zcdp" (rho) or "gdp" (mu squared).
    """

    filter: Filter
    delta: float | None
    """The whole delta; `filter.delta_limit_units` of it are kept for the discovery of keys."""

    @property
    def currency(self) -> str:
        return self.filter.currency

    def account(self, name: str, terms: str = "") -> Account:
        return Account(
            name, self.currency, self.filter.limit_units, terms, delta=self.filter.delta_limit_units
        )

    def amount(self, units: int) -> Amount:
        """This many units, readable in every notion that applies."""
        value = units / UNITS
        if self.currency == "pure":
            return Amount(value, rho=pure_to_zcdp(value) if units else 0.0, epsilon=value, delta=0.0)
        rho = value if self.currency == "zcdp" else value / 2
        if self.delta is None or units <= 0:
            return Amount(value, rho=rho, epsilon=None if units > 0 else 0.0, delta=self.delta)
        rest = self.delta - self.filter.delta_limit_units / DELTA_UNITS
        epsilon = zcdp_to_approx(value, rest) if self.currency == "zcdp" else gdp_epsilon(value**0.5, rest)
        return Amount(value, rho=rho, epsilon=epsilon, delta=self.delta)

    def __str__(self) -> str:
        limit = self.amount(self.filter.limit_units)
        if self.currency == "pure":
            return f"epsilon {limit.epsilon:.6g} (pure)"
        epsilon = "" if limit.epsilon is None else f"epsilon {limit.epsilon:.4g} at delta {self.delta:.2g}, "
        kept = self.filter.delta_limit_units / DELTA_UNITS
        keys = f", {kept:.2g} of it for keys" if epsilon and kept else ""
        return f"{epsilon.removesuffix(', ')}{keys}{', ' if epsilon else ''}{AMOUNT[self.currency]} {float(limit):.4g}"


def from_cap(units: int, cap: str, currency: str) -> int:
    """What is left of a table's cap, in units of a session's currency: what Gaussian answers may cost of it. A session
    without a bound of its kind there (pure epsilon beside rho) has what is left of its own."""
    if cap == currency:
        return units
    return 2 * units if (cap, currency) == ("zcdp", "gdp") else MOST


class Amount(float):
    """An amount of budget: a float in the account's own currency, with `rho`, `epsilon` and `delta` beside.

    `epsilon` is None where no delta was declared to read it at.
    """

    rho: float
    epsilon: float | None
    delta: float | None

    def __new__(cls, value: float, *, rho: float, epsilon: float | None, delta: float | None) -> Amount:
        amount = super().__new__(cls, value)
        amount.rho, amount.epsilon, amount.delta = rho, epsilon, delta
        return amount


def budget(
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    only: str | None = None,
    keys_delta: float | None = None,
) -> Budget:
    """The budget meant by (epsilon), (epsilon, delta), (rho) or (rho, delta).

    epsilon alone is pure DP. (epsilon, delta) is the largest zCDP budget that converts to it (Canonne, Kamath,
    Steinke 2020), or with only="gaussian" the largest mu^2 by the exact Gaussian profile, in which Theorem 290 counts
    other noise; both end on the private side. `keys_delta` of delta is kept for the discovery of keys, which has a
    delta of its own: the sum is then read at the rest of it (Bun and Steinke 2016: approximate zCDP adds up in both).
    """
    if only is not None:
        one_of("only", only, ("gaussian",))
    if (epsilon is None) == (rho is None):
        raise InputError("expected a budget, got none; give epsilon=, epsilon= with delta=, or rho=")
    if delta is not None:
        delta = probability("delta", delta)
    kept = 0.0 if keys_delta in (None, 0) else probability("keys_delta", keys_delta)
    if kept and (delta is None or kept >= delta):
        raise InputError("expected keys_delta= below the delta= of the session, got another; give more delta")
    if rho is not None:
        rho = positive("rho", rho)
        return Budget(Filter.zcdp(rho, kept) if only is None else Filter.gdp(2 * rho, kept), delta)
    epsilon = positive("epsilon", epsilon)
    if delta is None:
        if only is not None:
            raise InputError(
                'expected delta= beside epsilon= for only="gaussian", got none; give delta= or rho='
            )
        return Budget(Filter.pure(epsilon), None)
    rest = down(delta - kept) if kept else delta
    if only is None:
        return Budget(Filter.zcdp(approx_to_zcdp(epsilon, rest), kept), delta)
    return Budget(Filter.gdp(approx_to_gdp(epsilon, rest) ** 2, kept), delta)


def budget_of(account: Account) -> Budget:
    """The budget of an account that was opened before."""
    if account.currency == LOOKS:
        raise LedgerError(
            "expected a ledger of privacy, got one that counts looks at a holdout; open another"
        )
    limit = Fraction(account.limit, UNITS)
    if account.currency == "pure":
        return Budget(Filter.pure(limit), None)
    kept = Fraction(account.delta, DELTA_UNITS)
    return Budget(Filter.zcdp(limit, kept) if account.currency == "zcdp" else Filter.gdp(limit, kept), None)
