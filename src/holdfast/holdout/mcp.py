"""A small MCP server: an agent scores its predictions on labels that stay here.

Remote guard: the labels live in this process, the agent talks to it over stdio, and what it hears of them is
differentially private unless the owner said otherwise. That holds for an agent that cannot read this process's files:
one with a shell under the same user can open the labels (docs/holdout.md has a recipe with two users). Needs the extra
`mcp`.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

from holdfast.errors import BudgetError, HoldfastError
from holdfast.holdout.design import not_private

if TYPE_CHECKING:
    from holdfast.holdout.reusable import ReusableHoldout
    from holdfast.holdout.submission_file import SubmissionFolder

_INSTRUCTIONS = (
    "Score predictions on a hidden holdout. Every call costs a look and looks are limited: decide on "
    "training data, and come here to confirm. The interval holds for all answers at once. Answers are "
)


SAME_USER = (
    "An agent with a shell under this user can read the labels' file, and nothing here can stop it: run this server as "
    "another user, who alone may read the labels (docs/holdout.md, two users)."
)


def server(
    holdout: ReusableHoldout,
    metric: str = "accuracy",
    *,
    private: bool = True,
    files: SubmissionFolder | None = None,
) -> Any:
    """An MCP server with the tools `score`, `check` and `status`; call `.run("stdio")` on it.

    With `files` there are `score_file` and `compare_files`: predictions in files below that folder, so that an agent
    need not write them out.

    Guarantee: what leaves is what ReusableHoldout releases, and refusals. All answers together are
    differentially private for the labels; a holdout whose mode is not is refused, unless the owner says
    private=False, and then every answer says "not private". Predictions come as arrays, so an agent cannot
    learn which rows are read. Tools say errors as text, without values from the data.
    """
    from mcp.server.mcpserver import MCPServer

    plan = holdout.design
    if private and not plan.private:
        raise not_private(plan.mode)
    app = MCPServer("holdfast-holdout", instructions=f"{_INSTRUCTIONS}{plan.privacy}.", log_level="ERROR")
    lock = threading.Lock()

    def told(look: Any) -> str:
        try:
            with lock:
                found = {**look(), "privacy": plan.privacy, **holdout.left.facts()}
        except BudgetError as error:
            found = {"refused": str(error), **holdout.left.facts()}
        except HoldfastError as error:
            found = {"error": str(error)}
        return json.dumps(found)

    def score(predictions: list[float | int | str], metric: str = metric, key: str | None = None) -> str:
        """The metric of one prediction per holdout row, in order, with an interval for the population.

        `key`: the same key returns the same answer at no cost.
        """
        return told(lambda: _public(holdout.score(predictions, metric=metric, key=key)))

    def check(
        train_score: float,
        predictions: list[float | int | str],
        metric: str = metric,
        key: str | None = None,
    ) -> str:
        """Whether a training score holds on the population; if not, what the holdout says."""

        def look() -> dict[str, Any]:
            verdict = holdout.check(train_score, predictions, metric=metric, key=key)
            return {"fine": verdict.fine, **_public(verdict.answer)}

        return told(look)

    def score_file(path: str, metric: str = metric, column: str | None = None, key: str | None = None) -> str:
        """The metric of the predictions in a file below the declared folder, with an interval for the population.

        With ids (status says so) a .csv or .parquet with columns `id` and `prediction`, in any order of rows.
        """
        assert files is not None
        return told(lambda: _public(holdout.score(files.read(path, column=column), metric=metric, key=key)))

    def compare_files(
        first: str, second: str, metric: str = metric, column: str | None = None, key: str | None = None
    ) -> str:
        """By how much the first file's predictions score above the second's; one look, narrow if they mostly agree."""
        assert files is not None

        def look() -> dict[str, Any]:
            sides = [files.read(name, column=column) for name in (first, second)]
            return _public(holdout.compare(*sides, metric=metric, key=key))

        return told(look)

    def status() -> str:
        """Rows, planned looks, width, mode, looks left, and whether answers are private. Free."""
        return told(
            lambda: {
                "rows": plan.rows,
                "queries": plan.queries,
                "width": plan.width,
                "mode": plan.mode,
                "files": files is not None,
                "ids": files is not None and files.ids is not None,
            }
        )

    for tool in (score, check, status, *((score_file, compare_files) if files is not None else ())):
        app.tool()(tool)
    return app


def _public(answer: Any) -> dict[str, Any]:
    names = ("question", "value", "low", "high", "confidence", "repeated")
    return {name: getattr(answer, name) for name in names}
