"""The next action: for the first key that the state lacks, while iterations are left."""

from __future__ import annotations

import copy
from itertools import product
from typing import Any

import pytest

from planning.agent import decide_next_action
from planning.agent.state import MOST_ITERATIONS, collected

KEYS = ["schema", "sql_query", "execution_result", "validation_result"]
NAMES = ["get_schema", "generate_sql", "execute_sql", "validate_results"]
FALSY: list[Any] = ["", {}, [], 0, False]


@pytest.mark.parametrize("there", list(product([True, False], repeat=4)))
def test_the_first_key_that_is_missing_or_none_decides(there: tuple[bool, ...]) -> None:
    for value, lacking in product(["text", *FALSY], [{}, dict.fromkeys(KEYS)]):
        present = {key: value for key, is_there in zip(KEYS, there, strict=True) if is_there}
        state = {"iteration": 3, **lacking, **present}
        before, decided = copy.deepcopy(state), decide_next_action(state)
        assert state == before
        if all(there):
            assert decided == {"iteration": 4, "next_action": "complete", "is_complete": True}
        else:
            assert decided == {"iteration": 4, "next_action": NAMES[there.index(False)]}


@pytest.mark.parametrize(
    ("iteration", "most", "proceeds"),
    [
        (None, 1, True),
        (9, 10, True),
        (10, 10, False),
        (50, 10, False),
        (0, 0, False),
        (MOST_ITERATIONS - 1, None, True),
        (MOST_ITERATIONS, None, False),
    ],
)
def test_at_the_maximum_it_proceeds_and_over_it_completes(
    iteration: int | None, most: int | None, proceeds: bool
) -> None:
    decided = decide_next_action({"iteration": iteration, "max_iterations": most})
    last = {"next_action": "get_schema"} if proceeds else {"next_action": "complete", "is_complete": True}
    assert decided == {"iteration": (iteration or 0) + 1, **last}
    assert MOST_ITERATIONS >= 5  # a full pass


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
