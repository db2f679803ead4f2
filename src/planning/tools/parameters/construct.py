"""Making instances of records, and their refusals: checks, limits, validators, constructors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import attrs
import pydantic
from pydantic_core import PydanticCustomError

from planning.errors import writable
from planning.tools.parameters import words
from planning.tools.result import safe_text

REFUSING = (ValueError, TypeError)
"""What a check refuses a value with. Any other exception is a failure of the check, and passes."""

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
    """What an exception that refuses a value says; attrs hands over the message first, and then the rest."""
    is_plain = type(error) in {ValueError, TypeError} and error.args
    return safe_text(error.args[0] if is_plain else error) or type(error).__name__


def _refusal(*messages: tuple[str, str]) -> PydanticCustomError:
    """A refusal for pydantic to keep, with its messages: each by its field, or by "" for the whole value."""
    refused = [(name, writable(message)) for name, message in messages]
    return PydanticCustomError("refused", "refused", {"refused": refused})


def keeping(metadata: Mapping[str, Any]) -> Callable[[Any], Any]:
    """A validator that holds a value to its field's metadata: to ``check``, or else to the limits."""
    check = metadata.get("check")
    limits = [(key, LIMITS[key], metadata[key]) for key in LIMITS if key in metadata]

    def keep(value: Any) -> Any:
        if check is not None:
            messages = list(check(value)) if isinstance(value, str) else []
        else:
            messages = [
                problem.message
                for key, keyword, limit in limits
                if isinstance(value, (list, tuple) if key == "min_items" else str)
                and (len(value) > limit if key == "max_length" else len(value) < limit)
                and (problem := words.out_of_bounds((), keyword, limit, value))
            ]
        if messages:
            raise _refusal(*(("", message) for message in messages))
        return value

    return keep


def validating(attribute: attrs.Attribute[Any]) -> Callable[[Any, pydantic.ValidationInfo], Any]:
    """What the validator of an attrs field does, as far as the fields before it are known."""
    check: Any = attribute.validator

    def validate(value: Any, info: pydantic.ValidationInfo) -> Any:
        try:
            check(SimpleNamespace(**(info.data or {})), attribute, value)
        except REFUSING as error:
            message = words_of(error).removeprefix(f"'{attribute.name}' ")
        except Exception:  # noqa: BLE001 - over another field that is wrong, or the constructor raises it too
            return value
        else:
            return value
        raise _refusal(("", message))

    return validate


def _field_of(error: Exception) -> str:
    """The field that a validator of attrs refuses, where its error says so; else none."""
    return next((each.name for each in error.args if isinstance(each, attrs.Attribute)), "")


class Constructing:
    """Makes an instance of a record of its fields, or says that its class refuses them.

    Attributes:
        record: The class.
    """

    def __init__(self, record: Any) -> None:
        self.record = record
        attributes = attrs.fields(record) if attrs.has(record) else ()
        self._renamed = {each.name: each.alias for each in attributes if each.alias not in {None, each.name}}

    def __call__(self, given: dict[str, Any]) -> Any:
        """The instance.

        Raises:
            PydanticCustomError: The class refuses its fields.
            CheckBroken: A check of the class failed with an AssertionError.
        """
        renamed = self._renamed
        named = {renamed.get(name, name): value for name, value in given.items()} if renamed else given
        try:
            return self.record(**named)
        except AssertionError as error:
            broken: Exception = CheckBroken(error)
        except REFUSING as error:
            name = _field_of(error)
            broken = _refusal((name, words_of(error).removeprefix(f"'{name}' ")))
        raise broken

    @property
    def is_plain(self) -> bool:
        """Whether the constructor was made by ``dataclass`` and only sets the fields."""
        kind = self.record
        return (
            "__dataclass_params__" in vars(kind)
            and kind.__dataclass_params__.init
            and kind.__new__ is object.__new__
            and not hasattr(kind, "__post_init__")
            and all(field.init for field in dataclasses.fields(kind))
        )
