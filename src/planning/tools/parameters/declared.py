"""Which parameter model belongs to a declaration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cache, cached_property
from typing import Any

from planning.tools.parameters.model import Diagnose, FreeModel, ParameterModel

Convert = Callable[[dict[str, Any], Diagnose | None], Any]


class DeferredModel(ParameterModel):
    """The model of a dataclass that is read at the first call: importing pydantic takes longer than the rest.

    Its tool makes the checks in its fields' metadata; here they only explain a refusal.
    """

    def __init__(self, kind: type[Any]) -> None:
        self.kind = kind
        self.name = kind.__name__

    @cached_property
    def _model(self) -> ParameterModel:
        from planning.tools.parameters.typed import TypedModel

        return TypedModel(self.kind, rules=False)

    @property
    def published(self) -> Mapping[str, Any]:
        """See ``ParameterModel``."""
        return self._model.published

    @cached_property
    def convert(self) -> Convert:  # type: ignore[override]  # a method all the same, once it is looked up
        """See ``ParameterModel``; from the first call on, the model's own."""
        return self._model.convert


def model_of(kind: Any, *, rules: bool = True) -> ParameterModel:
    """The model of a declaration.

    Args:
        kind: A stdlib dataclass, an attrs class, a TypedDict, a pydantic model or dataclass, a JSON Schema as
            a mapping, or a ``ParameterModel``; None for any object.
        rules: Whether the limits and checks in field metadata are made. If not, they only explain a refusal,
            and a dataclass is read at the first call.

    Raises:
        TypeError: It is not one of these, or JSON arguments cannot be converted to it.
        ValueError: The JSON Schema is not valid, or not that of an object.
    """
    if kind is None:
        return FreeModel()
    if isinstance(kind, ParameterModel):
        return kind
    if isinstance(kind, Mapping):
        from planning.tools.parameters.json_schema import SchemaModel

        return SchemaModel(kind)
    if not rules and isinstance(kind, type) and is_dataclass(kind):
        return _deferred(kind)
    from planning.tools.parameters.typed import TypedModel

    return TypedModel(kind, rules=rules)


@cache
def _deferred(kind: type[Any]) -> DeferredModel:
    """One for all sessions: to read the six commands takes 3 ms."""
    return DeferredModel(kind)
