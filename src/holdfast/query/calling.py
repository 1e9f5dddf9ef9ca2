"""Calls that do not fit: refused in our words, before anything is done."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from types import SimpleNamespace
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints

from holdfast.check import near
from holdfast.errors import HoldfastError, InputError, SchemaError

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
    inside passes through. The keywords of `**how: Unpack[...]` are spelt out in the signature, and there are no others.
    """
    spelt = _spelt_out(function) if "how" in function.__annotations__ else None
    words = frozenset(() if spelt is None else spelt.parameters)

    @wraps(function)
    def called(*given: Given.args, **named: Given.kwargs) -> Result:
        if spelt is not None and not named.keys() <= words:
            raise error(_misfit(spelt, given, named))
        try:
            return function(*given, **named)
        except TypeError as misfit:
            if misfit.__traceback__ is None or misfit.__traceback__.tb_next is not None:
                raise
        raise error(_misfit(signature(called), given, named))

    if spelt is not None:
        setattr(called, "__signature__", spelt)  # noqa: B010  # mypy has no word for it
    return called


def constructed(kind: Kind) -> Kind:
    """The same class; its constructor refuses what does not fit as a SchemaError."""
    plain = vars(kind)["__init__"]
    setattr(kind, "__init__", fitting(plain, SchemaError))  # noqa: B010  # mypy has no word for it
    return kind


class _Left:
    """Stands where a keyword is left out; what it then is, the function says."""

    def __repr__(self) -> str:
        return "..."


_LEFT = _Left()


def _spelt_out(function: Callable[..., Any]) -> Signature:
    """A function's signature with the keywords of the typed dict behind `**how`."""
    plain = signature(function)
    only = SimpleNamespace(__annotations__={"how": function.__annotations__["how"]})
    (keywords,) = get_args(get_type_hints(only, function.__globals__)["how"])
    *parameters, _ = plain.parameters.values()
    parameters += [
        Parameter(name, Parameter.KEYWORD_ONLY, default=_LEFT, annotation=kind.__forward_arg__)
        for name, kind in keywords.__annotations__.items()
    ]
    return plain.replace(parameters=parameters)


def _misfit(expected: Signature, given: tuple[Any, ...], named: dict[str, Any]) -> str:
    """Expected, got, and what to do."""
    parameters = [one for one in expected.parameters.values() if one.name not in _OURS]
    unknown = [word for word in named if word not in {one.name for one in parameters}]
    try:
        expected.bind(*given, **named)
        reason = "others"
    except TypeError as misfit:
        reason = str(misfit).removeprefix("got ")
    advice = near(unknown[0], [one.name for one in parameters]) if unknown else ""
    return f"expected the arguments {', '.join(map(_spelt, parameters)) or '(none)'}; got {reason}{advice}"


def _spelt(parameter: Parameter) -> str:
    match parameter.kind:
        case Parameter.VAR_KEYWORD | Parameter.VAR_POSITIONAL:
            return "..."
        case Parameter.KEYWORD_ONLY:
            return f"{parameter.name}="
    return parameter.name
