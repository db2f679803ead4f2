"""A policy in the MCP server: agents that cheat, and a client's user who is asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs mcp: pip install 'session-planning[mcp]'")

import mcp_types as types
from frameworks import SHOP, facts_of, setup
from mcp import Client
from mcp_served import MODES, in_both_eras, said
from syrupy.assertion import SnapshotAssertion

from planning import (
    ApprovePlan,
    PlanningToolsSection,
    PlanPolicy,
    RejectPlan,
    SetupPlan,
    Toolbox,
    UpdateStep,
    tool,
)
from planning.integrations.mcp import build_server
from session import Session, ToolInvoked

APPROVAL = PlanPolicy(approval=True)
WAITS = "work was not called: the plan waits for approval; end your turn and ask the user to approve it"
APPROVE = ("accept", {"decision": "approve"})


@tool
def work(on: str) -> dict[str, Any]:
    """Work."""
    return {"success": on != "nothing", "error": "there is none"}


@tool(read_only=True)
def look() -> str:
    """Look around."""
    return "seen"


def serving(session: Session | None = None, policy: PlanPolicy = APPROVAL) -> Any:
    """A server with tools that are not ours."""
    return build_server([work, look], session=session, policy=policy)


def answering(asked: list[str], *answers: tuple[Any, Any], before: Callable[[], Any] | None = None) -> Any:
    """A user who answers one question after the other, and then dismisses them."""
    left = list(answers)

    async def answer(_ctx: Any, params: Any) -> types.ElicitResult:
        asked.append(f"{params.message}\n{json.dumps(params.requested_schema, sort_keys=True)}")
        if before is not None:
            before()
        action: Any
        action, content = left.pop(0) if left else ("cancel", None)
        return types.ElicitResult(action=action, content=content)

    return answer


async def conversation(client: Client, *calls: tuple[str, dict[str, Any]]) -> str:
    """What the model reads of its calls."""
    lines = []
    for name, arguments in calls:
        lines.append(f"{name}({arguments})\n  {said(await client.call_tool(name, arguments))}\n")
    return "".join(lines)


WORK = ("work", {"on": "shelves"})
STORY: Any = (
    SHOP,
    WORK,
    ("look", {}),
    ("planning_update_step", {"step_id": "S001", "title": "Buy a room"}),
    WORK,
)
ANSWERS: dict[str, list[tuple[str, Any]]] = {
    "approves": [APPROVE],
    "rejects with a reason": [("accept", {"decision": "reject", "reason": "too dear"}), APPROVE],
    "declines": [("decline", None), ("decline", None)],
    "dismisses the question": [],
    "answers something else": [("accept", {"decision": "perhaps"}), ("accept", None)],
    "is asked when the work is held back": [("cancel", None), APPROVE],
}


@pytest.mark.parametrize("name", ANSWERS)
async def test_what_a_model_reads_while_the_user_decides(name: str, snapshot: SnapshotAssertion) -> None:
    shown = set()
    for mode in MODES:
        asked = list[str]()
        callback = answering(asked, *ANSWERS[name])
        async with Client(serving(Session()), mode=mode, elicitation_callback=callback) as client:
            read = await conversation(client, *STORY)
        shown.add(f"{read}-- the first of {len(asked)} questions\n{asked[0]}\n")
    assert len(shown) == 1  # the same in both protocols
    assert shown.pop() == snapshot


@in_both_eras
async def test_a_client_that_cannot_ask_reads_why_the_work_waits(mode: str) -> None:
    async with Client(serving(Session()), mode=mode) as client:
        shown = await conversation(client, SHOP, WORK)
    assert shown.endswith(f"  error: {WAITS}\n")


@in_both_eras
@pytest.mark.parametrize("objective", ["Sell the shop", "Open the shop"])
async def test_the_user_is_not_asked_about_a_plan_of_another_client(objective: str, mode: str) -> None:
    session, asked = Session(), list[str]()
    other = Toolbox(PlanningToolsSection(session=session, policy=APPROVAL).tools(), session=session)

    def replace(event: ToolInvoked) -> None:
        if len(event.params.initial_steps) == 2:
            other.call(*setup(objective, "Find a buyer"))

    session.bus.subscribe(ToolInvoked, replace)
    callback = answering(asked, APPROVE)
    async with Client(serving(session), mode=mode, elicitation_callback=callback) as client:
        shown = await conversation(client, SHOP)
    assert shown.endswith("first. The plan changed before the user could decide.\n")
    assert asked == []


CHANGED = "The plan changed before the user could decide."


@in_both_eras
@pytest.mark.parametrize(
    ("decision", "said_of_it", "approval"),
    [
        (ApprovePlan(), "The user approved it.", "approved"),
        (RejectPlan("no"), "The user rejected it: no. Change the plan.", "rejected"),
        (SetupPlan("Sell the shop"), CHANGED, "none"),
        (UpdateStep("S001", "Buy a castle"), CHANGED, "waiting"),
    ],
)
async def test_only_the_plan_that_was_shown_is_approved_and_the_model_reads_what_was_decided_on_it(
    mode: str, decision: Any, said_of_it: str, approval: str
) -> None:
    session = Session()
    callback = answering([], APPROVE, before=lambda: session.dispatch(decision))
    async with Client(serving(session), mode=mode, elicitation_callback=callback) as client:
        assert (await conversation(client, SHOP)).endswith(f"first. {said_of_it}\n")
    assert facts_of(session).approval == approval


async def test_an_answer_to_no_question_approves_nothing() -> None:
    session = Session()
    answer: Any = {"planning/approval": types.ElicitResult(action="accept", content={"decision": "approve"})}
    async with Client(serving(session)) as client:
        await client.call_tool(*SHOP)
        for state in (None, "", "[1]", '["x", null]', "[null, 7]"):
            await client.session.call_tool(*WORK, input_responses=answer, request_state=state)
    assert facts_of(session).approval == "waiting"


def test_a_policy_may_offer_more_planning_tools() -> None:
    assert build_server(plan_tools=["planning_move_step"], policy=PlanPolicy(agent_edits=True)) is not None
