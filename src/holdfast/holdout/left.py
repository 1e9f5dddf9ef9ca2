"""What is left of a holdout: looks, and guesses that may fail."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Left:
    """Public: it follows from the plan and the answers given.

    Where looks do not depend on guesses, `looks` and `at_most` are the same number.
    """

    looks: int
    """Looks that will be answered whatever is asked, also if every guess fails."""
    at_most: int
    """Looks that will be answered if no further guess fails."""
    failures: int | None = None
    """Guesses that may still fail with `at_most` looks answered; None where looks do not depend on guesses."""

    def facts(self) -> dict[str, int | None]:
        """For JSON."""
        return {"looks_left": self.looks, "looks_at_most": self.at_most, "failures_left": self.failures}

    def __str__(self) -> str:
        if self.failures is None or self.looks == self.at_most:
            return f"{self.looks:,}"
        return f"{self.looks:,} whatever is asked, {self.at_most:,} while no more than {self.failures:,} guesses fail"
