"""What holds for every condition: it is as in Python where it is allowed, and nothing else ever happens."""

from __future__ import annotations

import contextlib
import copy
import warnings
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from planning.workflow.conditions import ConditionInvalid, check_condition, is_done
from planning.workflow.conditions.grammar import METHODS

NUMBERS = st.integers(-9, 9) | st.floats(-9, 9).map(lambda number: round(number, 2)) | st.booleans()
WORDS = st.text("abAB1 ", max_size=4)
MEMORIES = st.fixed_dictionaries(
    {},
    optional={
        "n": NUMBERS,
        "m": NUMBERS,
        "s": WORDS,
        "t": WORDS,
        "l": st.lists(NUMBERS, max_size=4),
        "k": st.lists(NUMBERS, max_size=2),
        "w": st.lists(WORDS, max_size=4),
        "d": st.dictionaries(st.sampled_from(["n", "s", "a"]), NUMBERS, max_size=3),
        "e": st.dictionaries(st.sampled_from(["n", "s", "a"]), NUMBERS, max_size=3),
    },
)
FUNCTIONS: dict[str, Any] = {
    "len": len,
    "min": min,
    "max": max,
    "sum": sum,
    "abs": abs,
    "all_of": lambda *given: all(given[0] if len(given) == 1 and isinstance(given[0], list) else given),
    "any_of": lambda *given: any(given[0] if len(given) == 1 and isinstance(given[0], list) else given),
}


def written(form: str, *parts: SearchStrategy[str]) -> SearchStrategy[str]:
    """Texts of a form with its gaps filled in turn."""
    return st.tuples(*parts).map(lambda filled: form.format(*filled))


def one_of(*names: str) -> SearchStrategy[str]:
    return st.sampled_from(names)


def conditions(depth: int) -> dict[str, SearchStrategy[str]]:
    """Expressions of each kind of value, so deep at most."""
    if depth == 0:
        return {
            "number": st.integers(0, 9).map(str) | one_of("memory['n']", "memory.get('m', 2)", "2.5", "n"),
            "text": one_of("memory['s']", "memory['t']", "'ab'", "'A'", "''"),
            "numbers": one_of("memory['l']", "memory['k']", "[]", "[1, 2.5]"),
            "texts": one_of("memory['w']", "['a', 'B']"),
            "map": one_of("memory['d']", "memory['e']"),
            "bool": one_of("True", "False", "'n' in memory", "memory.get('s') is None"),
        }
    inner = conditions(depth - 1)
    number, text, numbers, texts, mapping, truth = (
        inner[kind] for kind in ("number", "text", "numbers", "texts", "map", "bool")
    )
    order, equality = one_of("<", "<=", ">", ">="), one_of("==", "!=")
    return {
        "number": st.one_of(
            number,
            written("({} {} {})", number, one_of("+", "-", "*", "/", "//", "%"), number),
            written("(-{})", number),
            written("abs({})", number),
            written("{}({})", one_of("min", "max", "sum"), numbers),
            written("{}({}, {})", one_of("min", "max"), number, number),
            written("len({})", text | numbers | texts | mapping),
            written("{}[{}]", numbers, st.integers(-3, 3).map(str)),
            written("{}[{}]", mapping, one_of("'n'", "'s'")),
            written("{}.get({}, {})", mapping, one_of("'n'", "'s'"), number),
            written("{}.{}({})", text, one_of("count", "find", "rfind"), text),
            written("({} if {} else {})", number, truth, number),
        ),
        "text": st.one_of(
            text,
            written("{}.{}()", text, one_of("lower", "upper", "casefold", "strip", "lstrip", "rstrip")),
            written("{}.strip({})", text, text),
            written("{}[{}]", texts, st.integers(-3, 3).map(str)),
            written("{}[{}:{}]", text, st.integers(-3, 3).map(str), st.integers(-3, 3).map(str)),
            written("{}({})", one_of("min", "max"), texts),
        ),
        "numbers": st.one_of(
            numbers,
            written("[{}, {}]", number, number),
            written("{}[{}:]", numbers, st.integers(-3, 3).map(str)),
            written("{}[::{}]", numbers, st.integers(-3, 3).map(str)),
        ),
        "texts": st.one_of(texts, written("[{}, {}]", text, text)),
        "map": mapping,
        "bool": st.one_of(
            truth,
            written("{} {} {}", number, order | equality, number),
            written("{} {} {}", text, order | equality, text),
            written("{} {} {} {} {}", number, order, number, order, number),
            written("{} {} {}", numbers, equality, numbers),
            written("{} {} {}", mapping, equality, mapping),
            written("{} {} {}", number | text, equality, text | numbers | mapping),
            written("{} {} {}", number, one_of("in", "not in"), numbers),
            written("{} {} {}", text, one_of("in", "not in"), text | texts | mapping),
            written("{} in [{}]", numbers, numbers),
            written("({} {} {})", truth, one_of("and", "or"), truth),
            written("(not {})", truth),
            written("{}({}, {})", one_of("all_of", "any_of"), truth, truth),
            written("{}({})", one_of("all_of", "any_of"), numbers | texts),
            written("{}.{}({})", text, one_of("startswith", "endswith"), text),
            written("{}.{}()", text, one_of("isdigit", "isalpha", "isspace", "isupper", "islower")),
            written("{} is {}", number, one_of("None", "True")),
        ),
    }


KINDS = conditions(3)


@given(KINDS["bool"], MEMORIES)
def test_an_allowed_condition_says_what_python_says(condition: str, memory: dict[str, Any]) -> None:
    names = {"memory": memory, **({"n": memory["n"]} if "n" in memory else {})}
    try:
        with warnings.catch_warnings(action="ignore"):
            # The expressions are made here, of what is written above.
            expected = eval(condition, {"__builtins__": {}, **FUNCTIONS}, names)  # noqa: S307 - the second opinion
    except Exception:  # noqa: BLE001 - whatever it trips over
        expected = False
    before = copy.deepcopy(memory)
    try:
        found: object = is_done(condition, memory, "n")
    except ConditionInvalid as refused:
        assert "characters, at most" in str(refused) or "parts, at most" in str(refused), condition
    else:
        assert found is expected
    assert memory == before


@given(st.sampled_from(["number", "text", "numbers", "map"]).flatmap(KINDS.__getitem__), MEMORIES)
def test_a_value_that_is_no_bool_is_refused_or_cannot_be_had(condition: str, memory: dict[str, Any]) -> None:
    with contextlib.suppress(ConditionInvalid):
        assert is_done(condition, memory, "n") in {True, False}


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
    st.text() | st.lists(TOKENS, max_size=30).map("".join) | KINDS["bool"],
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
