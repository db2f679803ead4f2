"""The parameter model: the interface of every kind of declaration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from planning.errors import Problem
from session.json_form import json_form

NO_JSON = "arguments must contain only JSON values: text, numbers, booleans, null, arrays, objects"
"""For a mapping from Python that is not JSON: names that are not text, values that contain themselves."""

Diagnose = Callable[[Mapping[str, Any]], Iterable[Problem]]


class ParameterModel(ABC):
    """The type or schema that arguments are checked against, and what they become.

    Attributes:
        name: What messages call it.
        kind: Its type: an instance of it is not decoded. None if there is no such type.
    """

    name: str
    kind: Any = None

    @property
    @abstractmethod
    def published(self) -> Mapping[str, Any]:
        """The JSON Schema that a model reads. It is shared: do not change it."""

    def schema(self) -> dict[str, Any]:
        """A copy of the published schema."""
        schema: dict[str, Any] = json_form(self.published)
        return schema

    @abstractmethod
    def convert(self, data: dict[str, Any], diagnose: Diagnose | None = None) -> Any:
        """Turn an object of JSON values, or of Python values, into parameters.

        Raises:
            ToolValidationError: With every problem and its path.
        """


class FreeModel(ParameterModel):
    """Any object: for a tool that declares nothing about its arguments."""

    name = "an object"

    @property
    def published(self) -> Mapping[str, Any]:
        """An object with any fields."""
        return {"type": "object", "properties": {}, "additionalProperties": True}

    def convert(self, data: dict[str, Any], diagnose: Diagnose | None = None) -> dict[str, Any]:
        """A copy of the arguments."""
        del diagnose  # nothing can be wrong
        return dict(data)
