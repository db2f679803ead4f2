"""Transcripts: what is read out of each form, what ``planning replay`` prints of it, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_runs import TRIAGE, TRIAGE_ANTHROPIC, lines, printed, run, said
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from planning.cli.transcript import Call, TranscriptError, parse_transcript

MESSAGE = said(("planning_read_plan", {}))
SETUP = ("planning_setup_plan", {"objective": "Fix the login", "initial_steps": ["Reproduce it"]})


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["lines", "json"])
def test_the_triage_example_replays(options: list[str], snapshot: SnapshotAssertion) -> None:
    assert run("replay", *options, str(TRIAGE)) == snapshot


def test_the_example_in_anthropics_form_replays(snapshot: SnapshotAssertion) -> None:
    assert run("replay", str(TRIAGE_ANTHROPIC)) == snapshot


def test_json_holds_the_plan_or_null_and_nothing_else(snapshot: SnapshotAssertion) -> None:
    shown = printed("replay", "--json", stdin=lines(said(SETUP, ("planning_clear_plan", {}))))
    assert shown == {"objective": "Fix the login", "status": "abandoned", "steps": []}
    assert printed("replay", "--json", stdin=lines(MESSAGE)) is None
    none = lines(said(("run_tests", {})), {"role": "user", "content": "Go."})
    assert run("replay", stdin=none) == snapshot(name="no planning calls")


def test_markup_and_control_characters_of_a_model_stay_text(snapshot: SnapshotAssertion) -> None:
    setup = {"objective": "[red]Fix[/] [/]", "initial_steps": [{"title": "[link=x]a[/link] \\[b"}]}
    hostile: list[tuple[str, Any]] = [
        ("planning_setup_plan", setup),
        ("planning_mark_step", {"step_id": "S001\x1b[31m", "status": "\x1b]0;owned\x07"}),
        ("planning_\x1b[2J\ud800", {}),
        ("planning_mark_step", {"step_id": "S001", "status": "done", "\x1b[1m": 1, "[/red]": 2}),
        ("planning_mark_step", {"step_id": "S001", "status": "done", "note": "one\n\ttwo [/]"}),
    ]
    assert run("replay", stdin=lines(said(*hostile))) == snapshot


READ = Call("planning_read_plan", "{}")
CALL = {"name": "planning_read_plan", "arguments": "{}"}
ITEM = {"type": "function_call", "id": "fc_1", "call_id": "call_1", **CALL}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        ITEM,
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
    ],
}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "{}"}
CALLED = (Call("web_search_call", None), READ)
BODIES: list[Any] = ["{broken", {"step_id": "S001"}, None]
SENT = [{"function": {"name": "f", "arguments": body}} for body in BODIES]

FORMS: dict[str, tuple[str, tuple[Call, ...]]] = {
    "one message a line": (lines({"role": "user", "content": "Go."}, MESSAGE, MESSAGE), (READ, READ)),
    "blank lines between": ("\n\n" + lines(MESSAGE) + "\r\n  \n" + lines(MESSAGE), (READ, READ)),
    "an array on one line": (json.dumps([MESSAGE, MESSAGE]), (READ, READ)),
    "an object with messages": (
        json.dumps({"model": "m", "messages": [MESSAGE, MESSAGE]}, indent=2), (READ, READ)),
    "two calls in one message": (
        lines(said(("planning_read_plan", "{}"), ("planning_read_plan", "{}"))), (READ, READ)),
    "a byte order mark": ("\ufeff" + lines(MESSAGE, MESSAGE), (READ, READ)),
    "a line separator within a string": (lines(MESSAGE).replace("null", '"a\u2028b"'), (READ,)),
    "legacy function calls": (lines({"role": "assistant", "function_call": CALL}), (READ,)),
    "arguments as they came": (
        lines({"role": "assistant", "tool_calls": SENT}), tuple(Call("f", body) for body in BODIES)),
    "items of an input": (json.dumps([{"role": "user", "content": "Go."}, ITEM, RESULT], indent=1), (READ,)),
    "items a line": (lines({"role": "user", "content": "Go."}, ITEM, RESULT), (READ,)),
    "a response": (json.dumps(RESPONSE, indent=1), CALLED),
    "responses": (json.dumps([RESPONSE, RESULT, RESPONSE], indent=1), CALLED * 2),
    "responses a line": (lines(RESPONSE, RESULT, RESPONSE), CALLED * 2),
    "a conversation": (json.dumps({"object": "list", "data": RESPONSE["output"]}, indent=1), CALLED),
}  # fmt: skip


@pytest.mark.parametrize(("text", "calls"), FORMS.values(), ids=FORMS)
def test_calls_are_read_in_order_out_of_every_form(text: str, calls: tuple[Call, ...]) -> None:
    assert parse_transcript(text.encode()) == calls


@pytest.mark.parametrize("form", ["dict", "dumpd", "model_dump"])
def test_calls_are_read_out_of_langchains_messages(form: str) -> None:
    from langchain_core.load import dumpd
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, messages_to_dict

    answer = AIMessage(
        [{"type": "tool_use", "id": "1", "name": "a", "input": {"x": 1}}],
        tool_calls=[{"name": "a", "args": {"x": 1}, "id": "1"}],
        invalid_tool_calls=[{"name": "b", "args": "{", "id": "2", "error": None}],
    )
    messages = [SystemMessage("Plan."), HumanMessage("Go."), answer, ToolMessage("Done.", tool_call_id="1")]
    dumped = {
        "dict": lambda: messages_to_dict(messages),
        "dumpd": lambda: [dumpd(each) for each in messages],  # type: ignore[no-untyped-call] # it has none
        "model_dump": lambda: [each.model_dump() for each in messages],
    }[form]()
    assert parse_transcript(lines(*dumped).encode()) == (Call("a", {"x": 1}), Call("b", "{"))


MALFORMED: dict[str, Any] = {
    "a string": "hello",
    "null": None,
    "no role": {"content": "hello"},
    "a block that is a string": {"role": "assistant", "content": ["hello"]},
    "a block without a name": {"role": "assistant", "content": [{"type": "tool_use", "input": {}}]},
    "tool_calls that are an object": {"role": "assistant", "tool_calls": {"name": "f"}},
    "a tool call without a function": {"role": "assistant", "tool_calls": [{"id": "call_1"}]},
    "a function without a name": {"role": "assistant", "tool_calls": [{"function": {"arguments": "{}"}}]},
    "arguments that are an array": {
        "role": "assistant",
        "tool_calls": [{"function": {"name": "f", "arguments": [1]}}],
    },
    "an item without a name": {"type": "function_call", "arguments": "{}"},
    "an item of an unknown type": {"type": "unknown"},
    "a response whose output is wrong": {"output": ["hello"]},
    "a LangChain call that is a string": {"type": "ai", "content": "", "tool_calls": ["f"]},
}


WRONG: dict[str, bytes] = {
    "empty": b"",
    "no messages in an array": b"[]",
    "plain text": b"Dear model,\nplease plan.\n",
    "a broken line": (lines(MESSAGE) + '{"role": "assistant", \n' + lines(MESSAGE)).encode(),
    "a broken array": b'[\n  {"role": "user", "content": "Go."},\n  {"role": "assistant" "content": ""}\n]\n',
    "not UTF-8": (lines(MESSAGE)).encode() + b'{"role": "caf\xe9"}\n',
    "UTF-16": lines(MESSAGE).encode("utf-16"),
    "deeply nested": b"[" * 100_000,
    "a number of too many digits": b'{"role": ' + b"1" * 10_000 + b"}",
    **{name: lines(MESSAGE, message).encode() for name, message in MALFORMED.items()},
}


def test_text_that_is_no_transcript_is_refused_whole(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    shown = []
    for name, data in WRONG.items():
        (tmp_path / "wrong.jsonl").write_bytes(data)
        shown.append(f"-- {name}\n{run('replay', 'wrong.jsonl')}")
    assert "".join(shown) == snapshot


KEYS = ["role", "content", "tool_calls", "function", "name", "arguments", "type", "input", "messages"]
KEYS += ["output", "data", "kwargs", "lc", "args", "additional_kwargs"]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner | st.sampled_from(["assistant", "tool_use", "function", "ai", "function_call"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.binary(max_size=40) | st.lists(json_values, max_size=3).map(lambda values: lines(*values).encode()))
def test_whatever_the_bytes_there_are_calls_or_a_transcript_error(data: bytes) -> None:
    try:
        calls = parse_transcript(data)
    except TranscriptError as error:
        assert str(error)
    else:
        assert all(call.name for call in calls)
