"""What will be done to answer a question: complete before any row is touched."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from holdfast.ledger import Charge
from holdfast.privacy.event import Event, to_json
from holdfast.privacy.filter import UNITS
from holdfast.query.statistic import Statistic


@dataclass(frozen=True)
class Plan:
    """Couples what must agree: the mechanism, its noise, what it costs, and how wide the answer will be.

    It depends on the text, the schema, the number of rows and the ledger, and on nothing else.
    """

    statistic: Statistic
    mechanism: str
    noise_parameter: Fraction
    """The variance (gaussian), the scale (laplace), or the epsilon of each selection (exponential)."""
    beta: float
    """The chance that is set aside for this answer's interval to miss."""
    event: Event
    charge: Charge
    rho: float
    epsilon: float | None
    rows_read: int
    rows: int
    half_width: int
    """In units of the totals: the noise on each of them stays within it, all at once, except with chance beta."""
    noise: float
    sampling: float
    population: float
    confidence: float
    target: str
    currency: str
    scope: str = ""
    """What the widths are measured in, and when they hold, in plain words."""

    @property
    def width(self) -> float:
        """The half-width of the interval, in the statistic's own scale."""
        return self.noise + self.sampling + self.population

    @property
    def cost(self) -> float:
        """What it costs, in the session's currency."""
        return self.charge.session / UNITS

    @cached_property
    def event_text(self) -> str:
        return json.dumps(to_json(self.event))

    @cached_property
    def text(self) -> str:
        """What the ledger keeps: enough to compute the answer once more under the same charge."""
        fields: dict[str, Any] = {
            "question": str(self.statistic),
            "mechanism": self.mechanism,
            "noise": str(self.noise_parameter),
            "beta": self.beta,
        }
        return json.dumps(fields)

    def explain(self) -> str:
        """What was chosen, and why, in plain words."""
        noise = {
            "gaussian": f"discrete Gaussian noise of standard deviation {float(self.noise_parameter) ** 0.5:.4g}",
            "laplace": f"discrete Laplace noise of scale {float(self.noise_parameter):.4g}",
            "exponential": f"three selections by the exponential mechanism, epsilon {float(self.noise_parameter):.4g} each",
        }[self.mechanism]
        epsilon = "" if self.epsilon is None else f" (epsilon {self.epsilon:.4g})"
        return (
            f"{self.statistic}\n"
            f"reads {self.rows_read:,} of {self.rows:,} rows and adds {noise}.\n"
            f"It costs rho {self.rho:.4g}{epsilon} and is within {self.width:.4g} of the {self.target} value"
            f"{', ' + self.scope if self.scope else ''},\n"
            f"together with all other answers of the session, with confidence {self.confidence:g}."
        )

    def __str__(self) -> str:
        return self.explain()
