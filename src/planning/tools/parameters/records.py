"""Records for pydantic: dataclasses, attrs classes and TypedDicts as their constructors' arguments.

pydantic refuses attrs classes and, before Python 3.12, ``typing.TypedDict``; of a nested dataclass it drops
unknown fields. So each of these is validated as a TypedDict of the same fields, and its constructor is called
with the result: defaults, converters, validators and ``__post_init__`` work as the class declares them.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import annotated_types
import attrs
import pydantic
import typing_extensions
from pydantic_core import PydanticCustomError, core_schema

from planning.errors import writable
from planning.tools.parameters.schema import without_null
from planning.tools.parameters.signature import refuse_field_default, resolved
from planning.tools.parameters.words import Wrong
from planning.tools.result import safe_text

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_REQUIRED = (typing.Required, typing_extensions.Required)
_NOT_REQUIRED = (typing.NotRequired, typing_extensions.NotRequired)
_QUALIFIERS = (*_REQUIRED, *_NOT_REQUIRED, typing_extensions.ReadOnly)


@attrs.frozen
class Field:
    """One field of a record: its name, its type, whether it must be sent, and its metadata."""

    name: str
    hint: Any
    required: bool
    metadata: Mapping[str, Any] = _NOTHING


def is_record(kind: object) -> bool:
    """True if a type is a dataclass, an attrs class or a TypedDict, and not pydantic's own."""
    if not isinstance(kind, type) or hasattr(kind, "__pydantic_validator__"):
        return False
    return dataclasses.is_dataclass(kind) or attrs.has(kind) or typing_extensions.is_typeddict(kind)


class Hints:
    """Rewrites the hints of one declaration.

    With ``checks`` each field is held to the limits or the check in its metadata. A tool that diagnoses
    checks itself.
    """

    def __init__(self, *, checks: bool) -> None:
        self._checks = checks
        self._twins: dict[Any, Any] = {}

    def rewritten(self, hint: Any) -> Any:
        """The hint with every record in it marked, at any depth."""
        hint = resolved(hint)
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if is_record(origin) or isinstance(hint, typing.TypeVar):
            raise TypeError(f"{hint} is generic: declare a class with the types themselves")
        if is_record(hint):
            return typing.Annotated[hint, _Record(self)]
        if origin is typing.Annotated:
            if any(isinstance(extra, annotated_types.Timezone) for extra in hint.__metadata__):
                raise TypeError(
                    f"{hint} has a Timezone: use pydantic.AwareDatetime or pydantic.NaiveDatetime"
                )
            extras = [_Said({"description": e}) if isinstance(e, str) else e for e in hint.__metadata__]
            return typing.Annotated[(self.rewritten(hint.__origin__), *extras)]
        changed = tuple(map(self.rewritten, arguments)) if _are_hints(arguments) else arguments
        if all(new is old for new, old in zip(changed, arguments, strict=True)):
            return hint
        if origin not in {typing.Union, types.UnionType}:
            return origin[changed]
        union: Any = typing.Union[changed]  # noqa: UP007 - built from a tuple
        tag = _tag_of(arguments)
        return union if tag is None else typing.Annotated[union, pydantic.Discriminator(tag)]

    def twin(self, kind: Any) -> Any:
        """The TypedDict with the fields of a record."""
        if kind not in self._twins:
            fields = list(fields_of(kind))
            hints = {field.name: self._field(field) for field in fields}
            typed_dict: Any = typing_extensions.TypedDict  # type checkers know it only in class statements
            twin = typed_dict(kind.__name__, hints)
            # Not by NotRequired[...]: typing keeps what it has made, and takes str | int for int | str.
            twin.__required_keys__ = frozenset(field.name for field in fields if field.required)
            twin.__optional_keys__ = frozenset(hints) - twin.__required_keys__
            self._twins[kind] = twin
        return self._twins[kind]

    def _field(self, field: Field) -> Any:
        hint = self.rewritten(field.hint)
        said = {LIMITS[key]: value for key, value in field.metadata.items() if key in LIMITS}
        if "description" in field.metadata:
            said["description"] = field.metadata["description"]
        if said:
            hint = typing.Annotated[hint, _Said(said)]
        if self._checks and field.metadata.keys() & {"check", *LIMITS}:
            hint = typing.Annotated[hint, pydantic.AfterValidator(keeping(field.metadata))]
        return hint


@attrs.frozen
class _Record:
    """Marks a record in a hint: pydantic asks the mark for the schema instead of the class."""

    hints: Hints

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        schema: core_schema.CoreSchema = handler.generate_schema(self.hints.twin(source))
        if typing_extensions.is_typeddict(source):
            return schema
        return core_schema.no_info_after_validator_function(Constructing(source), schema)


@attrs.frozen(eq=False)
class _Said:
    """Adds what field metadata says to the published schema, and to nothing else; equal only to itself."""

    keywords: Mapping[str, Any]

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        node: dict[str, Any] = handler(schema)
        if "anyOf" not in node:
            return {**node, **self.keywords}
        outer = {key: value for key, value in self.keywords.items() if key == "description"}
        inner = {key: value for key, value in self.keywords.items() if key not in outer}
        options = [option if option == {"type": "null"} else {**option, **inner} for option in node["anyOf"]]
        return {**node, "anyOf": options, **outer}


@attrs.frozen(eq=False)
class _OmitsNull:
    """Publishes a type without null; equal only to itself, as typing takes str | int for int | str."""

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return without_null(handler(schema))


def omitting_null(hint: Any, default: object) -> Any:
    """The hint of a field: without null in the published schema if that is the default anyway."""
    return typing.Annotated[hint, _OmitsNull()] if default is None else hint


def fields_of(kind: Any) -> Iterator[Field]:
    """The fields that may be sent of a record, in order."""
    try:
        # make_dataclass writes "typing.Any" without a type.
        hints = typing_extensions.get_type_hints(kind, localns={"typing": typing}, include_extras=True)
    except (NameError, AttributeError) as error:
        raise TypeError(
            f"{kind.__name__} has a type hint that cannot be read: {error}; import the name at the top of "
            "its module"
        ) from None
    name = kind.__name__
    if dataclasses.is_dataclass(kind):
        if any(isinstance(hint, dataclasses.InitVar) for hint in hints.values()):
            raise TypeError(f"{name} cannot be described as JSON: it has `InitVar` fields")
        for field in dataclasses.fields(kind):
            if field.init:
                default = (field.default, field.default_factory)
                required = default == (dataclasses.MISSING, dataclasses.MISSING)
                refuse_field_default(name, field.name, field.default)
                hint = omitting_null(hints[field.name], field.default)
                yield Field(field.name, hint, required, field.metadata)
    elif attrs.has(kind):
        for attribute in attrs.fields(kind):
            if attribute.init:
                hint = omitting_null(hints.get(attribute.name, Any), attribute.default)
                refuse_field_default(name, attribute.name, attribute.default)
                yield Field(attribute.name, hint, attribute.default is attrs.NOTHING, attribute.metadata)
    else:
        for each, hint in hints.items():
            yield _of_typed_dict(each, hint, is_required=each in kind.__required_keys__)


def _tag_of(options: tuple[Any, ...]) -> str | None:
    """The field that distinguishes the records of a union: each has different options for it."""
    records = [option for option in map(resolved, options) if option is not type(None)]
    if len(records) < 2 or not all(map(is_record, records)):
        return None
    for name in (field.name for field in fields_of(records[0])):
        hints = [field.hint for record in records for field in fields_of(record) if field.name == name]
        tags = [typing.get_args(hint) for hint in hints if typing.get_origin(hint) is typing.Literal]
        if len(tags) == len(records) and len({*sum(tags, ())}) == sum(map(len, tags)):
            return name
    return None


def _are_hints(arguments: tuple[Any, ...]) -> bool:
    """True if the arguments of a generic type can be rewritten; those of ``Callable`` hold a list."""
    return not any(isinstance(argument, list) for argument in arguments)


def _of_typed_dict(name: str, hint: Any, *, is_required: bool) -> Field:
    """A field of a TypedDict; what the class shows of keys whose hints were strings may be wrong."""
    extras: tuple[Any, ...] = ()
    while (origin := typing.get_origin(hint)) in _QUALIFIERS or origin is typing.Annotated:
        if origin is typing.Annotated:
            extras = (*hint.__metadata__, *extras)
        elif origin in (*_REQUIRED, *_NOT_REQUIRED):
            is_required = origin in _REQUIRED
        hint = typing.get_args(hint)[0]
    return Field(name, typing.Annotated[(hint, *extras)] if extras else hint, is_required)


# Instances of records, and their refusals

REFUSING = (ValueError, TypeError)
"""The exceptions with which a check refuses a value. Any other is a failure of the check, and passes."""

LIMITS = {"min_length": "minLength", "max_length": "maxLength", "min_items": "minItems"}
"""The limits in field metadata, and their keywords in JSON Schema."""


class CheckBroken(Exception):
    """Carries an AssertionError of a constructor through pydantic, which would take it for a refusal.

    Attributes:
        error: The AssertionError.
    """

    def __init__(self, error: AssertionError) -> None:
        super().__init__()
        self.error = error


def words_of(error: Exception) -> str:
    """The text of an exception that refuses a value; attrs hands over the message first, then the rest."""
    is_plain = type(error) in {ValueError, TypeError} and error.args
    return safe_text(error.args[0] if is_plain else error) or type(error).__name__


def _refusal(*messages: tuple[str, str]) -> PydanticCustomError:
    """A refusal for pydantic to keep, with its messages: each by its field, or by "" for the whole value."""
    refused = [(name, writable(message)) for name, message in messages]
    return PydanticCustomError("refused", "refused", {"refused": refused})


def keeping(metadata: Mapping[str, Any]) -> Callable[[Any], Any]:
    """A validator that holds a value to its field's metadata: to ``check``, or else to the limits."""
    check = metadata.get("check")
    bounds = [(key, LIMITS[key], metadata[key]) for key in LIMITS if key in metadata]

    def keep(value: Any) -> Any:
        if check is not None:
            messages = list(check(value)) if isinstance(value, str) else []
        else:
            messages = [
                Wrong((), keyword, limit, value).problem().message
                for key, keyword, limit in bounds
                if isinstance(value, (list, tuple) if key == "min_items" else str)
                and (len(value) > limit if key == "max_length" else len(value) < limit)
            ]
        if messages:
            raise _refusal(*(("", message) for message in messages))
        return value

    return keep


class Constructing:
    """Makes an instance of a record of its fields, or says that its class refuses them.

    Attributes:
        record: The class.
    """

    def __init__(self, record: Any) -> None:
        self.record = record
        self._attributes = attrs.fields(record) if attrs.has(record) else ()
        self._renamed = {
            each.name: each.alias for each in self._attributes if each.alias not in {None, each.name}
        }

    def __call__(self, given: dict[str, Any]) -> Any:
        """The instance."""
        renamed = self._renamed
        named = {renamed.get(name, name): value for name, value in given.items()} if renamed else given
        try:
            return self.record(**named)
        except AssertionError as error:
            broken: Exception = CheckBroken(error)
        except REFUSING as error:
            message = words_of(error)  # attrs names the field in quotes
            name = next((each.name for each in self._attributes if f"'{each.name}'" in message), "")
            broken = _refusal((name, message.removeprefix(f"'{name}' ")))
        raise broken

    @property
    def is_plain(self) -> bool:
        """True if the constructor was made by ``dataclass`` and only sets the fields."""
        kind = self.record
        return (
            "__dataclass_params__" in vars(kind)
            and kind.__dataclass_params__.init
            and kind.__new__ is object.__new__
            and not hasattr(kind, "__post_init__")
            and all(field.init for field in dataclasses.fields(kind))
        )
