"""Faults: every small change of a function that a slip of the hand could make."""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "holdfast"

_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_NEGATED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_NAMES = {"min": "max", "max": "min", "ceil": "floor", "floor": "ceil", "any": "all", "all": "any"}


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the package: the file that holds it, and its dotted name there."""

    file: Path
    name: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(SOURCES).with_suffix('').as_posix()}:{self.name}"


@dataclass(frozen=True, slots=True)
class Fault:
    """One change: what stands at `line` becomes something else. `number` tells faults of one function apart."""

    function: Function
    number: int
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.function}: {self.before} -> {self.after}"


def functions(file: Path) -> Iterator[Function]:
    """The functions and methods of a file; a function inside another belongs to that one."""
    yield from (Function(file, name) for name in _parsed(file))


def faults(function: Function) -> list[Fault]:
    """All faults that are planted in a function."""
    found = _parsed(function.file)[function.name]
    return [
        Fault(function, i, getattr(node, "lineno", found.lineno), ast.unparse(node), _words(changed))
        for i, (node, changed) in enumerate(_changes(found))
    ]


def faulty_code(fault: Fault) -> CodeType:
    """The function's code with the fault in it, compiled in its own file and class."""
    tree = ast.parse(fault.function.file.read_text())
    found = dict(defined(tree))[fault.function.name]
    node, changed = list(_changes(found))[fault.number]
    _Replace(node, changed).visit(tree)
    whole = compile(ast.fix_missing_locations(tree), str(fault.function.file), "exec")
    return next(code for code in _codes(whole) if code.co_qualname == fault.function.name)


@functools.cache
def _parsed(file: Path) -> dict[str, ast.FunctionDef]:
    """Its functions by name, to be read only."""
    return dict(defined(ast.parse(file.read_text())))


def defined(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Every function and method of a tree, with its dotted name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from defined(node, f"{prefix}{node.name}.")


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)


def _words(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))


def _changes(function: ast.FunctionDef) -> Iterator[tuple[ast.AST, ast.AST]]:
    """(what stands, what replaces it), in the order of the text."""
    body = function.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]  # the docstring
    for statement in body:
        yield from _inside(statement)


def _inside(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Changes of a node and below; sentences (errors, f-strings), annotations and asserts are left alone."""
    if isinstance(node, ast.Raise) and node.exc is not None:
        yield node, ast.Pass()
        return
    if isinstance(node, ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield node, ast.Pass()
    yield from _at(node)
    skipped = {id(child) for child in _types_in(node)}
    for child in ast.iter_child_nodes(node):
        if id(child) not in skipped:
            yield from _inside(child)


def _types_in(node: ast.AST) -> list[ast.AST]:
    found = [getattr(node, field, None) for field in ("annotation", "returns")]
    if isinstance(node, ast.FunctionDef):
        found.append(node.args)
    return [part for part in found if part is not None]


def _at(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    match node:
        case ast.BinOp(left, op, right) if type(op) in _ARITHMETIC and not _text(left) and not _text(right):
            yield node, ast.BinOp(left, _ARITHMETIC[type(op)](), right)
        case ast.AugAssign(target, op, value) if type(op) in _ARITHMETIC:
            yield node, ast.AugAssign(target, _ARITHMETIC[type(op)](), value)
        case ast.Compare(left, [op], [right]):
            yield node, ast.Compare(left, [_NEGATED[type(op)]()], [right])
        case ast.Compare(left, [first, *more], right):
            yield node, ast.Compare(left, [_NEGATED[type(first)](), *more], right)
        case ast.BoolOp(op, values):
            yield node, ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield node, operand
        case ast.Constant(bool() | str() | bytes() | None):
            return
        case ast.Constant(int() as number):
            yield node, ast.Constant(number + 1)
            if number >= 2:
                yield node, ast.Constant(number - 1)
        case ast.Constant(float() as number):
            yield node, ast.Constant(2 * number if number else 1.0)
        case ast.Name(name) if name in _NAMES:
            yield node, ast.Name(_NAMES[name], node.ctx)
        case ast.Attribute(value, name) if name in _NAMES:
            yield node, ast.Attribute(value, _NAMES[name], node.ctx)
        case (ast.If(test=ast.Name() | ast.Attribute() | ast.Call() as test)) | ast.IfExp(
            test=ast.Name() | ast.Attribute() | ast.Call() as test
        ):
            yield test, ast.UnaryOp(ast.Not(), test)


def _text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
