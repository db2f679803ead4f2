"""What a JSON Schema validator finds, in this project's words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jsonschema_rs

from planning.errors import Problem
from planning.tools.parameters import words

__all__ = ["shape_problems"]

Errors = list[jsonschema_rs.ValidationError]


def shape_problems(
    errors: Iterable[jsonschema_rs.ValidationError],
    data: object,
    shape: Mapping[str, Any],
) -> Iterator[Problem]:
    """The problems that the validator's errors are.

    Args:
        errors: What the validator found.
        data: Where it found that.
        shape: The schema, without references.
    """
    for error in errors:
        path, details = _named(error.instance_path, data), error.kind.as_dict()
        match error.kind.name:
            case "required":
                yield words.missing(shape, [*path, details["property"]])
            case "additionalProperties":
                for name in details["unexpected"]:
                    yield words.unknown_field(shape, path, name, error.instance)
            case "enum" | "const":
                yield words.wrong_option(shape, path, error.instance)
            case "falseSchema":
                pass  # the items after a tuple's last: that there are too many is reported
            case "anyOf" if inner := _nearest(details["context"], len(path)):
                yield from shape_problems(inner, data, shape)
            case "type" | "anyOf":
                yield words.wrong_type(shape, path, error.instance)
            case keyword:
                limit = next(iter(details.values()), None)
                bound = words.out_of_bounds(path, keyword, limit, error.instance)
                yield words.wrong_type(shape, path, error.instance) if bound is None else bound


def _named(path: list[str | int], data: Any) -> list[str | int]:
    """The path with names where the data has names: to the validator, the name "2" is a number too."""
    named = list[str | int]()
    for step in path:
        if isinstance(step, int) and isinstance(data, Mapping):
            names = (name for name in data if name.removeprefix("+").isdecimal() and int(name) == step)
            step = str(step) if str(step) in data else next(names, str(step))  # noqa: PLW2901 - the same step, by name
        named.append(step)
        data = data[step]
    return named


def _nearest(options: list[Errors], depth: int) -> Errors:
    """The problems with the option of a union that is meant; empty if that is unclear.

    That is the one that the value has the type of, and of several objects the one that it has the tag of.
    """
    fitting = [errors for errors in options if not _is_of_other_type(errors, depth)]
    tagged = [errors for errors in fitting if not _has(errors, {"enum", "const"}, depth + 1)]
    for left in (fitting, tagged):
        if len(left) == 1:
            return left[0]
    if not fitting:
        return []
    if not tagged:  # it has a tag of none of them
        return [error for error in fitting[0] if len(error.instance_path) > depth][:1]
    lacking = [_lacking(errors, depth) for errors in tagged]
    return [error for name, error in lacking[0].items() if all(name in names for names in lacking)]


def _has(errors: Errors, kinds: set[str], depth: int) -> bool:
    return any(error.kind.name in kinds and len(error.instance_path) == depth for error in errors)


def _is_of_other_type(errors: Errors, depth: int) -> bool:
    """Whether an option is for values of another type: by its type, or by that of all that it lists."""
    return _has(errors, {"type"}, depth) or any(
        error.kind.name == "enum"
        and len(error.instance_path) == depth
        and type(error.instance) not in set(map(type, error.kind.as_dict()["options"]))
        for error in errors
    )


def _lacking(errors: Errors, depth: int) -> dict[str, jsonschema_rs.ValidationError]:
    """By name, the errors about fields that an object lacks."""
    return {
        error.kind.as_dict()["property"]: error
        for error in errors
        if error.kind.name == "required" and len(error.instance_path) == depth
    }
