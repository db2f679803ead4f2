"""Binding: from a tool's declaration to its parameter model, and to one way of calling its function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from planning.tools.context import ToolContext
from planning.tools.docstrings import read_docstring
from planning.tools.parameters.declared import model_of
from planning.tools.parameters.model import ParameterModel
from planning.tools.parameters.signature import Signature, behind, is_of_type, signature_fields
from planning.tools.spec import QueryCall, QueryModel, QueryTypes

__all__ = ["Run", "bind"]

Run = Callable[[Any, ToolContext], Any]


def bind(
    name: str, function: Callable[..., Any], parameters: Any, signature: Signature, *, rules: bool
) -> tuple[ParameterModel, Run]:
    """Decide what a tool's arguments are checked against, and how its function is called.

    Args:
        name: The tool's name.
        function: Its function.
        parameters: What it declares of its parameters.
        signature: What was read of the function.
        rules: Whether the limits in field metadata are made; see ``model_of``.

    Raises:
        TypeError: The function cannot be called with its parameters, or they are of no known kind.
    """
    if parameters is None:
        return _function_run(name, function, signature)
    if isinstance(parameters, QueryTypes):
        return QueryModel(parameters), _query_run(name, function, signature)
    model = model_of(parameters, rules=rules)
    if _takes_context(function, signature, 2):
        _refuse_more(name, signature, 2)
        return model, function
    if not signature.takes(1):
        raise TypeError(f"the function of {name} must take its parameters as its first argument")
    _refuse_more(name, signature, 1)
    return model, lambda params, _context: function(params)


def _function_run(
    name: str, function: Callable[..., Any], signature: Signature
) -> tuple[ParameterModel, Run]:
    """For a tool whose parameters are those of its function."""
    from planning.tools.parameters.typed import TypedModel  # noqa: PLC0415 - it needs pydantic

    _, descriptions = read_docstring(inspect.getdoc(behind(function)))
    fields, contexts = signature_fields(function, signature, ToolContext)
    model = TypedModel.of_fields(name, fields, descriptions, is_open=signature.is_open)
    if not contexts:
        return model, lambda params, _context: function(**params)
    return model, lambda params, context: function(**params, **dict.fromkeys(contexts, context))


def _query_run(name: str, function: Callable[..., Any], signature: Signature) -> Run:

    def run(call: QueryCall, _context: ToolContext) -> Any:
        return function(call.query_type, call.parameters)

    def run_with_context(call: QueryCall, context: ToolContext) -> Any:
        return function(call.query_type, call.parameters, context)

    if not signature.takes(2):
        raise TypeError(f"the function of {name} must take a query type and its parameters")
    takes_context = _takes_context(function, signature, 3)
    _refuse_more(name, signature, 3 if takes_context else 2)
    return run_with_context if takes_context else run


def _takes_context(function: Callable[..., Any], signature: Signature, place: int) -> bool:
    """Whether the argument at a place, counted from 1, is the context: required, or called so."""
    if not signature.takes(place):
        return False
    if len(signature.parameters) < place:
        return True
    parameter = list(signature.parameters.values())[place - 1]
    return (
        parameter.default is inspect.Parameter.empty
        or parameter.name.endswith("context")
        or is_of_type(function, parameter.name, ToolContext)
    )


def _refuse_more(name: str, signature: Signature, given: int) -> None:
    """Refuse a function that needs more than it is given: it would fail at every call."""
    lacking = signature.lacks(given)
    if lacking:
        raise TypeError(
            f"the function of {name} also needs {', '.join(lacking)}: it is called with its parameters "
            "and then a context, by position"
        )
