"""Calls that do not fit: refused in our words, before anything is done."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

from holdfast.errors import HoldfastError, InputError, SchemaError
from holdfast.query.wording import near

Given = ParamSpec("Given")
Result = TypeVar("Result")
Kind = TypeVar("Kind", bound=type)
_OURS = ("self", "session")
"""What a caller does not write."""


def fitting(
    function: Callable[Given, Result], error: type[HoldfastError] = InputError
) -> Callable[Given, Result]:
    """The same function; arguments that are too many, missing, or called something else are refused as `error`.

    What Python raises when it binds the arguments has no frame of the function in its traceback; a TypeError from
    inside passes through.
    """

    @wraps(function)
    def called(*given: Given.args, **named: Given.kwargs) -> Result:
        try:
            return function(*given, **named)
        except TypeError as misfit:
            if misfit.__traceback__ is None or misfit.__traceback__.tb_next is not None:
                raise
        raise error(_misfit(function, given, named))

    return called


def constructed(kind: Kind) -> Kind:
    """The same class; its constructor refuses what does not fit as a SchemaError."""
    plain = vars(kind)["__init__"]
    setattr(kind, "__init__", fitting(plain, SchemaError))  # noqa: B010  # mypy has no word for it
    return kind


def _misfit(function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> str:
    """Expected, got, and what to do."""
    parameters = [one for one in signature(function).parameters.values() if one.name not in _OURS]
    unknown = [word for word in named if word not in {one.name for one in parameters}]
    try:
        signature(function).bind(*given, **named)
        reason = "others"
    except TypeError as misfit:
        reason = str(misfit)
    advice = near(unknown[0], [one.name for one in parameters]) if unknown else ""
    return f"expected the arguments {', '.join(map(_spelt, parameters)) or '(none)'}; got {reason}{advice}"


def _spelt(parameter: Parameter) -> str:
    match parameter.kind:
        case Parameter.VAR_KEYWORD | Parameter.VAR_POSITIONAL:
            return "..."
        case Parameter.KEYWORD_ONLY:
            return f"{parameter.name}="
    return parameter.name
