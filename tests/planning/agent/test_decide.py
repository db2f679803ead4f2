"""The next action: for the first key that the state lacks, while iterations are left."""

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
FALSY: list[Any] = ["", {}, [], 0, False]


@pytest.mark.parametrize("there", list(product([True, False], repeat=4)))
def test_the_first_key_that_is_missing_or_none_decides(there: tuple[bool, ...]) -> None:
    for value, lacking in product(["text", *FALSY], [{}, dict.fromkeys(KEYS)]):
        present = {key: value for key, is_there in zip(KEYS, there, strict=True) if is_there}
        decided = decide_next_action({"iteration": 3, **lacking, **present})
        if all(there):
            assert decided == {"iteration": 4, "next_action": "complete", "is_complete": True}
        else:
            assert decided == {"iteration": 4, "next_action": NAMES[there.index(False)]}


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
def test_at_the_maximum_it_proceeds_and_over_it_completes(
    iteration: int | None, most: int | None, decided: dict[str, Any]
) -> None:
    assert decide_next_action({"iteration": iteration, "max_iterations": most}) == decided


VALUES = st.none() | st.booleans() | st.integers(-2, 20) | st.text(max_size=3)
STATES = st.dictionaries(st.sampled_from([*KEYS, "next_action", "is_complete", "error"]), VALUES)


@given(STATES, st.none() | st.integers(0, 15), st.none() | st.integers(0, 15))
def test_the_decision_is_pure(state: dict[str, Any], iteration: int | None, most: int | None) -> None:
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
def test_an_update_of_a_list_is_appended_and_none_empties_it(
    known: Any, new: Any, together: list[int]
) -> None:
    before = copy.copy(known)
    assert (collected(known, new), known) == (together, before)
