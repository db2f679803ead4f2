"""What all tests share: Hypothesis profiles; and the examples of the README and the specs, run as tests."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser
from sybil.sybil import SybilCollection

# How many examples each property tries; `--hypothesis-profile=NAME` chooses. A slow machine is not a failure.
for name, examples in {"quick": 30, "thorough": 100, "long": 3_000}.items():
    settings.register_profile(
        name, max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
# For `make mutants`: the same examples every time, and nothing learned from a mutant. Tests run in another
# order and in forked processes there.
settings.register_profile(
    "mutants",
    max_examples=30,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
)
settings.load_profile("quick")

pytest_collect_file = SybilCollection([
    Sybil(parsers=[PythonCodeBlockParser()], patterns=["README.md"], fixtures=["readme_model"]),
    Sybil(parsers=[PythonCodeBlockParser()], patterns=["specs/*.md"]),
]).pytest()  # fmt: skip

CALLS = (
    ("planning_setup_plan", {"objective": "Fix the login", "initial_steps": ["Reproduce the bug", "Fix it"]}),
    ("planning_mark_step", {"step_id": "S001", "status": "done"}),
)


@pytest.fixture
def readme_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The model that the README asks: a server on this machine with recorded answers."""
    from chat_server import ChatServer, says, without_environment  # noqa: PLC0415 - no other test needs it

    replies = [says(None, tool_calls=[called(*call)]) for call in CALLS]
    without_environment(monkeypatch)
    with ChatServer(*replies, says("The bug is reproduced.")) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield


def called(name: str, arguments: dict[str, object]) -> dict[str, object]:
    """A tool call in a model's message."""
    return {"id": name, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
