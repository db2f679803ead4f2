"""Turns as servers send them: what they add to a conversation, and how their calls are answered."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning import Plan, PlanningToolsSection, Toolbox
from planning.integrations import anthropic, openai
from planning.integrations._common import call_context
from planning.tools import tool
from session import Session, ToolInvoked, select_all, select_latest


@tool
def clear(everything: bool = True) -> str:
    """Clears everything."""
    return "cleared"


BOX = Toolbox([clear])
CUT = "clear was not called: your reply was cut off before the call was complete. Send it again."


def function(name: str, arguments: Any, call_id: Any = "c1", **more: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def completion(*calls: Any, finish_reason: str = "tool_calls", **message: Any) -> dict[str, Any]:
    made = {"role": "assistant", "content": None, "tool_calls": list(calls), **message}
    return {"choices": [{"index": 0, "finish_reason": finish_reason, "message": made}]}


def chunks(*deltas: dict[str, Any], finish_reason: str | None = "tool_calls") -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return [*made, {"choices": [{"index": 0, "delta": {}, "finish_reason": finish_reason}]}, {"choices": []}]


def tool_message(content: str, call_id: Any = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def tool_result(content: str, **more: Any) -> list[dict[str, Any]]:
    block = {"type": "tool_result", "tool_use_id": "t1", "content": content, **more}
    return [{"role": "user", "content": [block]}]


# What a turn adds to the conversation


def test_a_turn_keeps_what_the_server_sent_but_for_null_and_what_the_client_added() -> None:
    call = function("clear", "{}", extra_content={"signature": "abc"})
    parsed = {**call, "function": {**call["function"], "parsed_arguments": {}}}
    sent = completion(parsed, refusal=None, parsed=None, reasoning_content="Hm.")
    assert openai.turn(sent) == [
        {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "Hm."}
    ]


def test_the_items_of_a_response_are_its_turn() -> None:
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc", "status": None},
        {
            "type": "function_call",
            "call_id": "c1",
            "name": "clear",
            "arguments": "{}",
            "parsed_arguments": {},
        },
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
    ]
    assert openai.turn({"output": items}) == [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc"},
        {"type": "function_call", "call_id": "c1", "name": "clear", "arguments": "{}"},
        items[2],
    ]


def test_the_turn_of_a_message_is_its_content_thoughts_included() -> None:
    content = [
        {"type": "thinking", "thinking": "Hm.", "signature": "abc"},
        {"type": "tool_use", "id": "t1", "name": "clear", "input": {"everything": None}},
    ]
    assert anthropic.turn({"role": "assistant", "content": content}) == [
        {"role": "assistant", "content": content}
    ]
    assert anthropic.turn({"role": "assistant", "content": []}) == []
    assert anthropic.turn({"role": "assistant", "content": "Hi."}) == [
        {"role": "assistant", "content": [{"type": "text", "text": "Hi."}]}
    ]


def test_the_calls_of_a_turn_that_is_kept_can_be_answered_later() -> None:
    chat, items = completion(function("clear", "{}")), {"output": [dict(CALL_ITEM)]}
    message = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t1", "name": "clear", "input": {}}],
    }
    assert (
        openai.run_calls(openai.turn(chat), BOX) == openai.run_calls(chat, BOX) == [tool_message("cleared")]
    )
    assert openai.run_calls(openai.turn(items), BOX) == openai.run_calls(items, BOX) == [OUTPUT_ITEM]
    assert anthropic.run_calls(anthropic.turn(message), BOX) == tool_result("cleared")


CALL_ITEM = {"type": "function_call", "call_id": "c1", "name": "clear", "arguments": "{}"}
OUTPUT_ITEM = {"type": "function_call_output", "call_id": "c1", "output": "cleared"}


# Streams


def test_chunks_add_up_to_a_message() -> None:
    first = function("clear", '{"every')
    added = openai.turn(
        chunks(
            {"role": "assistant", "content": ""},
            {"content": "I clear "},
            {"content": "it.", "reasoning_content": "Hm"},
            {"reasoning_content": "."},
            {"tool_calls": [{**first, "index": 0}]},
            {"tool_calls": [{"index": 1, **function("clear", "", "c2")}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": 'thing": true}'}}]},
            {"tool_calls": [{"index": 1, "id": None, "function": {"name": None, "arguments": "{}"}}]},
        )
    )
    assert added == [
        {
            "role": "assistant",
            "content": "I clear it.",
            "reasoning_content": "Hm.",
            "tool_calls": [function("clear", '{"everything": true}'), function("clear", "{}", "c2")],
        }
    ]


@pytest.mark.parametrize(
    "deltas",
    [
        [{"index": 0, **function("clear", "{}", "a")}, {"index": 0, **function("clear", "{}", "b")}],
        [function("clear", "{}", "a"), function("clear", "{}", "b")],
        [
            {"index": 0, **function("clear", "{", "a")},
            {"index": 0, **function("clear", "}", "a")},
            {"index": 1, **function("clear", {}, "b")},
        ],
    ],
    ids=["one index for all", "no index", "the name in each chunk"],
)
def test_the_calls_of_a_careless_server_are_told_apart(deltas: list[dict[str, Any]]) -> None:
    sent = chunks(*({"tool_calls": [delta]} for delta in deltas))
    assert openai.run_calls(sent, BOX) == [tool_message("cleared", "a"), tool_message("cleared", "b")]


def test_a_streamed_response_that_broke_off_has_the_items_that_are_complete() -> None:
    done = {"type": "response.output_item.done", "output_index": 0, "item": CALL_ITEM}
    begun = {"type": "response.output_item.added", "output_index": 1, "item": {**CALL_ITEM, "call_id": "c2"}}
    assert openai.turn([{"type": "response.created", "response": {"output": []}}, done, begun]) == [CALL_ITEM]
    ended = {"type": "response.completed", "response": {"output": []}}
    assert openai.turn([done, ended]) == [CALL_ITEM]


def test_events_add_up_to_a_message_of_blocks() -> None:
    events = [
        {"type": "message_start", "message": {"content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "abc"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "I clear it."}},
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "citations_delta", "citation": {"a": 1}},
        },
        {"type": "content_block_start", "index": 2, "content_block": tool_use()},
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": "{}"},
        },
        {"type": "ping"},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    ]
    assert anthropic.turn(events) == [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "abc"},
                {"type": "text", "text": "I clear it.", "citations": [{"a": 1}]},
                tool_use(),
            ],
        }
    ]
    assert anthropic.run_calls(events, BOX) == tool_result("cleared")


def tool_use(**given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "t1", "name": "clear", "input": given}


# Turns that were cut


@pytest.mark.parametrize("arguments", ["", None, '{"everything": tr'])
def test_a_call_that_was_cut_off_is_not_made(arguments: str | None) -> None:
    cut = completion(function("clear", "{}", "c0"), function("clear", arguments), finish_reason="length")
    refused = [tool_message("cleared", "c0"), tool_message(CUT)]
    assert openai.run_calls(cut, BOX) == refused
    assert asyncio.run(openai.arun_calls(cut, BOX)) == refused
    streamed = chunks({"tool_calls": [function("clear", arguments)]}, finish_reason=None)
    assert openai.run_calls(streamed, BOX) == [tool_message(CUT)]


def test_a_call_that_is_complete_is_made_though_the_turn_was_cut() -> None:
    cut = completion(function("clear", "{}"), finish_reason="length")
    assert openai.run_calls(cut, BOX) == [tool_message("cleared")]


def test_an_item_that_is_incomplete_is_not_made() -> None:
    cut = {"output": [{**CALL_ITEM, "status": "incomplete"}], "status": "incomplete"}
    assert openai.run_calls(cut, BOX) == [{**OUTPUT_ITEM, "output": CUT}]


def test_a_block_that_was_cut_off_is_not_made() -> None:
    refused = tool_result(CUT, is_error=True)
    cut = {"role": "assistant", "content": [tool_use()], "stop_reason": "max_tokens"}
    assert anthropic.run_calls(cut, BOX) == refused
    assert asyncio.run(anthropic.arun_calls(cut, BOX)) == refused
    start = {"type": "content_block_start", "index": 0, "content_block": tool_use()}
    delta = {"type": "input_json_delta", "partial_json": '{"everything"'}
    assert anthropic.run_calls([start], BOX) == refused
    assert (
        anthropic.run_calls([start, {"type": "content_block_delta", "index": 0, "delta": delta}], BOX)
        == refused
    )


# Anything else


def test_a_call_of_another_form_is_answered_too() -> None:
    custom = {"id": "c2", "type": "custom", "custom": {"name": "clera", "input": "all of it"}}
    broken = {"id": "c3", "type": "function", "function": None}
    sent = completion(function("clear", "{}"), custom, broken)
    answers = [
        tool_message("cleared"),
        tool_message("Refused, nothing changed. no tool is named 'clera'; did you mean clear?", "c2"),
        tool_message(
            "Refused, nothing changed. no tool is named a value of type NoneType; the tools are clear", "c3"
        ),
    ]
    assert openai.run_calls(sent, BOX) == answers
    assert asyncio.run(openai.arun_calls(sent, BOX)) == answers
    assert [each["id"] for each in openai.turn(sent)[0]["tool_calls"]] == ["c1", "c2", "c3"]


def test_each_item_of_a_response_that_calls_a_tool_by_its_name_is_answered() -> None:
    read = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c2", "name": "clear", "input": "{}"}
    unknown = {"type": "custom_tool_call", "id": "ctc_2", "call_id": "c3", "name": "grep", "input": "a.*b"}
    others = [
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
    response = {"output": [others[0], CALL_ITEM, *others[1:], read, unknown], "status": "completed"}
    answers = [
        OUTPUT_ITEM,
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "cleared"},
        {
            "type": "custom_tool_call_output",
            "call_id": "c3",
            "output": "Refused, nothing changed. no tool is named 'grep'; the tools are clear",
        },
    ]
    assert openai.run_calls(response, BOX) == answers
    assert asyncio.run(openai.arun_calls(response, BOX)) == answers
    ended = {"type": "response.completed", "response": response}
    assert openai.run_calls([ended], BOX) == answers


def test_a_custom_call_that_was_cut_off_is_not_made() -> None:
    custom = {"type": "custom_tool_call", "call_id": "c1", "name": "clear", "input": "{}"}
    cut = {"output": [CALL_ITEM, custom], "status": "incomplete"}
    outputs = [OUTPUT_ITEM, {"type": "custom_tool_call_output", "call_id": "c1", "output": CUT}]
    assert openai.run_calls(cut, BOX) == outputs
    assert openai.run_calls([{"type": "response.incomplete", "response": cut}], BOX) == outputs


def test_what_the_server_of_messages_called_itself_is_not_answered() -> None:
    used = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "login"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    remote = {"type": "mcp_tool_use", "id": "m1", "name": "clear", "server_name": "a", "input": {}}
    sent = {"role": "assistant", "content": [used, found, remote, tool_use()], "stop_reason": "tool_use"}
    assert anthropic.run_calls(sent, BOX) == tool_result("cleared")


def test_a_turn_without_calls_has_no_answers() -> None:
    assert openai.run_calls(completion(content="Done."), BOX) == []
    assert openai.run_calls({"choices": []}, BOX) == []
    assert openai.run_calls([], BOX) == []
    assert anthropic.run_calls({"role": "assistant", "content": "Done."}, BOX) == []


def test_objects_of_any_client_are_read_by_their_attributes() -> None:
    call = SimpleNamespace(id="c1", type="function", function=SimpleNamespace(name="clear", arguments="{}"))
    message = SimpleNamespace(role="assistant", content=None, tool_calls=[call])
    sent = SimpleNamespace(choices=[SimpleNamespace(finish_reason="tool_calls", message=message)])
    assert openai.run_calls(sent, BOX) == [tool_message("cleared")]


@pytest.mark.parametrize("other", [None, 3, "text", b"text", ["text"], [{"a": 1}], {"error": "overloaded"}])
def test_what_is_no_response_is_refused(other: Any) -> None:
    for module, kind in (
        (openai, "a completion, a message, a response"),
        (anthropic, "a message"),
    ):
        for read in (
            module.turn,
            lambda given, module=module: module.run_calls(given, BOX),
            lambda given, module=module: asyncio.run(module.arun_calls(given, BOX)),
        ):
            with pytest.raises(TypeError) as caught:
                read(other)
            assert str(caught.value) == (
                f"expected {kind} or the list of its chunks or events, got {type(other).__name__}: pass what "
                "the client returned"
            )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "message",
                    "delta",
                    "tool_calls",
                    "function",
                    "name",
                    "arguments",
                    "id",
                    "index",
                    "type",
                    "output",
                    "item",
                    "response",
                    "content",
                    "finish_reason",
                    "stop_reason",
                    "role",
                    "content_block",
                    "partial_json",
                    "input",
                    "text",
                    "call_id",
                ]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_answer_of_a_server_raises_anything_but_that_it_is_no_response(sent: Any) -> None:
    for module in (openai, anthropic):
        for read in (module.turn, lambda given, module=module: module.run_calls(given, BOX)):
            try:
                read(sent)
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
    assert call_context("") == call_context(None) == call_context(7) == {"call_id": None, "actor": None}
    session = Session()
    section = PlanningToolsSection(session=session)
    answers = openai.run_calls(
        completion(function("planning_setup_plan", '{"objective": "Test"}', long)), section
    )
    assert [each["tool_call_id"] for each in answers] == [long]
    (event,) = select_all(session, ToolInvoked)
    assert event.call_id == digest


def test_one_list_of_tools_serves_two_sessions() -> None:
    boxes = []
    for _ in range(2):
        session = Session()
        boxes.append(Toolbox(PlanningToolsSection(session=session).tools(), session=session))
    for objective, box in zip(("One", "Two"), boxes, strict=True):
        openai.run_calls(completion(function("planning_setup_plan", {"objective": objective})), box)
    assert openai.tools(boxes[0]) == openai.tools(boxes[1]) == openai.tools()
    plans = [select_latest(box.session, Plan) for box in boxes if box.session is not None]
    assert [plan.objective for plan in plans if plan is not None] == ["One", "Two"]
