"""Whether an earlier plan comes back exactly: random changes, then every version is asked for again."""

from __future__ import annotations

import json
from contextlib import closing, suppress
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

from benchmarks.harness import OURS, Section, table
from benchmarks.peers.ours import current, open_session, plan_of
from benchmarks.peers.with_weakincentives import Opened
from planning import Plan, plan_to_dict
from session import Session, select_latest
from session.stores import SqliteStore

__all__ = ["measure"]

PLANS, CHANGES = 10, 40
STATUSES = ("in_progress", "blocked", "done", "pending")
METHOD = f"""\
{PLANS} plans, {CHANGES} random changes each. For session-planning, the changes include rewinds and forks.
The test then opens the session again, reads each version (`at`), restores it (`rewind`) and compares it
with the plan of that moment, and does the same with each fork. For LangChain it compares and forks each
checkpoint; for weakincentives it rolls back to each snapshot. LangChain makes its checkpoints itself; with
weakincentives, the user's code takes the snapshots. pydantic-ai-harness and agentscope keep no earlier
plan."""


def measure(_rounds: int) -> Section:
    """Change, rewind and fork random plans, and ask for every version again."""
    runs = {OURS: _ours, "langchain": _langchain, "weakincentives": _weakincentives}
    restored = {}
    for name, run in runs.items():
        pairs = [run(Random(seed)) for seed in range(PLANS)]  # noqa: S311 - which changes is no secret
        restored[name] = [sum(asked for asked, _ in pairs), sum(exact for _, exact in pairs)]
    return Section(
        "Earlier plans",
        ("session-planning", "langchain", "langgraph", "weakincentives"),
        [
            METHOD,
            table(
                ["plan", "asked for", "exactly restored"], [[name, *both] for name, both in restored.items()]
            ),
        ],
        data=restored,
    )


def _changes(random: Random) -> list[tuple[str, dict[str, Any]]]:
    """Random changes as the calls of a model; a plan is replaced now and then."""
    found: list[tuple[str, dict[str, Any]]] = []
    steps = 0
    for number in range(CHANGES):
        way = random.choice(("add", "update", *["mark"] * 7, "setup")) if steps else "setup"
        if way == "setup":
            steps = random.randint(1, 8)
            titles = [{"title": f"Step {place} of {number}"} for place in range(steps)]
            found.append(("planning_setup_plan", {"objective": f"Goal {number}", "initial_steps": titles}))
        elif way == "add":
            steps += 1
            found.append(("planning_add_step", {"steps": [{"title": f"Added in {number}"}]}))
        else:
            given = {"step_id": f"S{random.randint(1, steps):03}"}
            if way == "update":
                given |= {"title": f"Renamed in {number}"}
            else:
                given |= {"status": random.choice(STATUSES), "note": f"Noted in {number}"}
            found.append((f"planning_{way}_step", given))
    return found


def _ours(random: Random) -> tuple[int, int]:
    """A stored session: rewound and forked on the way, and opened again before it is asked."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "plans.db"
        with closing(SqliteStore(path)) as store:
            session, toolbox = open_session(store, "plan")
            plans: dict[int, str] = {}
            forks: dict[str, str] = {}
            for number, (tool, arguments) in enumerate(_changes(random)):
                toolbox.call(tool, arguments)
                plans.setdefault(session.version, _text(current(session)))
                if random.random() < 0.15:
                    back = random.choice(list(plans))
                    session.rewind(back)
                    plans[session.version] = plans[back]
                if random.random() < 0.15:
                    back = random.choice(list(plans))
                    session.fork(at=back, session_id=f"fork-{number}")
                    forks[f"fork-{number}"] = plans[back]
        with closing(SqliteStore(path)) as store:
            opened, _ = open_session(store, "plan")
            exact = sum(_text_at(opened, version) == text for version, text in plans.items())
            for version, text in plans.items():
                opened.rewind(version)
                exact += _text(plan_of(store, "plan")) == text
            exact += sum(_text(plan_of(store, name)) == text for name, text in forks.items())
    return 2 * len(plans) + len(forks), exact


def _text_at(session: Session, version: int) -> str | None:
    plan = select_latest(session.at(version), Plan)
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
    words = ("pending", "in_progress", "completed")
    lists = [
        [
            {"content": f"Step {n} of {number}", "status": random.choice(words)}
            for n in range(random.randint(1, 8))
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


COMMANDS = {
    "planning_setup_plan": lambda objective, initial_steps: peer.SetupPlan(
        objective, _peer_steps(initial_steps)
    ),
    "planning_add_step": lambda steps: peer.AddStep(_peer_steps(steps)),
    "planning_update_step": peer.UpdateStep,
    "planning_mark_step": peer.MarkStep,
}


def _peer_steps(steps: list[dict[str, str]]) -> tuple[peer.NewPlanStep, ...]:
    return tuple(peer.NewPlanStep(step["title"]) for step in steps)


def _weakincentives(random: Random) -> tuple[int, int]:
    """A session whose caller takes a snapshot after each change, and rolls back to each."""
    opened = Opened()
    kept: list[tuple[Any, Any]] = []
    for tool, arguments in _changes(random):
        with suppress(ToolValidationError):  # a step of a completed plan; ours refuses it, too
            opened.invoke(tool, COMMANDS[tool](**arguments))
        kept.append((opened.session.snapshot(), opened.plan))
    exact = 0
    for snapshot, plan in kept:
        opened.session.rollback(snapshot)
        exact += select_peer(opened.session, peer.Plan) == plan
    return len(kept), exact
