"""An agent that plans with a small model on this machine: `make local`, or `python agent.py PYTHON` by hand.

PYTHON is that of the environment with the server, as `scripts/local-model` prints it. With another server:

    OPENAI_BASE_URL=http://127.0.0.1:11434/v1 MODEL=qwen3:4b python agent.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from openai import OpenAI

from planning import Plan, PlanningToolsSection, PlanPolicy, Toolbox, plan_text
from planning.integrations import openai
from planning.prompt import Prompt
from session import Session, select_latest

HERE = Path(__file__).resolve().parent
TASK = "Clean the kitchen: wash the dishes, then wipe the table."
MOST_TURNS = 4
FIRST = {"type": "function", "function": {"name": "planning_setup_plan"}}


def work(client: Any, model: str, session: Session, task: str = TASK) -> None:
    """Let a model plan a task, and mark what it says is done."""
    policy = PlanPolicy(tools=("setup", "mark"), offer="possible")  # few tools, and only ids that there are
    section = PlanningToolsSection(session=session, policy=policy)
    toolbox = Toolbox(section.tools())
    system = Prompt(ns="agents", key="local", sections=[section]).render().text
    messages: list[Any] = [{"role": "system", "content": system}, {"role": "user", "content": task}]
    for turn in range(MOST_TURNS):
        completion = client.chat.completions.create(
            model=model,
            messages=openai.with_reminder(messages, section),
            tools=openai.tools(section),  # made for each request
            tool_choice=FIRST if turn == 0 else "required",  # a small model plans when it has to
            max_tokens=300,
            temperature=0,
        )
        answers = openai.run_calls(completion, toolbox)
        for call, answer in zip(completion.choices[0].message.tool_calls or (), answers, strict=True):
            print(f"> {call.function.name} {call.function.arguments}\n  {answer['content']}", flush=True)
        messages = [*messages, *openai.turn(completion), *answers]
        plan = select_latest(session, Plan)
        if not answers or (plan is not None and plan.status == "completed"):
            break


@contextmanager
def server(python: str, *options: str) -> Iterator[str]:
    """A server of the small model with tools in its template; its address."""
    command = [python, str(HERE / "server.py"), *options]
    with subprocess.Popen(  # noqa: S603 - our own server
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        address = process.stdout.readline().strip() if process.stdout is not None else ""
        if not address:
            raise SystemExit(f"the server did not start: run {' '.join(command)} to see why")
        yield address  # its standard input is closed at the end, which ends it


def main(arguments: list[str]) -> None:
    """Work with a server of our own, or with the one that the environment names."""
    session = Session()
    if arguments:
        with server(arguments[0], "--template", str(HERE / "tools.jinja")) as address:
            work(OpenAI(base_url=f"{address}/v1", api_key="none"), "SmolLM2-135M", session)
    else:
        work(OpenAI(api_key=os.environ.get("OPENAI_API_KEY", "none")), os.environ["MODEL"], session)
    plan = select_latest(session, Plan)
    print(plan_text(plan) if plan is not None else "The model made no plan.")


if __name__ == "__main__":
    main(sys.argv[1:])
