"""SmartNoise SQL's part of `benchmarks/units.py`, run by a Python that has it: 1000 counts of events, 20 a unit.

The epsilon of each count is the largest at which its own odometer says that 1000 of them are (1, 1e-6).
"""

from __future__ import annotations

import json
import math
import sys
import warnings

warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from snsql import Privacy, from_connection  # noqa: E402
from snsql.sql.odometer import Odometer  # noqa: E402

UNITS, MOST, COUNTS, DELTA = 500, 20, 1000, 1e-6


def reader(epsilon: float, delta: float):
    """A reader of one table with an id, whose rows are bounded by `max_ids` and the reservoir."""
    person = np.repeat(np.arange(UNITS), MOST)
    frame = pd.DataFrame({"person": person, "cost": np.tile(np.arange(MOST), UNITS)})
    table = {"max_ids": MOST, "censor_dims": False, "clamp_counts": False,
             "person": {"type": "int", "private_id": True},
             "cost": {"type": "int", "lower": 0, "upper": 999}}  # fmt: skip
    meta = {"": {"S": {"visits": table}}}
    return from_connection(frame, privacy=Privacy(epsilon=epsilon, delta=delta), metadata=meta)


def together(epsilon: float, delta: float) -> float:
    """What its odometer says of all counts."""
    meter = Odometer(Privacy(epsilon=epsilon, delta=delta))
    meter.spend(COUNTS)
    spent_epsilon, spent_delta = meter.spent
    return math.inf if spent_delta > DELTA else spent_epsilon


def main(runs: int) -> None:
    """Print the noise and how it was reached, as JSON."""
    query = "SELECT COUNT(*) AS c FROM S.visits WHERE cost > 3"
    each = DELTA / 2 / COUNTS
    low, high = 1e-6, 1.0
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if together(middle, each) <= 1.0 else (low, middle)
    asked = reader(low, each)
    cost = asked.get_privacy_cost(query)
    # A query may cost several epsilons; the share of a count is what makes the whole cost `low`.
    asked = reader(low * low / cost[0], each)
    truth = UNITS * (MOST - 4)
    found = [float(asked.execute(query)[1][0]) - truth for _ in range(runs)]
    print(json.dumps({"epsilon": low * low / cost[0], "sd": float(np.std(found)), "mean": float(np.mean(found)),
                      "runs": runs, "cost": list(map(float, asked.get_privacy_cost(query)))}))  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]))
