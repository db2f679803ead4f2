"""What the page "Use a local model" says, against llama.cpp's server with a very small model."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from openai import APIStatusError, OpenAI

from planning import Plan, PlanningToolsSection, Toolbox
from planning.integrations import openai
from session import Session, ToolInvoked, select_latest

ROOT = Path(__file__).parents[2]
HELLO = [{"role": "user", "content": "Hello"}]
MISTRAL = """\
{%- for message in messages %}
{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('roles must alternate user/assistant') }}
{%- endif %}
{{- '[INST] ' if message['role'] == 'user' else ' ' }}{{ message['content'] }}
{%- endfor %}"""
"""As Mistral's template checks the roles, without tools."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / "scripts").is_dir(), reason="the source distribution has no scripts"),
]
long = pytest.mark.skipif(
    "LOCAL_MODEL" not in os.environ, reason="the small model needs a minute: LOCAL_MODEL=1, as in make soak"
)
agent: dict[str, Any] = run_path(str(ROOT / "examples" / "local" / "agent.py"))
Start = Callable[..., OpenAI]


@pytest.fixture(scope="module")
def python() -> str:
    """The environment of the server."""
    made = subprocess.run(
        [ROOT / "scripts" / "local-model", sys.executable], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"the small model cannot be installed: {made.stderr.strip().splitlines()[-1]}")
    return made.stdout.strip()


@pytest.fixture(scope="module")
def start(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Starts a server with a template, once; a client of it."""
    clients: dict[str, OpenAI] = {}

    def started(template: str = "") -> OpenAI:
        if template not in clients:
            path = tmp_path_factory.mktemp("template") / "chat.jinja"
            path.write_text(template)
            given = ["--template", str(path)] if template else []
            address = stack.enter_context(agent["server"](python, *given))
            client = OpenAI(base_url=f"{address}/v1", api_key="any", max_retries=30)
            clients[template] = stack.enter_context(client)
            clients[template].models.list()  # it answers 503 while it loads, which the client retries
        return clients[template]

    with ExitStack() as stack:
        yield started


def tokens(client: OpenAI, messages: list[Any]) -> int:
    """The tokens of a prompt."""
    create: Any = client.chat.completions.create
    count: int = create(model="local", messages=messages, max_tokens=1).usage.prompt_tokens
    return count


@long
def test_the_loop_of_the_example_makes_a_plan(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    session = Session()
    agent["work"](start(), "local", session)
    plan = select_latest(session, Plan)
    assert plan is not None, capsys.readouterr().out
    calls = [each for change in session.history() for each in change.events if isinstance(each, ToolInvoked)]
    assert [each.name for each in calls] == ["planning_setup_plan"] + ["planning_mark_step"] * (
        len(calls) - 1
    )
    assert capsys.readouterr().out.count("Refused") == 0  # what is constrained is not refused


def test_the_reminder_keeps_the_roles_of_a_template_that_demands_it(start: Start) -> None:
    client = start(MISTRAL)
    section = PlanningToolsSection(session=Session())
    assert Toolbox(section.tools()).call("planning_setup_plan", {"objective": "Clean the kitchen"}).success
    with pytest.raises(APIStatusError, match="roles must alternate"):
        tokens(client, [*HELLO, {"role": "user", "content": section.reminder()}])
    assert tokens(client, openai.with_reminder(HELLO, section)) > tokens(client, HELLO)
