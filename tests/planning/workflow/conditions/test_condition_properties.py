"""What holds for every condition: nothing but a refusal is raised, and it means the same after a resume."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import warnings
from typing import Any

from hypothesis import given, reject
from hypothesis import strategies as st

from planning.workflow.conditions import METHODS, ConditionInvalid, check_condition, is_done
from session.json_form import NoJsonForm, json_form

SIGNS = "()[]{}.,:+-*/%<>=!&|^~@#'\"\\ \n\0\u00e9\ud800"
GLUED = """== != ** // << := -> ...
1e999 1j 0x1 b' f' 'a' 1 x True None len sum memory memory['x'] memory.get('x')
__class__ all_of eval __import__ format [1,2] x= *x **x"""
SPACED = "and or not is in if else for lambda await yield import"
TOKENS = st.sampled_from([*SIGNS, *GLUED.split(), *map(" {} ".format, SPACED.split()), *sorted(METHODS)])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner)
    ),
    max_leaves=10,
)


@given(
    st.text() | st.lists(TOKENS, max_size=30).map("".join),
    st.dictionaries(st.sampled_from(["x", "n", "s", "l", "d"]), ANYTHING),
    st.none() | st.text() | st.sampled_from(["x", "memory", "len"]),
)
def test_no_text_and_no_memory_raises_anything_but_a_refusal(
    condition: str, memory: dict[str, Any], key: str | None
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            check_condition(condition)
        except ConditionInvalid as refused:
            assert str(refused).isascii()
            assert len(str(refused)) <= 140
        with contextlib.suppress(ConditionInvalid):
            assert is_done(condition, memory, key) in {True, False}


@dataclasses.dataclass
class Row:
    """A record of a tool."""

    n: Any
    s: Any


VALUES = st.recursive(
    ANYTHING | st.sets(st.integers()) | st.decimals() | st.uuids() | st.text("a\ud800\u0100"),
    lambda inner: (
        st.builds(Row, inner, inner) | st.lists(inner) | st.dictionaries(st.text("n1s\ud800"), inner)
    ),
    max_leaves=10,
)
QUESTIONS = st.sampled_from(
    """x == y
x != y
x in [y]
x['n'] == y['n']
x['s'] is None
x[0] == y[0]
x == y or len(x) > 1
max(x) == max(y)
sum(x) > 1
'n' in x and x.get('n') != 's'
x < y
x[1:] == y[1:]
x['n']['s'] == y
any_of(x) and not y
x.get(1) is None
1 in x
x.lower() == y
all_of(x == y, x['n'])""".splitlines()
)


@given(QUESTIONS, VALUES, VALUES | st.none())
def test_a_condition_means_the_same_of_a_value_and_of_its_record(question: str, x: Any, y: Any) -> None:
    memory = {"x": x, "y": x if y is None else y}
    try:
        record = json.loads(json.dumps(json_form(memory, strict=True)))
    except NoJsonForm:
        reject()
    condition = re.sub(r"\b([xy])\b", r"memory['\1']", question)
    assert answer(condition, memory) == answer(condition, record)


def answer(condition: str, memory: dict[str, Any]) -> bool | str:
    try:
        return is_done(condition, memory)
    except ConditionInvalid as invalid:
        return str(invalid)
