"""A background agent that keeps a plan, and an orchestrator that reads it: ``python examples/agent.py anthropic``.

The model is a script on this machine; for a real one, give the client a key instead of a ``base_url``.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from planning import Plan, PlanChanged, PlanningToolsSection, Toolbox, plan_text
from planning.integrations import anthropic, openai
from planning.prompt import Prompt
from planning.testing import ScriptedModel
from planning.tools import tool
from session import InProcessEventBus, Session, select_latest

Messages = list[Any]
SCRIPT: list[Any] = [
    [("planning_setup_plan", {"objective": "Fix the login bug", "initial_steps": ["Reproduce it", "Fix it"]})],
    [("run_tests", {"path": "tests/login"}), ("planning_mark_step", {"step_id": "S001", "status": "completed"})],
    [("planning_mark_step", {"step_id": "S001", "status": "done", "note": "Fails on an empty name"})],
    [("planning_mark_step", {"step_id": "S002", "status": "done"})],
    "The login works again.",
]


@tool
def run_tests(path: str) -> str:
    """Run the tests in a folder."""
    return f"{path}: 1 failed"


def ask_openai(base_url: str, system: str, messages: Messages, toolbox: Toolbox) -> tuple[Messages, Messages]:
    """Ask over the openai client: the model's turn, and the answers to its calls."""
    from openai import OpenAI  # noqa: PLC0415 - the program needs one of the two clients

    sent = [{"role": "system", "content": system}, *messages]
    with OpenAI(base_url=f"{base_url}/v1", api_key="test") as client:
        reply = client.chat.completions.create(model="gpt-5", messages=sent, tools=openai.tools(toolbox))
    return openai.turn(reply), openai.run_calls(reply, toolbox, actor="worker")


def ask_anthropic(base_url: str, system: str, messages: Messages, toolbox: Toolbox) -> tuple[Messages, Messages]:
    """The same over the anthropic client."""
    from anthropic import Anthropic  # noqa: PLC0415 - the same

    with Anthropic(base_url=base_url, api_key="test") as client:
        given: Any = {"system": system, "messages": messages, "tools": anthropic.tools(toolbox)}
        reply = client.messages.create(model="claude-opus-4-8", max_tokens=1_000, **given)
    return anthropic.turn(reply), anthropic.run_calls(reply, toolbox, actor="worker")


def work(session: Session, task: str, base_url: str, ask: Any = ask_openai) -> None:
    """Work on a task until the model calls nothing any more."""
    section = PlanningToolsSection(session=session)
    toolbox = Toolbox([*section.tools(), run_tests], session=session)
    system = Prompt(ns="examples", key="agent", sections=[section]).render().text
    messages: Messages = [{"role": "user", "content": task}]
    answers: Messages = messages
    while answers:
        reminder = section.reminder()  # the live plan, behind all that a provider caches
        tail = [{"role": "user", "content": reminder}] if reminder else []
        turn, answers = ask(base_url, system, [*messages, *tail], toolbox)
        messages += [*turn, *answers]


if __name__ == "__main__":
    bus = InProcessEventBus()
    bus.subscribe(PlanChanged, lambda event: print(f"{event.actor}: {event.diff}"))
    session = Session(bus=bus)
    ask = ask_anthropic if "anthropic" in sys.argv else ask_openai
    with ScriptedModel(*SCRIPT) as model, ThreadPoolExecutor() as pool:
        pool.submit(work, session, "Fix the login bug.", model.anthropic_url, ask).result()
    print(plan_text(select_latest(session, Plan) or Plan("", "active")))
