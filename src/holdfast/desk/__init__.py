"""Rows only behind a committed charge: a desk takes the charge, and what it hands out alone reaches rows."""

from holdfast.desk.desk import Desk
from holdfast.desk.paid import Paid, RowAccess
from holdfast.desk.steps import Next, Steps, run

__all__ = ["Desk", "Next", "Paid", "RowAccess", "Steps", "run"]
