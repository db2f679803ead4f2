"""Turns as servers send them: what they add to a conversation, how their calls are answered, and repeats."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

import pytest
from driver_clients import blocks, chat, items
from frameworks import plans_of, toolbox
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from planning import Toolbox, tool_definitions
from planning.integrations import anthropic, openai
from planning.plan.commands import SetupPlan
from planning.tools import tool
from session import Session, ToolInvoked


@tool
def clear(everything: bool = True) -> str:
    """Clears everything."""
    return "cleared" if everything else "kept"


BOX = Toolbox([clear])
KEEP = '{"everything": false}'


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


SIGNED = function("{}", extra_content={"signature": "abc"})
PARSED = {**SIGNED, "function": {**SIGNED["function"], "parsed_arguments": {}}}
ASSISTANT = {"role": "assistant", "content": None, "tool_calls": [function("{}")]}
CHAT: dict[str, Any] = {
    "a call": completion(function("{}")),
    "the message": ASSISTANT,
    "an object of the client": SimpleNamespace(choices=[SimpleNamespace(message=ASSISTANT)]),
    "null, and what the client added": completion(
        PARSED, refusal=None, parsed={"a": 1}, reasoning_content="Hm."
    ),
    "chunks": chunks(
        {"role": "assistant", "content": ""},
        {"content": "I clear "},
        {"content": "it.", "reasoning_content": "Hm"},
        {"reasoning_content": "."},
        {"tool_calls": [{**function('{"every', signature="abc"), "index": 0}]},
        {"tool_calls": [{"index": 1, **function("", "c2")}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": 'thing": true}'}}]},
        {"tool_calls": [{"index": 1, "id": None, "function": {"name": None, "arguments": "{}"}}]},
    ),
    "chunks of text": chunks({"content": "Hi."}, finish_reason="stop"),
    "text": completion(content="Done."),
    "no choice": {"choices": []},
    "nothing": [],
    "chunks with one index": call_chunks(
        {"index": 0, **function("{}", "c1")}, {"index": 0, **function("{}", "c2")}
    ),
    "chunks without an index": call_chunks(function("{}", "c1"), function("{}", "c2")),
    "chunks that are named each": call_chunks(
        {"index": 0, **function("{", "c1")},
        {"index": 0, **function("}", "c1")},
        {"index": 1, **function({"everything": False}, "c2")},
    ),
    "cut before the arguments": completion(function("{}"), function("", "c2"), finish_reason="length"),
    "cut without arguments": completion(function("{}"), function(None, "c2"), finish_reason="length"),
    "cut in the arguments": completion(
        function("{}"), function('{"everything": tr', "c2"), finish_reason="length"
    ),
    "cut by a filter": completion(function(""), finish_reason="content_filter"),
    "cut chunks": call_chunks(function(""), finish_reason=None),
    "cut chunks of arguments": call_chunks(function('{"every'), finish_reason=None),
    "cut behind the arguments": completion(function("{}"), finish_reason="length"),
    "cut behind arguments that are an object": completion(function({}), finish_reason="length"),
    "not JSON": completion(function('{"every')),
    "custom calls": completion(
        {"id": "c1", "type": "custom", "custom": {"name": "clera", "input": "all of it"}},
        {"id": "c2", "type": "function", "function": None},
        {"id": "c3", "type": "custom", "custom": {"name": "clear", "input": KEEP}},
    ),
}

# Responses

ITEM = {"type": "function_call", "call_id": "c1", "name": "clear", "arguments": "{}"}
CUSTOM = {"type": "custom_tool_call", "call_id": "c2", "name": "clear", "input": KEEP}
DONE = {"type": "response.output_item.done", "output_index": 0, "item": ITEM}
BEGUN = {"type": "response.output_item.added", "output_index": 1, "item": {**ITEM, "call_id": "c2"}}
TEXT = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
KINDS = ("web_search_call", "mcp_call", "computer_call", "shell_call", "apply_patch_call", "reasoning")
OTHERS = [{"type": kind, "id": f"i_{kind}", "call_id": "c9", "status": "completed"} for kind in KINDS]
CUT = {"output": [TEXT, ITEM, CUSTOM], "status": "incomplete"}
OF_SEVERAL = {"output": [*OTHERS, ITEM, *OTHERS, CUSTOM, {**CUSTOM, "call_id": "c3", "name": "grep"}]}
RESPONSES: dict[str, Any] = {
    "a call": {"output": [ITEM]},
    "the item": ITEM,
    "null, and what the client added": {
        "output": [{**OTHERS[-1], "status": None}, {**ITEM, "parsed_arguments": {}}, TEXT]
    },
    "events that broke off": [{"type": "response.created", "response": {"output": []}}, DONE, BEGUN],
    "events whose end is empty": [DONE, {"type": "response.completed", "response": {"output": []}}],
    "calls of the server and custom ones": OF_SEVERAL,
    "events with them": [{"type": "response.completed", "response": OF_SEVERAL}],
    "cut": {"output": [{**ITEM, "status": "incomplete"}]},
    "cut in a custom call": CUT,
    "events that are cut": [BEGUN, {"type": "response.incomplete", "response": CUT}],
    "events that failed": [BEGUN, {"type": "response.failed", "response": CUT}],
}

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


def input_events(partial_json: str) -> list[dict[str, Any]]:
    return [start(0, USE), delta(0, "input_json", partial_json=partial_json)]


MESSAGES: dict[str, Any] = {
    "a call": message([THOUGHT, {**USE, "input": {"everything": None}}]),
    "calls of the server": message([*OF_SERVER, USE]),
    "nothing": message([]),
    "text": message("Hi."),
    "events": [
        {"type": "message_start", "message": {"content": []}},
        start(0, {"type": "thinking", "thinking": ""}),
        delta(0, "thinking", thinking="Hm."),
        delta(0, "signature", signature="abc"),
        start(1, {"type": "text", "text": ""}),
        delta(1, "text", text="I clear it."),
        delta(1, "text"),
        delta(1, "citations", citation={"a": 1}),
        delta(1, "citations", citation={"a": 2}),
        start(2, USE),
        delta(2, "input_json", partial_json='{"every'),
        delta(2, "input_json", partial_json='thing": true}'),
        {"type": "ping"},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    ],
    "cut": message([USE], stop_reason="max_tokens"),
    "cut in the second call": message([USE, {**USE, "id": "t2"}], stop_reason="max_tokens"),
    "cut by the window": message([USE], stop_reason="model_context_window_exceeded"),
    "cut events": [start(0, USE)],
    "cut events of input": input_events('{"everything"'),
    "events cut behind the input": input_events(KEEP),
    "input that is no object": input_events("[1]"),
}


@pytest.mark.parametrize(
    ("module", "responses"),
    [(openai, CHAT), (openai, RESPONSES), (anthropic, MESSAGES)],
    ids=["chat", "responses", "messages"],
)
def test_what_a_server_sent_is_sent_back_and_each_call_is_answered(
    module: Any, responses: dict[str, Any], snapshot: SnapshotAssertion
) -> None:
    shown = ""
    for name, sent in responses.items():
        turn = module.turn(iter(sent) if isinstance(sent, list) else sent)
        answers = module.run_calls(sent, BOX)
        assert asyncio.run(module.arun_calls(sent, [clear])) == answers  # the tools themselves
        again = module.run_calls(turn, [clear])  # the turn does not say that it was cut
        rows = [("turn", turn), ("answers", answers), *[("answers to the turn", again)] * (again != answers)]
        shown += f"# {name}\n" + "".join(f"{what}: {json.dumps(value)}\n" for what, value in rows) + "\n"
    assert shown == snapshot


@pytest.mark.parametrize("strict", [False, True])
def test_the_tools_of_a_request_are_defined_in_its_format(strict: bool) -> None:
    assert openai.tools(strict=strict) == tool_definitions("openai", strict=strict)
    responses = openai.tools(strict=strict, responses=True)
    assert responses == tool_definitions("openai-responses", strict=strict)
    assert anthropic.tools(strict=strict) == tool_definitions("anthropic", strict=strict)


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


HASH = sha256(rb"\ud800").hexdigest()


@pytest.mark.parametrize(
    ("call_id", "actor", "seen"),
    [
        ("", "\n", (None, None)),
        (7, "tri\nage", (None, "triage")),
        ("c" * 200, "a" * 201, ("c" * 200, "a" * 200)),
        ("\ud800", None, (f"sha256:{HASH}", None)),
    ],
)
def test_an_event_has_what_it_can_hold_of_an_id_and_of_a_name(call_id: Any, actor: Any, seen: Any) -> None:
    session = Session()
    openai.run_calls(completion(function("{}", call_id)), Toolbox([clear], session=session), actor=actor)
    (event,) = session.select_all(ToolInvoked)
    assert (event.call_id, event.actor) == seen


# Calls that are made again: only what names its turn and its call is a repeat

ADDED: tuple[str, dict[str, Any]] = ("planning_add_step", {"steps": [{"title": "Write a test"}]})


def begun() -> tuple[Session, Toolbox]:
    session = Session()
    box = toolbox(session, ())
    box.invoke("planning_setup_plan", SetupPlan("Fix the login"))
    return session, box


def adding(form: Callable[..., Any], turn_id: Any, *ids: Any) -> Any:
    """A response whose calls add a step each."""
    return form(turn_id, *((each, ADDED) for each in ids))


def chunked(turn_id: Any, *calls: Any) -> list[dict[str, Any]]:
    (choice,) = chat(turn_id, *calls)["choices"]
    made = [{"index": place, **call} for place, call in enumerate(choice["message"]["tool_calls"])]
    delta = {"index": 0, "delta": {"tool_calls": made}, "finish_reason": "tool_calls"}
    return [{"id": turn_id, "choices": [delta]}]


def itemised(turn_id: Any, *calls: Any) -> list[dict[str, Any]]:
    begun = {"type": "response.created", "response": {"id": turn_id, "output": []}}
    made = items(turn_id, *calls)["output"]
    return [begun, *({"type": "response.output_item.done", "item": each} for each in made)]  # it broke off


def block_events(turn_id: Any, *calls: Any) -> list[dict[str, Any]]:
    starts = [
        {"type": "content_block_start", "index": place, "content_block": block}
        for place, block in enumerate(blocks(turn_id, *calls)["content"])
    ]
    end = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}
    return [{"type": "message_start", "message": {"id": turn_id, "content": []}}, *starts, end]


EVERY: list[Any] = [
    *((openai, form) for form in (chat, chunked, items, itemised)),
    *((anthropic, form) for form in (blocks, block_events)),
]
LONG_ID = "chatcmpl-B9MBs8CjcvO"  # as short as one that names a response


@pytest.mark.parametrize(("module", "form"), EVERY)
def test_a_response_that_is_carried_out_again_changes_nothing(
    module: Any, form: Callable[..., Any], opens: Callable[[], Session]
) -> None:
    toolbox(opens(), ()).invoke("planning_setup_plan", SetupPlan("Fix the login"))
    response = adding(form, LONG_ID, "call_1", "call_2")
    first = module.run_calls(response, toolbox(opens(), ()))
    stored = json.loads(json.dumps(response))
    assert module.run_calls(stored, toolbox(opens(), ())) == first
    assert asyncio.run(module.arun_calls(stored, toolbox(opens(), ()))) == first
    session = opens()
    assert (session.version, plans_of(session)) == (3, [(0, 2)])
    keys = [event.idempotency_key for event in session.select_all(ToolInvoked)]
    assert len({*keys}) == 3
    other = form(LONG_ID, ("call_1", ("planning_clear_plan", {})))  # so the ids name nothing
    module.run_calls(other, toolbox(opens(), ()))
    assert plans_of(opens()) == [(0, 0)]


def responding(form: Callable[..., Any], **more: Any) -> Any:
    """A response with the ids of every turn; ``more`` is what else the server says of it."""
    response = form(LONG_ID, ("call_0", ADDED))
    begun = response[0] if isinstance(response, list) else response
    (begun.get("response") or begun.get("message") or begun).update(more)
    return response


NUMBERS: dict[str, Any] = {
    "a later second": [{"created": n} for n in (1_760_000_000, 1_760_000_001)],
    "a later part of a second": [{"created_at": n} for n in (1_760_000_000.5, 1_760_000_000.75)],
    "a longer prompt": [{"usage": {"prompt_tokens": n}} for n in (41, 77)],
    "more input": [{"usage": {"input_tokens": n}} for n in (41, 77)],
    "more input to cache": [{"usage": {"cache_creation_input_tokens": n}} for n in (41, 77)],
    "more cached input": [{"usage": {"input_tokens": 4, "cache_read_input_tokens": n}} for n in (41, 77)],
}


@pytest.mark.parametrize(("module", "form"), EVERY)
@pytest.mark.parametrize("numbers", NUMBERS)
def test_the_time_of_a_response_and_the_length_of_its_request_tell_turns_apart(
    module: Any, form: Callable[..., Any], numbers: str
) -> None:
    session, box = begun()
    first, second = (responding(form, **more) for more in NUMBERS[numbers])
    for response in (first, second, second, first):
        module.run_calls(response, box)
    assert plans_of(session) == [(0, 2)]


@pytest.mark.parametrize(
    ("module", "whole", "streamed"),
    [(openai, chat, chunked), (openai, items, itemised), (anthropic, blocks, block_events)],
)
def test_a_response_and_its_stream_are_one_turn(module: Any, whole: Any, streamed: Any) -> None:
    session, box = begun()
    numbers: dict[str, Any] = {"created": 1_760_000_000, "usage": {"input_tokens": 41}}
    module.run_calls(responding(streamed, **numbers, created_at=1_760_000_000.0), box)
    module.run_calls(responding(whole, **numbers, created_at=1_760_000_000), box)
    assert plans_of(session) == [(0, 1)]


def test_the_usage_at_the_end_of_a_stream_is_part_of_its_name() -> None:
    session, box = begun()
    for count in (41, 77, 77):
        chunks = [*responding(chunked), {"id": LONG_ID, "choices": [], "usage": {"prompt_tokens": count}}]
        openai.run_calls([{"id": "", "created": 0, "choices": []}, *chunks], box)
        end = {"type": "message_delta", "delta": {}, "usage": {"input_tokens": count, "output_tokens": None}}
        anthropic.run_calls([*responding(block_events, usage={"input_tokens": 0}), end], box)
    assert plans_of(session) == [(0, 4)]


UNNAMED: list[Any] = [
    *((*each, turn_id) for turn_id in (None, "", "chatcmpl-637", LONG_ID[:-1], 7) for each in EVERY),
    *(  # without its response a turn names nothing
        (module, lambda *given, form=form, module=module: module.turn(form(*given)), LONG_ID)
        for module, form in ((openai, chat), (openai, items), (anthropic, blocks))
    ),
]


@pytest.mark.parametrize(("module", "form", "turn_id"), UNNAMED, ids=range(len(UNNAMED)))
def test_where_nothing_names_the_response_its_calls_are_made_each_time(
    module: Any, form: Callable[..., Any], turn_id: Any
) -> None:
    session, box = begun()
    for _ in range(2):
        module.run_calls(adding(form, turn_id, "call_1"), box)
    assert plans_of(session) == [(0, 2)]
