"""The parameter model: what every kind of declaration looks like to the path of execution."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from planning.errors import Problem
from planning.tools.parameters.fields import is_record

__all__ = ["NO_JSON", "Diagnose", "FreeModel", "ParameterModel", "model_of"]

NO_JSON = "arguments must hold JSON values only: text, numbers, booleans, null, arrays, objects"
"""For a mapping from Python that is no JSON: names that are no text, objects, values that hold themselves."""

Diagnose = Callable[[Mapping[str, Any]], Iterable[Problem]]


class ParameterModel(ABC):
    """What arguments are checked against, and what they become.

    Attributes:
        name: What messages call it.
        kind: Its type; an instance of it needs no decoding. None where there is no such type.
    """

    name: str
    kind: type[Any] | None = None

    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """The JSON Schema that a model reads, a copy of one's own."""

    @abstractmethod
    def convert(self, data: dict[str, Any], diagnose: Diagnose | None = None) -> Any:
        """Turn an object of JSON values, or of Python values, into parameters.

        Args:
            data: The arguments by name.
            diagnose: Asked for further problems once there are some. A tool that gives it checks
                texts itself; without it, the checks of the fields' metadata are made here.

        Raises:
            ToolValidationError: With every problem and its path.
        """

    def check(self, data: dict[str, Any]) -> None:
        """Convert for the problems alone.

        Raises:
            ToolValidationError: With every problem and its path.
        """
        self.convert(data)


class FreeModel(ParameterModel):
    """Any object: for a tool that declares nothing about its arguments."""

    name = "an object"

    def schema(self) -> dict[str, Any]:
        """An object with any fields."""
        return {"type": "object", "properties": {}, "additionalProperties": True}

    def convert(self, data: dict[str, Any], diagnose: Diagnose | None = None) -> dict[str, Any]:  # noqa: ARG002 - nothing can be wrong
        """The arguments as they are, a dict of one's own."""
        return dict(data)


@lru_cache(maxsize=512)
def model_of(kind: Any) -> ParameterModel:
    """The model of a parameter type.

    Args:
        kind: A stdlib dataclass, an attrs class, a TypedDict, a msgspec Struct, a pydantic model or
            dataclass; None for any object.

    Raises:
        TypeError: It is none of these.
    """
    if kind is None:
        return FreeModel()
    if isinstance(kind, ParameterModel):
        return kind
    if _is_pydantic(kind):
        from planning.tools.parameters.pydantic_model import PydanticModel  # noqa: PLC0415 - it needs pydantic

        return PydanticModel(kind)
    import msgspec as _  # noqa: PLC0415, F401 - loaded, or else a Struct is not known for one

    if is_record(kind):
        from planning.tools.parameters.record_model import RecordModel  # noqa: PLC0415 - it needs msgspec

        return RecordModel(kind)
    raise TypeError(
        f"{getattr(kind, '__name__', repr(kind))} is no parameter model: use a dataclass, an attrs class, a "
        "TypedDict or a pydantic model"
    )


def _is_pydantic(kind: object) -> bool:
    pydantic = sys.modules.get("pydantic")
    if pydantic is None or not isinstance(kind, type):
        return False
    return issubclass(kind, pydantic.BaseModel) or bool(pydantic.dataclasses.is_pydantic_dataclass(kind))
