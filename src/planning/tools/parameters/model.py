"""The parameter model: what every kind of declaration looks like to a call."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from planning.errors import Problem

__all__ = ["NO_JSON", "DeferredModel", "Diagnose", "FreeModel", "ParameterModel", "model_of"]

NO_JSON = "arguments must hold JSON values only: text, numbers, booleans, null, arrays, objects"
"""For a mapping from Python that is not JSON: names that are not text, values that hold themselves."""

Diagnose = Callable[[Mapping[str, Any]], Iterable[Problem]]


class ParameterModel(ABC):
    """What arguments are checked against, and what they become.

    Attributes:
        name: What messages call it.
        kind: Its type: an instance of it needs no decoding. None where there is no such type.
    """

    name: str
    kind: Any = None

    @property
    @abstractmethod
    def published(self) -> Mapping[str, Any]:
        """The JSON Schema that a model reads. It is shared: do not change it."""

    @property
    def shape(self) -> Mapping[str, Any]:
        """The same for looking things up: with the definition itself in place of each reference."""
        return self.published

    def schema(self) -> dict[str, Any]:
        """A copy of the published schema."""
        return copy.deepcopy(dict(self.published))

    @abstractmethod
    def convert(self, data: dict[str, Any], diagnose: Diagnose | None = None) -> Any:
        """Turn an object of JSON values, or of Python values, into parameters.

        Args:
            data: The arguments by name.
            diagnose: Asked for further problems once there are some. A tool that has it checks texts
                itself; without it, the checks in the fields' metadata are made here.

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

    def convert(self, data: dict[str, Any], diagnose: Diagnose | None = None) -> dict[str, Any]:  # noqa: ARG002 - nothing can be wrong
        """A copy of the arguments."""
        return dict(data)


class DeferredModel(ParameterModel):
    """The model of a dataclass that is read at the first call: importing pydantic takes longer than the rest.

    The limits and checks in its fields' metadata are for its tool to make; here they only explain a refusal.
    """

    def __init__(self, kind: type[Any]) -> None:
        """Take a dataclass that is known to be a parameter model."""
        self.kind = kind
        self.name = kind.__name__

    @cached_property
    def _model(self) -> ParameterModel:
        return model_of(self.kind, rules=False)

    @property
    def published(self) -> Mapping[str, Any]:
        """See ``ParameterModel``."""
        return self._model.published

    @property
    def shape(self) -> Mapping[str, Any]:
        """See ``ParameterModel``."""
        return self._model.shape

    def convert(self, data: dict[str, Any], diagnose: Diagnose | None = None) -> Any:
        """See ``ParameterModel``."""
        return self._model.convert(data, diagnose)


def model_of(kind: Any, *, rules: bool = True) -> ParameterModel:
    """The model of a declaration.

    Args:
        kind: A stdlib dataclass, an attrs class, a TypedDict, a pydantic model or dataclass, a JSON Schema as
            a mapping, or a ``ParameterModel``; None for any object.
        rules: Whether the limits and checks in field metadata are made. If not, they only explain a refusal.

    Raises:
        TypeError: It is none of these, or arguments in JSON cannot become what it names.
        ValueError: The JSON Schema is not valid, or not that of an object.
    """
    if kind is None:
        return FreeModel()
    if isinstance(kind, ParameterModel):
        return kind
    if isinstance(kind, Mapping):
        from planning.tools.parameters.json_schema import SchemaModel  # noqa: PLC0415 - it needs jsonschema-rs

        return SchemaModel(kind)
    from planning.tools.parameters.typed import TypedModel  # noqa: PLC0415 - it needs pydantic

    return TypedModel(kind, rules=rules)
