"""Parameter models: which types are one, which are none, and what is the developer's mistake."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import Any, NamedTuple

import pytest
from five_ways import decode

from planning.tools.parameters.declared import model_of
from planning.tools.parameters.model import FreeModel, ParameterModel


@dataclass
class Inner:
    size: int


@dataclass
class User:
    name: str


class Pair(NamedTuple):
    left: int


def test_a_model_is_made_once_and_taken_as_it_is() -> None:
    model = model_of(Inner)
    assert (model.name, model.kind) == ("Inner", Inner)
    assert model_of(model) is model


def test_no_type_takes_any_object() -> None:
    model = model_of(None)
    assert isinstance(model, FreeModel)
    sent = {"a": 1}
    assert decode(model, sent) == sent
    assert decode(model, sent) is not sent
    model.convert({"b": 2})
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
class Two:
    either: Inner | User


@dataclass
class Endless:
    again: list[Endless] = field(default_factory=list)


@dataclass
class Later:
    now: int
    later: InitVar[int]


@dataclass
class Strange:
    number: complex = 1j


@pytest.mark.parametrize("arguments", [{}, {"now": 1}, {"size": 1}, {"either": {"size": 1}}, {"again": [{}]}])
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Later, "Later cannot be described as JSON: dataclasses with `InitVar` fields are not supported"),
    ],
)
def test_a_type_that_arguments_cannot_become_is_the_developers_mistake_whatever_is_sent(
    kind: type, reason: str, arguments: dict[str, Any]
) -> None:
    for attempt in (lambda: decode(kind, arguments), lambda: model_of(kind).schema()):
        with pytest.raises(TypeError) as caught:
            attempt()
        assert type(caught.value) is TypeError
        assert reason in str(caught.value)
        assert kind.__name__ in str(caught.value)


def test_a_model_of_ones_own_is_taken() -> None:
    class Own(ParameterModel):
        name = "own"

        @property
        def published(self) -> dict[str, Any]:
            return {"type": "object"}

        def convert(self, data: dict[str, Any], diagnose: object = None) -> Any:
            return list(data)

    assert decode(Own(), {"a": 1}) == ["a"]
