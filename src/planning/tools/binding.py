"""Binding: from a tool's declaration to its parameter model, and to one way of calling its function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from planning.tools.context import ToolContext
from planning.tools.docstrings import read_docstring
from planning.tools.parameters.declared import model_of
from planning.tools.parameters.model import ParameterModel
from planning.tools.parameters.signature import (
    Signature,
    behind,
    is_of_type,
    signature_fields,
)
from planning.tools.spec import QueryCall, QueryModel, QueryTypes

Run = Callable[[Any, ToolContext], Any]
_Bound = tuple[ParameterModel, Run, bool]
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def bind(
    name: str, function: Callable[..., Any], parameters: Any, signature: Signature, *, rules: bool
) -> _Bound:
    """Decide what a tool's arguments are checked against, how its function is called, if with a context.

    Raises:
        TypeError: The function cannot be called with its parameters, or they are of no known kind.
    """
    if parameters is None:
        return _function_run(name, function, signature)
    if isinstance(parameters, QueryTypes):
        return QueryModel(parameters), *_query_run(name, function, signature)
    model = model_of(parameters, rules=rules)
    if _takes_context(name, function, signature, 1):
        return model, function, True
    return model, lambda params, _context: function(params), False


def _function_run(name: str, function: Callable[..., Any], signature: Signature) -> _Bound:
    """For a tool whose parameters are those of its function."""
    from planning.tools.parameters.typed import TypedModel  # noqa: PLC0415 - it needs pydantic

    _, descriptions = read_docstring(inspect.getdoc(behind(function)))
    fields, contexts, others = signature_fields(function, signature, ToolContext)
    model = TypedModel.of_fields(name, fields, descriptions, others, contexts)
    if not contexts:
        return model, lambda params, _context: function(**params), False
    return model, lambda params, context: function(**params, **dict.fromkeys(contexts, context)), True


def _query_run(name: str, function: Callable[..., Any], signature: Signature) -> tuple[Run, bool]:
    def run(call: QueryCall, _context: ToolContext) -> Any:
        return function(call.query_type, call.parameters)

    def run_with_context(call: QueryCall, context: ToolContext) -> Any:
        return function(call.query_type, call.parameters, context)

    takes = _takes_context(name, function, signature, 2)
    return (run_with_context if takes else run), takes


def _takes_context(name: str, function: Callable[..., Any], signature: Signature, given: int) -> bool:
    """Whether a function takes the context after so many arguments: it must, or a parameter is called so.

    Raises:
        TypeError: It can be called neither with nor without it.
    """
    if not signature.takes(given + 1):
        if signature.takes(given):
            return False
        wanted = "its parameters" if given == 1 else "a query type and its parameters"
        raise TypeError(f"the function of {name} must take {wanted} by position, and then at most a context")
    parameters = [name for name, each in signature.parameters.items() if each.kind not in _VARIABLE]
    if len(parameters) <= given or not signature.takes(given):
        return True
    name = parameters[given]
    return name.endswith("context") or is_of_type(function, name, ToolContext)
