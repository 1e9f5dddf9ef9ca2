"""What an answer says about the population, however adaptively the questions were chosen.

Functions of public numbers only: no data, no randomness. Every own theorem is proved in docs/theorems.md.
"""

from __future__ import annotations

from holdfast.validity.anytime import (
    adaptive_width,
    capacity,
    capacity_width,
    epoch,
    epoch_noise,
    epoch_width,
)
from holdfast.validity.catalogue import Bound
from holdfast.validity.discretised import discretised_blocks
from holdfast.validity.gaussian_answers import gaussian_noise, gaussian_width
from holdfast.validity.max_information import corrected_level, max_information
from holdfast.validity.mixture import mixture_term
from holdfast.validity.noise_plan import Plan
from holdfast.validity.noise_planner import plan
from holdfast.validity.odds import GaussianOdds, VotesOdds, gaussian_odds, gaussian_odds_noise, votes_odds
from holdfast.validity.option import Epoch, Option, Request
from holdfast.validity.registry import bounds, most_queries, width
from holdfast.validity.small_steps import NearGaussian, filter_profile, votes_profile
from holdfast.validity.transfer import concentrated_term, sharp_term, transfer_width
from holdfast.validity.vote_answers import fewest_votes, votes_noise, votes_width

__all__ = [
    "Bound",
    "Epoch",
    "GaussianOdds",
    "NearGaussian",
    "Option",
    "Plan",
    "Request",
    "VotesOdds",
    "adaptive_width",
    "bounds",
    "capacity",
    "capacity_width",
    "concentrated_term",
    "corrected_level",
    "discretised_blocks",
    "epoch",
    "epoch_noise",
    "epoch_width",
    "fewest_votes",
    "filter_profile",
    "gaussian_noise",
    "gaussian_odds",
    "gaussian_odds_noise",
    "gaussian_width",
    "max_information",
    "mixture_term",
    "most_queries",
    "plan",
    "sharp_term",
    "transfer_width",
    "votes_noise",
    "votes_odds",
    "votes_profile",
    "votes_width",
    "width",
]
