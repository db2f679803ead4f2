"""Parameter models: which types are one, which are none, and what is the developer's mistake."""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import Any, NamedTuple

import pytest
from five_ways import decode

from planning.tools.parameters.declared import model_of
from planning.tools.parameters.model import ParameterModel


@dataclass
class Inner:
    size: int


class Pair(NamedTuple):
    left: int


def test_a_model_is_made_once_and_its_schema_is_a_copy_of_ones_own() -> None:
    model = model_of(Inner)
    assert (model.name, model.kind, model_of(model)) == ("Inner", Inner, model)
    model.schema().clear()
    assert model.schema()["properties"] == {"size": {"type": "integer"}}


def test_no_type_takes_any_object() -> None:
    model, sent = model_of(None), {"a": 1}
    assert (decode(model, sent), decode(model, sent) is sent) == (sent, False)
    assert model.schema() == {"type": "object", "properties": {}, "additionalProperties": True}


@pytest.mark.parametrize(
    ("kind", "name"), [(int, "int"), (dict, "dict"), (Pair, "Pair"), (3, "3"), ("Inner", "'Inner'")]
)
def test_what_is_no_record_is_no_parameter_model(kind: object, name: str) -> None:
    with pytest.raises(TypeError) as caught:
        model_of(kind)
    assert str(caught.value) == (
        f"{name} is not a parameter model: use a dataclass, an attrs class, a TypedDict, a pydantic "
        "model or a JSON Schema"
    )


@dataclass
class Later:
    now: int
    later: InitVar[int]


@pytest.mark.parametrize("arguments", [{}, {"now": 1}])
def test_a_type_that_arguments_cannot_become_is_the_developers_mistake_whatever_is_sent(
    arguments: dict[str, Any],
) -> None:
    for attempt in (lambda: decode(Later, arguments), lambda: model_of(Later).schema()):
        with pytest.raises(TypeError) as caught:
            attempt()
        assert str(caught.value) == (
            "Later cannot be described as JSON: dataclasses with `InitVar` fields are not supported"
        )


def test_a_model_of_ones_own_is_taken() -> None:
    class Own(ParameterModel):
        name = "own"

        @property
        def published(self) -> dict[str, Any]:
            return {"type": "object"}

        def convert(self, data: dict[str, Any], diagnose: object = None) -> Any:
            return list(data)

    assert decode(Own(), {"a": 1}) == ["a"]
