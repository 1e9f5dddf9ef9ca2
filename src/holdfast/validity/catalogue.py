"""The facts about every bound, in the order in which they are listed."""

from __future__ import annotations

from typing import Any

from holdfast.validity.bnsssu import bnsssu, bnsssu_printed
from holdfast.validity.dfhprr import dfhprr
from holdfast.validity.discretised import description_length, discretised
from holdfast.validity.fish import fish, fish_printed
from holdfast.validity.gaussian import gaussian
from holdfast.validity.guess_and_check import guess_and_check
from holdfast.validity.hoeffding import hoeffding
from holdfast.validity.information import blanc, feldman_steinke, rogers, russo_zou, xu_raginsky
from holdfast.validity.jlnrss import jlnrss, jlnrss_exact
from holdfast.validity.ladder import ladder
from holdfast.validity.reference import t1, t2, t3, t4, t4v, transfer
from holdfast.validity.splitting import known_rounds, splitting
from holdfast.validity.votes import votes

_NOISE = ("standard_deviation",)
_VOTES = ("votes", "flip")
_GAUSSIAN = "one Gaussian noise on exact means, nothing else released from these rows"
_DRAWS = "fresh uniform rows, secret indices, one flip probability; nothing else released from these rows"


def _entry(
    name: str,
    compute: Any,
    title: str,
    mechanism: str,
    assumes: str,
    reference: str,
    parameters: tuple[str, ...] = (),
    *,
    published: bool = True,
    adaptive: bool = True,
    certified: bool = True,
) -> dict[str, Any]:
    private = mechanism in ("gaussian", "laplace", "votes", "any") and name != "blanc"
    return {
        "name": name,
        "title": title,
        "mechanism": mechanism,
        "assumes": assumes,
        "reference": reference,
        "published": published,
        "private": private,
        "adaptive": adaptive,
        "certified": certified,
        "parameters": parameters,
        "compute": compute,
    }


def _own(*arguments: Any) -> dict[str, Any]:
    return _entry(*arguments, published=False)


ENTRIES: tuple[dict[str, Any], ...] = (
    _entry(
        "hoeffding",
        hoeffding,
        "Hoeffding with a union",
        "exact",
        "queries fixed beforehand",
        "Hoeffding 1963",
        adaptive=False,
    ),
    _entry(
        "splitting",
        splitting,
        "sample splitting",
        "exact",
        "a fresh part of the rows for each query",
        "folklore",
    ),
    _entry(
        "known-rounds",
        known_rounds,
        "splitting by rounds",
        "exact",
        "queries in known rounds, a fresh part of the rows for each round",
        "folklore",
        ("rounds",),
    ),
    _entry(
        "description-length",
        description_length,
        "union over all coarse transcripts",
        "rounded",
        "answers are centres of equal cells; nothing else released",
        "Dwork et al. 2015 (Science)",
        ("cells",),
    ),
    _entry(
        "dfhprr", dfhprr, "DFHPRR 2015, Theorem 10", "gaussian", _GAUSSIAN, "Dwork et al. 2015 (STOC)", _NOISE
    ),
    _entry(
        "bnsssu",
        bnsssu,
        "BNSSSU 2016, all constants free",
        "gaussian",
        _GAUSSIAN,
        "Bassily et al. 2016; Rogers et al. 2020, eq. (7)",
        _NOISE,
    ),
    _entry(
        "bnsssu-printed",
        bnsssu_printed,
        "BNSSSU 2016, as printed",
        "gaussian",
        _GAUSSIAN,
        "Bassily et al. 2016; Fish et al. 2020, Theorem 4",
    ),
    _entry("jlnrss", jlnrss, "JLNRSS 2020, as published", "gaussian", _GAUSSIAN, "Jung et al. 2020", _NOISE),
    _entry(
        "jlnrss-exact",
        jlnrss_exact,
        "JLNRSS 2020, exact Gaussian profile, all free",
        "gaussian",
        _GAUSSIAN,
        "Jung et al. 2020; Dong et al. 2022",
        _NOISE,
    ),
    _entry(
        "russo-zou",
        russo_zou,
        "mutual information, Markov",
        "gaussian",
        _GAUSSIAN,
        "Russo and Zou 2016",
        _NOISE,
    ),
    _entry(
        "xu-raginsky",
        xu_raginsky,
        "mutual information",
        "gaussian",
        _GAUSSIAN,
        "Xu and Raginsky 2017",
        _NOISE,
    ),
    _entry(
        "rogers",
        rogers,
        "mutual information, second moment",
        "gaussian",
        _GAUSSIAN,
        "Rogers et al. 2020, Theorem 2.1",
        _NOISE,
    ),
    _entry(
        "feldman-steinke",
        feldman_steinke,
        "noise scaled to the variance, Markov",
        "gaussian",
        "Gaussian noise scaled to the variance of the query; queries of any variance",
        "Feldman and Steinke 2018",
    ),
    _entry(
        "blanc",
        blanc,
        "plain votes, mutual information",
        "votes",
        _DRAWS,
        "Blanc 2023, Theorem 2",
        ("votes",),
    ),
    _entry(
        "fish",
        fish,
        "Fish et al. 2020, the constants its proof needs",
        "laplace",
        "statistical queries, Laplace noise on rows drawn without replacement",
        "Fish et al. 2020, Theorem 5",
    ),
    _entry(
        "fish-printed",
        fish_printed,
        "Fish et al. 2020, as printed: not proved",
        "laplace",
        "as fish; the printed sample size does not meet the theorem it invokes",
        "Fish et al. 2020, Theorem 5",
        certified=False,
    ),
    _entry(
        "guess-and-check",
        guess_and_check,
        "guesses checked on a holdout",
        "holdout",
        "the guesser never sees the holdout; fewer failures than all is a fact about the run",
        "Rogers et al. 2020, section 3",
        ("failures", "cells"),
    ),
    _entry(
        "ladder",
        ladder,
        "the Ladder, transcripts counted exactly",
        "leaderboard",
        "only the best score so far is claimed, not each answer",
        "Blum and Hardt 2015",
        ("cells",),
    ),
    _own(
        "transfer",
        transfer,
        "T1°: any private mechanism",
        "any",
        "a privacy profile of the whole adaptive transcript; Gaussian noise unless rho or epsilon is given",
        "docs/theorems.md, Theorem 4",
        ("standard_deviation", "rho", "epsilon", "delta", "sample_error"),
    ),
    _own(
        "gaussian",
        gaussian,
        "J0 with T1*",
        "gaussian",
        _GAUSSIAN,
        "docs/theorems.md, Theorems 5, 8 and Lemma 7",
        ("standard_deviation", "grid"),
    ),
    _own(
        "votes", votes, "L with J0 and T1*", "votes", _DRAWS, "docs/theorems.md, Theorems 5, 9 and 11", _VOTES
    ),
    _own(
        "discretised",
        discretised,
        "D: pruned discretisation",
        "rounded",
        "answers are centres of cells fixed beforehand; nothing else released from these rows",
        "docs/theorems.md, Theorem 14",
        ("cells",),
    ),
    _own("t1", t1, "T1: f-DP and CVaR", "gaussian", _GAUSSIAN, "docs/theorems.md, Theorem 6", _NOISE),
    _own(
        "t2",
        t2,
        "T2: mutual information and CVaR",
        "gaussian",
        _GAUSSIAN,
        "docs/theorems.md, Theorem 12",
        _NOISE,
    ),
    _own("t3", t3, "T3: votes, mutual information", "votes", _DRAWS, "docs/theorems.md, Theorem 13", _VOTES),
    _own(
        "t4",
        t4,
        "T4: posterior martingale and CVaR",
        "gaussian",
        _GAUSSIAN,
        "docs/theorems.md, Theorem 15",
        _NOISE,
    ),
    _own(
        "t4v",
        t4v,
        "T4v: votes, posterior martingale",
        "votes",
        _DRAWS,
        "docs/theorems.md, Theorem 16",
        _VOTES,
    ),
)
