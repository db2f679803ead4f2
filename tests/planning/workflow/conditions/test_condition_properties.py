"""What holds for every condition: it is as in Python where it is allowed, and nothing else ever happens."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import operator
import re
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import given, reject
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from planning.tools.result import NoJsonForm, plain
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
TOO_LONG = re.compile("the condition has [0-9]+ (characters|parts), the limit is [0-9]+; shorten it")
Oracle = Callable[[dict[str, Any]], Any]


@dataclasses.dataclass(frozen=True)
class Written:
    """An expression as text, and what Python says of it: the same operations, written beside the text."""

    text: str
    value: Oracle


def fixed(text: str, value: Oracle) -> SearchStrategy[Written]:
    return st.just(Written(text, value))


def written(form: str, says: Callable[..., Any], *parts: SearchStrategy[Written]) -> SearchStrategy[Written]:
    """Expressions of a form with its gaps filled in turn; ``says`` is given what evaluates each part."""

    def filled(chosen: tuple[Written, ...]) -> Written:
        text = form.format(*(each.text for each in chosen))
        return Written(text, lambda memory: says(*(partial(each.value, memory) for each in chosen)))

    return st.tuples(*parts).map(filled)


def eager(form: str, says: Callable[..., Any], *parts: SearchStrategy[Written]) -> SearchStrategy[Written]:
    """Expressions of which Python evaluates each part, from left to right."""
    return written(form, lambda *given: says(*(each() for each in given)), *parts)


def infix(signs: dict[str, Any], left: SearchStrategy[Written], right: SearchStrategy[Written]) -> Any:
    """Operators between two expressions."""
    return st.one_of(*(eager(f"({{}} {sign} {{}})", says, left, right) for sign, says in signs.items()))


def called(names: str, owner: SearchStrategy[Written], *given: SearchStrategy[Written]) -> Any:
    """Methods of texts."""
    gaps = ", ".join(["{}"] * len(given))
    return st.one_of(
        *(eager(f"{{}}.{name}({gaps})", getattr(str, name), owner, *given) for name in names.split())
    )


def kept(name: str) -> SearchStrategy[Written]:
    return fixed(f"memory[{name!r}]", lambda memory: memory[name])


def chained(first: Any, second: Any) -> Callable[..., Any]:
    def says(left: Any, middle: Any, right: Any) -> Any:
        between = middle()
        return first(left(), between) and second(between, right())

    return says


INDEX = st.integers(-3, 3).map(lambda number: Written(str(number), lambda _: number))
NAME = st.sampled_from(["n", "s"]).map(lambda name: Written(repr(name), lambda _: name))
CALCULATION = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod,
}  # fmt: skip
ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
EQUALITY = {"==": operator.eq, "!=": operator.ne}
CONTAINED = {
    "in": lambda value, container: value in container,
    "not in": lambda value, container: value not in container,
}


def conditions(depth: int) -> dict[str, SearchStrategy[Written]]:
    """Expressions of each kind of value, so deep at most."""
    if depth == 0:
        return {
            "number": st.one_of(
                st.integers(0, 9).map(lambda number: Written(str(number), lambda _: number)),
                kept("n"),
                fixed("memory.get('m', 2)", lambda memory: memory.get("m", 2)),
                fixed("2.5", lambda _: 2.5),
                fixed("n", lambda memory: memory["n"]),
            ),
            "text": kept("s") | kept("t") | fixed("'ab'", lambda _: "ab") | fixed("''", lambda _: ""),
            "numbers": kept("l")
            | kept("k")
            | fixed("[]", lambda _: [])
            | fixed("(1, 2.5)", lambda _: [1, 2.5]),
            "texts": kept("w") | fixed("['a', 'B']", lambda _: ["a", "B"]),
            "map": kept("d") | kept("e"),
            "bool": st.one_of(
                fixed("True", lambda _: True),
                fixed("False", lambda _: False),
                fixed("'n' in memory", lambda memory: "n" in memory),
                fixed("memory.get('s') is None", lambda memory: memory.get("s") is None),
            ),
        }
    inner = conditions(depth - 1)
    number, text, numbers, texts, mapping, truth = (
        inner[kind] for kind in ("number", "text", "numbers", "texts", "map", "bool")
    )
    return {
        "number": st.one_of(
            number,
            infix(CALCULATION, number, number),
            eager("(-{})", operator.neg, number),
            eager("abs({})", abs, number),
            eager("min({})", min, numbers),
            eager("max({})", max, numbers),
            eager("sum({})", sum, numbers),
            eager("sum({}, {})", sum, numbers, number),
            eager("min({}, {})", min, number, number),
            eager("max({}, {})", max, number, number),
            eager("len({})", len, text | numbers | texts | mapping),
            eager("{}[{}]", operator.getitem, numbers, INDEX),
            eager("{}[{}]", operator.getitem, mapping, NAME),
            eager("{}.get({}, {})", lambda owner, key, other: owner.get(key, other), mapping, NAME, number),
            called("count find rfind", text, text),
            written(
                "({} if {} else {})", lambda yes, test, no: yes() if test() else no(), number, truth, number
            ),
        ),
        "text": st.one_of(
            text,
            called("lower upper casefold strip lstrip rstrip", text),
            called("strip lstrip rstrip", text, text),
            eager("{}[{}]", operator.getitem, texts, INDEX),
            eager("{}[{}:{}]", lambda owner, first, last: owner[first:last], text, INDEX, INDEX),
            eager("min({})", min, texts),
            eager("max({})", max, texts),
        ),
        "numbers": st.one_of(
            numbers,
            eager("[{}, {}]", lambda *items: [*items], number, number),
            eager("{}[{}:]", lambda owner, first: owner[first:], numbers, INDEX),
            eager("{}[::{}]", lambda owner, step: owner[::step], numbers, INDEX),
        ),
        "texts": texts | eager("({}, {})", lambda *items: [*items], text, text),
        "map": mapping,
        "bool": st.one_of(
            truth,
            infix(ORDER | EQUALITY, number, number),
            infix(ORDER | EQUALITY, text, text),
            written("{} < {} <= {}", chained(operator.lt, operator.le), number, number, number),
            written("{} == {} != {}", chained(operator.eq, operator.ne), number, number, text),
            infix(EQUALITY, numbers, numbers),
            infix(EQUALITY, mapping, mapping),
            infix(EQUALITY, number | text, text | numbers | mapping),
            infix(CONTAINED, number, numbers),
            infix(CONTAINED, text, text | texts | mapping),
            eager("{} in [{}]", lambda value, item: value in [item], numbers, numbers),
            written("({} and {})", lambda left, right: left() and right(), truth, truth),
            written("({} or {})", lambda left, right: left() or right(), truth, truth),
            eager("(not {})", operator.not_, truth),
            eager("all_of({}, {})", lambda *given: all(given), truth, truth),
            eager("any_of({}, {})", lambda *given: any(given), truth, truth),
            eager("all_of({})", all, numbers | texts),
            eager("any_of({})", any, numbers | texts),
            called("startswith endswith", text, text),
            called("isdigit isalpha isspace isupper islower isalnum istitle", text),
            eager("{} is None", lambda value: value is None, number),
            eager("{} is not True", lambda value: value is not True, number),
        ),
    }


KINDS = conditions(3)


@given(KINDS["bool"], MEMORIES)
def test_an_allowed_condition_says_what_python_says(condition: Written, memory: dict[str, Any]) -> None:
    try:
        expected = condition.value(memory)
    except Exception:  # noqa: BLE001 - whatever it trips over
        expected = False
    before = copy.deepcopy(memory)
    try:
        found: object = is_done(condition.text, memory, "n")
    except ConditionInvalid as refused:
        assert TOO_LONG.fullmatch(str(refused)), condition.text
    else:
        assert found is expected
    assert memory == before


@given(st.sampled_from(["number", "text", "numbers", "map"]).flatmap(KINDS.__getitem__), MEMORIES)
def test_a_value_that_is_no_bool_is_refused_or_cannot_be_had(
    condition: Written, memory: dict[str, Any]
) -> None:
    with contextlib.suppress(ConditionInvalid):
        assert is_done(condition.text, memory, "n") in {True, False}


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
    st.text() | st.lists(TOKENS, max_size=30).map("".join) | KINDS["bool"].map(lambda written: written.text),
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
        record = json.loads(json.dumps(plain(memory, strict=True)))
    except NoJsonForm:
        reject()
    condition = re.sub(r"\b([xy])\b", r"memory['\1']", question)
    assert answer(condition, memory) == answer(condition, record)


def answer(condition: str, memory: dict[str, Any]) -> bool | str:
    try:
        return is_done(condition, memory)
    except ConditionInvalid as invalid:
        return str(invalid)
