"""Making instances of records, and what their classes refuse: checks, limits, validators, constructors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import attrs
import pydantic
from pydantic_core import PydanticCustomError

from planning.errors import writable
from planning.tools.parameters import words
from planning.tools.result import safe_text

__all__ = ["LIMITS", "REFUSING", "CheckBroken", "Constructing", "keeping", "validating", "words_of"]

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


def _refusal(messages: Sequence[tuple[str, str]]) -> PydanticCustomError:
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
            raise _refusal([("", message) for message in messages])
        return value

    return keep


def validating(attribute: attrs.Attribute[Any]) -> Callable[[Any, pydantic.ValidationInfo], Any]:
    """A validator that does what attrs does with one field, as far as the fields before it are known."""

    def validate(value: Any, info: pydantic.ValidationInfo) -> Any:
        message = _refused(attribute, value, SimpleNamespace(**(info.data or {})))
        if message is not None:
            raise _refusal([("", message)])
        return value

    return validate


class Constructing:
    """Makes an instance of a record of its fields, or says which of them it refuses.

    Attributes:
        record: The class.
    """

    def __init__(self, record: Any) -> None:
        self.record = record
        self._attributes = attrs.fields_dict(record) if attrs.has(record) else {}
        self._renamed = {
            name: each.alias for name, each in self._attributes.items() if each.alias not in {None, name}
        }

    def __call__(self, given: dict[str, Any]) -> Any:
        """The instance.

        Raises:
            PydanticCustomError: The class refuses its fields.
            CheckBroken: A check of the class failed with an AssertionError.
        """
        renamed, attributes = self._renamed, self._attributes
        named = {renamed.get(name, name): value for name, value in given.items()} if renamed else given
        try:
            return self.record(**named)
        except AssertionError as error:
            broken: Exception = CheckBroken(error)
        except REFUSING as error:
            others = _instance(attributes, given)
            fields = [(name, _refused(attributes[name], given[name], others)) for name in given if attributes]
            by_field = [(name, message) for name, message in fields if message is not None]
            broken = _refusal(by_field or [("", words_of(error))])
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


def _refused(attribute: attrs.Attribute[Any], value: Any, others: SimpleNamespace) -> str | None:
    """What the converter and the validator of an attrs field have against a value; None for nothing.

    A check that stumbles, perhaps over a field that is wrong itself, has found nothing: where nothing else is
    wrong, the constructor stumbles too.
    """
    try:
        value = _converted(value, attribute, others)
        if attribute.validator is not None:
            attribute.validator(others, attribute, value)
    except REFUSING as error:
        return words_of(error).removeprefix(f"'{attribute.name}' ")
    except Exception:  # noqa: BLE001 - a check of a user's may do anything
        return None
    return None


def _converted(value: Any, attribute: attrs.Attribute[Any], others: SimpleNamespace) -> Any:
    converter: Any = attribute.converter
    if isinstance(converter, attrs.Converter):
        given: Any = converter  # attrs does not say what it has
        more: list[Any] = [others] * given.takes_self + [attribute] * given.takes_field
        return given.converter(value, *more)
    return value if converter is None else converter(value)


def _instance(attributes: Mapping[str, attrs.Attribute[Any]], given: Mapping[str, Any]) -> SimpleNamespace:
    """The fields as a validator of attrs sees them: what was sent, and else their defaults."""
    others = SimpleNamespace()
    for name, field in attributes.items():
        default: Any = field.default
        with suppress(Exception):  # it is reported where this field is checked
            if name in given:
                value = given[name]
            elif isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # a class to attrs itself
                value = default.factory(*[others] * default.takes_self)
            else:
                value = default
            if value is not attrs.NOTHING:
                setattr(others, name, _converted(value, field, others))
    return others
