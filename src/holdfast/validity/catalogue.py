"""Every bound: what it assumes and where it comes from, in the order in which they are listed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from holdfast.validity.bnsssu import bnsssu, bnsssu_printed
from holdfast.validity.dfhprr import dfhprr
from holdfast.validity.discretised import description_length, discretised
from holdfast.validity.fish import fish, fish_printed
from holdfast.validity.gaussian_answers import gaussian
from holdfast.validity.guess_and_check import guess_and_check
from holdfast.validity.hoeffding import hoeffding
from holdfast.validity.information import blanc, feldman_steinke, rogers, russo_zou, xu_raginsky
from holdfast.validity.jlnrss import jlnrss, jlnrss_exact
from holdfast.validity.ladder_bound import ladder
from holdfast.validity.leave_out_answers import leave_out, leave_out_by_votes
from holdfast.validity.reference import t1, t2, t3, t4, t4v, transfer
from holdfast.validity.splitting import known_rounds, splitting
from holdfast.validity.vote_answers import votes

_NOISE = ("standard_deviation",)
_VOTES = ("votes", "flip")
_GAUSSIAN = "one Gaussian noise on exact means, nothing else released from these rows"
_DRAWS = "fresh uniform rows, secret indices, one flip probability; nothing else released from these rows"


@dataclass(frozen=True, slots=True)
class Bound:
    """One theorem. `compute(rows, queries, beta, **parameters)` is its half-width."""

    name: str
    compute: Callable[..., float] = field(repr=False, compare=False)
    title: str
    mechanism: str
    """Which answers it is about: exact, gaussian, laplace, votes, rounded, holdout, leaderboard or any."""
    assumes: str
    reference: str
    parameters: tuple[str, ...] = ()
    """Optional keywords of `width`; those left out are tuned from the public numbers, or take a safe
    default."""
    published: bool = True
    """True for the literature, False for our own theorems."""
    adaptive: bool = True
    """Whether each query may depend on all earlier answers."""
    certified: bool = True
    """False for what is printed but not proved; the planner looks at certified bounds only."""
    slow: bool = False
    """Whether a width is itself a search: then `most_queries` is right up to a part in 500, not to the last one."""

    @property
    def private(self) -> bool:
        """Whether answers of that mechanism are differentially private."""
        return self.mechanism in ("gaussian", "laplace", "votes", "any") and self.name != "blanc"


_own = partial(Bound, published=False)

BOUNDS: tuple[Bound, ...] = (
    Bound(
        "hoeffding", hoeffding, "Hoeffding with a union", "exact",
        "queries fixed beforehand", "Hoeffding 1963", adaptive=False,
    ),
    Bound(
        "splitting", splitting, "sample splitting", "exact",
        "a fresh part of the rows for each query", "folklore",
    ),
    Bound(
        "known-rounds", known_rounds, "splitting by rounds", "exact",
        "queries in known rounds, a fresh part of the rows for each round", "folklore", ("rounds",),
    ),
    Bound(
        "description-length", description_length, "union over all coarse transcripts", "rounded",
        "answers are centres of equal cells; nothing else released",
        "Dwork et al. 2015 (Science)", ("cells",),
    ),
    Bound(
        "dfhprr", dfhprr, "DFHPRR 2015, Theorem 10", "gaussian",
        _GAUSSIAN, "Dwork et al. 2015 (STOC)", _NOISE,
    ),
    Bound(
        "bnsssu", bnsssu, "BNSSSU 2016, all constants free", "gaussian",
        _GAUSSIAN, "Bassily et al. 2016; Rogers et al. 2020, eq. (7)", _NOISE,
    ),
    Bound(
        "bnsssu-printed", bnsssu_printed, "BNSSSU 2016, as printed", "gaussian",
        _GAUSSIAN, "Bassily et al. 2016; Fish et al. 2020, Theorem 4",
    ),
    Bound("jlnrss", jlnrss, "JLNRSS 2020, as published", "gaussian", _GAUSSIAN, "Jung et al. 2020", _NOISE),
    Bound(
        "jlnrss-exact", jlnrss_exact, "JLNRSS 2020, exact Gaussian profile, all free", "gaussian",
        _GAUSSIAN, "Jung et al. 2020; Dong et al. 2022", _NOISE,
    ),
    Bound(
        "russo-zou", russo_zou, "mutual information, Markov", "gaussian",
        _GAUSSIAN, "Russo and Zou 2016", _NOISE,
    ),
    Bound(
        "xu-raginsky", xu_raginsky, "mutual information", "gaussian",
        _GAUSSIAN, "Xu and Raginsky 2017", _NOISE,
    ),
    Bound(
        "rogers", rogers, "mutual information, second moment", "gaussian",
        _GAUSSIAN, "Rogers et al. 2020, Theorem 2.1", _NOISE,
    ),
    Bound(
        "feldman-steinke", feldman_steinke, "noise scaled to the variance, Markov", "gaussian",
        "Gaussian noise scaled to the variance of the query; queries of any variance",
        "Feldman and Steinke 2018",
    ),
    Bound(
        "blanc", blanc, "plain votes, mutual information", "votes",
        _DRAWS, "Blanc 2023, Theorem 2", ("votes",),
    ),
    Bound(
        "fish", fish, "Fish et al. 2020, the constants its proof needs", "laplace",
        "statistical queries, Laplace noise on rows drawn without replacement", "Fish et al. 2020, Theorem 5",
    ),
    Bound(
        "fish-printed", fish_printed, "Fish et al. 2020, as printed: not proved", "laplace",
        "as fish; the printed sample size does not meet the theorem it invokes",
        "Fish et al. 2020, Theorem 5", certified=False,
    ),
    Bound(
        "guess-and-check", guess_and_check, "guesses checked on a holdout", "holdout",
        "the guesser never sees the holdout; fewer failures than all is a fact about the run",
        "Rogers et al. 2020, section 3", ("failures", "cells"),
    ),
    Bound(
        "ladder", ladder, "the Ladder, transcripts counted exactly", "leaderboard",
        "only the best score so far is claimed, not each answer", "Blum and Hardt 2015", ("cells",),
    ),
    _own(
        "leave-out", leave_out, "leave-out with falling noise", "gaussian",
        "Gaussian noise that falls by epochs, planned before the first answer from these rows",
        "docs/theorems.md, Theorem 23", ("standard_deviation", "grid", "epochs"), slow=True,
    ),
    _own(
        "leave-out-votes", leave_out_by_votes, "leave-out with ever more votes", "votes",
        "fresh uniform rows, secret indices; votes by epochs, planned before the first answer from these rows",
        "docs/theorems.md, Theorem 27", _VOTES, slow=True,
    ),
    _own(
        "transfer", transfer, "T1°: any private mechanism", "any",
        "a privacy profile of the whole adaptive transcript; Gaussian noise unless rho or epsilon is given",
        "docs/theorems.md, Theorem 4", ("standard_deviation", "rho", "epsilon", "delta", "sample_error"),
    ),
    _own(
        "gaussian", gaussian, "J0 with T1*", "gaussian",
        _GAUSSIAN, "docs/theorems.md, Theorems 5, 8 and Lemma 7", ("standard_deviation", "grid"),
    ),
    _own(
        "votes", votes, "L with J0 and T1*", "votes",
        _DRAWS, "docs/theorems.md, Theorems 5, 9 and 11", _VOTES,
    ),
    _own(
        "discretised", discretised, "D: pruned discretisation", "rounded",
        "answers are centres of cells fixed beforehand; nothing else released from these rows",
        "docs/theorems.md, Theorem 14", ("cells",),
    ),
    _own("t1", t1, "T1: f-DP and CVaR", "gaussian", _GAUSSIAN, "docs/theorems.md, Theorem 6", _NOISE),
    _own(
        "t2", t2, "T2: mutual information and CVaR", "gaussian",
        _GAUSSIAN, "docs/theorems.md, Theorem 12", _NOISE,
    ),
    _own("t3", t3, "T3: votes, mutual information", "votes", _DRAWS, "docs/theorems.md, Theorem 13", _VOTES),
    _own(
        "t4", t4, "T4: posterior martingale and CVaR", "gaussian",
        _GAUSSIAN, "docs/theorems.md, Theorem 15", _NOISE,
    ),
    _own(
        "t4v", t4v, "T4v: votes, posterior martingale", "votes",
        _DRAWS, "docs/theorems.md, Theorem 16", _VOTES,
    ),
)  # fmt: skip
