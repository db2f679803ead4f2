"""Calls that are made again: only what names its turn and its call is a repeat."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from driver_clients import blocks, chat, items
from frameworks import plans_of, toolbox

from planning import NewPlanStep, Plan, Toolbox, register_plan
from planning.integrations import anthropic, openai
from planning.plan.commands import SetupPlan
from session import Session, ToolInvoked

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


FORMS: list[Any] = [  # not chunks: what has one id in a stream is one call
    *((openai, form) for form in (chat, items, itemised)),
    *((anthropic, form) for form in (blocks, block_events)),
]
EVERY = [*FORMS, (openai, chunked)]
NAMED = "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT"


@pytest.mark.parametrize(("module", "form"), EVERY)
def test_a_response_that_is_carried_out_again_changes_nothing(
    module: Any, form: Callable[..., Any], opens: Callable[[], Session]
) -> None:
    toolbox(opens(), ()).invoke("planning_setup_plan", SetupPlan("Fix the login"))
    response = adding(form, NAMED, "call_1", "call_2")
    first = module.run_calls(response, toolbox(opens(), ()))
    stored = json.loads(json.dumps(response))
    assert module.run_calls(stored, toolbox(opens(), ())) == first
    assert asyncio.run(module.arun_calls(stored, toolbox(opens(), ()))) == first
    session = opens()
    assert (session.version, plans_of(session)) == (3, [(0, 2)])
    keys = [event.idempotency_key for event in session.select_all(ToolInvoked)]
    assert len({*keys}) == 3


def responding(form: Callable[..., Any], call: tuple[str, Any], **more: Any) -> Any:
    """A response with the ids of every turn; ``more`` is what else the server says of it."""
    response = form(NAMED, ("call_0", call))
    begun = response[0] if isinstance(response, list) else response
    (begun.get("response") or begun.get("message") or begun).update(more)
    return response


@pytest.mark.parametrize(("module", "form"), EVERY)
@pytest.mark.parametrize("is_async", [False, True])
def test_each_call_is_made_though_a_server_gives_all_responses_the_same_ids(
    module: Any, form: Callable[..., Any], is_async: bool, opens: Callable[[], Session]
) -> None:
    toolbox(opens(), ()).invoke(
        "planning_setup_plan", SetupPlan("Fix the login", (NewPlanStep("Reproduce it"),))
    )
    for status in ("in_progress", "blocked", "in_progress"):
        response = responding(form, ("planning_mark_step", {"step_id": "S001", "status": status}))
        if is_async:
            asyncio.run(module.arun_calls(response, toolbox(opens(), ())))
        else:
            module.run_calls(response, toolbox(opens(), ()))
        plan = opens().select_latest(Plan)
        assert plan is not None
        assert plan.steps[0].status == status


NUMBERS: dict[str, Any] = {
    "a later second": [{"created": n} for n in (1_760_000_000, 1_760_000_001)],
    "a later part of a second": [{"created_at": n} for n in (1_760_000_000.5, 1_760_000_000.75)],
    "a longer prompt": [{"usage": {"prompt_tokens": n}} for n in (41, 77)],
    "more input": [{"usage": {"input_tokens": n}} for n in (41, 77)],
    "more cached input": [{"usage": {"input_tokens": 4, "cache_read_input_tokens": n}} for n in (41, 77)],
}


@pytest.mark.parametrize(("module", "form"), EVERY)
@pytest.mark.parametrize("numbers", NUMBERS)
def test_the_time_of_a_response_and_the_length_of_its_request_tell_turns_apart(
    module: Any, form: Callable[..., Any], numbers: str
) -> None:
    session, box = begun()
    first, second = (responding(form, ADDED, **more) for more in NUMBERS[numbers])
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
    module.run_calls(responding(streamed, ADDED, **numbers, created_at=1_760_000_000.0), box)
    module.run_calls(responding(whole, ADDED, **numbers, created_at=1_760_000_000), box)
    assert plans_of(session) == [(0, 1)]


def test_the_usage_at_the_end_of_a_stream_is_part_of_its_name() -> None:
    session, box = begun()
    for count in (41, 77, 77):
        chunks = [
            *responding(chunked, ADDED),
            {"id": NAMED, "choices": [], "usage": {"prompt_tokens": count}},
        ]
        openai.run_calls([{"id": "", "created": 0, "choices": []}, *chunks], box)
        end = {"type": "message_delta", "delta": {}, "usage": {"input_tokens": count, "output_tokens": None}}
        anthropic.run_calls([*responding(block_events, ADDED, usage={"input_tokens": 0}), end], box)
    assert plans_of(session) == [(0, 4)]


UNNAMED: list[Any] = [
    *(
        (*each, turn_id, ("call_1",), 2)
        for turn_id in (None, "", "chatcmpl-637", "chatcmpl-A1", 7)
        for each in EVERY
    ),
    *(  # without its response a turn names nothing
        (module, lambda *given, form=form, module=module: module.turn(form(*given)), NAMED, ("call_1",), 2)
        for module, form in ((openai, chat), (openai, items), (anthropic, blocks))
    ),
    *((*each, NAMED, ids, 1) for ids in (("call_0", "call_0"), ("", ""), (None, None)) for each in FORMS),
]


@pytest.mark.parametrize(("module", "form", "turn_id", "ids", "times"), UNNAMED, ids=range(len(UNNAMED)))
def test_where_nothing_names_the_response_or_its_calls_they_are_all_made(
    module: Any, form: Callable[..., Any], turn_id: Any, ids: tuple[Any, ...], times: int
) -> None:
    session, box = begun()
    for _ in range(times):
        module.run_calls(adding(form, turn_id, *ids), box)
    assert plans_of(session) == [(0, 2)]


@pytest.mark.parametrize("is_shared", [False, True])
def test_the_messages_of_a_model_that_gives_them_twice_are_two_turns(is_shared: bool) -> None:
    pytest.importorskip("langchain", reason="needs LangChain: pip install '.[langchain]'")
    from driver_langchain import ScriptedModel, said, turn
    from langchain.agents import create_agent

    from planning.integrations.langchain import PlanningMiddleware

    session = Session()
    register_plan(session)
    session.dispatch(SetupPlan("Fix the login"))
    middleware = PlanningMiddleware(session)
    message, end = turn(ADDED), said()
    for _ in range(2):  # LangChain gives the messages their ids the first time
        script = [message, end] if is_shared else [message.model_copy(), end.model_copy()]
        agent: Any = create_agent(ScriptedModel(script=script), middleware=[middleware])
        agent.invoke({"messages": ["Go"]})
    assert plans_of(session) == [(0, 2)]
