"""Why no instance can be made of arguments of the right shape: what types and records say themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import attrs
import msgspec

from planning.errors import Problem
from planning.tools.parameters import words
from planning.tools.parameters.fields import Field, class_of, fields_of
from planning.tools.parameters.rules import Path, inside
from planning.tools.parameters.strict import Twin, built, twin_of
from planning.tools.result import safe_text

__all__ = ["REFUSING", "hints_of", "own_problems", "words_of"]

REFUSING = (ValueError, TypeError, msgspec.ValidationError)
"""What a check refuses a value with. Any other exception is a failure of the check, and passes."""

_PLACE = re.compile(r" - at `(?:key` in `)?\$([^`]*)`$")


def own_problems(
    kind: Any, data: Mapping[str, Any], schema: Mapping[str, Any], path: Path = ()
) -> Iterator[Problem]:
    """Why no instance can be made of data that has the right shape.

    Args:
        kind: The record type.
        data: The arguments.
        schema: The schema of the arguments as a whole.
        path: Where the data stands.
    """
    whole = list(_refused(lambda: _made(data, twin_of(kind)), path))
    if not whole:
        return
    found = False
    for field in fields_of(kind):
        if field.name not in data:
            continue
        value, place = data[field.name], (*path, field.name)
        is_inside = False
        for nested, item, at in inside(field, value, place):
            for problem in own_problems(nested, item, schema, at):
                found = is_inside = True
                yield problem
        if not is_inside:
            for problem in _refused_field(kind, field, data, schema, place):
                found = True
                yield problem
    if not found:
        yield from whole


def words_of(error: Exception) -> str:
    """What an exception that refuses a value says; attrs hands over the message first, and then the rest."""
    is_plain = type(error) in {ValueError, TypeError} and error.args
    return safe_text(error.args[0] if is_plain else error) or type(error).__name__


def _made(data: Any, hint: Any) -> Any:
    return built(msgspec.convert(data, hint, str_keys=True))


def _refused(make: Callable[[], object], path: Path) -> Iterator[Problem]:
    """The problem that there is with making something, if there is one."""
    told, below = "", ""
    try:
        make()
    except msgspec.ValidationError as error:
        told = str(error)
        place = _PLACE.search(told)
        if place is not None:
            told, below = told[: place.start()], place[1]
        # Where there is a cause, a record refused itself; else the words are msgspec's.
        cause = error.__cause__
        told = words_of(cause) if isinstance(cause, Exception) else told[:1].lower() + told[1:]
    except REFUSING as error:
        told = words_of(error)
    except Exception:  # noqa: BLE001 - the check failed, perhaps over another field that is wrong
        return  # if nothing else is wrong, the same exception came out of the record itself
    else:
        return
    # Under which name of a map, msgspec does not say: [...] stands for it.
    yield Problem(told, (words.spell(path) + below.partition("[...]")[0]).lstrip("."))


def _refused_field(
    kind: Any, field: Field, data: Mapping[str, Any], schema: Mapping[str, Any], path: Path
) -> Iterator[Problem]:
    value, hint = data[field.name], hints_of(kind)[field.name]
    refusal = list(_refused(lambda: _made(value, hint), path))
    if refusal and "format" in words.node_at(schema, path):
        yield words.wrong_type(schema, path, value)
    elif refusal:
        yield from refusal
    elif attrs.has(class_of(kind)):
        attribute, others = attrs.fields_dict(class_of(kind))[field.name], _others(kind, data)
        for problem in _refused(lambda: _taken(_made(value, hint), attribute, others), path):
            yield attrs.evolve(problem, message=problem.message.removeprefix(f"'{field.name}' "))


def hints_of(kind: Any) -> Mapping[str, Any]:
    """By field, what its value is converted into."""
    twin = twin_of(kind)
    return twin.__hints__ if issubclass(twin, Twin) else {field.name: field.hint for field in fields_of(kind)}


def _taken(value: Any, attribute: attrs.Attribute[Any], others: SimpleNamespace) -> None:
    """Do with a value what attrs does with it: convert and validate it."""
    value = _converted(value, attribute, others)
    if attribute.validator is not None:
        attribute.validator(others, attribute, value)


def _converted(value: Any, attribute: attrs.Attribute[Any], others: SimpleNamespace) -> Any:
    converter: Any = attribute.converter
    if isinstance(converter, attrs.Converter):
        given: Any = converter  # attrs does not say what it has
        more: list[Any] = [others] * given.takes_self + [attribute] * given.takes_field
        return given.converter(value, *more)
    return value if converter is None else converter(value)


def _others(kind: Any, data: Mapping[str, Any]) -> SimpleNamespace:
    """The fields as a validator sees them: what was sent, where it is right, and else their defaults."""
    others, hints = SimpleNamespace(), hints_of(kind)
    for field in attrs.fields(class_of(kind)):
        with suppress(Exception):  # it is told where this field is looked at
            if field.name in data and field.name in hints:
                value = _made(data[field.name], hints[field.name])
            elif isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]  # a class to attrs itself
                value = field.default.factory(*[others] * field.default.takes_self)
            else:
                value = field.default
            if value is not attrs.NOTHING:
                setattr(others, field.name, _converted(value, field, others))
    return others
