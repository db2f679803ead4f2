"""Laws of decoding that hold for any JSON, and for every kind of record."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from typing import Any, Literal

import jsonschema
import pydantic
import pytest
from decoding import decode, problems
from hypothesis import example, given, settings
from hypothesis import strategies as st

from planning import ToolValidationError
from planning.tools.parameters.model import ParameterModel
from planning.tools.spec import model_of


@dataclass
class Leaf:
    title: str
    size: int = 1


@dataclass
class Tree:
    title: str
    leaf: Leaf | None = None
    leaves: list[Leaf] = field(default_factory=list)
    named: dict[str, Leaf] = field(default_factory=dict)
    pair: tuple[int, str] | None = None
    mode: Literal["a", "b"] = "a"
    number: float | None = None


class PydanticLeaf(pydantic.BaseModel):
    title: str
    size: int = 1


class PydanticTree(pydantic.BaseModel):
    title: str
    leaf: PydanticLeaf | None = None
    leaves: list[PydanticLeaf] = []
    mode: Literal["a", "b"] = "a"


MODELS: dict[str, ParameterModel] = {
    "tree": model_of(Tree),
    "pydantic tree": model_of(PydanticTree),
    "anything": model_of(None),
}
NAMES = ["title", "size", "leaf", "leaves", "named", "pair", "mode", "number", "name", "count", "part", "x"]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "a", "b", "[]", "{}", '{"title": "a"}', '["a"]', "red", "2026-01-31", "\u2014"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), JSON, max_size=6)
LEAF = st.fixed_dictionaries({"title": st.sampled_from(["a", "b"])}, optional={"size": st.integers(0, 3)})
NEARLY = st.fixed_dictionaries(
    {"title": st.sampled_from(["a", "b"])},
    optional={
        "leaf": LEAF | st.none(),
        "leaves": st.lists(LEAF | JSON, max_size=3),
        "named": st.dictionaries(st.sampled_from(["k", "l"]), LEAF, max_size=2),
        "mode": st.sampled_from(["a", "b", "c", 3, None, ["a"]]),
        "number": st.sampled_from([1, 1.5, None]),
        "pair": st.sampled_from([[1, "a"], [1], ["a", 1]]),
        "x": st.integers(),
    },
)

each_model = pytest.mark.parametrize("name", MODELS)


def is_there(data: Any, path: str) -> bool:
    """Whether a path leads to a place of the data, or to a field that is missing there."""
    steps = re.findall(r"\[(\d+)\]|([^.\[\]]+)", path)
    for depth, (index, name) in enumerate(steps, 1):
        if isinstance(data, str):  # a JSON text, or a title in place of a record
            return True
        if index and isinstance(data, list) and int(index) < len(data):
            data = data[int(index)]
        elif name and isinstance(data, dict):
            if name not in data:
                return depth == len(steps)
            data = data[name]
        else:
            return False
    return True


@each_model
@settings(max_examples=40)
@given(arguments=ARGUMENTS | NEARLY)
def test_what_is_refused_is_refused_with_problems_at_places_that_there_are(
    name: str, arguments: dict[str, Any]
) -> None:
    try:
        decode(MODELS[name], arguments)
    except ToolValidationError as error:
        assert error.problems
        if all(re.fullmatch(r"\w+", key) for key in _names(arguments)):
            assert [problem for problem in error.problems if not is_there(arguments, problem.path)] == []


@pytest.mark.parametrize("kind", [Leaf, Tree, PydanticTree])
@settings(max_examples=40)
@given(arguments=NEARLY)
def test_what_the_published_schema_takes_is_taken(kind: type, arguments: dict[str, Any]) -> None:
    # A second opinion: another implementation of JSON Schema.
    model = model_of(kind)
    if jsonschema.Draft202012Validator(model.schema()).is_valid(arguments):
        model.convert(arguments)


@pytest.mark.parametrize("kind", [Leaf, Tree])
@settings(max_examples=60)
@given(arguments=NEARLY)
@example(arguments={"title": "a", "mode": 3})
def test_an_error_has_the_same_words_whichever_validator_finds_it(
    kind: type, arguments: dict[str, Any]
) -> None:
    by_pydantic, by_schema = problems(kind, arguments), problems(model_of(kind).schema(), arguments)
    assert sorted(by_pydantic) == sorted(by_schema)


@each_model
@settings(max_examples=40)
@given(arguments=ARGUMENTS | NEARLY)
def test_a_private_refusal_has_nothing_of_what_was_sent(name: str, arguments: dict[str, Any]) -> None:
    planted = _planted(arguments)
    with contextlib.suppress(ToolValidationError):
        decode(MODELS[name], planted)
        return
    try:
        decode(MODELS[name], planted, is_private=True)
    except ToolValidationError as error:
        assert "s3cret" not in f"{error}{error!r}{vars(error)!r}"
        assert (error.__cause__, error.__context__) == (None, None)


def _names(data: Any) -> set[str]:
    if isinstance(data, dict):
        return set(data).union(*map(_names, data.values()))
    return set().union(*map(_names, data)) if isinstance(data, list) else set()


def _planted(data: Any) -> Any:
    if isinstance(data, dict):
        return {
            name if name in NAMES[:-1] else f"s3cret{name}": _planted(item) for name, item in data.items()
        }
    if isinstance(data, list):
        return [_planted(item) for item in data]
    return f"s3cret{data}" if isinstance(data, str) else data
