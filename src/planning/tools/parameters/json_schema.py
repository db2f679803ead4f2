"""Parameter models of plain JSON Schemas, over jsonschema-rs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, NoReturn

import jsonschema_rs

from planning.errors import Problem
from planning.tools.parameters.arguments import MOST_PROBLEMS, coerced, refusal
from planning.tools.parameters.model import NO_JSON, Diagnose, ParameterModel
from planning.tools.parameters.schema import TOO_DEEP, Node, branches, is_too_deep, node_at, options
from planning.tools.parameters.words import BOUNDS, Path, Wrong, unknown_field

_WHOLE = frozenset({"type", "enum", "const", "falseSchema"})  # that a value is of another option
Errors = list[jsonschema_rs.ValidationError]


def errors_of(
    errors: Iterable[jsonschema_rs.ValidationError], data: object, at: Callable[[Path], Node]
) -> Iterator[Wrong]:
    """The errors of the validator, each at its place in the data and with its part of the schema.

    ``at`` returns the part for a path, as ``node_at`` does: many errors are at the same one.
    """
    for error in errors:
        path, details, got = _named(error.instance_path, data), error.kind.as_dict(), error.instance
        node = at(path)
        match error.kind.name:
            case "required":
                path = (*path, details["property"])
                yield Wrong(path, "required", at(path))
            case "additionalProperties":
                for name in details["unexpected"]:
                    yield unknown_field(path, name, node, got)
            case "falseSchema" if any("maxItems" in each for each in options({}, at(path[:-1]))):
                pass  # an item after a tuple's last: that there are too many is reported
            case "oneOf" if not all(details["context"]):
                yield Wrong(path, "check", "more than one form fits; send the fields of one form")
            case "anyOf" | "oneOf" if inner := _nearest(details["context"], len(path)):
                yield from errors_of(inner, data, at)
            case "anyOf" | "oneOf" if any(map(_is_of_other_options, details["context"])):
                yield Wrong(path, "enum", node, got)
            case "enum" | "const" | "falseSchema" as keyword:
                yield Wrong(path, keyword, node, got)
            case keyword if keyword in BOUNDS or keyword == "pattern":
                yield Wrong(path, keyword, next(iter(details.values()), None), got)
            case "type" | "anyOf" | "oneOf":
                yield Wrong(path, "type", node, got)
            case keyword:
                yield Wrong(path, "check", f"breaks the rule {keyword} of the schema")


def _named(path: list[str | int], data: Any) -> Path:
    """The path with names where the data has names: to the validator, the name "2" is a number too."""
    named: list[str | int] = []
    for step in path:
        named.append(step if isinstance(data, (list, tuple)) else str(step))
        data = data.get(named[-1]) if isinstance(data, Mapping) else data[step]
    return tuple(named)


def _nearest(choice: list[Errors], depth: int) -> Errors:
    """The errors about the option of a union that is meant: of its type, and with the fewest of them."""
    fitting = [errors for errors in choice if not any(_is_of_other_type(error, depth) for error in errors)]
    return min(fitting, key=len, default=[])


def _is_of_other_type(error: jsonschema_rs.ValidationError, depth: int) -> bool:
    return error.kind.name in _WHOLE and len(error.instance_path) == depth


def _is_of_other_options(errors: Errors) -> bool:
    """True if a value has the type of an option, and is only not one of its values."""
    return all(error.kind.name in {"enum", "const"} for error in errors)


class SchemaModel(ParameterModel):
    """A JSON Schema of an object; arguments stay dictionaries.

    The draft is the one that its ``$schema`` names, or 2020-12: https://json-schema.org/draft/2020-12.
    """

    name = "an object"

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Take a schema."""
        try:
            self._schema: dict[str, Any] = json.loads(json.dumps(dict(schema), allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(f"a JSON Schema contains only JSON values: {error}") from None
        if self._schema.get("type") != "object":
            raise ValueError('parameters are an object: write {"type": "object", "properties": {...}}')
        try:
            self._validator = jsonschema_rs.validator_for(self._schema, retriever=_no_retrieval)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise ValueError(f"the parameters are not a valid JSON Schema: {reason}") from None

        self._branches = branches(self._schema, "anyOf", "oneOf")

    @property
    def published(self) -> Mapping[str, Any]:
        """See ``ParameterModel``."""
        return self._schema

    def convert(self, data: dict[str, Any], diagnose: Diagnose | None = None) -> dict[str, Any]:
        """See ``ParameterModel``."""
        repaired: dict[str, Any] = data
        try:
            if self._validator.is_valid(data):
                return dict(data)
            repaired = coerced(data, self._schema)
            if self._validator.is_valid(repaired):
                return repaired
            if self._branches and is_too_deep(repaired):
                problems = [Problem(TOO_DEEP)]
            else:
                at = partial(node_at, self._schema)
                errors = errors_of(self._validator.iter_errors(repaired), repaired, at)
                found = list(islice(errors, 2 * MOST_PROBLEMS))
                named = {each.path for each in found if each.keyword in {"enum", "const"}}
                problems = [  # what is not one of the options is often not of their type either
                    each.problem() for each in found if each.keyword != "type" or each.path not in named
                ]
        except (TypeError, ValueError, RecursionError):
            problems = [Problem(NO_JSON)]
        raise refusal(problems, self._schema, () if diagnose is None else diagnose(repaired))


def _no_retrieval(uri: str) -> NoReturn:
    raise ValueError(f"it refers to {uri}, which is not fetched; put the definition under $defs")
