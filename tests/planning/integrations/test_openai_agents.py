"""A plan for agents of the OpenAI Agents SDK, in its own loop, and what a policy asks of them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("agents", reason="needs the OpenAI Agents SDK: pip install '.[openai-agents]'")

from agents import (
    Agent,
    RunConfig,
    RunContextWrapper,
    RunHooks,
    Runner,
    RunState,
    SQLiteSession,
    WebSearchTool,
    function_tool,
)
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from agents.models.openai_responses import OpenAIResponsesModel
from agents.run_config import CallModelData, ModelInputData, ToolExecutionConfig
from agents.testing import ScriptedModel, assistant_message, function_call
from frameworks import HALF, OPEN, READ, SHOP, Call, added_to, mark, planned, proved, refusals, setup, text_of
from openai import AsyncOpenAI
from syrupy.assertion import SnapshotAssertion

from planning import (
    ApprovePlan,
    PlanningToolsSection,
    PlanPolicy,
    RejectPlan,
    Toolbox,
    pending_approval,
    testing,
    tool,
)
from planning.integrations.openai_agents import PlanningTools, planning_tools
from planning.tools import ToolContext
from planning.tools.errors import ContextInvalid
from planning.tools.ledger import ToolCall
from session import Session, ToolFailed, ToolInvoked

Turn = Sequence[tuple[str, Any]] | str
QUIET = RunConfig(tracing_disabled=True)


def script(*turns: Turn, numbers: Iterable[int] | None = None, item_id: str = "fc_{}") -> ScriptedModel:
    """A model that plays turns; its calls are ``call_1``, ``call_2``, ... unless other numbers are given."""
    ids = iter(itertools.count(1) if numbers is None else numbers)

    def items(turn: Turn) -> list[Any]:
        if isinstance(turn, str):
            return [assistant_message(turn)]
        named = [(next(ids), call) for call in turn]
        return [
            function_call(*call, call_id=f"call_{number}", item_id=item_id.format(number))
            for number, call in named
        ]

    return ScriptedModel([items(turn) for turn in turns])


def agent_of(planning: PlanningTools, *turns: Turn, **options: Any) -> tuple[Agent[Any], ScriptedModel]:
    model = script(*turns)
    return Agent("clerk", model=model, tools=planning, **options), model


def run_async(planning: PlanningTools, agent: Agent[Any], asked: Any = "Go", **options: Any) -> Any:
    return asyncio.run(Runner.run(agent, asked, run_config=planning.run_config(QUIET), **options))


def run_streamed(planning: PlanningTools, agent: Agent[Any], asked: Any = "Go", **options: Any) -> Any:
    async def main() -> Any:
        result = Runner.run_streamed(agent, asked, run_config=planning.run_config(QUIET), **options)
        async for _ in result.stream_events():
            pass
        return result

    return asyncio.run(main())


def outputs(result: Any) -> list[Any]:
    return [each.output for each in result.new_items if each.type == "tool_call_output_item"]


def tails(model: ScriptedModel) -> list[str]:
    ends = [dict(call.input[-1]) for call in model.calls]
    return [added_to(each.get("content") or each["output"]) for each in ends]


SET = "Plan set: S001 to S002. Next: S001 Rent a room"
DONE = "S001 done. Next: S002 Buy shelves"
REFUSED = "Refused, nothing changed. step_id: the plan has no step S07; its steps are S001 to S002"


@tool
def count(word: str, context: ToolContext) -> str:
    """Count the letters of a word."""
    return f"{len(word)} for {context.actor}"


class TestRequests:
    @pytest.mark.parametrize("run", [run_async, run_streamed])
    def test_a_server_that_keeps_the_conversation_gets_each_item_once(self, run: Callable[..., Any]) -> None:
        planning = planning_tools(section=planned())
        agent, model = agent_of(planning, [mark("S07")], [mark("S001")], "Done.")
        run(planning, agent, conversation_id="conv_1")
        sent: list[Any] = [[dict(item) for item in call.input] for call in model.calls]
        assert [[item.get("content") or item["output"] for item in items] for items in sent] == [
            [f"Go\n\n{OPEN}"],
            [f"{REFUSED}\n\n{OPEN}"],
            [f"{DONE}\n\n{HALF}"],
        ]

    def test_the_reminder_is_kept_in_no_session_of_the_sdk(self) -> None:
        planning = planning_tools(Session())
        agent, _ = agent_of(planning, [SHOP], "Done.", "Again.")
        with closing(SQLiteSession("u")) as memory:
            for _ in range(2):
                run_async(planning, agent, session=memory)
            assert OPEN not in str(asyncio.run(memory.get_items()))

    def test_instructions_that_have_the_section_do_not_get_it_twice(self) -> None:
        planning, model = planning_tools(Session()), script("Done.")
        tools = [WebSearchTool(), *planning]
        run_async(planning, Agent("clerk", planning.instructions, model=model, tools=tools))
        assert model.calls[0].system_instructions == planning.instructions

    @pytest.mark.parametrize("is_async", [False, True])
    def test_your_own_configuration_is_kept_and_your_filter_comes_first(self, is_async: bool) -> None:
        own: Any = {"role": "user", "content": "Go now"}

        def shorten(_: CallModelData[Any]) -> Any:
            data = ModelInputData([own], "Be brief.")
            return asyncio.sleep(0, data) if is_async else data

        planning, model = planning_tools(section=planned()), script("Done.")
        config = RunConfig(model=model, tracing_disabled=True, call_model_input_filter=shorten)
        agent = Agent("clerk", tools=planning)
        asyncio.run(Runner.run(agent, "Go", run_config=planning.run_config(config)))
        assert own == {"role": "user", "content": "Go now"}
        assert model.calls[0].input == [{"role": "user", "content": f"Go now\n\n{OPEN}"}]
        assert str(model.calls[0].system_instructions).startswith("Be brief.\n\n## Planning\n\n")

    def test_a_disabled_section_has_no_tools_and_no_text(self) -> None:
        section = PlanningToolsSection(session=Session(), enabled=lambda _: False)
        planning = planning_tools(section=section, tools=[count])
        agent, model = agent_of(planning, "Done.", instructions="You answer.")
        run_async(planning, agent)
        assert [each.name for each in planning] == ["count"]
        assert (planning.instructions, model.calls[0].system_instructions) == ("", "You answer.")

    def test_private_arguments_are_not_in_the_traces_of_a_run(self) -> None:
        @tool(returns_private_data=True)
        def patient(name: str) -> str:
            """Look a patient up."""
            return name

        said = RunConfig(trace_include_sensitive_data=True, tool_execution=ToolExecutionConfig(3))
        own = planning_tools(Session()).run_config(said)
        assert (own.trace_include_sensitive_data, own.tool_execution) == (True, ToolExecutionConfig(3))
        assert not planning_tools(Session(), tools=[patient]).run_config(said).trace_include_sensitive_data


def test_a_call_of_an_unknown_tool_is_answered_by_the_sdk() -> None:
    planning = planning_tools(Session())
    agent, _ = agent_of(planning, [("finish", {})], "Done.")
    assert outputs(run_async(planning, agent)) == ["Tool 'finish' not found."]


def test_a_handoff_keeps_the_plan_and_names_the_agent_that_acts() -> None:
    session = Session()
    planning = planning_tools(session)
    model = script(
        [SHOP], [("transfer_to_worker", {})], [mark("S001")], [("transfer_to_writer", {})], "Done."
    )
    writer = Agent("writer", model=model, instructions="You write.")
    worker = Agent("worker", model=model, tools=planning, handoffs=[writer])
    run_async(planning, Agent("clerk", model=model, tools=planning, handoffs=[worker]))
    assert [each.actor for each in session.select_all(ToolInvoked)] == ["clerk", "worker"]
    assert tails(model) == ["", OPEN, OPEN, HALF, ""]
    assert model.calls[-1].system_instructions == "You write."


def test_the_session_may_be_found_by_the_context_of_the_run_and_the_actor_given() -> None:
    def of_context(user: dict[str, Session]) -> Session:
        return user["session"]

    user = {"session": Session()}
    planning = planning_tools(of_context, actor="ann")
    agent, model = agent_of(planning, [SHOP], "Done.")
    run_async(planning, agent, context=user)
    assert tails(model) == ["", OPEN]
    assert text_of(user["session"]) == OPEN
    assert [each.actor for each in user["session"].history()] == ["ann"]
    with pytest.raises(ContextInvalid, match=r"^no session for this call$"):
        planning.section.reminder()


@pytest.mark.parametrize(
    ("item_id", "said"),
    [
        ("fc_6790a1b2c3d4e5f60718293a4b5c6d{}", ["Added S003."] * 2),
        *((counted, ["Added S003.", "Added S004."]) for counted in ("fc_{}", "__fake_id__")),
    ],
    ids=["of the response", "counted", "made up"],
)
def test_a_call_is_made_once_where_its_id_names_the_response(item_id: str, said: list[str]) -> None:
    session = Session()
    planning = planning_tools(session)
    add = ("planning_add_step", {"steps": ["Paint it"]})
    run_async(planning, agent_of(planning, [SHOP], "Done.")[0])
    agents = [Agent("clerk", model=script([add], "Done.", item_id=item_id), tools=planning) for _ in said]
    assert [outputs(run_async(planning, agent)) for agent in agents] == [[each] for each in said]
    assert len(session.select_all(ToolInvoked)) == 1 + len({*said})


@pytest.mark.parametrize("model_of", [OpenAIResponsesModel, OpenAIChatCompletionsModel])
def test_through_the_openai_client_requests_and_answers_are_the_same(model_of: Any) -> None:
    session = Session()
    planning = planning_tools(session)

    async def main(url: str) -> Any:
        async with AsyncOpenAI(base_url=url, api_key="test") as client:
            agent = Agent("clerk", model=model_of("gpt-5", client), tools=planning)
            return await Runner.run(agent, "Go", run_config=planning.run_config(QUIET))

    with testing.ScriptedModel([SHOP], [mark("S07"), mark("S001")], "Half of it.") as server:
        result = asyncio.run(main(server.openai_url))
    assert outputs(result) == [SET, REFUSED, DONE]
    ends = [(each.body.get("input") or each.body["messages"])[-1] for each in server.requests]
    assert [(each.get("role", "tool"), each.get("content") or each["output"]) for each in ends] == [
        *(("user", "Go"), ("tool", f"{SET}\n\n{OPEN}"), ("tool", f"{DONE}\n\n{HALF}"))
    ]
    assert len({each.call_id for each in session.select_all(ToolCall)} - {None}) == 3
    offered = [each.get("function", each) for each in server.requests[0].body["tools"]]
    assert [(each["name"], each["parameters"], each["strict"]) for each in offered] == [
        (each.name, each.parameters_schema(), False) for each in planning.section.tools()
    ]


ASK = "Plan set: S001 to S002. Ask the user to approve it first."
WAITS = "work was not called: the plan waits for approval; end your turn and ask the user to approve it"
WORK: Call = ("work", {"on": "shelves"})
APPROVAL = PlanPolicy(approval=True)
FAILED = ' {"success": false}'
DEPTHS = '{"success": ' * 100_000
worked: list[str] = []


@function_tool
async def work(on: str, hard: bool = False) -> str:
    """Work on something."""
    await asyncio.sleep(0.001)
    if on == "fire":
        raise ValueError("a password")
    worked.append(on)
    return {"nothing": FAILED, "depths": DEPTHS}.get(on, f"Worked on {on}")


@function_tool
def look() -> str:
    """Look at the shop."""
    return "It is empty"


@tool
def paint(wall: str) -> str:
    """Paint a wall."""
    worked.append(wall)
    return f"{wall} is red"


@pytest.fixture(autouse=True)
def _nothing_worked() -> Iterator[None]:
    worked.clear()
    yield
    worked.clear()


def guarded(session: Session, policy: PlanPolicy = APPROVAL) -> PlanningTools:
    return planning_tools(session, tools=[work, look, paint], policy=policy, read_only=["look"])


def decided(planning: PlanningTools, agent: Any, result: Any, how: str = "approve", **options: Any) -> Any:
    """The run goes on when its user has decided about its first call."""
    state = result.to_state()
    getattr(state, how)(result.interruptions[0], **options)
    return run_async(planning, agent, state)


def asked_about(result: Any) -> list[tuple[str | None, str | None]]:
    """The calls that the user is asked about."""
    return [(each.name, each.arguments) for each in result.interruptions]


def replace(session: Session) -> None:
    """Set another plan up, as an agent does."""
    Toolbox(guarded(session).section.tools()).call(*setup("Burn it", "Buy matches"))


class TestApproval:
    def test_work_waits_for_the_user_and_with_the_calls_approval_the_plan_is_approved(self) -> None:
        session = Session()
        planning = guarded(session)
        agent, model = agent_of(
            planning, [SHOP, ("look", {}), READ, WORK], [("paint", {"wall": "A"})], "Done."
        )
        result = run_async(planning, agent)
        assert asked_about(result) == [("work", '{"on":"shelves"}')]
        assert outputs(result) == [ASK, "It is empty", OPEN]
        shown = pending_approval(session)
        assert shown is not None
        assert shown.text == OPEN

        result = decided(planning, agent, result)
        assert outputs(result)[3:] == ["Worked on shelves", "A is red"]
        assert worked == ["shelves", "A"]
        assert [each.actor for each in session.history() if "ApprovePlan" in str(each.events)] == ["host"]
        assert tails(model)[-1] == OPEN

    @pytest.mark.parametrize(
        ("between", "answer", "waits"),
        [
            (lambda _: None, "Worked on shelves", False),
            (lambda session: session.dispatch(ApprovePlan()), "Worked on shelves", False),
            (replace, WAITS, True),
        ],
        ids=["nothing", "approval", "another plan"],
    )
    def test_a_state_that_was_written_is_approved_after_a_restart(
        self, between: Any, answer: str, waits: bool, opens: Callable[[], Session]
    ) -> None:
        planning = guarded(opens())
        agent, _ = agent_of(planning, [SHOP], [WORK], "Done.")
        written = run_async(planning, agent).to_state().to_string()
        session = opens()
        planning = guarded(session)
        between(session)
        agent, model = agent_of(planning, "Done.")

        async def main() -> Any:
            state = await RunState.from_string(agent, written)
            state.approve(state.get_interruptions()[0])
            return await Runner.run(agent, state, run_config=planning.run_config(QUIET))

        assert outputs(asyncio.run(main())) == [ASK, answer]
        assert (pending_approval(session) is not None) is waits
        if not waits:
            assert tails(model) == [OPEN]
            assert [each.call_id for each in session.select_all(ToolInvoked)] == ["call_1", "call_2"]

    def test_with_a_call_that_is_rejected_the_plan_is_rejected(self) -> None:
        session = Session()
        planning = guarded(session)
        change: Call = ("planning_add_step", {"steps": ["Ask the owner"]})
        agent, model = agent_of(planning, [SHOP], [WORK], [WORK], [change, WORK], "Done.")
        result = run_async(planning, agent)
        result = decided(planning, agent, result, "reject", rejection_message="Not before noon.")
        assert outputs(result) == [
            ASK,
            "Not before noon.",
            "work was not called: the plan was rejected (Not before noon.); change the plan first",
            "Added S003. Ask the user to approve it first.",
        ]
        assert asked_about(result) == [("work", '{"on":"shelves"}')]
        assert [end.splitlines()[-1] for end in tails(model)[2:]] == [
            "The plan waits for the user's approval.",
            "The user rejected the plan: Not before noon.",
        ]
        assert outputs(decided(planning, agent, result))[4:] == ["Worked on shelves"]
        assert pending_approval(session) is None

    def test_of_two_calls_the_one_that_is_approved_is_made(self) -> None:
        session = Session()
        planning = guarded(session)
        agent, _ = agent_of(planning, [SHOP], [WORK, ("paint", {"wall": "A"})], [READ], "Done.")
        result = run_async(planning, agent)
        assert [name for name, _ in asked_about(result)] == ["work", "paint"]
        state = result.to_state()
        state.approve(result.interruptions[0])
        state.reject(result.interruptions[1], rejection_message="Not red.")
        assert outputs(run_async(planning, agent, state))[1:] == ["Worked on shelves", "Not red.", OPEN]
        assert pending_approval(session) is None

    def test_a_plan_that_the_host_rejected_is_a_refusal_without_a_question(self) -> None:
        session = Session()
        planning = guarded(session)

        class Reject(RunHooks[Any]):
            async def on_llm_start(self, *_: Any) -> None:
                if pending_approval(session) is not None:
                    session.dispatch(RejectPlan("too short"))

        agent, _ = agent_of(planning, [SHOP], [WORK], "Done.")
        result = run_async(planning, agent, hooks=Reject())
        assert outputs(result) == [
            ASK,
            "work was not called: the plan was rejected (too short); change the plan first",
        ]
        assert (result.final_output, result.interruptions) == ("Done.", [])

    def test_a_tool_that_is_always_approved_does_not_approve_later_plans(self) -> None:
        session = Session()
        planning = guarded(session)
        agent, model = agent_of(planning, [SHOP], [WORK], [setup("Burn it", "Buy matches")], [WORK], "Done.")
        result = run_async(planning, agent)
        result = decided(planning, agent, result, always_approve=True)
        assert outputs(result)[1] == "Worked on shelves"
        assert outputs(result)[3] == WAITS
        assert pending_approval(session) is not None
        assert (worked, len(model.calls)) == (["shelves"], 5)

    def test_without_a_session_nobody_is_asked(self) -> None:
        planning = planning_tools(lambda: None, tools=[work, paint], policy=APPROVAL)
        agent, _ = agent_of(planning, [WORK, ("paint", {"wall": "A"})], "Done.")
        assert outputs(run_async(planning, agent)) == [
            *("Worked on shelves", "paint was not called: no session for this call")
        ]


def test_a_call_that_failed_is_no_evidence() -> None:
    session = Session()
    burn: Call = ("work", {"on": "fire"})
    planning = guarded(session, PlanPolicy(evidence="required", stale_after=2))
    more: list[Call] = [("work", {"off": 1}), ("work", {"on": "nothing"})]
    turns: list[Turn] = [[SHOP, burn], more, [proved("S001", "C1")], "Done."]
    assert outputs(run_async(planning, agent_of(planning, *turns)[0]))[1:] == [
        *["An error occurred while running the tool. Please try again."] * 2,
        FAILED,
        "Refused, nothing changed. C1 (work) failed; call a tool that does the work of S001 first",
    ]
    assert [each.result.success for each in session.select_all(ToolFailed)] == [False] * 4
    assert "a password" not in str([each.events for each in session.history()])


def test_an_answer_that_begins_as_json_does_and_is_too_deep_to_read_is_no_failure() -> None:
    session = Session()
    planning = guarded(session, PlanPolicy(stale_after=2))
    agent, _ = agent_of(planning, [SHOP, ("work", {"on": "depths"})], "Done.")
    assert outputs(run_async(planning, agent))[1:] == [DEPTHS]
    assert [*session.select_all(ToolFailed)] == []


async def is_large(_: RunContextWrapper[Any], arguments: dict[str, Any], _call_id: str) -> bool:
    return bool(arguments)


@function_tool(needs_approval=is_large)
def pay(amount: int) -> str:
    """Pay."""
    return str(amount)


@function_tool
def planning_read_plan() -> str:
    """Read."""
    return ""


def test_what_cannot_be_used_is_refused_at_once(snapshot: SnapshotAssertion) -> None:
    config: Any = {"model": "gpt-5"}
    refused = refusals(
        planning_tools,
        lambda: planning_tools(Session()).run_config(config),
        lambda: planning_tools(Session(), tools=[planning_read_plan]),
        lambda: planning_tools(Session(), tools=[pay], policy=APPROVAL),
    )
    assert refused == snapshot


def test_a_tool_with_a_function_of_its_own_for_approval_may_be_one_that_reads() -> None:
    planning_tools(Session(), tools=[pay], policy=APPROVAL, read_only=["pay"])
    assert planning_tools(Session(), tools=[pay])[-1] is pay
