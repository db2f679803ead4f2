"""Validators of pydantic's for declared types, strict in what JSON tells apart, and closed to unknown fields."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Literal

import pydantic
from pydantic_core import PydanticCustomError, SchemaValidator, core_schema

__all__ = ["Validate", "strict_validator"]

Validate = Callable[[Any], Any]

_LEAVES = frozenset({"bool", "float", "int", "str"})
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_NO_SECONDS = re.compile(r"(?![+-]?[0-9.]*$)")  # pydantic would count them from 1970
_MOMENTS = {"date": _DAY, "datetime": _NO_SECONDS, "time": _NO_SECONDS, "timedelta": _NO_SECONDS}
_FOREIGN = frozenset({"model", "dataclass"})  # pydantic-core takes their own validators
_NAMED = frozenset({"fields", "choices"})
_OPTIONS = frozenset({"literal", "enum"})
_DATA = frozenset({"metadata", "default", "expected", "members", "serialization", "config", "keys_schema"})


def strict_validator(adapter: pydantic.TypeAdapter[Any]) -> Validate:
    """What validates values as JSON has them.

    Text is no number and 1 is not True, but an array becomes a tuple or a set, and text a date, a UUID or
    whatever else JSON has as text. Unknown fields are refused at every depth. pydantic's own models and
    dataclasses convert as they are configured; if one says what to do with unknown fields, its word counts.
    """
    schema = adapter.core_schema
    extra: Literal["forbid"] | None = None if _has(schema, "extra_fields_behavior") else "forbid"
    validator = SchemaValidator(_strict(schema))
    validate = partial(validator.validate_python, extra=extra)
    if not _has(schema, "strict", within=_FOREIGN):
        return validate

    def validate_as_json(data: Any) -> Any:
        """As Python values, or else as JSON: a strict model of pydantic's takes text for a date only so."""
        try:
            return validate(data)
        except pydantic.ValidationError:
            text = _as_json(data)
            if text is None:
                raise
        return validator.validate_json(text, extra=extra)

    return validate_as_json


def _as_json(data: Any) -> str | None:
    """The data as JSON; None if that is not the same, because names or values are not JSON's."""
    try:
        text = json.dumps(data, ensure_ascii=False)
        text.encode()
        return text if json.loads(text) == data else None
    except (TypeError, ValueError, RecursionError):
        return None


def _has(node: Any, key: str, within: Collection[str] = ()) -> bool:
    """Whether a part of a core schema, or of one of these types in it, has a key."""
    if isinstance(node, (list, tuple)):
        return any(_has(item, key, within) for item in node)
    if not isinstance(node, Mapping):
        return False
    kind = node.get("type")  # of a record with a field of this name, that field
    inside = () if isinstance(kind, str) and kind in within else within
    return (key in node and not inside) or any(_has(item, key, inside) for item in node.values())


def _strict(node: Any, *, is_prepared: bool = False) -> Any:
    """A part of a core schema, made strict.

    Args:
        node: The part.
        is_prepared: Whether a validator of the user's converts the value before.
    """
    if isinstance(node, (list, tuple)):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    kind = str(node.get("type"))
    if kind in _FOREIGN:
        return node
    is_before = kind in {"function-before", "function-wrap"}
    made: dict[str, Any] = {}
    for key, value in node.items():
        if key in _NAMED and isinstance(value, dict):
            made[key] = {name: _strict(item) for name, item in value.items()}
        else:
            made[key] = value if key in _DATA else _strict(value, is_prepared=is_before)
    if kind in _LEAVES and not is_prepared:
        made.setdefault("strict", True)
    if kind == "typed-dict" and "extra_fields_behavior" not in node.get("config", {}):
        made["extra_behavior"] = "forbid"
    check = _moment(kind) if kind in _MOMENTS else _same_type(made) if kind in _OPTIONS else None
    return made if check is None else core_schema.no_info_before_validator_function(check, made)


def _moment(kind: str) -> Callable[[Any], Any]:
    """A validator that refuses numbers for a moment, also as text, and a moment for a day."""
    form = _MOMENTS[kind]

    def check(value: Any) -> Any:
        if isinstance(value, (int, float)) or (isinstance(value, str) and not form.match(value)):
            raise PydanticCustomError("date_type", "expected a date or a time as text")
        return value

    return check


def _same_type(node: Mapping[str, Any]) -> Callable[[Any], Any] | None:
    """A validator that refuses what only equals an option, as True does 1; None where nothing can."""
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
