"""What a holdout says when the guarantee would end, and what can still be asked."""

from __future__ import annotations

from holdfast.errors import BudgetError, LedgerError
from holdfast.holdout.design import Design


def overspent(queries: int, looks: int, team: str, team_left: int | None, left: int) -> BudgetError:
    """A cap would be passed: the team's, or everybody's."""
    if team_left is not None and looks > team_left:
        text = f"{team!r} has {max(0, team_left)} looks left and this takes {looks}"
        more = f"the holdout has {left:,} left for other teams" if left else "nor has the holdout any"
        return BudgetError(f"{text}; {more}", requested=looks, remaining=max(0, team_left))
    text = f"this takes {looks} of the holdout's {queries:,} looks, and {left} are left"
    if left:
        more = "ask for a mean over rows, such as accuracy, which takes one"
    else:
        more = "a further look would end the guarantee, so go on with a fresh holdout"
    return BudgetError(f"{text}; {more}", requested=looks, remaining=left)


def exhausted(plan: Design, looks: int, failures: int, left: int) -> BudgetError:
    """Too many guesses failed: the next look could not be certified."""
    if plan.mode == "thresholdout":
        hits = plan.thresholds.hits if plan.thresholds else 0
        text = f"the holdout disagreed {hits} times, as often as was planned"
    elif plan.guesses is not None:
        text = f"all {plan.guesses.alarms} alarms and {plan.guesses.answers} answers of the plan are used"
    else:
        text = f"{failures} guesses failed, and {looks} more looks can't be certified within {plan.width:.4g}"
    if left >= 1 and looks > 1:
        more = "a mean over rows, such as accuracy, can still be asked"
    else:
        more = "go on with a fresh holdout, or plan the next one wider or for more failures"
    return BudgetError(f"{text}; {more}", requested=looks, remaining=left)


def used_up(plan: Design, looks: int, left: int) -> BudgetError:
    """Comparisons of models that differ on more rows than expected told more than their looks were planned to."""
    text = (
        f"this takes {looks} of the looks that can be certified within {plan.width:.4g}, and {left} are left"
    )
    why = f"comparisons of models that differ on more than {plan.expect:.0%} of the rows took more than one each"
    return BudgetError(f"{text}: {why}; go on with a fresh holdout", requested=looks, remaining=left)


def forgotten(mode: str) -> LedgerError:
    """Answers were lost with an older copy of the ledger, and what may still be told depends on them."""
    return LedgerError(
        f"answers of this holdout were lost with an older copy of its ledger, and a {mode} goes on from what it has "
        "told; collect a fresh holdout"
    )
