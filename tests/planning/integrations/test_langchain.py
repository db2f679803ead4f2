"""The plan of an agent of LangChain's create_agent, in LangGraph's own loop: its state, and a policy."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Annotated, Any

import pytest

pytest.importorskip("langchain.agents", reason="needs langchain: pip install 'session-planning[langchain]'")

from driver_langchain import ScriptedModel, said, turn
from frameworks import (
    HALF,
    OPEN,
    OTHER,
    SHOP,
    Call,
    added_to,
    facts_of,
    mark,
    planned,
    refusals,
    setup,
    text_of,
)
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
)
from langchain_core.messages.tool import tool_call_chunk as create_tool_call_chunk
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel
from syrupy.assertion import SnapshotAssertion

from planning import ApprovePlan, ClearPlan, PlanningToolsSection, PlanPolicy, RejectPlan, UpdateStep
from planning.integrations.langchain import PlanningMiddleware
from planning.plan.facts import EvidenceCall, PlanFacts
from session import Session, ToolInvoked, select_all
from session.stores import SqliteStore

THREAD: Any = {"configurable": {"thread_id": "A"}}
WORK: Call = ("work", {"on": "shelves"})
LOOK: Call = ("look", {})
ADD: Call = ("planning_add_step", {"steps": ["Paint it"]})
APPROVAL = PlanPolicy(approval=True)
Script = list[list[Call] | str | AIMessage]


class Agent:
    """An agent with a plan, two tools of its own, checkpoints and a script; the calls are a1, a2, b1, ..."""

    def __init__(
        self, script: Script, session: Any = None, policy: PlanPolicy | None = None, **options: Any
    ) -> None:
        self.worked: list[str] = []

        @tool
        def work(on: str) -> str:
            """Work."""
            self.worked.append(on)
            return f"worked on {on}"

        @tool
        def look() -> str:
            """Look around."""
            return "seen"

        look.metadata = {"read_only": True}
        self.letters = iter("abcdefgh")
        self.model = ScriptedModel(script=[])
        self.plays(*script)
        own = {name: options.pop(name) for name in ("section", "strategy") if name in options}
        self.planning = PlanningMiddleware(session, policy=policy, **own)
        middleware = [*options.pop("first", ()), self.planning, *options.pop("last", ())]
        tools = [work, look, *options.pop("tools", ())]
        options = {"checkpointer": InMemorySaver(), **options}
        self.graph: Any = create_agent(self.model, tools, middleware=middleware, **options)

    def plays(self, *turns: list[Call] | str | AIMessage) -> None:
        """Go on with these turns."""
        self.model.script = list(map(self.message, turns))

    def message(self, said_or_called: list[Call] | str | AIMessage) -> AIMessage:
        if isinstance(said_or_called, list):
            return turn(*said_or_called, prefix=next(self.letters))
        return said(said_or_called) if isinstance(said_or_called, str) else said_or_called

    def run(
        self, given: Any = None, config: Any = THREAD, *, is_async: bool = False, **options: Any
    ) -> dict[str, Any]:
        """Run it; what it returns."""
        given = {"messages": [HumanMessage("Go")]} if given is None else given
        result: dict[str, Any] = (
            asyncio.run(self.graph.ainvoke(given, config, **options))
            if is_async
            else self.graph.invoke(given, config, **options)
        )
        return result

    def head(self) -> Any:
        return self.graph.get_state(THREAD)

    def plan(self, result: Any) -> str:
        return text_of(self.planning.session_of(result))

    def facts(self, result: dict[str, Any]) -> PlanFacts:
        session = self.planning.session_of(result)
        assert session is not None
        return facts_of(session)


def answers(result: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [
        (each.tool_call_id, each.status, str(each.content))
        for each in result["messages"]
        if isinstance(each, ToolMessage)
    ]


def test_parts_of_a_message_stay_before_the_reminder() -> None:
    parts = [
        {"type": "text", "text": "Go", "cache_control": {"type": "ephemeral"}},
        {"type": "image_url", "image_url": {"url": "data:"}},
    ]
    agent = Agent(["Done."], section=planned())
    result = agent.run({"messages": [{"role": "user", "content": parts}]})
    assert [each.content for each in agent.model.requests[0][1:]] == [
        [*parts, {"type": "text", "text": OPEN}]
    ]
    assert result["messages"][0].content == parts


@pytest.mark.parametrize("reason", [{"finish_reason": "length"}, {"stop_reason": "max_tokens"}])
def test_a_call_that_was_cut_off_is_asked_for_again_alone(reason: dict[str, str]) -> None:
    kind = "invalid_tool_call"
    call: Any = {"name": SHOP[0], "args": '{"objective": "Open', "id": "c1", "error": None, "type": kind}
    other: Any = {**call, "name": "elsewhere", "id": "c2"}
    broken = AIMessage("", invalid_tool_calls=[call, other], response_metadata=reason)
    result = Agent([broken, "Done."], Session()).run()
    message = (
        f"{SHOP[0]} was not called: your reply was cut off before the call was complete. "
        "Send it again, shorter: fewer steps in one call."
    )
    assert ("c1", "error", message) in answers(result)
    assert [each["id"] for each in result["messages"][1].invalid_tool_calls] == ["c2"]


@pytest.mark.parametrize("kind", ["whole", "streamed"])
def test_calls_that_langchain_cannot_read_keep_their_place_in_the_turn(kind: str) -> None:
    name, arguments = mark("S001")
    made = {"c0": (SHOP[0], json.dumps(SHOP[1])[:-1] + ",}"), "c1": (name, json.dumps(arguments))}
    chunks = [
        create_tool_call_chunk(name=name, args=args, id=call_id, index=number)
        for number, (call_id, (name, args)) in enumerate(made.items())
    ]
    sent = [
        {"id": each["id"], "function": {"name": each["name"], "arguments": each["args"]}} for each in chunks
    ]
    message = (
        AIMessageChunk(content="", tool_call_chunks=chunks)
        if kind == "streamed"
        else AIMessage("", additional_kwargs={"tool_calls": sent})
    )
    assert [each["id"] for each in message.invalid_tool_calls] == ["c0"]
    assert answers(Agent([message, "Done."], Session()).run()) == [
        ("c0", "success", "Plan set: S001 to S002. Next: S001 Rent a room"),
        ("c1", "success", "S001 done. Next: S002 Buy shelves"),
    ]


def test_a_tool_that_answers_with_a_command_is_told_by_that() -> None:
    session = Session()

    @tool
    def leave(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Leave."""
        return Command(update={"messages": [ToolMessage("Done.", tool_call_id=tool_call_id)]})

    policy = PlanPolicy(evidence="required")
    result = Agent([[("leave", {})]], session, policy, tools=[leave], interrupt_after=["tools"]).run()
    calls = [(each.name, each.result.message) for each in session.select_all(ToolInvoked)]
    assert calls == [("leave", "Command")]
    assert result["planning"]["version"] == session.version


@pytest.mark.parametrize("is_shared", [False, True])
def test_the_messages_of_a_model_that_gives_them_twice_are_two_turns(is_shared: bool) -> None:
    section, message, end = planned(), turn(ADD), said()
    for _ in range(2):  # LangChain gives the messages their ids the first time
        script: Script = [message, end] if is_shared else [message.model_copy(), end.model_copy()]
        Agent(script, section=section, checkpointer=None).run({"messages": ["Go"]})
    assert text_of(section.session).startswith("Open the shop (active, 0 of 4 done)\n")


@pytest.mark.parametrize("mode", ["batched", "per_call"])
@pytest.mark.parametrize("place", ["first", "last"])
def test_a_planning_call_waits_for_a_person_and_the_others_are_kept(mode: Any, place: str) -> None:
    session = Session()
    gate = HumanInTheLoopMiddleware({"planning_clear_plan": True}, interrupt_mode=mode)
    agent = Agent([[SHOP, ("planning_clear_plan", {})], "Done."], session, None, **{place: [gate]})
    asked: Any = agent.run(version="v2")
    assert text_of(session) == (OPEN if mode == "per_call" else "")
    (question,) = asked.interrupts
    decision = {"type": "reject", "message": "Keep it."}
    answer = {question.id: decision} if mode == "per_call" else {"decisions": [decision]}
    reason = "User rejected the tool call for `planning_clear_plan` with reason: Keep it."
    assert {*answers(agent.run(Command(resume=answer)))} == {
        ("a1", "success", "Plan set: S001 to S002. Next: S001 Rent a room"),
        ("a2", "error", reason),
    }
    assert [each.call_id for each in select_all(session, ToolInvoked)] == ["a1"]
    assert text_of(session) == OPEN


@pytest.mark.parametrize("kind", ["none", "memory", "store"])
def test_each_result_keeps_its_plan_whatever_is_read_and_done_later(kind: str, stored: Session) -> None:
    session = {"none": None, "memory": Session(), "store": stored}[kind]
    agent = Agent([[SHOP], "Done.", [mark("S001")], "Done."], session)
    first = agent.run()
    assert agent.plan(first) == OPEN
    more = {*first["planning"]} - {"session_id", "since", "version"}
    assert more == (set() if kind == "store" else {"plan", "slices", "changed", "step"})
    old = agent.head().config
    second = agent.run()
    assert [agent.plan(each) for each in (second, first, second)] == [HALF, OPEN, HALF]

    agent.plays([mark("S002")], "Done.")
    agent.run(config=old)
    fork = agent.head().values
    assert [agent.plan(each) for each in (fork, second, first, fork)] == [OTHER, HALF, OPEN, OTHER]


class TestInput:
    def test_it_is_no_input_of_the_agent(self) -> None:
        session = Session()
        agent = Agent([[SHOP], "Done.", [mark("S001")], "Done."], session)
        assert "planning" not in agent.graph.get_input_jsonschema()["properties"]
        first = agent.run()
        agent.run()
        for sent in (first["planning"], {"plan": ["Mine", "active", []]}, 7, None):
            agent.plays("Done.")
            result = agent.run({"messages": [HumanMessage("Go")], "planning": sent})
            assert (result["planning"]["version"], text_of(session)) == (session.version, HALF)

    def test_what_is_not_a_position_is_refused(self) -> None:
        agent = Agent([[SHOP], "Done."])
        agent.run()
        assert refusals(
            lambda: agent.planning.session_of({"planning": "x"}),
            lambda: agent.graph.update_state(THREAD, {"planning": "x"}, as_node="model"),
        ) == 2 * (
            "SnapshotError: planning in the agent's state is not a position of a session, but 'x': "
            "remove it, or go back to an earlier checkpoint\n"
        )


def test_a_store_that_is_busy_is_gone_back_to_later(stored: Session, other: sqlite3.Connection) -> None:
    agent = Agent([[SHOP], "Done.", [mark("S001")], "Done."], stored)
    agent.run()
    old = agent.head().config
    agent.run()

    other.execute("BEGIN IMMEDIATE")
    script = [turn(mark("S002")), said()]

    def play(_: list[BaseMessage]) -> AIMessage:
        other.rollback()
        return script.pop(0)

    agent.model.script = play
    agent.model.requests.clear()
    agent.run(config=old)
    asked = str(agent.model.requests[0][-1].content)
    assert added_to(asked).startswith("The plan cannot be read now: ")
    assert text_of(stored) == OTHER


def read(messages: list[AnyMessage]) -> str:
    lines = []
    for message in messages:
        calls = ", ".join(f"{call['name']}({call['args']})" for call in getattr(message, "tool_calls", ()))
        lines.append(f"{message.type}: {calls or message.content}")
    return "\n".join(lines) + "\n"


def asked_for(result: dict[str, Any]) -> list[Any]:
    return [each.value for each in result.get("__interrupt__", ())]


ANSWERS: list[tuple[Any, list[str], str]] = [
    ("approve", ["shelves"], "approved"),
    ({"decision": "approve"}, ["shelves"], "approved"),
    ({"type": "reject", "message": "Buy  \n a room"}, [], "rejected"),
    ({"decision": "reject"}, [], "rejected"),
]


@pytest.mark.parametrize(("stored", "is_async"), [(False, True), (True, False)])
@pytest.mark.parametrize(("answer", "worked", "approval"), ANSWERS)
def test_the_graph_is_interrupted_for_the_user_to_decide(
    answer: Any, worked: list[str], approval: str, stored: bool, is_async: bool, tmp_path: Path
) -> None:
    store = SqliteStore(tmp_path / "s.db")
    saver = InMemorySaver()

    def opened(script: Script) -> Agent:
        session = Session(session_id="s", store=store) if stored else None
        return Agent(script, session, APPROVAL, checkpointer=saver)

    asking = opened([[SHOP], [LOOK], [WORK]]).run(is_async=is_async)
    resumed = opened(["End."])  # in another process
    wrong = resumed.run(Command(resume="whatever"), is_async=is_async)
    problem = 'that is not an answer: resume with "approve", or with {"decision": "reject", "reason": "..."}'
    assert asked_for(wrong) == [{**asked_for(asking)[0], "problem": problem}]
    result = resumed.run(Command(resume=answer), is_async=is_async)

    assert (resumed.worked, resumed.facts(result).approval) == (worked, approval)
    assert result["messages"][-1].content == "End."


def test_an_agent_that_ends_its_turn_goes_on_when_the_user_has_decided(snapshot: SnapshotAssertion) -> None:
    agent = Agent([[SHOP], "May I?", [ADD], "Now?", [WORK], "End."], None, APPROVAL)
    assert json.dumps(asked_for(agent.run()), indent=2) == snapshot(name="question")
    agent.run(Command(resume={"decision": "reject", "reason": "it needs paint"}))
    result = agent.run(Command(resume="approve"))
    assert read(result["messages"]) == snapshot(name="conversation")
    assert agent.worked == ["shelves"]


@pytest.mark.parametrize("form", ["alone", "marks"])
@pytest.mark.parametrize("step_id", ["S003", "3", 3, "s3 "])
def test_a_step_that_waits_interrupts_when_it_is_begun_and_no_other_work(step_id: Any, form: str) -> None:
    begun = {"step_id": step_id, "status": "in_progress"}
    begin = ("planning_mark_step", begun if form == "alone" else {"marks": [begun]})
    script: Script = [[SHOP], [WORK], [ADD], [WORK], [begin], "Painted?"]
    agent = Agent(script, None, PlanPolicy(approval=True, batch_marks=True))
    agent.run()
    (question,) = asked_for(agent.run(Command(resume="approve")))
    assert (question["step_ids"], agent.worked) == (["S003"], ["shelves", "shelves"])
    result = agent.run(Command(resume="approve"))
    assert agent.facts(result).waiting == ()
    assert [each.content for each in result["messages"]][-2] == "S003 in_progress."


CASTLE = UpdateStep("S001", "Buy a castle")
CHANGED = "The plan changed before the user could decide. Read it before you continue."
REJECTED = "The user rejected the plan: no. Change it."


@pytest.mark.parametrize("is_end", [False, True])
@pytest.mark.parametrize(
    ("changes", "approval", "told", "is_asked"),
    [
        ([ClearPlan()], "waiting", CHANGED, False),
        ([CASTLE], "waiting", CHANGED, True),  # about the new plan
        ([CASTLE, ApprovePlan()], "approved", CHANGED, False),
        ([ApprovePlan()], "approved", "The user approved the plan. Do the work.", False),
        ([RejectPlan("no")], "rejected", REJECTED, False),
    ],
)
def test_only_the_plan_that_was_shown_is_approved(
    changes: list[Any], approval: str, told: str, is_asked: bool, is_end: bool
) -> None:
    session = Session()
    script: Script = [[SHOP], "May I?" if is_end else [WORK], "End.", "End."]
    agent = Agent(script, session, APPROVAL)
    agent.run()
    for each in changes:
        session.dispatch(each)
    result = agent.run(Command(resume="approve"))
    read = [each.content for each in result["messages"] if isinstance(each, HumanMessage)]
    assert read[1:] == [told] * is_end
    assert (facts_of(session).approval, bool(asked_for(result))) == (approval, is_asked)
    assert agent.worked == (["shelves"] if approval == "approved" and not is_end else [])


@pytest.mark.parametrize("is_async", [False, True])
def test_a_graph_that_keeps_nothing_is_not_interrupted_and_its_work_waits(*, is_async: bool) -> None:
    agent = Agent([[SHOP], [WORK], "May I?"], None, APPROVAL, checkpointer=None)
    result = agent.run(is_async=is_async)
    assert (asked_for(result), agent.worked, agent.facts(result).approval) == ([], [], "waiting")
    assert [each.content for each in result["messages"]][-2:] == [
        "work was not called: the plan waits for approval; end your turn and ask the user to approve it",
        "May I?",
    ]


def test_a_graph_that_keeps_nothing_tells_what_was_decided_while_the_model_answered() -> None:
    session = Session()
    agent = Agent([[SHOP]], session, APPROVAL, checkpointer=None)
    script: list[AIMessage] = [*agent.model.script, said("May I?"), said("End.")]

    def play(_: list[BaseMessage]) -> AIMessage:
        if len(script) == 2:
            session.dispatch(ApprovePlan())
        return script.pop(0)

    agent.model.script = play
    told = [each.content for each in agent.run()["messages"] if isinstance(each, HumanMessage)]
    assert told == ["Go", "The user approved the plan. Do the work."]


@pytest.mark.parametrize("is_async", [False, True])
def test_an_agent_without_a_policy_is_held_by_that_of_another_section(*, is_async: bool) -> None:
    session = Session()
    PlanningToolsSection(session=session, policy=PlanPolicy(approval=True, evidence="required"))
    agent = Agent([[SHOP], [WORK], "May I?"], session, checkpointer=None)
    result = agent.run(is_async=is_async)
    assert agent.worked == []
    assert [each.content for each in result["messages"]][-2] == (
        "work was not called: the plan waits for approval; end your turn and ask the user to approve it"
    )
    session.dispatch(ApprovePlan())
    agent.plays([WORK], "Done.")
    agent.run(is_async=is_async)
    assert [each.tool for each in session.select_all(EvidenceCall) if each.success] == ["work"]


def test_an_agent_that_answers_in_a_structure_is_sent_back_to_open_steps() -> None:
    class Report(BaseModel):
        """Report what was done."""

        text: str

    first, last = [("Report", {"text": "Almost."})], [("Report", {"text": "Done."})]
    script: Script = [[setup("Open the shop", "Rent a room")], first, [mark("S001")], last]
    agent = Agent(script, None, PlanPolicy(finish_gate=1), response_format=ToolStrategy(Report))
    assert agent.run()["structured_response"] == Report(text="Done.")


def test_that_the_model_has_read_the_reminder_is_in_the_state() -> None:
    session = Session()
    result = Agent([[SHOP], [LOOK], "End."], session, PlanPolicy(stale_after=1), checkpointer=None).run()
    assert result["planning"]["version"] == session.version


def test_outside_of_an_agent_a_tool_has_the_session_of_a_function_and_no_other() -> None:
    session = Session()
    replies = [PlanningMiddleware(each).tools[0].invoke(SHOP[1]) for each in (lambda: session, None)]
    assert replies == [
        "Plan set: S001 to S002. Next: S001 Rent a room",
        "planning_setup_plan was not called: no session for this call",
    ]
