"""Learners attacked: the class or the loss is chosen by answers about labels that nothing predicts.

python evidence/learners.py             200 runs of each attack; writes evidence/learners.md
python evidence/learners.py --runs 10   a taste
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "evidence" / "learners.md"
sys.path[:0] = [str(ROOT), str(ROOT / "src"), str(ROOT / "tests")]

from learn.coins import GOOD, coins, overfitted, tempted  # noqa: E402  (the path must be set first)
from learn.open_fit import open_excess, watched  # noqa: E402

import holdfast as hf  # noqa: E402
from holdfast import learn  # noqa: E402
from holdfast.learn import finite_class  # noqa: E402
from holdfast.learn.clipped_descent import fit  # noqa: E402
from holdfast.learn.gram_regression import regress  # noqa: E402
from holdfast.optimize import minimize, minimum  # noqa: E402
from holdfast.session.footing import Footing, footing_after  # noqa: E402

AGAINST = 0.03
Attack = Callable[[np.random.Generator], tuple[float, float]]
"""One attacked run: the truth, and what was certified as its upper bound."""


def error(draw: np.random.Generator) -> tuple[float, float]:
    """One rule that the answers chose; every rule errs on one half."""
    session = coins(150_000, 2_000, draw).session(rho=3.0, queries=4)
    says = overfitted(session, 2_000, 0.02)
    rule = learn.FiniteClass([lambda rows: says[rows[:, 0].astype(np.int64)]])
    return 0.5, rule.learn_in(session, ["id"], "label", epsilon=0.1).error_bound


def excess(draw: np.random.Generator) -> tuple[float, float]:
    """The same rule beside one that is truly better by GOOD, and looks worse."""
    session = coins(100_000, 10_000, draw).session(rho=3.0, queries=4)
    says = overfitted(session, 10_000, 0.2)
    pair = learn.FiniteClass([lambda rows: says[rows[:, 0].astype(np.int64)], lambda rows: rows[:, 1] > 0])
    found = pair.learn_in(session, ["id", "hint"], "label", epsilon=0.1)
    return (GOOD if found.index == 0 else 0.0), found.excess


def descent(draw: np.random.Generator) -> tuple[float, float]:
    """A loss whose slope the answers chose: on these rows it falls the wrong way."""
    session = coins(150_000, 2_000, draw).session(rho=0.04, queries=4)
    loss = tempted(session, 2_000, 0.02, AGAINST)
    found = minimize(session, loss, rho=0.005, iterations=40, mechanism="gaussian")
    return AGAINST * (1 - float(found.theta[0])), found.excess


ATTACKS: dict[str, Attack] = {
    "error of a rule": error,
    "excess of a class": excess,
    "excess of a loss": descent,
}


def fixed_before(session: hf.Session, fresh: bool) -> Footing:
    """The twin that claims as if the class had been fixed before the first answer."""
    return footing_after(session, True)


def forgetful(session: hf.Session, fresh: bool) -> Footing:
    """The twin that claims by Theorem 43 as if nothing had been told."""
    return replace(footing_after(session, fresh), told=0.0)


def misses(attack: Attack, runs: int, footing: Any, seed: int = 1) -> tuple[int, float]:
    """In how many runs the certificate lies below the truth, and the mean certificate."""
    draw, found = np.random.default_rng(seed), []
    before = finite_class.footing_after, minimum.footing_after
    finite_class.footing_after = minimum.footing_after = footing
    try:
        found = [attack(draw) for _ in range(runs)]
    finally:
        finite_class.footing_after, minimum.footing_after = before
    return sum(truth > certified for truth, certified in found), float(np.mean([c for _, c in found]))


TRIES = 4


def _columns(draw: np.random.Generator) -> tuple[hf.Session, list[str], Any, Any]:
    """A session about five columns of which one tells the target, the three that its answers chose, and the rows."""
    x = draw.uniform(-1, 1, (40_000, 5))
    y = 6 * x[:, 0] + draw.logistic(size=len(x)) > 0
    names = list("abcde")
    schema = hf.Schema(**dict.fromkeys(names, hf.Real(-1, 1)), y=hf.Integer(0, 1))
    rows = dict(zip(names, x.T.copy(), strict=True)) | {"y": y.astype(np.int64)}
    session = hf.open(rows, schema).session(rho=1.0, queries=5 + TRIES, target="table", only="gaussian")
    told = {name: abs(session.fraction(f"{name} > 0 AND y = 1", rho=1e-4).value - 0.25) for name in names}
    chosen = sorted(sorted(names, key=told.__getitem__)[-3:])
    return session, chosen, x[:, [names.index(name) for name in chosen]], y


def fitted(draw: np.random.Generator) -> tuple[float, float]:
    """Theorem 260: of some fits to columns that answers chose, the one that certifies most of its own parameter."""
    session, chosen, _, _ = _columns(draw)
    with watched() as seen:
        made = [fit(session, chosen, "y", 2, rho=0.2) for _ in range(TRIES)]
    first = min(range(TRIES), key=lambda i: made[i].excess / np.linalg.norm(seen[i][1]))
    return open_excess(*seen[first]), made[first].excess


def regressed(draw: np.random.Generator) -> tuple[float, float]:
    """Theorem 45: of some regressions on columns that answers chose, the one that certifies most."""
    session, chosen, x, y = _columns(draw)
    made = [regress(session, chosen, "y", rho=0.2) for _ in range(TRIES)]
    best = min(made, key=lambda one: float(one.certified.max()))
    truth = np.linalg.lstsq(np.column_stack([x, np.ones(len(x))]), y, rcond=None)[0]
    worst = int(np.argmax(np.abs(best.coefficients - truth) / best.certified))
    return float(abs(best.coefficients - truth)[worst]), float(best.certified[worst])


ON_ROWS: dict[str, Attack] = {
    "loss of a fit (Theorem 260)": fitted,
    "a coefficient (Theorem 45)": regressed,
}


def on_rows(attack: Attack, runs: int, seed: int = 1) -> tuple[int, int, float, float]:
    """How often the certificate, and a thirtieth of it, lie below the truth; the means of both."""
    draw = np.random.default_rng(seed)
    truth, certified = np.array([attack(draw) for _ in range(runs)]).T
    return (
        int((truth > certified).sum()),
        int((truth > certified / 30).sum()),
        float(certified.mean()),
        float(truth.mean()),
    )


def table(runs: int) -> str:
    """The section of docs/evidence.md."""
    lines = [
        "## Certificates of learners under attack",
        "",
        "Written by `python evidence/learners.py`. Two histograms about labels that are coins choose a rule,",
        f"a class or a loss; then it is learnt. False certificates in {runs} runs, at confidence 95% for the session.",
        "",
        "| attack | Theorem 43 | mean certificate | as if fixed before | as if nothing was told |",
        "|---|---|---|---|---|",
    ]
    for name, attack in ATTACKS.items():
        false, mean = misses(attack, runs, footing_after)
        twins = [misses(attack, runs, twin)[0] for twin in (fixed_before, forgetful)]
        lines.append(f"| {name} | {false} | {mean:.3f} | {twins[0]} | {twins[1]} |")
    lines += [
        "",
        f"Certificates on the rows: columns chosen by five answers, and of {TRIES} fits the one that certifies most.",
        "",
        "| attack | false | mean certificate | mean truth | false, were it a thirtieth |",
        "|---|---|---|---|---|",
    ]
    for name, attack in ON_ROWS.items():
        false, less, mean, truth = on_rows(attack, runs)
        lines.append(f"| {name} | {false} | {mean:.3g} | {truth:.3g} | {less} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    made = table(runs)
    print(made)
    if runs >= 200:
        RECORD.write_text(made, encoding="utf-8")
