"""The errors of a JSON Schema validator, in this project's words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jsonschema_rs

from planning.errors import Problem
from planning.tools.parameters import words

Errors = list[jsonschema_rs.ValidationError]


def shape_problems(
    errors: Iterable[jsonschema_rs.ValidationError],
    data: object,
    shape: Mapping[str, Any],
) -> Iterator[Problem]:
    """The problems that the validator's errors are."""
    for error in errors:
        path, details = _named(error.instance_path, data), error.kind.as_dict()
        node = words.node_at(shape, path)
        match error.kind.name:
            case "required":
                path.append(details["property"])
                yield words.missing(words.node_at(shape, path), path)
            case "additionalProperties":
                for name in details["unexpected"]:
                    yield words.unknown_field(node, path, name, error.instance)
            case "enum" | "const":
                yield words.wrong_option(node, path, error.instance)
            case "falseSchema":
                pass  # the items after a tuple's last: that there are too many is reported
            case "anyOf" | "oneOfNotValid" if inner := _nearest(details["context"], len(path)):
                yield from shape_problems(inner, data, shape)
            case "type" | "anyOf" | "oneOfNotValid":
                yield words.wrong_type(node, path, error.instance)
            case keyword:
                limit = next(iter(details.values()), None)
                bound = words.out_of_bounds(path, keyword, limit, error.instance)
                yield words.wrong_type(node, path, error.instance) if bound is None else bound


def _named(path: list[str | int], data: Any) -> list[str | int]:
    """The path with names where the data has names: to the validator, the name "2" is a number too."""
    named: list[str | int] = []
    for step in path:
        named.append(step if isinstance(data, (list, tuple)) else str(step))
        data = data.get(named[-1]) if isinstance(data, Mapping) else data[step]
    return named


def _nearest(options: list[Errors], depth: int) -> Errors:
    """The errors about the option of a union that is meant: of its type, and with the fewest of them."""
    fitting = [errors for errors in options if not any(_is_of_other_type(error, depth) for error in errors)]
    return min(fitting, key=len, default=[])


def _is_of_other_type(error: jsonschema_rs.ValidationError, depth: int) -> bool:
    return error.kind.name in {"type", "enum", "const"} and len(error.instance_path) == depth
