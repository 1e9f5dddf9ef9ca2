"""The whole path: question, plan, charge, measure, release, answer."""

from holdfast.planning.plan import Plan
from holdfast.session.answer import Answer
from holdfast.session.session import Session
from holdfast.session.table import Table, open

__all__ = ["Answer", "Plan", "Session", "Table", "open"]
