"""What is read from a generator's answer: one statement, or a question to the user, or why it is neither."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from agent_samples import FINAL, QUESTION, SCHEMA, ShopTools, failing, graph_of, in_turn, rows, shown
from hypothesis import given
from hypothesis import strategies as st
from plan_findings import stored_values, with_outcomes
from run_cases import refusal
from syrupy.assertion import SnapshotAssertion

from planning.agent.generate import asked, prompt_messages, read_answer
from planning.tools import ToolError

ONE = "SELECT 1"
ANSWERS: dict[str, list[Any]] = json.loads(Path(__file__).with_name("answers.json").read_text())


@pytest.mark.parametrize(("answer", "sql"), [*ANSWERS["statements"], (MappingProxyType({"sql": ONE}), ONE)])
def test_a_statement_is_read_out_of_any_wrapping(answer: object, sql: str) -> None:
    assert read_answer(answer) == {"sql_query": sql}


def test_a_question_to_the_user_is_read(snapshot: SnapshotAssertion) -> None:
    def outcome(answer: object) -> object:
        read = read_answer(answer)
        assert read == asked(str(read["input_request"]))
        return read["input_request"]

    assert with_outcomes(stored_values(snapshot), outcome) == snapshot


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
    assert refusal(ToolError, read_answer, answer) == told


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


SYSTEM, ASKED = (turn["content"] for turn in prompt_messages(QUESTION, SCHEMA))


def test_the_error_of_a_statement_goes_back_to_the_generator_and_into_its_prompt() -> None:
    shop = ShopTools(executed=in_turn(failing("no such column: a"), failing("late", "timeout"), rows([3])))
    seen: list[Any] = []

    def write(error: str | None, prompt: str, attempts: Any, state: Any, schema: str, dialect: Any) -> str:
        assert (schema, dialect, state["resolved_query"]) == (SCHEMA, None, QUESTION)
        seen.append((prompt, error, len(attempts)))
        return f"SELECT {len(seen)}"

    final = graph_of(shop, write).invoke({"resolved_query": QUESTION})
    failed = [{"sql": "SELECT 1", "error": "no such column: a"}, {"sql": "SELECT 2", "error": "late"}]
    assert shown(final) == FINAL | {"sql_query": "SELECT 3", "iteration": 9, "attempts": failed}
    asked = f"{SYSTEM}\n\n{ASKED}"
    again = "{}\n\n{sql}\n\n{error}\nSend only the corrected SQL."
    errors = [(again.format(asked, **each), each["error"], at) for at, each in enumerate(failed, 1)]
    assert seen == [(asked, None, 0), *errors]


def test_the_prompt_of_a_generator_is_within_the_graphs_limit() -> None:
    seen: list[str] = []
    graph = graph_of(generator=lambda text: seen.append(text), prompt_limit=4_000, max_iterations=2)  # noqa: PLW0108 - a lambda has parameters
    graph.invoke({"resolved_query": QUESTION * 1_000})
    (message,) = [turn["content"] for turn in prompt_messages(QUESTION * 1_000, SCHEMA, limit=4_000)[1:]]
    assert seen == [f"{SYSTEM}\n\n{message}"]


@pytest.mark.parametrize("limit", [4_000, 10_000, 50_000])
@pytest.mark.parametrize("question", [1, 1_000_000])
@pytest.mark.parametrize("schema", [1, 1_000_000])
@pytest.mark.parametrize("sql", [[], ["s" * 1_000_000], [None], ["s" * 1_000_000, None]])
def test_a_prompt_keeps_its_limit(limit: int, question: int, schema: int, sql: list[str | None]) -> None:
    attempts = [{"sql": each, "error": "e" * 1_000_000} for each in sql * 50]
    turns = prompt_messages("q" * question, "s" * schema, attempts, "sqlite", limit)
    text = "\n\n".join(turn["content"] for turn in turns)
    is_long = schema > 1
    assert limit * is_long * 0.9 <= len(text) <= limit
    assert all(each in text for each in ("Question: q", "<schema>\ns", "\n</schema>"))
    assert all(one["role"] != other["role"] for one, other in pairwise(turns))


def test_a_part_that_is_cut_says_how_much_is_not_shown_and_the_dialect_is_named() -> None:
    system, user = prompt_messages("q" * 8_001, "a TEXT\n", dialect="duckdb")
    assert system["content"] == SYSTEM.replace("one SELECT", "one DuckDB SELECT")
    assert user["content"] == (
        f"<schema>\na TEXT\n</schema>\n\nQuestion: {'q' * 8_000}... (1 more characters are not shown)"
    )
