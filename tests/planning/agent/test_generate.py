"""What is read from a generator's answer: one statement, or a question to the user, or why it is neither."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.agent.generate import ASKS, asked, read_answer
from planning.tools import ToolError

ONE = "SELECT 1"
ANSWERS: dict[str, list[Any]] = json.loads(Path(__file__).with_name("answers.json").read_text())


def refusal(answer: object) -> str:
    """What an answer is refused with."""
    with pytest.raises(ToolError) as caught:
        read_answer(answer)
    return str(caught.value)


@pytest.mark.parametrize(("answer", "sql"), [*ANSWERS["statements"], (MappingProxyType({"sql": ONE}), ONE)])
def test_a_statement_is_read_out_of_any_wrapping(answer: object, sql: str) -> None:
    assert read_answer(answer) == {"sql_query": sql}


@pytest.mark.parametrize(
    ("answer", "request_"),
    [
        ({"needs_user_input": True, "input_request": "Which year?"}, "Which year?"),
        ({"needs_user_input": True}, ASKS),
        ({"needs_user_input": True, "input_request": " "}, ASKS),
        ({"needs_user_input": True, "input_request": "Which year?", "sql": ONE}, "Which year?"),
        ('{"needs_user_input": true, "input_request": "Which year?"}', "Which year?"),
        ('```json\n{"needs_user_input": true, "input_request": "Which year?"}\n```', "Which year?"),
    ],
)
def test_a_question_to_the_user_is_read(answer: object, request_: str) -> None:
    assert read_answer(answer) == asked(request_)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        *ANSWERS["refusals"],
        (b"SELECT 1", "SQL is text, got bytes; write one SELECT"),
        ({5: ONE}, 'no SQL was written; write {"sql": "SELECT ..."}, got \'5\''),
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
        assert (found.get("sql_query") or found["input_request"] or "").strip()


@given(st.text(alphabet="abc '\"=*,()\n", min_size=1, max_size=60))
def test_a_fence_changes_nothing_of_what_is_in_it(body: str) -> None:
    sql = f"SELECT {body}".strip()
    assert read_answer(f"```sql\n{sql}\n```") == read_answer(sql) == {"sql_query": sql}
