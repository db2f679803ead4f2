"""A policy in runs of the OpenAI Agents SDK: approval by its users, and evidence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("agents", reason="needs the OpenAI Agents SDK: pip install '.[openai-agents]'")

from agents import Agent, RunContextWrapper, RunHooks, Runner, RunState, function_tool
from agents.testing import assistant_message
from agents_runs import QUIET, Turn, agent_of, outputs, run_async, script, tails
from frameworks import OPEN, READ, SHOP, Call, proved, setup

from planning import ApprovePlan, PlanPolicy, RejectPlan, Toolbox, pending_approval, tool
from planning.integrations.openai_agents import PlanningTools, planning_tools
from session import Session, ToolFailed, ToolInvoked

ASK = "Plan set: S001 to S002. Ask the user to approve it first."
WAITS = "work was not called: the plan waits for approval; end your turn and ask the user to approve it"
WORK: Call = ("work", {"on": "shelves"})
APPROVAL = PlanPolicy(approval=True)
worked: list[str] = []


@function_tool
async def work(on: str, hard: bool = False) -> str:
    """Work on something."""
    await asyncio.sleep(0.001)
    if on == "fire":
        raise ValueError("a password")
    worked.append(on)
    return f"Worked on {on}"


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


def planned(session: Session, policy: PlanPolicy = APPROVAL) -> PlanningTools:
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
    Toolbox(planned(session).section.tools()).call(*setup("Burn it", "Buy matches"))


class TestApproval:
    def test_work_waits_for_the_user_and_with_the_calls_approval_the_plan_is_approved(self) -> None:
        session = Session()
        planning = planned(session)
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
        planning = planned(opens())
        agent, _ = agent_of(planning, [SHOP], [WORK], "Done.")
        written = run_async(planning, agent).to_state().to_string()
        session = opens()
        planning = planned(session)
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

    def test_a_state_that_is_resumed_twice_carries_a_tool_of_ours_out_once(self) -> None:
        session = Session()
        planning = planned(session)
        model = script([SHOP], [("paint", {"wall": "A"})], item_id="fc_6790a1b2c3d4e5f60718293a4b5c6d{}")
        agent = Agent("clerk", model=model, tools=planning)
        written = run_async(planning, agent).to_state().to_string()

        async def resume() -> Any:
            model.extend([[assistant_message("Done.")]])
            state = await RunState.from_string(agent, written)
            state.approve(state.get_interruptions()[0])
            return await Runner.run(agent, state, run_config=planning.run_config(QUIET))

        assert [outputs(asyncio.run(resume()))[1] for _ in range(2)] == ["A is red"] * 2
        assert worked == ["A"]

    def test_with_a_call_that_is_rejected_the_plan_is_rejected(self) -> None:
        session = Session()
        planning = planned(session)
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
        planning = planned(session)
        agent, _ = agent_of(planning, [SHOP], [WORK, ("paint", {"wall": "A"})], [READ], "Done.")
        result = run_async(planning, agent)
        assert [name for name, _ in asked_about(result)] == ["work", "paint"]
        state = result.to_state()
        state.approve(result.interruptions[0])
        state.reject(result.interruptions[1], rejection_message="Not red.")
        assert outputs(run_async(planning, agent, state))[1:] == ["Worked on shelves", "Not red.", OPEN]
        assert pending_approval(session) is None

    def test_a_plan_that_is_changed_after_a_rejection_waits_without_it(self) -> None:
        session = Session()
        planning = planned(session)
        change: Call = ("planning_add_step", {"steps": ["Ask the owner"]})
        agent, _ = agent_of(planning, [SHOP], [WORK], [change], "Done.")
        result = run_async(planning, agent)
        result = decided(planning, agent, result, "reject")
        assert outputs(result) == [
            *(ASK, "Tool execution was not approved."),
            "Added S003. Ask the user to approve it first.",
        ]
        reasons = [
            each.reason
            for change in session.history()
            for each in change.events
            if isinstance(each, RejectPlan)
        ]
        assert reasons == ["no reason was given"]
        assert pending_approval(session) is not None

    def test_a_plan_that_the_host_rejected_is_a_refusal_without_a_question(self) -> None:
        session = Session()
        planning = planned(session)

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
        planning = planned(session)
        agent, model = agent_of(planning, [SHOP], [WORK], [setup("Burn it", "Buy matches")], [WORK], "Done.")
        result = run_async(planning, agent)
        result = decided(planning, agent, result, always_approve=True)
        assert outputs(result)[1] == "Worked on shelves"
        assert outputs(result)[3] == WAITS
        assert pending_approval(session) is not None
        assert (worked, len(model.calls)) == (["shelves"], 5)

    def test_the_sdk_asks_the_user_about_arguments_that_it_cannot_read(self) -> None:
        planning = planned(Session())
        agent, _ = agent_of(planning, [("paint", "{no json")], "Done.")
        result = run_async(planning, agent)
        assert asked_about(result) == [("paint", "{no json")]
        (said,) = outputs(decided(planning, agent, result))
        assert said.startswith("Refused, nothing changed. arguments are not JSON at line 1, column 2: ")

    def test_a_tool_with_a_function_of_its_own_for_approval_is_refused(self) -> None:
        async def is_large(_: RunContextWrapper[Any], arguments: dict[str, Any], _call_id: str) -> bool:
            return bool(arguments)

        @function_tool(needs_approval=is_large)
        def pay(amount: int) -> str:
            """Pay."""
            return str(amount)

        with pytest.raises(ValueError, match="pay has a needs_approval function, and would wait for the"):
            planning_tools(Session(), tools=[pay], policy=APPROVAL)
        planning_tools(Session(), tools=[pay], policy=APPROVAL, read_only=["pay"])
        assert planning_tools(Session(), tools=[pay])[-1] is pay

    def test_without_a_session_nobody_is_asked(self) -> None:
        planning = planning_tools(lambda: None, tools=[work, paint], policy=APPROVAL)
        agent, _ = agent_of(planning, [WORK, ("paint", {"wall": "A"})], "Done.")
        assert outputs(run_async(planning, agent)) == [
            *("Worked on shelves", "paint was not called: no session for this call")
        ]


def test_a_call_that_failed_is_no_evidence() -> None:
    session = Session()
    burn: Call = ("work", {"on": "fire"})
    planning = planned(session, PlanPolicy(evidence="required", stale_after=2))
    turns: list[Turn] = [[SHOP, burn], [("work", {"off": 1})], [proved("S001", "C1")], "Done."]
    assert outputs(run_async(planning, agent_of(planning, *turns)[0]))[1:] == [
        *["An error occurred while running the tool. Please try again."] * 2,
        "Refused, nothing changed. C1 (work) failed; call a tool that does the work of S001 first",
    ]
    assert [each.result.success for each in session.select_all(ToolFailed)] == [False] * 3
    assert "a password" not in str([each.events for each in session.history()])


def test_an_agent_with_open_steps_is_sent_back_by_the_host() -> None:
    session = Session()
    planning = planning_tools(session, policy=PlanPolicy(finish_gate=1))
    agent, model = agent_of(planning, [SHOP], "Done.")
    result = run_async(planning, agent)
    finish = planning.section.may_finish()
    model.extend([[assistant_message("Really done.")]])
    asked = [*result.to_input_list(), {"role": "user", "content": finish.message}]
    assert run_async(planning, agent, asked).final_output == "Really done."
    assert finish.message.startswith("S001 to S002 are open. Do the work and mark what is done; ")
    assert planning.section.may_finish().ok
