"""Turns as servers send them: what they add to a conversation, and how their calls are answered."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning import Toolbox
from planning.integrations import anthropic, openai
from planning.integrations._calls import call_context
from planning.tools import tool


@tool
def clear(everything: bool = True) -> str:
    """Clears everything."""
    return "cleared"


BOX = Toolbox([clear])
CUT = (
    "clear was not called: your reply was cut off before the call was complete. "
    "Send it again, shorter: fewer steps in one call."
)
NOBODY = "Refused, nothing changed. no tool is named "


# Chat Completions


def function(arguments: Any, call_id: Any = "c1", **more: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "clear", "arguments": arguments}, **more}


def completion(*calls: Any, finish_reason: str = "tool_calls", **message: Any) -> dict[str, Any]:
    made = {"role": "assistant", "content": None, "tool_calls": list(calls), **message}
    return {"choices": [{"index": 0, "finish_reason": finish_reason, "message": made}]}


def chunks(*deltas: dict[str, Any], finish_reason: str | None = "tool_calls") -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    other = {"index": 1, "delta": {"content": "Another choice."}, "finish_reason": "length"}
    last = {"index": 0, "delta": {}, "finish_reason": finish_reason}
    return [*made, {"choices": [last, other]}, {"choices": [other]}, {"choices": []}]


def call_chunks(*deltas: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    return chunks(*({"tool_calls": [delta]} for delta in deltas), **options)


def replies(*contents: str) -> list[dict[str, Any]]:
    return [
        {"role": "tool", "tool_call_id": f"c{number}", "content": content}
        for number, content in enumerate(contents, 1)
    ]


# Responses

ITEM = {"type": "function_call", "call_id": "c1", "name": "clear", "arguments": "{}"}
CUSTOM = {"type": "custom_tool_call", "call_id": "c2", "name": "clear", "input": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "cleared"}
DONE = {"type": "response.output_item.done", "output_index": 0, "item": ITEM}
BEGUN = {"type": "response.output_item.added", "output_index": 1, "item": {**ITEM, "call_id": "c2"}}
TEXT = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
OTHERS = [
    {"type": kind, "id": f"i_{kind}", "call_id": "c9", "status": "completed"}
    for kind in (
        "web_search_call",
        "mcp_call",
        "computer_call",
        "shell_call",
        "apply_patch_call",
        "reasoning",
    )
]
CUSTOM_CUT = {"output": [ITEM, CUSTOM], "status": "incomplete"}
NAMED = {"output": [*OTHERS, ITEM, *OTHERS, CUSTOM, {**CUSTOM, "call_id": "c3", "name": "grep"}]}


def custom_output(output: str, call_id: str = "c2") -> dict[str, Any]:
    return {"type": "custom_tool_call_output", "call_id": call_id, "output": output}


NAMED_OUTPUTS = [
    OUTPUT,
    custom_output("cleared"),
    custom_output(f"{NOBODY}'grep'; the tools are clear", "c3"),
]


# Messages

USE: dict[str, Any] = {"type": "tool_use", "id": "t1", "name": "clear", "input": {}}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "abc"}
OF_SERVER: list[Any] = [
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "login"}},
    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
    {"type": "mcp_tool_use", "id": "m1", "name": "clear", "server_name": "a", "input": {}},
]


def message(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def start(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **given: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": f"{kind}_delta", **given}}


def results(content: str, **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": content, **more}],
        }
    ]


CUT_RESULT = results(CUT, is_error=True)
EVENTS = [
    {"type": "message_start", "message": {"content": []}},
    start(0, {"type": "thinking", "thinking": ""}),
    delta(0, "thinking", thinking="Hm."),
    delta(0, "signature", signature="abc"),
    start(1, {"type": "text", "text": ""}),
    delta(1, "text", text="I clear it."),
    delta(1, "citations", citation={"a": 1}),
    delta(1, "citations", citation={"a": 2}),
    start(2, USE),
    delta(2, "input_json", partial_json="{}"),
    {"type": "ping"},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
]

SIGNED = function("{}", extra_content={"signature": "abc"})
PARSED = {**SIGNED, "function": {**SIGNED["function"], "parsed_arguments": {}}}


@pytest.mark.parametrize(
    ("module", "sent", "added"),
    [
        (
            openai,  # but for what is null, and what the client added
            completion(PARSED, refusal=None, parsed={"a": 1}, reasoning_content="Hm."),
            [message(None, tool_calls=[SIGNED], reasoning_content="Hm.")],
        ),
        (
            openai,
            {"output": [{**OTHERS[-1], "status": None}, {**ITEM, "parsed_arguments": {}}, TEXT]},
            [{"type": "reasoning", "id": "i_reasoning", "call_id": "c9"}, ITEM, TEXT],
        ),
        (
            openai,
            chunks(
                {"role": "assistant", "content": ""},
                {"content": "I clear "},
                {"content": "it.", "reasoning_content": "Hm"},
                {"reasoning_content": "."},
                {"tool_calls": [{**function('{"every'), "index": 0}]},
                {"tool_calls": [{"index": 1, **function("", "c2")}]},
                {"tool_calls": [{"index": 0, "function": {"arguments": 'thing": true}'}}]},
                {"tool_calls": [{"index": 1, "id": None, "function": {"name": None, "arguments": "{}"}}]},
            ),
            [
                message(
                    "I clear it.",
                    reasoning_content="Hm.",
                    tool_calls=[function('{"everything": true}'), function("{}", "c2")],
                )
            ],
        ),
        (openai, [{"type": "response.created", "response": {"output": []}}, DONE, BEGUN], [ITEM]),
        (openai, [DONE, {"type": "response.completed", "response": {"output": []}}], [ITEM]),
        (anthropic, message([THOUGHT, {**USE, "input": {"everything": None}}]), None),
        (anthropic, message([]), []),
        (anthropic, message("Hi."), [message([{"type": "text", "text": "Hi."}])]),
        (
            anthropic,
            EVENTS,
            [
                message(
                    [THOUGHT, {"type": "text", "text": "I clear it.", "citations": [{"a": 1}, {"a": 2}]}, USE]
                )
            ],
        ),
    ],
    ids=range(9),
)
def test_a_turn_is_what_the_server_sent_whole_or_in_parts(
    module: Any, sent: Any, added: list[dict[str, Any]] | None
) -> None:
    assert module.turn(sent) == ([sent] if added is None else added)
    assert module.run_calls(module.turn(sent), BOX) == module.run_calls(sent, BOX)


@pytest.mark.parametrize(
    ("module", "sent", "answers"),
    [
        # as it should be
        (openai, completion(function("{}")), replies("cleared")),
        (openai, {"output": [ITEM]}, [OUTPUT]),
        (anthropic, message([*OF_SERVER, USE]), results("cleared")),
        (anthropic, EVENTS, results("cleared")),
        # without calls
        (openai, completion(content="Done."), []),
        (openai, {"choices": []}, []),
        (openai, [], []),
        (anthropic, message("Done."), []),
        # of careless servers: one index for all, no index, the name in each chunk
        (
            openai,
            call_chunks({"index": 0, **function("{}", "c1")}, {"index": 0, **function("{}", "c2")}),
            replies("cleared", "cleared"),
        ),
        (openai, call_chunks(function("{}", "c1"), function("{}", "c2")), replies("cleared", "cleared")),
        (
            openai,
            call_chunks(
                {"index": 0, **function("{", "c1")},
                {"index": 0, **function("}", "c1")},
                {"index": 1, **function({}, "c2")},
            ),
            replies("cleared", "cleared"),
        ),
        # cut off
        *(
            (
                openai,
                completion(function("{}"), function(cut, "c2"), finish_reason="length"),
                replies("cleared", CUT),
            )
            for cut in ("", None, '{"everything": tr')
        ),
        *((openai, call_chunks(function(cut), finish_reason=None), replies(CUT)) for cut in ("", '{"every')),
        (openai, completion(function("{}"), finish_reason="length"), replies("cleared")),
        (openai, {"output": [{**ITEM, "status": "incomplete"}]}, [{**OUTPUT, "output": CUT}]),
        (openai, CUSTOM_CUT, [OUTPUT, custom_output(CUT)]),
        (openai, [{"type": "response.incomplete", "response": CUSTOM_CUT}], [OUTPUT, custom_output(CUT)]),
        (anthropic, message([USE], stop_reason="max_tokens"), CUT_RESULT),
        (anthropic, [start(0, USE)], CUT_RESULT),
        (anthropic, [start(0, USE), delta(0, "input_json", partial_json='{"everything"')], CUT_RESULT),
        # of other forms
        (
            openai,
            completion(
                {"id": "c1", "type": "custom", "custom": {"name": "clera", "input": "all of it"}},
                {"id": "c2", "type": "function", "function": None},
            ),
            replies(
                f"{NOBODY}'clera'; did you mean clear?",
                f"{NOBODY}a value of type NoneType; the tools are clear",
            ),
        ),
        (openai, NAMED, NAMED_OUTPUTS),
        (openai, [{"type": "response.completed", "response": NAMED}], NAMED_OUTPUTS),
        (
            openai,
            SimpleNamespace(choices=[SimpleNamespace(message={"tool_calls": [function("{}")]})]),
            replies("cleared"),
        ),
    ],
    ids=range(27),
)
def test_each_call_that_is_complete_is_made_and_each_is_answered(
    module: Any, sent: Any, answers: list[dict[str, Any]]
) -> None:
    assert module.run_calls(sent, BOX) == answers
    assert asyncio.run(module.arun_calls(sent, BOX)) == answers


def reading(module: Any, sent: Any) -> list[Any]:
    return [
        lambda: module.turn(sent),
        lambda: module.run_calls(sent, BOX),
        lambda: asyncio.run(module.arun_calls(sent, BOX)),
    ]


@pytest.mark.parametrize("other", [None, 3, "text", b"text", ["text"], [{"a": 1}], {"error": "overloaded"}])
@pytest.mark.parametrize(
    ("module", "kind"), [(openai, "a completion, a message, a response"), (anthropic, "a message")]
)
def test_what_is_no_response_is_refused(module: Any, kind: str, other: Any) -> None:
    for read in reading(module, other):
        with pytest.raises(TypeError) as caught:
            read()
        assert str(caught.value) == (
            f"expected {kind} or the list of its chunks or events, got {type(other).__name__}: pass what "
            "the client returned"
        )


NAMES = (
    "choices message delta tool_calls function name arguments id index type output item response content "
    "finish_reason stop_reason role content_block partial_json input text call_id"
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES.split()) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_answer_of_a_server_raises_anything_but_that_it_is_no_response(sent: Any) -> None:
    for read in (*reading(openai, sent)[:2], *reading(anthropic, sent)[:2]):
        try:
            read()
        except TypeError as error:
            assert str(error).startswith("expected a ")


def test_ids_that_are_too_long_for_an_event_are_replaced_and_blank_ones_omitted() -> None:
    long = "call_" + "x" * 500
    digest = "sha256:40ee1e14252dd99d7c6d194b76138f7ab1ad13aaa707551e3b1b28c12d25fbaa"
    assert call_context(long, "triage", trace_id="t") == {
        "trace_id": "t",
        "call_id": digest,
        "actor": "triage",
    }
    assert call_context(long[:200]) == {"call_id": long[:200], "actor": None}
    assert call_context("c\n1")["call_id"] == (
        "sha256:afda6975e7040ae131d911628cdce115beae43eb251350a7534651c45599c605"
    )
    assert call_context("\ud800")["call_id"] == "sha256:" + sha256(rb"\ud800").hexdigest()
    assert call_context("c1", f"tri\nage{long}")["actor"] == f"triage{long}"[:200]
    assert call_context("c1", "\n") == call_context("c1")
    assert call_context("") == call_context(None) == call_context(7) == {"call_id": None, "actor": None}
