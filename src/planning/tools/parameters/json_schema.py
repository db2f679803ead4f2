"""Parameter models of plain JSON Schemas, over jsonschema-rs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any, NoReturn

import jsonschema_rs

from planning.errors import Problem
from planning.tools.parameters import words
from planning.tools.parameters.coercion import coerced
from planning.tools.parameters.model import NO_JSON, Diagnose, ParameterModel
from planning.tools.parameters.schema import TOO_DEEP, branches, is_too_deep
from planning.tools.parameters.shape_errors import shape_problems


class SchemaModel(ParameterModel):
    """A JSON Schema of an object; arguments stay dictionaries.

    The draft is the one that its ``$schema`` names, or 2020-12: https://json-schema.org/draft/2020-12.
    """

    name = "an object"

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Take a schema.

        Raises:
            TypeError: It is not a JSON value.
            ValueError: It is not a valid schema, not that of an object, or refers to another document.
        """
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
        problems: list[Problem] = []
        repaired = data
        try:
            if self._validator.is_valid(data):
                return dict(data)
            repaired = coerced(data, self._schema)
            if self._branches and is_too_deep(repaired):
                problems = [] if self._validator.is_valid(repaired) else [Problem(TOO_DEEP)]
            else:
                errors = self._validator.iter_errors(repaired)
                problems = list(islice(shape_problems(errors, repaired, self._schema), words.MOST_PROBLEMS))
        except (TypeError, ValueError, RecursionError):
            problems = [Problem(NO_JSON)]
        if not problems:
            return repaired
        raise words.refusal(problems, self._schema, () if diagnose is None else diagnose(repaired))


def _no_retrieval(uri: str) -> NoReturn:
    raise ValueError(f"it refers to {uri}, which is not fetched; put the definition under $defs")
