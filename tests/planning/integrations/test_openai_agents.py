"""A plan for agents of the OpenAI Agents SDK, in its own loop, and what a policy asks of them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
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
    WebSearchTool,
    function_tool,
)
from agents.run_config import CallModelData, ModelInputData, ToolExecutionConfig
from agents.testing import ScriptedModel, assistant_message, function_call
from frameworks import HALF, OPEN, READ, SHOP, Call, added_to, mark, planned, proved, refusals, setup, text_of
from syrupy.assertion import SnapshotAssertion

from planning import (
    ApprovePlan,
    PlanningToolsSection,
    PlanPolicy,
    RejectPlan,
    Toolbox,
    pending_approval,
    tool,
)
from planning.integrations.openai_agents import PlanningTools, planning_tools
from planning.tools.errors import ContextInvalid
from session import Session, ToolFailed, ToolInvoked

Turn = Sequence[tuple[str, Any]] | str
QUIET = RunConfig(tracing_disabled=True)


def script(*turns: Turn, item_id: str = "fc_{}") -> ScriptedModel:
    """A model that plays turns; its calls are ``call_1``, ``call_2``, ..."""
    ids = itertools.count(1)

    def items(turn: Turn) -> list[Any]:
        if isinstance(turn, str):
            return [assistant_message(turn)]
        named = [(next(ids), call) for call in turn]
        return [
            function_call(*call, call_id=f"call_{number}", item_id=item_id.format(number))
            for number, call in named
        ]

    return ScriptedModel([items(turn) for turn in turns])


def outputs(result: Any) -> list[Any]:
    return [each.output for each in result.new_items if each.type == "tool_call_output_item"]


class Clerk:
    """An agent that plays turns, what came of its last run, and what its user decides."""

    result: Any

    def __init__(self, planning: PlanningTools, *turns: Turn, item_id: str = "fc_{}", **options: Any) -> None:
        self.planning, self.model = planning, script(*turns, item_id=item_id)
        self.agent = Agent("clerk", **{"model": self.model, "tools": planning, **options})
        self.config = planning.run_config(QUIET)

    def run(self, asked: Any = "Go", **options: Any) -> list[Any]:
        """Run it to its end, or to a question; what its calls answered."""
        self.result = asyncio.run(Runner.run(self.agent, asked, run_config=self.config, **options))
        return outputs(self.result)

    def stream(self, **options: Any) -> list[Any]:
        async def main() -> Any:
            result = Runner.run_streamed(self.agent, "Go", run_config=self.config, **options)
            async for _ in result.stream_events():
                pass
            return result

        self.result = asyncio.run(main())
        return outputs(self.result)

    def decided(self, how: str = "approve", **options: Any) -> list[Any]:
        """The same when its user has decided about the first call that waits, and it goes on."""
        state = self.result.to_state()
        getattr(state, how)(self.result.interruptions[0], **options)
        return self.run(state)

    def asked_about(self) -> list[str]:
        """The calls that the user is asked about."""
        return [f"{each.name} {each.arguments}" for each in self.result.interruptions]

    def tails(self) -> list[str]:
        ends = [dict(call.input[-1]) for call in self.model.calls]
        return [added_to(each.get("content") or each["output"]) for each in ends]


DONE = "S001 done. Next: S002 Buy shelves"
REFUSED = "Refused, nothing changed. step_id: the plan has no step S07; its steps are S001 to S002"


class TestRequests:
    @pytest.mark.parametrize("run", [Clerk.run, Clerk.stream])
    def test_a_server_that_keeps_the_conversation_gets_each_item_once(self, run: Callable[..., Any]) -> None:
        clerk = Clerk(planning_tools(section=planned()), [mark("S07")], [mark("S001")], "Done.")
        run(clerk, conversation_id="conv_1")
        sent: list[Any] = [[dict(item) for item in call.input] for call in clerk.model.calls]
        assert [[item.get("content") or item["output"] for item in items] for items in sent] == [
            [f"Go\n\n{OPEN}"],
            [f"{REFUSED}\n\n{OPEN}"],
            [f"{DONE}\n\n{HALF}"],
        ]

    def test_instructions_that_have_the_section_do_not_get_it_twice(self) -> None:
        planning = planning_tools(Session())
        own: dict[str, Any] = {"instructions": planning.instructions, "tools": [WebSearchTool(), *planning]}
        clerk = Clerk(planning, "Done.", **own)
        clerk.run()
        assert clerk.model.calls[0].system_instructions == planning.instructions

    @pytest.mark.parametrize("is_async", [False, True])
    def test_your_own_configuration_is_kept_and_your_filter_comes_first(self, is_async: bool) -> None:
        own: Any = {"role": "user", "content": "Go now"}

        def shorten(_: CallModelData[Any]) -> Any:
            data = ModelInputData([own], "Be brief.")
            return asyncio.sleep(0, data) if is_async else data

        planning, model = planning_tools(section=planned()), script("Done.")
        config = RunConfig(model=model, tracing_disabled=True, call_model_input_filter=shorten)
        clerk = Clerk(planning, model=None)
        clerk.config = planning.run_config(config)
        clerk.run()
        assert own == {"role": "user", "content": "Go now"}
        assert model.calls[0].input == [{"role": "user", "content": f"Go now\n\n{OPEN}"}]
        assert str(model.calls[0].system_instructions).startswith("Be brief.\n\n## Planning\n\n")

    def test_a_disabled_section_has_no_tools_and_no_text(self) -> None:
        section = PlanningToolsSection(session=Session(), enabled=lambda _: False)
        planning = planning_tools(section=section, tools=[paint])
        clerk = Clerk(planning, "Done.", instructions="You answer.")
        clerk.run()
        assert [each.name for each in planning] == ["paint"]
        assert (planning.instructions, clerk.model.calls[0].system_instructions) == ("", "You answer.")

    def test_private_arguments_are_not_in_the_traces_of_a_run(self) -> None:
        @tool(returns_private_data=True)
        def patient(name: str) -> str:
            """Look a patient up."""
            return name

        said = RunConfig(trace_include_sensitive_data=True, tool_execution=ToolExecutionConfig(3))
        own = planning_tools(Session()).run_config(said)
        assert (own.trace_include_sensitive_data, own.tool_execution) == (True, ToolExecutionConfig(3))
        assert not planning_tools(Session(), tools=[patient]).run_config(said).trace_include_sensitive_data


def test_a_handoff_keeps_the_plan_and_names_the_agent_that_acts() -> None:
    session = Session()
    planning = planning_tools(session)
    clerk = Clerk(
        planning, [SHOP], [("transfer_to_worker", {})], [mark("S001")], [("transfer_to_writer", {})], "Done."
    )
    writer = Agent("writer", model=clerk.model, instructions="You write.")
    clerk.agent.handoffs = [Agent("worker", model=clerk.model, tools=planning, handoffs=[writer])]
    clerk.run()
    assert [each.actor for each in session.select_all(ToolInvoked)] == ["clerk", "worker"]
    assert clerk.tails() == ["", OPEN, OPEN, HALF, ""]
    assert clerk.model.calls[-1].system_instructions == "You write."


def test_the_session_may_be_found_by_the_context_of_the_run_and_the_actor_given() -> None:
    def of_context(user: dict[str, Session]) -> Session:
        return user["session"]

    user = {"session": Session()}
    planning = planning_tools(of_context, actor="ann")
    clerk = Clerk(planning, [SHOP], "Done.")
    clerk.run(context=user)
    assert clerk.tails() == ["", OPEN]
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
    planning = planning_tools(section=planned())
    turn = [("planning_add_step", {"steps": ["Paint it"]})]
    assert [Clerk(planning, turn, "Done.", item_id=item_id).run() for _ in said] == [[each] for each in said]
    assert len(planning.section.session.select_all(ToolInvoked)) == 1 + len({*said})


ASK = "Plan set: S001 to S002. Ask the user to approve it first."
WAITS = "work was not called: the plan waits for approval; end your turn and ask the user to approve it"
WORK: Call = ("work", {"on": "shelves"})
PAINT: Call = ("paint", {"wall": "A"})
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
def _nothing_worked() -> None:
    worked.clear()


def guarded(session: Session, policy: PlanPolicy = APPROVAL) -> PlanningTools:
    return planning_tools(session, tools=[work, look, paint], policy=policy, read_only=["look"])


def waiting(*turns: Turn) -> tuple[Session, Clerk, list[Any]]:
    """A session with a plan that waits, the clerk who made it, and what his calls answered."""
    session = Session()
    clerk = Clerk(guarded(session), *turns, "Done.")
    return session, clerk, clerk.run()


def replace(session: Session) -> None:
    """Set another plan up, as an agent does."""
    Toolbox(guarded(session).section.tools()).call(*setup("Burn it", "Buy matches"))


class TestApproval:
    def test_work_waits_for_the_user_and_with_the_calls_approval_the_plan_is_approved(self) -> None:
        session, clerk, answers = waiting([SHOP, ("look", {}), READ, WORK], [PAINT])
        assert clerk.asked_about() == ['work {"on":"shelves"}']
        assert answers == [ASK, "It is empty", OPEN]
        shown = pending_approval(session)
        assert shown is not None
        assert shown.text == OPEN

        assert clerk.decided()[3:] == ["Worked on shelves", "A is red"]
        assert worked == ["shelves", "A"]
        assert [each.actor for each in session.history() if "ApprovePlan" in str(each.events)] == ["host"]
        assert clerk.tails()[-1] == OPEN

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
        first = Clerk(guarded(opens()), [SHOP], [WORK], "Done.")
        first.run()
        written = first.result.to_state().to_string()
        session = opens()
        clerk = Clerk(guarded(session), "Done.")
        between(session)
        state = asyncio.run(RunState.from_string(clerk.agent, written))
        state.approve(state.get_interruptions()[0])
        assert clerk.run(state) == [ASK, answer]
        assert (pending_approval(session) is not None) is waits
        if not waits:
            assert clerk.tails() == [OPEN]
            assert [each.call_id for each in session.select_all(ToolInvoked)] == ["call_1", "call_2"]

    def test_with_a_call_that_is_rejected_the_plan_is_rejected(self) -> None:
        change: Call = ("planning_add_step", {"steps": ["Ask the owner"]})
        session, clerk, _ = waiting([SHOP], [WORK], [WORK], [change, WORK])
        assert clerk.decided("reject", rejection_message="Not before noon.") == [
            ASK,
            "Not before noon.",
            "work was not called: the plan was rejected (Not before noon.); change the plan first",
            "Added S003. Ask the user to approve it first.",
        ]
        assert clerk.asked_about() == ['work {"on":"shelves"}']
        assert [end.splitlines()[-1] for end in clerk.tails()[2:]] == [
            "The plan waits for the user's approval.",
            "The user rejected the plan: Not before noon.",
        ]
        assert clerk.decided()[4:] == ["Worked on shelves"]
        assert pending_approval(session) is None

    def test_of_two_calls_the_one_that_is_approved_is_made(self) -> None:
        session, clerk, _ = waiting([SHOP], [WORK, PAINT], [READ])
        assert clerk.asked_about() == ['work {"on":"shelves"}', 'paint {"wall":"A"}']
        state = clerk.result.to_state()
        state.approve(clerk.result.interruptions[0])
        state.reject(clerk.result.interruptions[1], rejection_message="Not red.")
        assert clerk.run(state)[1:] == ["Worked on shelves", "Not red.", OPEN]
        assert pending_approval(session) is None

    def test_a_plan_that_the_host_rejected_is_a_refusal_without_a_question(self) -> None:
        session = Session()

        class Reject(RunHooks[Any]):
            async def on_llm_start(self, *_: Any) -> None:
                if pending_approval(session) is not None:
                    session.dispatch(RejectPlan("too short"))

        clerk = Clerk(guarded(session), [SHOP], [WORK], "Done.")
        assert clerk.run(hooks=Reject()) == [
            ASK,
            "work was not called: the plan was rejected (too short); change the plan first",
        ]
        assert (clerk.result.final_output, clerk.asked_about()) == ("Done.", [])

    def test_a_tool_that_is_always_approved_does_not_approve_later_plans(self) -> None:
        session, clerk, _ = waiting([SHOP], [WORK], [setup("Burn it", "Buy matches")], [WORK])
        answers = clerk.decided(always_approve=True)
        assert (answers[1], answers[3]) == ("Worked on shelves", WAITS)
        assert pending_approval(session) is not None
        assert (worked, len(clerk.model.calls)) == (["shelves"], 5)

    def test_without_a_session_nobody_is_asked(self) -> None:
        planning = planning_tools(lambda: None, tools=[work, paint], policy=APPROVAL)
        assert Clerk(planning, [WORK, PAINT], "Done.").run() == [
            *("Worked on shelves", "paint was not called: no session for this call")
        ]


def test_a_call_that_failed_is_no_evidence() -> None:
    session = Session()
    burn: Call = ("work", {"on": "fire"})
    policy = PlanPolicy(evidence="required", stale_after=2)
    more: list[Call] = [("work", {"off": 1}), ("work", {"on": "nothing"})]
    assert Clerk(guarded(session, policy), [SHOP, burn], more, [proved("S001", "C1")], "Done.").run()[1:] == [
        *["An error occurred while running the tool. Please try again."] * 2,
        FAILED,
        "Refused, nothing changed. C1 (work) failed; call a tool that does the work of S001 first",
    ]
    assert [each.result.success for each in session.select_all(ToolFailed)] == [False] * 4
    assert "a password" not in str([each.events for each in session.history()])


def test_an_answer_that_begins_as_json_does_and_is_too_deep_to_read_is_no_failure() -> None:
    session = Session()
    clerk = Clerk(guarded(session, PlanPolicy(stale_after=2)), [SHOP, ("work", {"on": "depths"})], "Done.")
    assert clerk.run()[1:] == [DEPTHS]
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
