"""What Python takes for the same stays apart, and what is declared twice is declared once."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import pytest

from planning import ToolValidationError
from planning.tools.parameters.declared import model_of


@dataclass
class NumberFirst:
    either: int | str = 0


@dataclass
class TextFirst:
    either: str | int = 0


@pytest.mark.parametrize(
    ("kind", "types"), [(NumberFirst, ["integer", "string"]), (TextFirst, ["string", "integer"])]
)
def test_a_union_is_published_in_its_own_order_whatever_else_is_declared(
    kind: type, types: list[str]
) -> None:
    for other in (NumberFirst, TextFirst):
        model_of(other).schema()
    assert model_of(kind).schema()["properties"] == {"either": {"anyOf": [{"type": each} for each in types]}}


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


@dataclass
class Box:
    width: Size
    height: Size


def test_an_enum_of_numbers_may_be_the_type_of_two_fields() -> None:
    size = {"type": "integer", "enum": [1, 2]}
    assert model_of(Box).schema()["properties"] == {"width": size, "height": size}
    assert model_of(Box).convert({"width": 1, "height": 2}) == Box(Size.SMALL, Size.LARGE)


@pytest.mark.parametrize(
    ("height", "told"),
    [
        (3, "height: a value of type int is unknown; send one of 1, 2"),
        (True, "height: a value of type bool is unknown; send one of 1, 2"),
    ],
)
def test_both_fields_of_an_enum_of_numbers_refuse_what_only_equals_an_option(height: Any, told: str) -> None:
    with pytest.raises(ToolValidationError) as refused:
        model_of(Box).convert({"width": 1, "height": height})
    assert str(refused.value) == told
