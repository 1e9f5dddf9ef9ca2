"""Numbers are checked in one file, and a refusal of an argument is one sentence of one grammar."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import check, errors

SOURCES = Path(__file__).resolve().parents[2] / "src" / "holdfast"

CHECKS = {
    "between", "exact", "exact_positive", "integer", "positive", "probability", "rational", "whole", "written",
    "chance", "natural", "not_negative", "proportion", "printable", "one_of", "shown", "show",
}  # fmt: skip
"""What a check is called, or was."""

OTHERS = {
    "query/grouping.py: _whole": "the groups of a column of whole numbers",
    "stream/counter.py: _whole": "one arrival, refused by its type alone",
}
"""What has such a name and is no check, and why."""

VECTORS = {
    "holdout/fingerprint.py": "labels",
    "holdout/predictions.py": "predictions",
    "learn/estimators.py": "features and targets of scikit-learn",
    "learn/labelled_rows.py": "lists of edges",
    "learn/parameter_set.py": "the ends of a box",
    "local/onebit.py": "the length of a range",
    "mechanisms/sparse_vector_terms.py": "a threshold that stays as exact as it was given",
    "service/boards.py": "predictions",
}
"""Who looks whether numbers are finite and refuses, though a check of one number does not do: what they look at."""

SENTENCE = re.compile(r"expected .+, got .+|cannot .+; .+", re.DOTALL)

ADVICE = re.compile(r".; \S")
"""Where no argument is wrong but something stands in the way: what it is; what to do."""

ARGUMENTS = frozenset({"InputError"})
STATES = (
    frozenset(
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.HoldfastError)
    )
    - ARGUMENTS
)
"""All other errors of the house."""

PASSED_ON = {
    "……": "what a gateway says, and its advice",
    "column …: …": "a refusal, and of which column",
    "…, in …": "a refusal, and of which store",
    "there is no column ……": "a column that is near, or what else to do",
}
"""Sentences that end with another's."""

FOREIGN = {
    "Input X contains NaN or infinity; drop those rows or fill them in first",
    "Input y contains NaN or infinity; drop those rows or fill them in first",
}
"""Sentences that scikit-learn asks for, word by word."""


def raises_input_error(node: ast.AST) -> bool:
    return any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Name)
        and part.func.id in ("InputError", "refusal")
        for part in ast.walk(node)
    )


def own_checks(text: str) -> Iterator[str]:
    """The functions of a file with the name of a check."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name.lstrip("_") in CHECKS:
            takes = [argument.arg for argument in node.args.args]
            if raises_input_error(node) or takes[:2] == ["name", "value"]:
                yield node.name


def looks_for_infinity(text: str) -> bool:
    """Whether some function asks whether a number is finite and refuses it with an InputError."""
    return any(
        any(isinstance(part, ast.Attribute) and part.attr == "isfinite" for part in ast.walk(test))
        and any(raises_input_error(step) for step in node.body)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.If)
        for test in [node.test]
    )


def sentences(text: str, errors: frozenset[str] = ARGUMENTS) -> Iterator[str]:
    """What the errors of a file say, with … for what is filled in."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in errors:
            said = node.args[0] if node.args else None
            if isinstance(said, ast.Constant):
                yield str(said.value)
            elif isinstance(said, ast.JoinedStr):
                yield "".join(str(p.value) if isinstance(p, ast.Constant) else "…" for p in said.values)


def ungrammatical(text: str) -> set[str]:
    """Refusals of an argument in other words than the grammar's, and refusals that do not say what to do."""
    wrong = {sentence for sentence in sentences(text) if not SENTENCE.fullmatch(sentence)}
    return wrong | {
        said for said in sentences(text, STATES) if not (SENTENCE.fullmatch(said) or ADVICE.search(said))
    }


def files() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCES.rglob("*.py")):
        place = path.relative_to(SOURCES).as_posix()
        if place != "check.py":
            yield place, path.read_text()


def test_only_one_file_checks_numbers() -> None:
    assert {f"{place}: {name}" for place, text in files() for name in own_checks(text)} == OTHERS.keys()
    assert {place for place, text in files() if looks_for_infinity(text)} == VECTORS.keys()
    own = {name for name in vars(check) if name in CHECKS}
    assert own >= {"between", "exact", "integer", "positive", "printable", "probability", "whole"}


@pytest.mark.parametrize(
    "text",
    [
        "def positive(name, value):\n    return float(value)",
        "def _whole(value):\n    if value != int(value):\n        raise InputError('expected 1, got 2')",
        "def _probability(value):\n    raise refusal('a chance', 'beta', value)",
        "def natural(name, value): ...",
        "def one_of(name, value, words): ...",
    ],
)
def test_a_second_check_would_be_noticed(text: str) -> None:
    assert list(own_checks(text))


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    if not math.isfinite(x):\n        raise InputError(f'expected a number, got {x}')",
        "class A:\n    def f(self, x):\n        if x < 0 or not np.isfinite(x):\n            raise InputError('no')",
        "def f(x):\n    if not math.isfinite(x):\n        raise refusal('a number', 'x', x)",
    ],
)
def test_a_check_by_hand_would_be_noticed(text: str) -> None:
    assert looks_for_infinity(text)


def test_a_question_that_refuses_nothing_is_free() -> None:
    free = "def width(x):\n    if math.isfinite(x):\n        return x\n    return None"
    assert not looks_for_infinity(free)
    assert not list(own_checks("def _whole(values):\n    return values.astype(int)"))


def test_every_refusal_of_an_argument_is_one_sentence() -> None:
    found = {place: ungrammatical(text) for place, text in files()}
    assert {sentence for sentences in found.values() for sentence in sentences} == FOREIGN | PASSED_ON.keys()
    assert sum(1 for _, text in files() for _ in sentences(text, STATES)) > 150
    assert sum(1 for _, text in files() for _ in sentences(text)) > 150


@pytest.mark.parametrize(
    "said",
    [
        "'rows must be positive, got 0'",
        "f'{name}: expected a number, got {value}'",
        "'expected a number; give one'",
        "f'unknown bound {name!r}'",
        "'give a budget: epsilon= or rho='",
        "'cannot plan'",
    ],
)
def test_another_grammar_would_be_noticed(said: str) -> None:
    assert ungrammatical(f"raise InputError({said})")


@pytest.mark.parametrize("kind", ["BudgetError", "DataError", "LedgerError", "MechanismError", "QueryError"])
def test_a_refusal_that_says_nothing_to_do_would_be_noticed(kind: str) -> None:
    assert ungrammatical(f"raise {kind}('the ledger cannot be read')")
    assert not ungrammatical(f"raise {kind}(f'the ledger cannot be read: {{why}}; see to the file')")
    assert not ungrammatical("raise InputError(f'expected a number for {name}, got {value}; give one')")
