"""Local privacy: each client randomizes its own value, and the server sees only reports.

An oracle is a public fact that both sides share (`to_json`). Clients call `randomize`, the server calls
`estimate`. Clients' coins have rational probabilities, drawn exactly; estimates are unbiased and their
limits hold for all items together.
"""

from holdfast.local.chooser import best
from holdfast.local.coin import RandomizedResponse
from holdfast.local.document import from_json, to_json
from holdfast.local.hadamard import HadamardResponse
from holdfast.local.hashing import LocalHashing
from holdfast.local.hitters import HeavyHitters, Hitters
from holdfast.local.kary import KaryResponse
from holdfast.local.onebit import OneBitMean
from holdfast.local.oracle import FrequencyOracle
from holdfast.local.oracle_estimate import Estimate
from holdfast.local.rappor import Rappor
from holdfast.local.sketch import CountMeanSketch, HadamardSketch
from holdfast.local.subset_selection import SubsetSelection
from holdfast.local.support import Support
from holdfast.local.unary import OptimisedUnary, SymmetricUnary

__all__ = [
    "CountMeanSketch",
    "Estimate",
    "FrequencyOracle",
    "HadamardResponse",
    "HadamardSketch",
    "HeavyHitters",
    "Hitters",
    "KaryResponse",
    "LocalHashing",
    "OneBitMean",
    "OptimisedUnary",
    "RandomizedResponse",
    "Rappor",
    "SubsetSelection",
    "Support",
    "SymmetricUnary",
    "best",
    "from_json",
    "to_json",
]
