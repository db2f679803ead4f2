"""Tools with query types: each type of query has its own parameters, checked before the call."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from functools import cached_property, lru_cache
from typing import Any

import attrs

from planning.errors import Problem, ToolValidationError, show
from planning.tools.context import frozen
from planning.tools.errors import ParameterError, QueryTypeUnsupported
from planning.tools.parameters.arguments import read_arguments
from planning.tools.parameters.model import Diagnose, FreeModel, ParameterModel

Convert = Callable[[dict[str, Any], Diagnose | None], Any]


class DeferredModel(ParameterModel):
    """The model of a dataclass that is read at the first call: importing pydantic takes longer than the rest.

    Its tool makes the checks in its fields' metadata; here they only explain a refusal.
    """

    def __init__(self, kind: type[Any]) -> None:
        self.kind = kind
        self.name = kind.__name__

    @cached_property
    def _model(self) -> ParameterModel:
        from planning.tools.parameters.typed import TypedModel

        return TypedModel(self.kind, rules=False)

    @property
    def published(self) -> Mapping[str, Any]:
        """See ``ParameterModel``."""
        return self._model.published

    @cached_property
    def convert(self) -> Convert:  # type: ignore[override]  # a method all the same, once it is looked up
        """See ``ParameterModel``; from the first call on, the model's own."""
        return self._model.convert


def model_of(kind: Any, *, rules: bool = True) -> ParameterModel:
    """The model of a declaration.

    Raises:
        TypeError: It is not one of these, or JSON arguments cannot be converted to it.
        ValueError: The JSON Schema is not valid, or not that of an object.
    """
    if kind is None:
        return FreeModel()
    if isinstance(kind, ParameterModel):
        return kind
    if isinstance(kind, Mapping):
        from planning.tools.parameters.json_schema import SchemaModel

        return SchemaModel(kind)
    if not rules and isinstance(kind, type) and is_dataclass(kind):
        return _defer(kind)
    from planning.tools.parameters.typed import TypedModel

    return TypedModel(kind, rules=rules)


@lru_cache(maxsize=256)
def _defer(kind: type[Any]) -> DeferredModel:
    """One for all sessions: to read the six commands takes 3 ms."""
    return DeferredModel(kind)


_UNKNOWN_FIELD = "unknown field; the fields are query_type, parameters"
_LONGEST_NAME = 128
_NAME = re.compile(rf"[A-Za-z0-9_./-]{{1,{_LONGEST_NAME}}}")  # MCP's rule
_OTHER = re.compile(r"[^A-Za-z0-9_./-]")


def check_text(_declaration: object, field: attrs.Attribute[Any], value: object) -> None:
    """Refuse what is not text; a validator of attrs."""
    if not isinstance(value, str):
        raise TypeError(f"a tool's {field.name} must be text, got {type(value).__name__}")


def check_name(declaration: object, field: attrs.Attribute[Any], value: Any) -> None:
    """Refuse a name that a tool cannot have; a validator of attrs."""
    check_text(declaration, field, value)
    if not value.strip():
        raise ValueError("a tool needs a name, by which a model calls it")
    if not _NAME.fullmatch(value):
        raise ValueError(
            f"{show(value)} cannot be a tool's name: use 1 to {_LONGEST_NAME} letters, digits, _, -, . and /"
        )


def as_name(text: str) -> str:
    """Text as a tool's name: other characters become an underscore, and what is too long is cut."""
    return _OTHER.sub("_", text)[:_LONGEST_NAME]


def error_types(given: type[Exception] | Iterable[type[Exception]]) -> tuple[type[Exception], ...]:
    """The types of exceptions as a tuple, also of a single one."""
    types: tuple[Any, ...] = (given,) if isinstance(given, type) else tuple(given)
    if all(isinstance(each, type) and issubclass(each, Exception) for each in types):
        return types
    wanted = "types of exceptions, such as (FileNotFoundError,)"
    raise TypeError(f"a tool's visible_errors must be {wanted}, got {given!r}"[:200])


@attrs.frozen(eq=False)
class QueryTypes:
    """The types of query that a tool takes, and where its output is kept.

    Attributes:
        name: The tool's name.
        input_schema: The parameter model of each type of query: a pydantic model, a dataclass, an
            attrs class or a TypedDict.
        output_key: Under which key a workflow stores the output in its memory.
        description: What the tool is for.
        visible_errors: See ``ToolContract``.
        function: What answers: called with the query type and its parameters, and with a
            ``ToolContext`` after them if it takes three arguments; plain or async. Without one the
            declaration serves only ``validate_call``.

    Raises:
        TypeError: A parameter model cannot be one.
    """

    name: str = attrs.field(validator=check_name)
    input_schema: Mapping[str, Any] = attrs.field(converter=frozen)
    output_key: str
    description: str = ""
    function: Callable[..., Any] | None = attrs.field(default=None, kw_only=True, repr=False)
    visible_errors: tuple[type[Exception], ...] = attrs.field(
        default=(), converter=error_types, kw_only=True, repr=False
    )
    _models: dict[str, ParameterModel] = attrs.field(init=False, repr=False)

    @_models.default
    def _read(self) -> dict[str, ParameterModel]:
        return {query_type: model_of(kind) for query_type, kind in self.input_schema.items()}

    def validate(self, query_type: str | None, params: Mapping[str, Any]) -> None:
        """Check a call before it is made.

        Raises:
            QueryTypeUnsupported: The tool has no such type of query.
            ParameterError: With every problem and its path.
        """
        check_parameters(self.model(query_type), params)

    def model(self, query_type: str | None) -> ParameterModel:
        """The parameter model of a type of query.

        Raises:
            QueryTypeUnsupported: The tool has no such type of query.
        """
        model = self._models.get(query_type) if isinstance(query_type, str) else None
        if model is None:
            raise unsupported(query_type, self.name, list(self.input_schema))
        return model


def unsupported(query_type: object, tool: str, supported: list[str]) -> QueryTypeUnsupported:
    """The error for a type of query that a tool does not have, with its place like every other problem."""
    query_type = query_type if isinstance(query_type, str) else show(query_type)
    error = QueryTypeUnsupported(query_type, tool, supported)
    error.details |= {"field": "query_type", "errors": [{"path": "query_type", "message": error.message}]}
    return error


def check_parameters(model: ParameterModel, params: Mapping[str, Any] | None) -> None:
    """Hold parameters against their model."""
    if params is not None and not isinstance(params, Mapping):
        raise ParameterError.of([Problem(f"parameters must be a mapping, got {type(params).__name__}")])
    try:
        model.convert(dict(params or {}))
    except ToolValidationError as error:
        problems = error.problems
    else:
        return
    raise ParameterError.of(problems)  # outside of the handler: it replaces the other error


@attrs.frozen
class QueryCall:
    """The arguments of a tool with query types, checked.

    Attributes:
        query_type: The type of query.
        parameters: An instance of that type's parameter model.
    """

    query_type: str
    parameters: Any


class QueryModel(ParameterModel):
    """The arguments ``{"query_type": ..., "parameters": {...}}`` of a tool with query types."""

    def __init__(self, spec: QueryTypes) -> None:
        self.name = spec.name
        self.kind = QueryCall
        self._spec = spec
        self._schema = self._read()

    @property
    def published(self) -> Mapping[str, Any]:
        """See ``ParameterModel``."""
        return self._schema

    def convert(self, data: dict[str, Any], diagnose: Diagnose | None = None) -> QueryCall:
        """See ``ParameterModel``; a query type that is not supported is ``QueryTypeUnsupported``."""
        problems = [
            Problem(_UNKNOWN_FIELD, show(name)[1:-1], "additionalProperties")
            for name in data
            if name not in {"query_type", "parameters"}
        ]
        query_type = data.get("query_type")
        if not isinstance(query_type, str):
            types = ", ".join(self._spec.input_schema)
            what = "missing" if "query_type" not in data else f"{show(query_type)} is not a query type"
            raise ToolValidationError([*problems, Problem(f"{what}; send one of {types}", "query_type")])
        model, parameters = self._spec.model(query_type), None
        try:
            parameters = model.convert(read_arguments(data.get("parameters")), diagnose)
        except ToolValidationError as error:
            problems += [problem.under("parameters") for problem in error.problems]
        if problems:
            raise ToolValidationError(problems)
        return QueryCall(query_type, parameters)

    def _read(self) -> dict[str, Any]:
        types = list(self._spec.input_schema)
        options = []
        definitions: dict[str, Any] = {}
        for name in types:
            schema = copy.deepcopy(dict(self._spec.model(name).published))
            for each, definition in schema.pop("$defs", {}).items():
                if definitions.setdefault(each, definition) != definition:
                    raise TypeError(
                        f"{self.name} has two parameter types {each} that contain themselves: rename one"
                    )
            options.append({**schema, "description": f"For {name}"} if len(types) > 1 else schema)
        parameters = options[0] if len(options) == 1 else {"anyOf": options}
        schema = {
            "type": "object",
            "properties": {"query_type": {"type": "string", "enum": types}, "parameters": parameters},
            "required": ["query_type", "parameters"],
            "additionalProperties": False,
        }
        return {**schema, "$defs": definitions} if definitions else schema
