"""How many users were seen, from a state that may be stolen at any moment."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal, Self

from holdfast.check import exact_positive, integer, one_of, probability, refusal
from holdfast.errors import BudgetError, InputError, MechanismError
from holdfast.mechanisms.accuracy import laplace_reach
from holdfast.mechanisms.laplace import add_laplace
from holdfast.mechanisms.values import round_down
from holdfast.noise.bernoulli import bernoulli
from holdfast.noise.bits import Bits, source
from holdfast.noise.subset import without_replacement
from holdfast.privacy import events
from holdfast.process import Home

_HALF = Fraction(1, 2)


class PanPrivateDensity:
    """The share of a declared universe of users that appeared at least once.

    One bit for each of `sampled` users, a fair coin at first, thrown anew with chance 1/2 + bias of being 1
    whenever the user appears. The sampled users are public; the bits are the whole state.
    Guarantee: neighbouring streams differ in all appearances of one user. The state at one moment of the
    intruder's choice is epsilon-DP: the bit's two laws are within 1 - 2*bias and 1 + 2*bias of each other.
    The density, told once at the end, costs another epsilon; the two together 2*epsilon.
    Not guaranteed: two intrusions. Between them the bit of an absent user never changes, while that of a user
    who appears may; a changed bit proves an appearance (epsilon is infinite). A fork would be such a second copy:
    in a child it refuses (MechanismError).
    bias = (1 - e^{-epsilon})/2 is the largest that keeps the ratios; method "lecture" has epsilon/4 (theory
    3(f)), for epsilon up to 1/2, which costs no more and has up to four times the variance.
    Reference: Dwork, Naor, Pitassi, Rothblum and Yekhanin, Pan-private streaming algorithms (2010).
    Cost: `event`. A few microseconds an appearance; one bit of state for each sampled user.
    """

    __slots__ = ("_answer", "_bits", "_home", "_index", "_state", "_terms", "bias", "epsilon", "sampled")

    def __init__(
        self,
        universe: int,
        *,
        epsilon: float | Fraction,
        sampled: int | None = None,
        method: Literal["best", "lecture"] = "best",
        bits: Bits | None = None,
    ) -> None:
        n = integer("universe", universe, most=1 << 62)
        m = integer("sampled", n if sampled is None else sampled, most=n)
        self.epsilon = exact_positive("epsilon", epsilon)
        self.bias = _bias(self.epsilon, method)
        self._terms: dict[str, Any] = {
            "universe": n,
            "epsilon": str(self.epsilon),
            "sampled": m,
            "method": method,
        }
        self._bits = bits
        self._home = Home("a density", "count there, or open another here", MechanismError)
        self.sampled: list[int] = list(range(n)) if m == n else without_replacement(n, m, bits).tolist()
        self._state: list[int] = source(bits).chunks(m, 1).astype(int).tolist()
        self._index = {user: i for i, user in enumerate(self.sampled)}
        self._answer: float | None = None

    @property
    def event(self) -> events.Event:
        """One intrusion and the answer."""
        return events.Sequence((events.PureMechanism(self.epsilon), events.Laplace(1, 1 / self.epsilon)))

    @property
    def state(self) -> tuple[int, ...]:
        """What an intruder finds: private once, at one moment."""
        self._home.check()
        return tuple(self._state)

    def see(self, user: int) -> None:
        """A user of 0..universe-1 appears, for the first or the hundredth time."""
        self._home.check()
        if self._answer is not None:
            raise BudgetError("expected appearances before the answer, got one after it; open a new density")
        i = self._index.get(integer("user", user, 0, most=self._terms["universe"] - 1))
        # A coin is thrown for every appearance, so that its time does not tell who is sampled.
        coin = int(bernoulli(_HALF + self.bias, self._bits))
        if i is not None:
            self._state[i] = coin

    def density(self) -> float:
        """The share of users that appeared, unbiased; drawn once, then repeated. May lie outside [0, 1]."""
        self._home.check()
        if self._answer is None:
            noisy = int(add_laplace(sum(self._state), 1 / self.epsilon, self._bits))
            self._answer = float((Fraction(noisy, len(self._state)) - _HALF) / self.bias)
        return self._answer

    def half_width(self, beta: float) -> float:
        """The density is off by more with probability at most beta: a third for coins, noise, sampling."""
        m, third = len(self._state), probability("beta", beta) / 3
        hoeffding = math.sqrt(math.log(2 / third) / (2 * m)) * (1 + 2.0**-40)
        noise = laplace_reach(1 / self.epsilon, third, False) / m
        sampling = 0.0 if m == self._terms["universe"] else hoeffding
        return (hoeffding + noise) / float(self.bias) * (1 + 2.0**-40) + sampling

    def to_json(self) -> dict[str, Any]:
        """The terms, the sampled users and the bits. Whoever reads it is the one intruder."""
        self._home.check()
        return {
            "terms": dict(self._terms),
            "users": list(self.sampled),
            "state": list(self._state),
            "answer": self._answer,
        }

    @classmethod
    def from_json(cls, saved: dict[str, Any], bits: Bits | None = None) -> Self:
        """The density as it was. Draws nothing that is kept."""
        try:
            terms = dict(saved["terms"])
            terms["epsilon"] = Fraction(terms["epsilon"])
            self = cls(**terms, bits=bits)
            users, state = [int(u) for u in saved["users"]], [int(b) for b in saved["state"]]
            if not len(users) == len(set(users)) == len(state) == len(self._state) or not {*state} <= {0, 1}:
                raise ValueError("state does not fit the terms")
            self.sampled, self._state, self._answer = users, state, saved["answer"]
            self._index = {user: i for i, user in enumerate(users)}
        except (KeyError, TypeError, AttributeError, ValueError) as problem:
            raise InputError("expected what to_json wrote, got something else") from problem
        return self


def _bias(epsilon: Fraction, method: str) -> Fraction:
    if one_of("method", method, ("best", "lecture")) == "best":
        # 1 - 2*bias >= e^{-epsilon} binds; 1 + 2*bias <= e^epsilon follows from it.
        return round_down(-math.expm1(-float(epsilon)) / 2 * (1 - 2.0**-40))
    if epsilon > _HALF:
        raise refusal("at most 1/2 with method 'lecture'", "epsilon", float(epsilon))
    return epsilon / 4
