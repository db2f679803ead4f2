"""Whether an earlier plan comes back exactly: random changes, then every version is asked for again."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from weakincentives.runtime.session import select_latest as select_peer
from weakincentives.tools import planning as peer
from weakincentives.tools.errors import ToolValidationError

from benchmarks.peers.peer_weakincentives import Opened
from benchmarks.proof import OURS
from benchmarks.store_plans import open_stored, plan_of
from planning import Plan, plan_to_dict
from session import Session
from session.stores import SqliteStore

__all__ = ["CHANGES", "PLANS", "RewindFigures", "measure_rewinds"]

PLANS = 10
CHANGES = 40
"""Changes of each plan; what our sessions rewind and fork on the way comes on top."""
STATUSES = ("in_progress", "blocked", "done", "pending")
LANGCHAIN = "langchain, checkpoints in memory"
WEAKINCENTIVES = "weakincentives, a snapshot after each change"


@dataclass(frozen=True, slots=True)
class RewindFigures:
    """By whose plan: how many earlier plans were asked for, and how many came back exactly."""

    restored: dict[str, tuple[int, int]]


def measure_rewinds() -> RewindFigures:
    """Change, rewind and fork random plans, and ask for every version again."""
    runs = {f"{OURS}, stored": _ours, LANGCHAIN: _langchain, WEAKINCENTIVES: _weakincentives}
    restored = {}
    for name, run in runs.items():
        pairs = [run(Random(seed)) for seed in range(PLANS)]  # noqa: S311 - which changes is no secret
        restored[name] = (sum(asked for asked, _ in pairs), sum(exact for _, exact in pairs))
    return RewindFigures(restored)


def _changes(random: Random) -> list[tuple[str, dict[str, Any]]]:
    """Random changes as the calls of a model; a plan is replaced now and then."""
    found: list[tuple[str, dict[str, Any]]] = []
    steps = 0
    for number in range(CHANGES):
        way = "setup" if not steps else random.choice(("add", "update", "mark", "mark", "mark", "setup"))
        if way == "setup" and number and random.random() < 0.7:
            way = "mark"
        if way == "setup":
            steps = random.randint(1, 8)
            titles = [{"title": f"Step {place} of {number}"} for place in range(steps)]
            found.append(("planning_setup_plan", {"objective": f"Goal {number}", "initial_steps": titles}))
        elif way == "add":
            steps += 1
            found.append(("planning_add_step", {"steps": [{"title": f"Added in {number}"}]}))
        else:
            step_id = f"S{random.randint(1, steps):03}"
            if way == "update":
                found.append(("planning_update_step", {"step_id": step_id, "title": f"Renamed in {number}"}))
            else:
                given = {"step_id": step_id, "status": random.choice(STATUSES), "note": f"Noted in {number}"}
                found.append(("planning_mark_step", given))
    return found


def _ours(random: Random) -> tuple[int, int]:
    """A stored session: rewound and forked on the way, and opened again before it is asked."""
    with TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "plans.db")
        session, toolbox = open_stored(store, "plan")
        plans: dict[int, str] = {}
        forks: list[tuple[str, str]] = []
        for number, (tool, arguments) in enumerate(_changes(random)):
            toolbox.call(tool, arguments)
            if session.version not in plans:
                plans[session.version] = _text(plan_of(store, "plan"))
            if random.random() < 0.15:
                back = random.choice(list(plans))
                session.rewind(back)
                plans[session.version] = plans[back]
            if random.random() < 0.15:
                back = random.choice(list(plans))
                session.fork(at=back, session_id=f"fork-{number}")
                forks.append((f"fork-{number}", plans[back]))
        store.close()
        again = SqliteStore(Path(folder) / "plans.db")
        opened, _ = open_stored(again, "plan")
        exact = sum(_text_at(opened, version) == text for version, text in plans.items())
        for version, text in plans.items():
            opened.rewind(version)
            exact += _text(plan_of(again, "plan")) == text
        exact += sum(_text(plan_of(again, name)) == text for name, text in forks)
        again.close()
    return 2 * len(plans) + len(forks), exact


def _text_at(session: Session, version: int) -> str | None:
    plan = session.at(version).select_latest(Plan)
    return None if plan is None else _text(plan)


def _text(plan: Plan) -> str:
    return json.dumps(plan_to_dict(plan))


class _Model(GenericFakeChatModel):
    """Plays turns, whatever tools it is offered."""

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        del tools
        return self


def _langchain(random: Random) -> tuple[int, int]:
    """An agent with the todo middleware: the list of every turn is asked of the checkpoint behind it."""
    lists = [
        [
            {
                "content": f"Step {place} of {number}",
                "status": random.choice(("pending", "in_progress", "completed")),
            }
            for place in range(random.randint(1, 8))
        ]
        for number in range(CHANGES)
    ]
    turns = [
        AIMessage("", tool_calls=[{"name": "write_todos", "args": {"todos": todos}, "id": f"c{number}"}])
        for number, todos in enumerate(lists)
    ]
    model = _Model(messages=iter([*turns, AIMessage("Done.")]))
    agent: Any = create_agent(model, middleware=[TodoListMiddleware()], checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "proof"}, "recursion_limit": 10 * CHANGES}
    agent.invoke({"messages": [HumanMessage("Go")]}, config)
    # A checkpoint after each run of a node: the list of the n-th turn is in those with n tool messages.
    exact = set()
    for state in agent.get_state_history(config):
        answered = sum(message.type == "tool" for message in state.values.get("messages", ()))
        if answered and state.values["todos"] == lists[answered - 1]:
            fork = agent.update_state(state.config, None)
            if agent.get_state(fork).values["todos"] == lists[answered - 1]:
                exact.add(answered)
    return CHANGES, len(exact)


def _weakincentives(random: Random) -> tuple[int, int]:
    """A session whose caller takes a snapshot after each change, and rolls back to each."""
    opened = Opened(1)
    kept: list[tuple[Any, Any]] = []
    for tool, arguments in _changes(random):
        with suppress(ToolValidationError):  # a step of a completed plan; ours refuses it, too
            _invoke(opened, tool, arguments)
        kept.append((opened.session.snapshot(), opened.plan))
    exact = 0
    for snapshot, plan in kept:
        opened.session.rollback(snapshot)
        exact += select_peer(opened.session, peer.Plan) == plan
    return len(kept), exact


def _invoke(opened: Opened, tool: str, arguments: dict[str, Any]) -> None:
    if tool == "planning_setup_plan":
        steps = tuple(peer.NewPlanStep(step["title"]) for step in arguments["initial_steps"])
        opened.invoke(tool, peer.SetupPlan(arguments["objective"], steps))
    elif tool == "planning_add_step":
        opened.invoke(
            tool, peer.AddStep(tuple(peer.NewPlanStep(step["title"]) for step in arguments["steps"]))
        )
    elif tool == "planning_update_step":
        opened.invoke(tool, peer.UpdateStep(**arguments))
    else:
        opened.invoke(tool, peer.MarkStep(**arguments))
