"""An agent that plans with a small model on this machine: `make local`.

Each answer is constrained to one call of a tool that the plan takes, so that even a model of 135 million
parameters sends valid calls. With another server of the Chat Completions protocol, such as Ollama:

    OPENAI_BASE_URL=http://127.0.0.1:11434/v1 python examples/local/agent.py --model qwen3:4b
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from openai import OpenAI

from planning import Plan, PlanningToolsSection, PlanPolicy, Toolbox, plan_text, tool_definitions
from planning.integrations import openai
from planning.prompt import Prompt
from session import Session, select_latest

TASK = "Clean the kitchen: wash the dishes, then wipe the table."
MOST_TURNS = 6
MOST_STEPS = 3
POLICY = PlanPolicy(tools=("setup", "mark"), offer="possible", replace="refuse_unfinished")


def call_schema(section: PlanningToolsSection) -> dict[str, Any]:
    """The schema of one call of a tool that the section offers now: ``{"name": ..., "arguments": {...}}``."""
    calls = []
    for name, schema in tool_definitions("json-schema", tools=section).items():
        if "initial_steps" in schema["properties"]:
            schema["properties"]["initial_steps"]["maxItems"] = MOST_STEPS  # or a small model never ends
        properties = {"name": {"type": "string", "enum": [name]}, "arguments": schema}
        calls.append({"type": "object", "properties": properties, "required": [*properties]})
    return {"anyOf": calls}


def work(client: Any, model: str, session: Session, task: str = TASK) -> None:
    """Let a model plan a task, and mark its steps."""
    section = PlanningToolsSection(session=session, policy=POLICY)
    toolbox = Toolbox(section.tools())
    system = Prompt(ns="agents", key="local", sections=[section]).render().text
    messages: list[Any] = [{"role": "system", "content": system}, {"role": "user", "content": task}]
    for _ in range(MOST_TURNS):
        form = {"name": "call", "schema": call_schema(section)}
        completion = client.chat.completions.create(
            model=model,
            messages=openai.with_reminder(messages, section),
            response_format={"type": "json_schema", "json_schema": form},
            max_tokens=500,
            temperature=0,
        )
        sent = completion.choices[0].message.content
        try:
            call = json.loads(sent)
            result = toolbox.call(call["name"], call["arguments"]).message
        except ValueError:  # max_tokens cut it off
            result = "Your call was cut off. Send a shorter one."
        print(f"> {sent}\n  {result}", flush=True)
        messages += [{"role": "assistant", "content": sent}, {"role": "user", "content": result}]
        plan = select_latest(session, Plan)
        if plan is not None and plan.status == "completed":
            break


@contextmanager
def server(python: str, *options: str) -> Iterator[str]:
    """Start the server of the small model with the Python of its environment; yields its address."""
    command = [python, str(Path(__file__).resolve().with_name("server.py")), *options]
    with subprocess.Popen(  # noqa: S603 - our own server
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        address = process.stdout.readline().strip() if process.stdout is not None else ""
        if not address:
            raise SystemExit(f"the server did not start; run this to see why: {' '.join(command)}")
        try:
            yield address
        finally:
            process.kill()


def main() -> None:
    """Work with the small model, or with the server that ``OPENAI_BASE_URL`` names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--server", metavar="PYTHON", help="start the small model with this Python")
    parser.add_argument("--model", default="local", help="the model's name on the server")
    options = parser.parse_args()
    session = Session()
    key = os.environ.get("OPENAI_API_KEY", "none")  # the client wants one; the server ignores it
    if options.server is not None:
        with server(options.server) as address:
            work(OpenAI(base_url=f"{address}/v1", api_key=key, max_retries=30), options.model, session)
    else:
        work(OpenAI(api_key=key), options.model, session)
    plan = select_latest(session, Plan)
    print("The model made no plan." if plan is None else plan_text(plan))


if __name__ == "__main__":
    main()
