"""Nothing is written for nobody: what a source defines is named somewhere else, in the sources or in their tests."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = [path for part in ("src", "tests", "benchmarks", "evidence") for path in (ROOT / part).rglob("*.py")]
TEMPLATES = list((ROOT / "src").rglob("*.html"))

OWN = {"property", "cached_property", "staticmethod", "classmethod"}
"""Decorators that hand nothing on."""


def defined(text: str) -> set[str]:
    """The functions, methods and constants of a file, less those that a decorator hands on."""
    found, tree = set(), ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and OWN.issuperset(
            map(ast.unparse, node.decorator_list)
        ):
            found.add(node.name)
    for node in tree.body:
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return {name for name in found if not name.startswith("__")}


def code(text: str) -> str:
    """A file without what is only said of it."""
    return re.sub(r"(?m)(?:^|\s)# .*$", "", re.sub(r'""".*?"""', "", text, flags=re.DOTALL))


def unnamed(sources: Iterable[str], others: Iterable[str]) -> set[str]:
    """What the sources define and nobody names: neither they, nor the others."""
    sources = list(sources)
    words = Counter(word for text in (*sources, *others) for word in re.findall(r"\w+", code(text)))
    return {name for text in sources for name in defined(text) if words[name] < 2}


def test_what_is_written_is_named_somewhere() -> None:
    texts = {path: path.read_text() for path in (*PYTHON, *TEMPLATES)}
    ours = [
        text for path, text in texts.items() if path.suffix == ".py" and path.is_relative_to(ROOT / "src")
    ]
    assert unnamed(ours, [text for text in texts.values() if text not in ours]) == set()


def test_a_dead_corner_would_be_noticed() -> None:
    source = '''
LEFT = 1  # LEFT stands for nothing
USED = 2
@theorem
def handed_on(): ...
class Weights:
    def emptied(self):
        """What `accumulate` begins with; `emptied`."""
    def accumulate(self): return USED
    def _asked(self): ...
    @property
    def next_best(self): ...
    def __len__(self): return 0
'''
    assert unnamed([source], ["Weights().accumulate()", "hx-post='{{ _asked }}'"]) == {
        "LEFT",
        "emptied",
        "next_best",
    }
