"""Laws of decoding that hold for any JSON, and for every kind of record."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import jsonschema
import pydantic
import pytest
from decoding import decode, problems
from hypothesis import given, settings
from hypothesis import strategies as st

from planning import ToolValidationError
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


class PydanticTree(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)  # else it takes a boolean for a number
    title: str
    leaf: Leaf | None = None
    leaves: list[Leaf] = []
    mode: Literal["a", "b"] = "a"


NAMES = ["title", "size", "leaf", "leaves", "named", "pair", "mode", "number", "x"]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "a", "b", "[]", "{}", '{"title": "a"}', '["a"]', "red", "2026-01-31", "\u2014"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=8,
)
LEAF = st.fixed_dictionaries({"title": st.sampled_from(["a", "b"])}, optional={"size": st.integers(0, 3)})
FITTING: dict[str, st.SearchStrategy[Any]] = {
    "leaf": LEAF,
    "leaves": st.lists(LEAF, max_size=2),
    "mode": st.sampled_from(["a", "b"]),
    "named": st.dictionaries(st.sampled_from(["k", "l"]), LEAF, max_size=2),
    "number": st.sampled_from([1, 1.5]),
    "pair": st.just([1, "a"]),
}
WRONG: dict[str, st.SearchStrategy[Any]] = {
    "leaf": LEAF | JSON,
    "leaves": st.lists(LEAF | JSON, max_size=3),
    "mode": st.sampled_from(["c", 3, None, ["a"]]),
    "named": st.dictionaries(st.sampled_from(["k", "l"]), LEAF | JSON, max_size=2),
    "number": JSON,
    "pair": st.sampled_from([[1], ["a", 1]]),
    "x": st.integers(),
}


def sent(kind: type, values: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments for a record, of these values."""
    known = {name: each for name, each in values.items() if name in kind.__annotations__ or name == "x"}
    return st.fixed_dictionaries({"title": st.sampled_from(["a", "b"])}, optional=known)


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


def refused(kind: Any, arguments: Any, *, is_private: bool = False) -> ToolValidationError | None:
    try:
        decode(kind, arguments, is_private=is_private)
    except ToolValidationError as error:
        return error
    return None


# Each law is checked for drawn arguments, and says whether they are taken.


def what_is_refused_has_problems_at_places_that_there_are(kind: type, arguments: dict[str, Any]) -> bool:
    error = refused(kind, arguments)
    if error is not None:
        assert error.problems
        assert [problem for problem in error.problems if not is_there(arguments, problem.path)] == []
    return error is None


def what_the_published_schema_takes_is_taken(kind: type, arguments: dict[str, Any]) -> bool:
    schema = jsonschema.Draft202012Validator(model_of(kind).schema())  # another implementation than ours
    is_valid = schema.is_valid(arguments)
    if is_valid:
        model_of(kind).convert(arguments)
    return is_valid


def an_error_has_the_same_words_whichever_validator_finds_it(kind: type, arguments: dict[str, Any]) -> bool:
    told = problems(kind, arguments)
    assert sorted(told) == sorted(problems(model_of(kind).schema(), arguments))
    return not told


def a_private_refusal_has_nothing_of_what_was_sent(kind: type, arguments: dict[str, Any]) -> bool:
    planted = _planted(arguments)
    assert "s3cret" in str(planted)
    error = refused(kind, planted, is_private=True)
    assert (error is None) == (refused(kind, planted) is None)
    if error is not None:
        assert "s3cret" not in f"{error}{error!r}{vars(error)!r}"
        # On Python 3.11 contextlib may leave a StopIteration as the context.
        assert error.__cause__ is None
        assert error.__context__ is None or repr(error.__context__) == "StopIteration()"  # enough: as said
    return error is None


def _planted(data: Any) -> Any:
    if isinstance(data, dict):
        return {
            "s3cret" if name == "x" else name: item if name == "mode" else _planted(item)
            for name, item in data.items()
        }
    if isinstance(data, list):
        return [_planted(item) for item in data]
    return f"s3cret{data}" if isinstance(data, str) else data


@pytest.mark.parametrize("kind", [Tree, PydanticTree])
@pytest.mark.parametrize(
    "law",
    [
        what_is_refused_has_problems_at_places_that_there_are,
        what_the_published_schema_takes_is_taken,
        an_error_has_the_same_words_whichever_validator_finds_it,
        a_private_refusal_has_nothing_of_what_was_sent,
    ],
)
def test_laws_hold_for_any_arguments(law: Callable[[type, dict[str, Any]], bool], kind: type) -> None:
    ends: Counter[bool] = Counter()

    @settings(max_examples=60)
    @given(sent(kind, FITTING) | sent(kind, WRONG))
    def holds(arguments: dict[str, Any]) -> None:
        ends[law(kind, arguments)] += 1

    holds()
    assert min(ends[True], ends[False]) >= 5, ends
