"""A background agent that is killed and resumed, and an orchestrator that reads its plan.

It uses the openai client, or with ``anthropic`` that one. The model is a script: pass a key, no ``base_url``.
"""

import sys
import time
from multiprocessing import get_context
from tempfile import TemporaryDirectory
from typing import Any

from anthropic import Anthropic
from openai import OpenAI

from planning import Plan, PlanChanged, PlanningToolsSection, PlanPolicy, Toolbox, register_plan
from planning.integrations import anthropic, openai
from planning.prompt import Prompt
from planning.testing import ScriptedModel
from planning.tools import tool
from session import InProcessEventBus, Session, select_latest
from session.stores import SqliteStore

POLICY = PlanPolicy(stale_after=10, finish_gate=2)
SCRIPT: list[Any] = [
    [("planning_setup_plan", {"objective": "Fix the login", "initial_steps": ["Reproduce it", "Fix it"]})],
    [("planning_mark_step", {"step_id": "S001", "status": "done", "note": "Fails on an empty name"})],
    "I have found it.",  # S002 is open: the agent is sent back to it
    [("run_tests", {"path": "tests"})],
    [("planning_mark_step", {"step_id": "S002", "status": "done"})],
    "The login works again.",
]


def ask(
    provider: str, url: str, system: str, messages: list[Any], section: PlanningToolsSection, toolbox: Toolbox
) -> tuple[Any, Any]:
    """Ask the model; its turn, and the answers to its calls. The live plan is sent last."""
    if provider == "anthropic":
        sent = anthropic.with_reminder(messages, section)
        given: Any = {"system": system, "messages": sent, "tools": anthropic.tools(toolbox)}
        message = Anthropic(base_url=url, api_key="x").messages.create(model="m", max_tokens=999, **given)
        return anthropic.turn(message), anthropic.run_calls(message, toolbox, actor="worker")
    sent = openai.with_reminder([{"role": "system", "content": system}, *messages], section)
    given = {"messages": sent, "tools": openai.tools(toolbox)}
    completion = OpenAI(base_url=f"{url}/v1", api_key="x").chat.completions.create(model="m", **given)
    return openai.turn(completion), openai.run_calls(completion, toolbox, actor="worker")


def work(provider: str, url: str, path: str, seconds: int) -> None:
    """Work until no step is open."""

    @tool
    def run_tests(path: str) -> str:
        """Run the tests in a folder."""
        time.sleep(seconds)
        return f"{path}: all passed"

    session = Session(session_id="run-7", store=SqliteStore(path))
    section = PlanningToolsSection(session=session, policy=POLICY)
    toolbox = Toolbox([*section.tools(), run_tests])
    system = Prompt(ns="examples", key="agent", sections=[section]).render().text
    messages, is_new_turn = [{"role": "user", "content": "Fix the login."}], True
    while True:
        turn, answers = ask(provider, url, system, messages, section, toolbox)
        section.take_notice()  # the model has read the reminder
        messages = [*messages, *turn, *answers]
        if not answers:
            finish = section.may_finish(is_new_turn=is_new_turn)
            if finish.ok:
                return
            messages, is_new_turn = [*messages, {"role": "user", "content": finish.message}], False


if __name__ == "__main__":
    with TemporaryDirectory() as folder, ScriptedModel(*SCRIPT) as model:
        path, bus = f"{folder}/plans.db", InProcessEventBus()
        session = Session(session_id="run-7", store=(store := SqliteStore(path)), bus=bus)
        register_plan(session)
        bus.subscribe(PlanChanged, lambda event: print(f"{event.actor}: {event.diff}"))
        given = (sys.argv[-1], model.anthropic_url, path)
        hanging, working = (get_context("spawn").Process(target=work, args=(*given, s)) for s in (999, 0))
        hanging.start()
        for change in store.watch("run-7", after=0, timeout=60):
            session.refresh()
            if change.version == 2:
                hanging.kill()
                working.start()
            if (plan := select_latest(session, Plan)) is not None and plan.status == "completed":
                break
        working.join()
