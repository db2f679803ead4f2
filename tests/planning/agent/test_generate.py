"""What is read from a generator's answer: one statement, or a question to the user, or why it is neither."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.agent.generate import ASKS, Asked, Written, generator_tool, offered, read_answer
from planning.tools import ToolError

ONE = "SELECT 1"
ANSWERS: dict[str, list[Any]] = json.loads(Path(__file__).with_name("answers.json").read_text())


def refusal(answer: object) -> str:
    """What an answer is refused with."""
    with pytest.raises(ToolError) as caught:
        read_answer(answer)
    return str(caught.value)


@pytest.mark.parametrize(
    ("answer", "sql"), [*ANSWERS["statements"], (MappingProxyType({"sql": ONE}), ONE), (Written(ONE), ONE)]
)
def test_a_statement_is_found_in_any_wrapping(answer: object, sql: str) -> None:
    assert read_answer(answer) == Written(sql)


@pytest.mark.parametrize(
    ("answer", "request_"),
    [
        ({"needs_user_input": True, "input_request": "Which year?"}, "Which year?"),
        ({"needs_user_input": True}, ASKS),
        ({"needs_user_input": True, "input_request": None}, ASKS),
        ({"needs_user_input": True, "input_request": " "}, ASKS),
        ({"needs_user_input": True, "input_request": 5}, ASKS),
        ({"needs_user_input": True, "input_request": "Which year?", "sql": ONE}, "Which year?"),
        ('{"needs_user_input": true, "input_request": "Which year?"}', "Which year?"),
        ('```json\n{"needs_user_input": true, "input_request": "Which year?"}\n```', "Which year?"),
        (Asked("Which year?"), "Which year?"),
    ],
)
def test_a_question_to_the_user_is_put_to_him(answer: object, request_: str) -> None:
    assert read_answer(answer) == Asked(request_)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        *ANSWERS["refusals"],
        (b"SELECT 1", "SQL is text, got bytes; write one SELECT"),
        ({5: ONE}, 'no SQL was written; write {"sql": "SELECT ..."}, got the key \'5\''),
        ('{"a":' * 100_000, "its JSON cannot be read; write one SELECT, and nothing around it"),
    ],
)
def test_what_is_neither_is_refused_with_what_to_write(answer: object, told: str) -> None:
    assert refusal(answer) == told


@given(st.text(max_size=200) | st.dictionaries(st.text(max_size=5), st.text(max_size=20) | st.booleans()))
def test_any_text_or_object_is_a_statement_or_a_question_or_refused(answer: Any) -> None:
    try:
        found = read_answer(answer)
    except ToolError as refused:
        assert str(refused).count("\n") == 0
        assert "; write " in str(refused)
    else:
        assert (found.sql if isinstance(found, Written) else found.request).strip()


@given(st.text(alphabet="abc '\"=*,()\n", min_size=1, max_size=60))
def test_a_fence_changes_nothing_of_what_is_in_it(body: str) -> None:
    sql = f"SELECT {body}".strip()
    assert read_answer(f"```sql\n{sql}\n```") == read_answer(sql) == Written(sql)


# What a generator may be given


def test_a_generator_may_be_given_the_question_the_schema_and_what_was_tried() -> None:
    attempts = [{"sql": "SELECT nope", "error": "no such column: nope"}]
    state = {"resolved_query": "How many?", "schema": "S", "attempts": attempts, "iteration": 3}
    given = offered(state)
    assert given == {
        "question": "How many?",
        "schema": "S",
        "error": "no such column: nope",
        "attempts": attempts,
        "state": {**state, "error": None, "sql_query": None},
    }
    given["attempts"].clear()
    assert state["attempts"] == [{"sql": "SELECT nope", "error": "no such column: nope"}]


def test_a_generator_becomes_a_tool_with_its_timeout() -> None:
    tool = generator_tool(lambda question: question, 5.0)
    assert (tool.name, tool.timeout, tool.is_async) == ("generate_sql", 5.0, False)
    assert tool.parameters_schema() == {"type": "object", "properties": {}, "additionalProperties": True}


def test_a_generator_that_cannot_be_called_is_refused_by_its_name() -> None:
    with pytest.raises(TypeError, match=r"^generate_sql must be callable, got str$"):
        generator_tool("SELECT 1", None)  # type: ignore[arg-type]  # what is tested
