"""Functions as declarations: the parameters of a tool's function, and how it is called."""

from __future__ import annotations

import functools
import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Mapping
from functools import lru_cache
from inspect import cleandoc
from textwrap import dedent, indent
from typing import Any

import attrs

_SECTION = re.compile(
    r"^(?:((?i:(?:keyword |other )?(?:arg|argument|param|parameter)s))|Returns|Yields|Raises|Examples?): *\n"
    r"((?:(?!\w+: *$).*\S.*\n)*(?:[ \t].*\n|\n)*)",
    re.MULTILINE,
)  # its lines, then what is indented
_DASH = re.compile(r"^((?:[-*] )?[`*]*\w+[`*]*(?: *\([^()]*\))?)[ \t]+--?[ \t]+(?=\S)", re.MULTILINE)


def read_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """Read a docstring; never raises.

    docstring-parser reads those of several lines. Without that library, the first paragraph is the
    description; of a malformed docstring it is all of the text.
    """
    if not isinstance(text, str) or not text.strip():
        return "", {}
    text = cleandoc(text)
    if "\n" not in text:  # most are: the library takes 30 ms to load
        return _one_line(text), {}
    try:
        from docstring_parser import ParseError  # noqa: PLC0415 - of an extra
    except ImportError:
        return _one_line(text.partition("\n\n")[0]), {}
    try:
        return _parsed(text)
    except ParseError:
        return _paragraphs(text), {}


@lru_cache(maxsize=1)  # it is asked for the description, and then for those of the parameters
def _parsed(text: str) -> tuple[str, dict[str, str]]:
    from docstring_parser import DocstringStyle, parse  # noqa: PLC0415 - of an extra

    text = _tidy(text)
    parsed = parse(text)
    if not parsed.meta:  # malformed sections of this style would be taken for prose
        parse(text, DocstringStyle.GOOGLE)
    descriptions: dict[str, str] = {}
    for parameter in parsed.params:
        said = _one_line(parameter.description or "")
        for name in parameter.arg_name.split(",") if said else ():
            descriptions.setdefault(name.strip(" \\*`-"), said)
    return _paragraphs(parsed.description or ""), descriptions


def _tidy(text: str) -> str:
    """The text as the library reads it: prose first, then sections with indented entries and colons."""
    start, header, entries = f"{text}\n".partition("Parameters\n---")  # of numpy's style
    text = start + header + _DASH.sub(r"\1\n    ", entries)
    sections = [
        ("Args:\n" if found[1] else "Returns:\n") + indent(_DASH.sub(r"\1: ", dedent(found[2])), "    ")
        for found in _SECTION.finditer(text)
    ]
    return "\n".join([_SECTION.sub("", text), *sections])


def _paragraphs(text: str) -> str:
    """The paragraphs of text, of one line each."""
    return "\n\n".join(filter(None, map(_one_line, text.split("\n\n"))))


def _one_line(text: str) -> str:
    return " ".join(text.split())


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@attrs.frozen
class Signature:
    """The parameters of a function, as far as they show without reading its type hints.

    Attributes:
        is_async: Whether it is a coroutine function, or an object whose call is one.
        parameters: Its parameters by name; empty for a built-in without a signature.
        is_open: Whether it takes any keyword argument.
    """

    is_async: bool
    parameters: Mapping[str, inspect.Parameter]
    is_open: bool

    def takes(self, positional: int) -> bool:
        """True if it can be called with so many positional arguments."""
        if self.is_open and not self.parameters:
            return True
        least, most = 0, 0.0
        for each in self.parameters.values():
            is_required = each.default is each.empty
            if each.kind is each.VAR_POSITIONAL:
                most = math.inf
            elif each.kind in _POSITIONAL:
                least, most = least + is_required, most + 1
            elif each.kind is each.KEYWORD_ONLY and is_required:
                return False
        return least <= positional <= most


_REMEDIES: dict[str | tuple[str, ...], str] = {
    "langchain": "give it to create_agent(tools=...), or convert it with "
    "planning.integrations.langchain.tools_from",
    "agents.tool.": "give it to planning.integrations.openai_agents.planning_tools, or pass its function",
    "google.adk.": "give it to LlmAgent(tools=...), or pass its function",
    "pydantic_ai.": "give it to Pydantic AI's Agent(tools=...), or pass its function",
    ("mcp.", "mcp_types."): "convert its server's tools with planning.integrations.mcp.tools_from",
    "builtins.dict": "convert it with planning.integrations.openai.tools_from",
}
"""The way to use a tool of another framework, by the beginning of its class's full name."""


def remedy(value: object) -> str:
    """The way to use a tool of another framework, for the end of a message; empty for anything else."""
    names = [f"{kind.__module__}.{kind.__qualname__}" for kind in type(value).__mro__]
    for start, text in _REMEDIES.items():
        if any(name.startswith(start) for name in names):
            return f": {text}"
    return ""


def read_signature(function: Callable[..., Any]) -> Signature:
    """Look at a function."""
    if not callable(function):
        raise TypeError(
            f"a tool's function must be callable, got {type(function).__name__}{remedy(function)}"
        )
    called = (function,) if isinstance(function, types.FunctionType) else (function, _find_call(function))
    is_async = any(map(inspect.iscoroutinefunction, called))
    try:
        parameters = dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some built-ins have no signature
        return Signature(is_async, {}, is_open=True)
    is_open = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    return Signature(is_async, parameters, is_open)


def signature_fields(
    function: Callable[..., Any], signature: Signature, context_type: type
) -> tuple[list[tuple[str, Any, Any]], tuple[str, ...], tuple[str, Any] | None]:
    """Read what a function takes by keyword."""
    first = next(iter(signature.parameters.values()), None)
    if first is not None and first.name in {"self", "cls"} and first.annotation is first.empty:
        raise TypeError(
            f"{_name(function)} takes {first.name}: it is a method; make the tool of a bound one, such as "
            f"tool(thing.{_name(function)})"
        )
    fields: list[tuple[str, Any, Any]] = []
    contexts = []
    others = ("", Any) if signature.is_open else None
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise TypeError(
                f"{_name(function)} takes {name} by position only; "
                "wrap it in a function that takes it by name"
            )
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL and not signature.is_open:
            raise TypeError(
                f"{_name(function)} takes *{name}, which has no name to send; take a list instead"
            )
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            continue
        hint = _hint(function, name, context_type)
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            others = (name, Any if isinstance(hint, typing.ParamSpecKwargs) else hint)
            continue
        if _is_optionally(hint, context_type):
            contexts.append(name)
            continue
        refuse_field_default(_name(function), name, parameter.default)
        fields.append((name, hint, parameter.default))
    return fields, tuple(contexts), others


def refuse_field_default(owner: str, name: str, default: object) -> None:
    """Refuse ``pydantic.Field(...)`` as a default: only pydantic's own models read what it says."""
    if type(default).__name__ == "FieldInfo" and type(default).__module__ == "pydantic.fields":
        raise TypeError(
            f"{owner} has pydantic.Field as the default of {name}; put it into the type: "
            "Annotated[int, pydantic.Field(ge=1)] = 1"
        )


def is_of_type(function: Callable[..., Any], name: str, kind: type) -> bool:
    """True if a function's parameter has this type, or may be None instead; no if its hint cannot be read."""
    try:
        return _is_optionally(_hint(function, name, kind), kind)
    except TypeError:
        return False


def resolved(hint: Any) -> Any:
    """The hint behind a type alias or a ``NewType``; the alias itself if it contains itself."""
    seen: set[int] = set()
    while type(hint) is not type and id(hint) not in seen:  # a class is itself
        seen.add(id(hint))
        if _is_alias(hint):
            hint = hint.__value__
        elif isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        elif _is_alias(typing.get_origin(hint)):
            hint = typing.get_origin(hint).__value__[typing.get_args(hint)]
    return hint


def _is_alias(hint: object) -> bool:
    """True if a hint is a type alias of the standard library or of typing_extensions."""
    return type(hint).__name__ == "TypeAliasType"


def behind(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that a ``functools.partial`` is made of; every other function itself."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _find_call(function: Callable[..., Any]) -> Callable[..., Any]:
    """The object that has the type hints: the function itself, or the call of an object."""
    function = behind(function)
    return function if inspect.isroutine(function) or isinstance(function, type) else type(function).__call__


def _is_optionally(hint: Any, kind: type) -> bool:
    """True if a hint is of a type or a subclass, aliases, ``Annotated`` and None aside."""
    hint = resolved(hint)
    if typing.get_origin(hint) is typing.Annotated:
        return _is_optionally(hint.__origin__, kind)
    if typing.get_origin(hint) in {typing.Union, types.UnionType}:
        options = [option for option in typing.get_args(hint) if option is not type(None)]
        return len(options) == 1 and _is_optionally(options[0], kind)
    return isinstance(hint, type) and issubclass(hint, kind)


def _hint(function: Callable[..., Any], name: str, known: type) -> Any:
    """The type hint of one parameter; what other parameters and the result are need not be readable.

    A module that has the known type only for type checkers may still name it.
    """
    called = _find_call(function)
    if isinstance(called, type):
        called = inspect.getattr_static(called, "__init__")
    annotations = getattr(called, "__annotations__", {})  # a built-in has none
    if name not in annotations:
        return Any
    annotation = annotations[name]
    if type(annotation) is type:  # as most are: there is nothing to resolve
        return annotation
    space = {known.__name__: known, **getattr(inspect.unwrap(called), "__globals__", {})}
    alone = types.SimpleNamespace(__annotations__={name: annotations[name]})
    try:
        return typing.get_type_hints(alone, globalns=space, include_extras=True)[name]
    except (NameError, AttributeError) as error:
        raise TypeError(
            f"{_name(function)} has a type hint that cannot be read: {error}; import the name at the top of "
            "its module"
        ) from None


def _name(function: Callable[..., Any]) -> str:
    return getattr(_find_call(function), "__name__", type(function).__name__)
