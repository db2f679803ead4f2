"""What is decided from a state: the first thing that it lacks, until there is nothing or no time left."""

from __future__ import annotations

import copy
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.agent import decide_next_action
from planning.agent.decide import ACTIONS, after_reflection, entry, route
from planning.agent.state import MOST_ITERATIONS, collected, first_answer, fresh_answer

KEYS = [key for key, _ in ACTIONS]
NAMES = [name for _, name in ACTIONS]
PRESENT = {"schema": "s", "sql_query": "q", "execution_result": {"data": []}, "validation_result": {"v": 1}}
FALSY: list[Any] = ["", {}, [], 0, False, 0.0, ()]


def test_the_actions_come_in_the_order_of_a_pass() -> None:
    assert ACTIONS == (
        ("schema", "get_schema"),
        ("sql_query", "generate_sql"),
        ("execution_result", "execute_sql"),
        ("validation_result", "validate_results"),
    )


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


def test_an_empty_state_is_the_beginning() -> None:
    assert decide_next_action({}) == {"iteration": 1, "next_action": "get_schema"}


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


# Where a decision goes


@pytest.mark.parametrize(
    ("state", "node"),
    [
        ({"next_action": "get_schema"}, "execute_tools"),
        ({"next_action": "execute_sql"}, "execute_tools"),
        ({"next_action": "validate_results"}, "execute_tools"),
        ({"next_action": "generate_sql"}, "generate_sql"),
        ({"next_action": "complete"}, "complete"),
        ({"next_action": "complete", "validation_result": {"is_valid": True}}, "reflect"),
        ({"next_action": "complete", "validation_result": {}, "reflection": None}, "reflect"),
        ({"next_action": "complete", "validation_result": {}, "reflection": {"verdict": "again"}}, "reflect"),
        ({"next_action": "complete", "validation_result": {}, "reflection": {"verdict": "fine"}}, "complete"),
        ({"next_action": "complete", "validation_result": {}, "reflection": {"verdict": "kept"}}, "complete"),
        ({"next_action": "complete", "validation_result": {}, "reflection": "odd"}, "reflect"),
        ({"next_action": "complete", "reflection": {"verdict": "again"}}, "complete"),
    ],
)
def test_every_decision_has_a_node(state: dict[str, Any], node: str) -> None:
    assert route(state, reflects=True) == node
    assert route(state) == ("complete" if node == "reflect" else node)


@pytest.mark.parametrize(
    ("reflection", "node"),
    [
        (None, "complete"),
        ({}, "complete"),
        ("odd", "complete"),
        ({"verdict": "fine"}, "complete"),
        ({"verdict": "again"}, "plan"),
    ],
)
def test_only_a_wish_for_another_statement_leads_back(reflection: Any, node: str) -> None:
    assert after_reflection({"reflection": reflection}) == node


@pytest.mark.parametrize(
    ("state", "node"),
    [
        ({}, "plan"),
        ({"resolved_query": "q"}, "plan"),
        ({"resolved_query": "q", "schema": "s", "sql_query": "x"}, "plan"),
        ({"resolved_query": "q", "asked_query": "q", "answer": "a"}, "plan"),
        ({"resolved_query": "q", "asked_query": "q"}, "begin"),
        ({"resolved_query": "q", "asked_query": "q", "answer": None}, "begin"),
        ({"resolved_query": "q", "asked_query": "p"}, "begin"),
    ],
)
def test_what_an_earlier_run_left_when_it_was_broken_off_is_cleared_away_first(
    state: dict[str, Any], node: str
) -> None:
    assert entry(state) == node


# What a state begins with


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
    assert collected(known, new) == together


def test_an_update_of_a_list_leaves_the_old_one_alone() -> None:
    known = [1]
    assert collected(known, [2]) == [1, 2]
    assert known == [1]


def test_a_list_that_comes_back_from_a_graph_within_another_is_taken_once() -> None:
    first, second = {"tool": "get_schema"}, {"tool": "execute_sql"}
    assert collected([first], [first, second]) == [first, second]
    assert collected([first], [dict(first)]) == [first, first]  # another call with the same outcome


def test_a_first_question_keeps_the_work_that_is_handed_in_and_nothing_else() -> None:
    state = {
        "schema": "",
        "sql_query": "SELECT 1",
        "iteration": 2,
        "is_complete": True,
        "reflection": {"verdict": "fine"},
        "needs_user_input": True,
        "input_request": "Which?",
        "error": "stale",
        "success": True,
    }
    assert first_answer(state) == {
        "execution_result": None,
        "validation_result": None,
        "next_action": None,
        "is_complete": False,
        "reflection": None,
        "needs_user_input": False,
        "input_request": None,
        "error": None,
        "user_message": None,
        "success": False,
        "answer": None,
    }


def test_another_question_begins_with_nothing() -> None:
    assert fresh_answer() == {
        "schema": None,
        "sql_query": None,
        "execution_result": None,
        "validation_result": None,
        "next_action": None,
        "iteration": 0,
        "is_complete": False,
        "reflection": None,
        "needs_user_input": False,
        "input_request": None,
        "error": None,
        "user_message": None,
        "success": False,
        "answer": None,
        "tool_calls": None,
        "attempts": None,
    }
