"""What is refused before it is charged, though the budget would allow it: what an owner or an operator agreed to."""

from __future__ import annotations

from typing import Any

from holdfast.errors import BudgetError
from holdfast.ledger import Moment
from holdfast.ledger.entry import refuse_full
from holdfast.planning.question import Above, Question, Weigh
from holdfast.service.problem import Problem
from holdfast.session import Session


def refuse_filling(most: int, moment: Moment, asked: Question, plans: int) -> None:
    """An answer that costs next to nothing takes its place on the disk all the same. It is said here before anything is
    charged; what counts is the commit of each charge (`PublicTimesLedger`)."""
    opens = plans if isinstance(asked, Above | Weigh) else 0  # and is asked then
    refuse_full(most, moment.session.entries + max(1, plans) + opens)


def refuse_unagreed(
    asked: Question,
    share: dict[str, Any],
    session: Session,
    moment: Moment,
    answers: int,
    cost: float,
    careless: float,
) -> None:
    """One analyst shall not use up the answers that the table's intervals were promised for, and one careless question
    shall not burn an analyst's budget: more than this part of what is left."""
    most, used, left = share.get("queries"), moment.session.answers, session.left(moment)
    if most is not None and used + answers > most:
        raise BudgetError(
            f"your share is {most:,} answers; {used:,} are given and this needs {answers:,}",
            requested=answers,
            remaining=most - used,
        )
    if not asked.confirm and careless * left < cost <= left:
        raise Problem(
            "confirm",
            f"it costs {cost:.4g} of {left:.4g} that is left; ask again with confirm, or less exactly",
            cost=cost,
            remaining=left,
        )
