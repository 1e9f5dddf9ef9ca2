"""Public numbers only: what was asked for, on which terms, and the plan that keeps its promise."""

__all__: list[str] = []
