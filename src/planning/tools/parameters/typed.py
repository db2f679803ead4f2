"""Parameter models of Python types, over pydantic."""

from __future__ import annotations

import dataclasses
import json
import re
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from functools import cached_property, partial
from inspect import Parameter
from typing import Any, Literal, Self, get_args

import pydantic
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticCustomError, SchemaValidator, core_schema

from planning.errors import Problem, ToolValidationError
from planning.tools.parameters.arguments import coerced, refusal
from planning.tools.parameters.model import NO_JSON, Diagnose, ParameterModel
from planning.tools.parameters.records import (
    REFUSING,
    CheckBroken,
    Constructing,
    Hints,
    fields_of,
    is_record,
    omitting_null,
    words_of,
)
from planning.tools.parameters.schema import (
    TOO_DEEP,
    Node,
    below,
    branches,
    is_choice,
    is_too_deep,
    node_at,
    options,
    published_schema,
    union,
    without_null,
)
from planning.tools.parameters.words import Path, Wrong, is_of_type, spell, unknown_field

Validate = Callable[[Any], Any]

_LEAVES = frozenset({"bool", "float", "int", "str"})
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_NO_SECONDS = re.compile(r"(?![+-]?[0-9.]*$)")  # pydantic would count them from 1970
_MOMENTS = {"date": _DAY, "datetime": _NO_SECONDS, "time": _NO_SECONDS, "timedelta": _NO_SECONDS}
_FOREIGN = frozenset({"model", "dataclass"})  # pydantic-core takes their own validators
_READING = frozenset({"function-before", "function-plain", "function-wrap"})
_NAMED = frozenset({"fields", "choices"})
_OPTIONS = frozenset({"literal", "enum"})
_DATA = frozenset({"metadata", "default", "expected", "members", "serialization", "config", "keys_schema"})


def strict_validator(schema: core_schema.CoreSchema) -> Validate:
    """A validator of values as JSON has them.

    Text is not a number and 1 is not True, but an array becomes a tuple or a set, and text a date, a UUID or
    whatever else JSON has as text. Unknown fields are refused at every depth. pydantic's own models and
    dataclasses convert as they are configured; if one configures unknown fields, that holds.
    """
    foreign: list[Any] = []
    validator = SchemaValidator(_strict(schema, foreign))
    extra: Literal["forbid"] | None = None if _has(foreign, "extra_fields_behavior") else "forbid"
    if not _has(foreign, "strict"):
        if not _reads_input(schema):
            return partial(validator.validate_python, extra=extra)
        # A validator may change what it reads and then refuse it: the next try is given the same.
        return lambda data: validator.validate_python(deepcopy(data), extra=extra)

    def validate_as_json(data: Any) -> Any:  # a strict model takes text for a date only so
        return validator.validate_json(json.dumps(data), extra=extra)

    return validate_as_json


def _has(node: Any, key: str) -> bool:
    """True if a part of a core schema has a key, at any depth."""
    if isinstance(node, Mapping):
        return key in node or any(_has(item, key) for item in node.values())
    return isinstance(node, (list, tuple)) and any(_has(item, key) for item in node)


def _reads_input(node: Any) -> bool:
    """True if a function of a core schema is given values before they are validated, at any depth."""
    if isinstance(node, Mapping):
        return str(node.get("type")) in _READING or any(map(_reads_input, node.values()))
    return isinstance(node, (list, tuple)) and any(map(_reads_input, node))


def _strict(node: Any, foreign: list[Any], *, is_prepared: bool = False) -> Any:
    """A part of a core schema, made strict."""
    if isinstance(node, (list, tuple)):
        return [_strict(item, foreign) for item in node]
    if not isinstance(node, dict):
        return node
    kind = str(node.get("type"))
    if kind in _FOREIGN:
        foreign.append(node)
        return node
    if kind == "function-after" and node["schema"]["type"] == "typed-dict":
        construct = node["function"]["function"]
        if isinstance(construct, Constructing) and construct.is_plain:
            return _dataclass(construct.record, _strict(node["schema"], foreign))
    is_before = kind in {"function-before", "function-wrap"}
    made: dict[str, Any] = {}
    for key, value in node.items():
        if key in _NAMED and isinstance(value, dict):
            made[key] = {name: _strict(item, foreign) for name, item in value.items()}
        else:
            made[key] = value if key in _DATA else _strict(value, foreign, is_prepared=is_before)
    if kind in _LEAVES and not is_prepared:
        made.setdefault("strict", True)
    if kind == "typed-dict":
        made["extra_behavior"] = "forbid"
    check = _moment(kind) if kind in _MOMENTS else _same_type(made) if kind in _OPTIONS else None
    if check is None:
        return made
    ref = made.pop("ref", None)  # what is used in two places is referred to with its check
    return core_schema.no_info_before_validator_function(check, made, ref=ref)


def _dataclass(record: type[Any], fields: Any) -> core_schema.CoreSchema:
    """A plain dataclass as pydantic-core makes it, in half the time that its constructor takes."""
    made = []
    for field in dataclasses.fields(record):
        schema = fields["fields"][field.name]["schema"]
        if field.default is not dataclasses.MISSING:
            schema = core_schema.with_default_schema(schema, default=field.default)
        elif field.default_factory is not dataclasses.MISSING:
            schema = core_schema.with_default_schema(schema, default_factory=field.default_factory)
        made.append(core_schema.dataclass_field(field.name, schema))
    return core_schema.dataclass_schema(
        record,
        core_schema.dataclass_args_schema(record.__name__, made),
        [field.name for field in dataclasses.fields(record)],
        slots="__slots__" in vars(record),
        config=core_schema.CoreConfig(extra_fields_behavior="forbid"),
    )


def _moment(kind: str) -> Callable[[Any], Any]:
    """A validator that refuses numbers for a moment, also as text, and a moment for a day."""
    form = _MOMENTS[kind]

    def check(value: Any) -> Any:
        if isinstance(value, (int, float)) or (isinstance(value, str) and not form.match(value)):
            raise PydanticCustomError("date_type", "expected a date or a time as text")
        return value

    return check


def _same_type(node: Mapping[str, Any]) -> Callable[[Any], Any] | None:
    """A validator that refuses what only equals an option, as True does 1; None if nothing can."""
    members = node.get("members", ())
    options = [member.value for member in members] or node["expected"]
    kinds = {type(option) for option in (*options, *members)}
    if all(isinstance(option, str) for option in options):
        return None

    def check(value: Any) -> Any:
        if type(value) not in kinds:
            raise PydanticCustomError("literal_error", "expected one of the options")
        return value

    return check


class TypedModel(ParameterModel):
    """A dataclass, an attrs class, a TypedDict or a pydantic model as parameter model."""

    def __init__(self, kind: Any, *, rules: bool = True) -> None:
        """Take a type."""
        if not (is_record(kind) or _is_pydantic(kind)):
            raise TypeError(
                f"{getattr(kind, '__name__', repr(kind))} is not a parameter model: use a dataclass, "
                "an attrs class, a TypedDict, a pydantic model or a JSON Schema"
            )
        self.kind = kind
        self.name = kind.__name__
        self._rules = rules
        hint = Hints(checks=rules).rewritten(kind)
        self._read(lambda: pydantic.TypeAdapter(hint).core_schema)

    @classmethod
    def of_fields(
        cls,
        name: str,
        fields: Sequence[tuple[str, Any, Any]],
        descriptions: Mapping[str, str],
        others: tuple[str, Any] | None,
        reserved: Collection[str],
    ) -> TypedModel:
        """The model of a function's parameters, as ``signature_fields`` reads them; arguments stay a dict."""
        if others is not None and typing.get_origin(others[1]) is typing.Unpack:
            more = fields_of(typing.get_args(others[1])[0])
            fields = [*fields, *((x.name, x.hint, Parameter.empty if x.required else ...) for x in more)]
            others = None
        hints = Hints(checks=True)

        def schema() -> core_schema.CoreSchema:  # a TypedDict of the same takes far longer
            hinted = (omitting_null(hint, default) for _, hint, default in fields)
            listed: Any = tuple[tuple(map(hints.rewritten, hinted))]  # type: ignore[misc]  # made here
            read: Any = pydantic.TypeAdapter(listed).core_schema
            inner = read.get("schema", read)  # beside definitions, if there are some
            made = core_schema.typed_dict_schema(
                {
                    each: core_schema.typed_dict_field(item, required=default is Parameter.empty)
                    for (each, _, default), item in zip(fields, inner["items_schema"], strict=True)
                }
            )
            return made if inner is read else {**read, "schema": made}

        model = (cls if others is None else _OpenModel)._make(name, schema)
        for each, node in model._published["properties"].items():
            if each in descriptions:
                node.setdefault("description", descriptions[each])
        if others is not None and isinstance(model, _OpenModel):
            said = descriptions.get(others[0])
            hint = others[1] if said is None else typing.Annotated[others[1], said]
            model.admit(hints.rewritten(hint), reserved)
        return model

    @classmethod
    def _make(cls, name: str, make: Callable[[], core_schema.CoreSchema]) -> Self:
        model = cls.__new__(cls)
        model.name, model._rules = name, True
        model._read(make)
        return model

    def _read(self, make: Callable[[], core_schema.CoreSchema]) -> None:
        try:
            core = make()
            schema = _Schemas().generate(core)
        except (pydantic.errors.PydanticUserError, NameError, RecursionError) as error:
            reason = str(error).splitlines()[0].partition(". ")[0]
            raise TypeError(
                f"{self.name} cannot be described as JSON: {reason}; "
                "use types that JSON has, or records of them"
            ) from None
        self._validate = strict_validator(core)
        self._published = published_schema(schema)
        self._branches = branches(self._published, "anyOf")

    @property
    def published(self) -> Mapping[str, Any]:
        """See ``ParameterModel``."""
        return self._published

    def convert(self, data: dict[str, Any], diagnose: Diagnose | None = None) -> Any:
        """See ``ParameterModel``."""
        if self._branches and is_too_deep(data):
            raise ToolValidationError(TOO_DEEP)
        try:
            return self._validate(data)
        except Exception:  # noqa: BLE001, S110 - a validator may stumble over what is not repaired yet
            pass
        repaired = self._repair(data)
        if self._branches and is_too_deep(repaired):
            raise ToolValidationError(TOO_DEEP)
        if not self._rules:
            with suppress(*REFUSING, CheckBroken):
                return self._validate(repaired)
        value, problems = _run_validator(self._explaining, repaired, self._published)
        if not problems:
            return value
        raise refusal(problems, self._published, () if diagnose is None else diagnose(repaired))

    @cached_property
    def _explaining(self) -> Validate:
        return self._validate if self._rules else TypedModel(self.kind)._validate

    @cached_property
    def _repairs(self) -> Mapping[str, Any]:
        if not is_record(self.kind):
            return {}
        fields = {field.name: field.metadata for field in fields_of(self.kind)}
        return {name: metadata["repair"] for name, metadata in fields.items() if "repair" in metadata}

    def _repair(self, data: dict[str, Any]) -> dict[str, Any]:
        """The arguments taken for what they mean."""
        try:
            given: dict[str, Any] = coerced(data, self._published)
        except RecursionError:
            pass
        else:
            return given | {
                name: repair(given[name]) for name, repair in self._repairs.items() if name in given
            }
        raise ToolValidationError(Problem(NO_JSON))


class _OpenModel(TypedModel):
    """The parameters of a function that takes others, too."""

    _others: TypedModel
    _reserved: Collection[str]

    def admit(self, hint: Any, reserved: Collection[str]) -> None:
        """Take others of one type, by every name that is not reserved."""
        kind: Any = dict[str, hint]
        self._others = TypedModel._make(self.name, lambda: pydantic.TypeAdapter(kind).core_schema)
        self._reserved = reserved
        others = self._others.published
        self._published["additionalProperties"] = others["additionalProperties"]
        if "$defs" in others:
            self._published["$defs"] = {**others["$defs"], **self._published.get("$defs", {})}

    def convert(self, data: dict[str, Any], diagnose: Diagnose | None = None) -> Any:
        """See ``ParameterModel``."""
        names = self._published["properties"]
        named = {name: data[name] for name in data if name in names}
        reserved = [name for name in data if name in self._reserved and name not in names]
        others = {name: data[name] for name in data if name not in names and name not in reserved}
        problems = [Problem("this name is reserved; use another", spell([name])) for name in reserved]
        taken: dict[str, Any] = {}
        for convert, part in ((self._others.convert, others), (super().convert, named)):
            try:
                taken |= convert(part, diagnose if part is named else None)
            except ToolValidationError as error:
                problems += error.problems
        if problems:
            raise refusal(problems, self._published)
        return taken


class _Schemas(GenerateJsonSchema):
    """pydantic's schemas in fewer words: without titles and defaults, and with a format for decimals."""

    def field_title_should_be_set(self, _schema: Any) -> bool:
        """No field needs a title: it has a name."""
        return False

    def default_schema(self, schema: Any) -> dict[str, Any]:
        """The schema of only the value."""
        node = self.generate_inner(schema["schema"])
        return without_null(node) if schema.get("default", ...) is None else node

    def decimal_schema(self, _schema: Any) -> dict[str, Any]:
        """A decimal number as text: JSON's own numbers may be rounded on their way."""
        return {"type": "string", "format": "decimal"}


def _is_pydantic(kind: object) -> bool:
    return isinstance(kind, type) and hasattr(kind, "__pydantic_validator__")


def _run_validator(
    validate: Validate, data: dict[str, Any], shape: Mapping[str, Any]
) -> tuple[Any, list[Problem]]:
    """The value made of the data, and everything that is wrong with it."""
    broken: BaseException
    try:
        return validate(data), []
    except pydantic.ValidationError as error:
        return None, problems_of(error, data, shape)
    except RecursionError:
        return None, [Problem(NO_JSON)]
    except CheckBroken as error:
        broken = error.error
    except REFUSING as error:
        return None, [Problem(words_of(error))]
    raise broken


# The errors of pydantic

# pydantic's names of limits -> those of JSON Schema, and under which name the error carries the limit.
_LIMITS = {
    "greater_than": ("exclusiveMinimum", "gt"),
    "greater_than_equal": ("minimum", "ge"),
    "less_than": ("exclusiveMaximum", "lt"),
    "less_than_equal": ("maximum", "le"),
    "multiple_of": ("multipleOf", "multiple_of"),
    "string_too_short": ("minLength", "min_length"),
    "string_too_long": ("maxLength", "max_length"),
    "string_pattern_mismatch": ("pattern", "pattern"),
    "too_short": ("minItems", "min_length"),
    "too_long": ("maxItems", "max_length"),
}
_FIELDS = {"minItems": "minProperties", "maxItems": "maxProperties"}
_OPTION_ERRORS = frozenset({"literal_error", "enum", "int_parsing_size"})  # the last: a number like no option
_UNKNOWN = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
# The messages of these are of pydantic itself; a validator may make up others, and means what it says.
_WRONG_TYPE = frozenset(
    kind for kind in get_args(core_schema.ErrorType) if kind.endswith(("_type", "_parsing", "_from_float"))
)
_MISSING = frozenset({"missing", "missing_argument"})
_TAG = frozenset({"union_tag_invalid", "union_tag_not_found"})
_KEY = "[key]"
_MOST_ERRORS = 200  # of a long array that is wrong throughout


def problems_of(error: pydantic.ValidationError, data: object, schema: Mapping[str, Any]) -> list[Problem]:
    """The problems that an error of pydantic lists, at most 200 of them; some may appear twice."""
    errors = error.errors(include_url=False)[:_MOST_ERRORS]
    if "invalid_key" in [error["type"] for error in errors]:
        return [Problem(NO_JSON)]
    placed = [(error, *_place(error["loc"], data, schema)) for error in errors]
    if len(placed) > 1:
        placed = _without_echoes(placed)
    wrongs: list[Wrong] = []
    for each, place, node in placed:
        if each["type"] == "refused":
            for name, message in each["ctx"]["refused"]:
                wrongs.append(Wrong((*place, name) if name else place, "check", message))
        else:
            wrongs.append(_wrong(each, place, node, data, schema))
    return [each.problem() for each in wrongs]


def _without_echoes(placed: list[tuple[Any, Path, Node]]) -> list[tuple[Any, Path, Node]]:
    """The errors without those that only say that a value is not of another member of a union.

    A union lists the errors of each of its members. Those of the wrong type are omitted where a member of the
    right type has an error inside of the value, or has other options.
    """
    outer = {place[:depth] for _, place, _ in placed for depth in range(len(place))}
    outer |= {place for each, place, _ in placed if each["type"] in _TAG}
    mistyped = {place for each, place, _ in placed if each["type"] in _WRONG_TYPE}
    fits = {
        place: is_of_type(node, each["input"])
        for each, place, node in placed
        if each["type"] in _OPTION_ERRORS
    }
    return [
        (each, place, node)
        for each, place, node in placed
        if not (each["type"] in _WRONG_TYPE and (place in outer or fits.get(place)))
        and not (each["type"] in _OPTION_ERRORS and place in mistyped and not fits[place])
    ]


def _wrong(error: Any, path: Path, node: Node, data: object, schema: Node) -> Wrong:
    """One error of pydantic as every validator has it."""
    kind, location, value, context = error["type"], error["loc"], error["input"], error.get("ctx", {})
    is_key = location[-1:] == (_KEY,)
    if kind in _UNKNOWN:
        place, above = _place(location[:-1], data, schema)
        given: Any = data
        for part in place:
            given = given[part] if _is_in(given, part) else None
        return unknown_field(place, str(location[-1]), above, given)
    if kind in _MISSING and isinstance(value, list | tuple):  # an item, which pydantic 2.13 may name
        place, above = _place(location[:-1], data, schema)
        return Wrong(place, "minItems", above.get("minItems"), value)
    if kind in _MISSING:
        return Wrong(path, "required", node)
    if kind in _OPTION_ERRORS and not is_key:
        return Wrong(path, "enum", node, value)
    if kind in _TAG:
        tag, given = (*path, context["discriminator"].strip("'")), context.get("tag")
        if tagged := node_at(schema, tag):
            return Wrong(tag, "required" if given is None else "enum", tagged, given)
    if kind in _LIMITS:
        keyword, name = _LIMITS[kind]
        keyword = _FIELDS[keyword] if isinstance(value, Mapping) else keyword
        return Wrong(path, keyword, context[name], value)
    if kind in _WRONG_TYPE and node and not is_key and not is_of_type(node, value):
        return Wrong(path, "type", node, value)
    cause = context.get("error")
    return Wrong(path, "check", words_of(cause) if isinstance(cause, Exception) else error["msg"])


def _place(location: Path, data: object, schema: Node) -> tuple[Path, Node]:
    """The path of an error without the names of union members, which pydantic puts into it; its schema.

    What is left is known to the schema or to the data: of the aliases of a field only one is published.
    """
    place: Path = ()
    named: Path | None = None  # where the name of a member has been met
    nodes = options(schema, schema)
    for part in location:
        if named != place and is_choice(nodes):
            named = place
            continue
        inner, is_given = below(schema, nodes, part), _is_in(data, part)
        if isinstance(part, int) or is_given or inner:
            place, nodes = (*place, part), inner
            data = data[part] if is_given else None  # type: ignore[index]  # it was asked just now
    return place, union(nodes)


def _is_in(data: object, part: int | str) -> bool:
    if isinstance(data, (dict, Mapping)):  # for a dict much faster
        return part in data
    return isinstance(data, list) and isinstance(part, int) and part < len(data)
