"""A policy in LangChain's own loop: agents that cheat, and a user who decides."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain.agents", reason="needs langchain: pip install 'session-planning[langchain]'")

from frameworks import SHOP, Call, facts_of, plans_of, proved
from langchain.agents import create_agent
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.tools import tool
from langchain_models import ScriptedModel, said, turn
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from syrupy.assertion import SnapshotAssertion

from planning import ApprovePlan, ClearPlan, PlanningToolsSection, PlanPolicy, RejectPlan, UpdateStep
from planning.integrations.langchain import PlanningMiddleware
from planning.plan.facts import EvidenceCall, PlanFacts
from session import Session
from session.stores import SqliteStore

WORK: Call = ("work", {"on": "shelves"})
LOOK: Call = ("look", {})
APPROVAL = PlanPolicy(approval=True)
Script = list[list[Call] | str]


class Agent:
    """An agent with a plan, two tools of its own, and a script."""

    def __init__(
        self, policy: PlanPolicy | None, script: Script, session: Any = None, **options: Any
    ) -> None:
        self.worked: list[str] = []

        @tool
        def work(on: str) -> str:
            """Work."""
            self.worked.append(on)
            return '{"success": false}' if on == "nothing" else f"worked on {on}"

        @tool
        def look() -> str:
            """Look around."""
            return "seen"

        look.metadata = {"read_only": True}
        turns = [said(each) if isinstance(each, str) else turn(*each) for each in script]
        self.model = ScriptedModel(script=turns)
        self.middleware = PlanningMiddleware(session, policy=policy, **options.pop("planning", {}))
        self.graph: Any = create_agent(self.model, [work, look], middleware=[self.middleware], **options)

    def run(self, given: Any = None, thread: str = "t", *, is_async: bool = False) -> dict[str, Any]:
        """Run it in a thread; what it returns."""
        config = {"configurable": {"thread_id": thread}}
        given = {"messages": [HumanMessage("Go")]} if given is None else given
        result: dict[str, Any] = (
            asyncio.run(self.graph.ainvoke(given, config)) if is_async else self.graph.invoke(given, config)
        )
        return result

    def facts(self, result: dict[str, Any]) -> PlanFacts:
        session = self.middleware.session_of(result)
        assert session is not None
        return facts_of(session)


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
        return Agent(APPROVAL, script, session, checkpointer=saver)

    asking = opened([[SHOP], [LOOK], [WORK]]).run(is_async=is_async)
    resumed = opened(["End."])  # in another process
    wrong = resumed.run(Command(resume="whatever"), is_async=is_async)
    assert asked_for(wrong) == [
        {**asked_for(asking)[0], "problem": wrong["__interrupt__"][0].value["problem"]}
    ]
    result = resumed.run(Command(resume=answer), is_async=is_async)

    assert (resumed.worked, resumed.facts(result).approval) == (worked, approval)
    assert result["messages"][-1].content == "End."


def test_an_agent_that_ends_its_turn_goes_on_when_the_user_has_decided(snapshot: SnapshotAssertion) -> None:
    script: Script = [
        [SHOP],
        "May I?",
        [("planning_add_step", {"steps": ["Paint it"]})],
        "Now?",
        [WORK],
        "End.",
    ]
    agent = Agent(APPROVAL, script, checkpointer=InMemorySaver())
    assert json.dumps(asked_for(agent.run()), indent=2) == snapshot(name="question")
    agent.run(Command(resume={"decision": "reject", "reason": "it needs paint"}))
    result = agent.run(Command(resume="approve"))
    assert read(result["messages"]) == snapshot(name="conversation")
    assert agent.worked == ["shelves"]


@pytest.mark.parametrize("step_id", ["S003", "3", 3, "s3 "])
def test_a_step_that_waits_alone_interrupts_when_it_is_begun_and_not_the_other_work(step_id: Any) -> None:
    begin = ("planning_mark_step", {"step_id": step_id, "status": "in_progress"})
    add = ("planning_add_step", {"steps": ["Paint it"]})
    script: Script = [[SHOP], [WORK], [add], [WORK], [begin], "Painted?"]
    agent = Agent(APPROVAL, script, checkpointer=InMemorySaver())
    agent.run()
    (question,) = asked_for(agent.run(Command(resume="approve")))
    assert (question["step_ids"], agent.worked) == (["S003"], ["shelves", "shelves"])
    result = agent.run(Command(resume="approve"))
    assert agent.facts(result).waiting == ()
    assert [each.content for each in result["messages"]][-2] == "S003 in_progress."


@pytest.mark.parametrize("is_end", [False, True])
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (ClearPlan(), "waiting"),
        (UpdateStep("S001", "Buy a castle"), "waiting"),
        (ApprovePlan(), "approved"),
        (RejectPlan("no"), "rejected"),
    ],
)
def test_only_the_plan_that_was_shown_is_approved(change: Any, expected: str, is_end: bool) -> None:
    session = Session()
    script: Script = [[SHOP], "May I?" if is_end else [WORK], "End.", "End."]
    agent = Agent(APPROVAL, script, session, checkpointer=InMemorySaver())
    agent.run()
    session.dispatch(change)

    result = agent.run(Command(resume="approve"))

    assert facts_of(session).approval == expected
    assert agent.worked == (["shelves"] if expected == "approved" and not is_end else [])
    is_asked = expected == "waiting" and not isinstance(change, ClearPlan)
    assert bool(asked_for(result)) is is_asked  # about the new plan


def test_the_approval_of_another_plan_is_not_told_as_that_of_the_plan_that_was_shown() -> None:
    session = Session()
    agent = Agent(APPROVAL, [[SHOP], "May I?", "End.", "End."], session, checkpointer=InMemorySaver())
    agent.run()
    session.dispatch(UpdateStep("S001", "Buy a castle"))
    session.dispatch(ApprovePlan())
    result = agent.run(Command(resume="approve"))
    told = [each.content for each in result["messages"] if isinstance(each, HumanMessage)]
    assert told[1:] == ["The plan changed before the user could decide. Read it before you continue."]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_graph_that_keeps_nothing_is_not_interrupted_and_its_work_waits(*, is_async: bool) -> None:
    agent = Agent(APPROVAL, [[SHOP], [WORK], "May I?"])
    result = agent.run(is_async=is_async)
    assert (asked_for(result), agent.worked, agent.facts(result).approval) == ([], [], "waiting")
    assert [each.content for each in result["messages"]][-2:] == [
        "work was not called: the plan waits for approval; end your turn and ask the user to approve it",
        "May I?",
    ]


@pytest.mark.parametrize("is_async", [False, True])
def test_an_agent_without_a_policy_is_held_by_that_of_another_section(*, is_async: bool) -> None:
    session = Session()
    PlanningToolsSection(session=session, policy=PlanPolicy(approval=True, evidence="required"))
    agent = Agent(None, [[SHOP], [WORK], "May I?"], session)
    result = agent.run(is_async=is_async)
    assert agent.worked == []
    assert [each.content for each in result["messages"]][-2] == (
        "work was not called: the plan waits for approval; end your turn and ask the user to approve it"
    )
    session.dispatch(ApprovePlan())
    agent.model.script = [turn(WORK), said("Done.")]
    agent.run(is_async=is_async)
    assert [each.tool for each in session.select_all(EvidenceCall) if each.success] == ["work"]


@pytest.mark.parametrize("work", [WORK, ("tidy", {})])
def test_a_thread_that_is_rewound_takes_back_what_the_policy_noted(work: Call) -> None:
    def tidy() -> str:
        """Tidy up: a tool of the middleware's toolbox."""
        return "tidy"

    session = Session()
    options: dict[str, Any] = {"checkpointer": InMemorySaver(), "planning": {"tools": [tidy]}}
    script: Script = [[SHOP], [work], [proved("S001", "C1")], "Half."]
    agent = Agent(PlanPolicy(evidence="required", stale_after=1), script, session, **options)
    agent.run()
    config = {"configurable": {"thread_id": "t"}}
    first = [each for each in agent.graph.get_state_history(config) if each.next == ("model",)][-2]
    agent.model.script = [said("Back.")]
    agent.graph.invoke(None, first.config)
    facts = facts_of(session)
    assert (plans_of(session), facts.calls, facts.proofs) == ([(0, 2)], 0, {})


def test_without_a_gate_the_graph_has_no_further_node() -> None:
    for policy in (None, PlanPolicy(evidence="required")):
        agent = create_agent(ScriptedModel(script=[]), middleware=[PlanningMiddleware(policy=policy)])
        assert "PlanningMiddleware.after_model" not in agent.get_graph().nodes
