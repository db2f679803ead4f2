"""What is decided from a state: the first thing that it lacks, until there is nothing or no time left."""

from __future__ import annotations

import copy
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.agent import decide_next_action
from planning.agent.state import MOST_ITERATIONS, collected

KEYS = ["schema", "sql_query", "execution_result", "validation_result"]
NAMES = ["get_schema", "generate_sql", "execute_sql", "validate_results"]
PRESENT = {"schema": "s", "sql_query": "q", "execution_result": {"data": []}, "validation_result": {"v": 1}}
FALSY: list[Any] = ["", {}, [], 0, False, 0.0, ()]


@pytest.mark.parametrize("there", list(product([True, False], repeat=4)))
@pytest.mark.parametrize("missing", ["None", "left out"])
def test_the_first_thing_that_is_missing_is_got_next(there: tuple[bool, ...], missing: str) -> None:
    state: dict[str, Any] = {"iteration": 3, "max_iterations": 10}
    for key, is_there in zip(KEYS, there, strict=True):
        if is_there:
            state[key] = PRESENT[key]
        elif missing == "None":
            state[key] = None
    if all(there):
        assert decide_next_action(state) == {"iteration": 4, "next_action": "complete", "is_complete": True}
    else:
        assert decide_next_action(state) == {"iteration": 4, "next_action": NAMES[there.index(False)]}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("value", FALSY, ids=repr)
def test_a_falsy_value_that_is_not_none_is_there(key: str, value: Any) -> None:
    place = KEYS.index(key)
    state = {**{each: PRESENT[each] for each in KEYS[:place]}, key: value}
    following = NAMES[place + 1] if place + 1 < len(NAMES) else "complete"
    assert decide_next_action(state)["next_action"] == following


@pytest.mark.parametrize(
    ("iteration", "most", "decided"),
    [
        (None, 1, {"iteration": 1, "next_action": "get_schema"}),
        (0, 1, {"iteration": 1, "next_action": "get_schema"}),
        (8, 10, {"iteration": 9, "next_action": "get_schema"}),
        (9, 10, {"iteration": 10, "next_action": "get_schema"}),
        (10, 10, {"iteration": 11, "next_action": "complete", "is_complete": True}),
        (50, 10, {"iteration": 51, "next_action": "complete", "is_complete": True}),
        (0, 0, {"iteration": 1, "next_action": "complete", "is_complete": True}),
        (0, -1, {"iteration": 1, "next_action": "complete", "is_complete": True}),
        (MOST_ITERATIONS - 1, None, {"iteration": MOST_ITERATIONS, "next_action": "get_schema"}),
        (
            MOST_ITERATIONS,
            None,
            {"iteration": MOST_ITERATIONS + 1, "next_action": "complete", "is_complete": True},
        ),
    ],
)
def test_at_the_maximum_it_goes_on_and_over_it_completes(
    iteration: int | None, most: int | None, decided: dict[str, Any]
) -> None:
    assert decide_next_action({"iteration": iteration, "max_iterations": most}) == decided


def test_without_a_maximum_there_is_room_for_a_pass_and_three_repairs() -> None:
    state: dict[str, Any] = {}
    decided = []
    for key in KEYS:
        state |= decide_next_action(state)
        decided.append(state["next_action"])
        state[key] = PRESENT[key]
    for _ in range(3):
        state |= {"sql_query": None, "execution_result": None}
        for key in ("sql_query", "execution_result"):
            state |= decide_next_action(state)
            decided.append(state["next_action"])
            state[key] = PRESENT[key]
    assert decided == [*NAMES, *["generate_sql", "execute_sql"] * 3]
    state |= decide_next_action(state)
    assert (state["next_action"], state["iteration"], state["is_complete"]) == ("complete", 11, True)
    assert MOST_ITERATIONS == 12


VALUES = st.none() | st.booleans() | st.integers(-2, 20) | st.text(max_size=3)
STATES = st.dictionaries(st.sampled_from([*KEYS, "next_action", "is_complete", "error"]), VALUES)


@given(STATES, st.none() | st.integers(0, 15), st.none() | st.integers(0, 15))
def test_it_changes_nothing_and_says_the_same_twice(
    state: dict[str, Any], iteration: int | None, most: int | None
) -> None:
    state |= {"iteration": iteration, "max_iterations": most}
    before = copy.deepcopy(state)
    first = decide_next_action(state)
    assert state == before
    assert decide_next_action(state) == first
    assert first["iteration"] == (iteration or 0) + 1
    assert (first["next_action"] == "complete") is first.get("is_complete", False)


@pytest.mark.parametrize(
    ("known", "new", "together"),
    [
        (None, None, []),
        (None, [1], [1]),
        ([1], [2, 3], [1, 2, 3]),
        ([1], [], [1]),
        ([1], None, []),
        ((1,), (2,), [1, 2]),
    ],
)
def test_a_list_in_the_state_takes_what_is_new_and_none_empties_it(
    known: Any, new: Any, together: list[int]
) -> None:
    before = copy.copy(known)
    assert (collected(known, new), known) == (together, before)
