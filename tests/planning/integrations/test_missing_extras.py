"""What an integration says whose framework is not installed."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest


@pytest.mark.parametrize(
    ("module", "blocked", "message"),
    [
        (
            "langchain",
            "langchain",
            "planning in LangChain's agents needs langchain: pip install 'session-planning[langchain]'",
        ),
        (
            "pydantic_ai",
            "pydantic_ai",
            "planning in Pydantic AI's agents needs pydantic-ai: pip install 'session-planning[pydantic-ai]'",
        ),
        (
            "openai_agents",
            "agents",
            "planning in the OpenAI Agents SDK needs openai-agents: "
            "pip install 'session-planning[openai-agents]'",
        ),
        (
            "google_adk",
            "google.adk",
            "planning in Google ADK's agents needs google-adk: pip install 'session-planning[google-adk]'",
        ),
        (
            "opentelemetry",
            "opentelemetry",
            "telemetry needs opentelemetry-api: pip install 'session-planning[opentelemetry]'",
        ),
    ],
)
def test_a_missing_framework_is_named_with_what_installs_it(
    module: str, blocked: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (blocked, *(each for each in sys.modules if each.startswith(f"{blocked}."))):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"planning.integrations.{module}", raising=False)
    with pytest.raises(ImportError) as caught:
        import_module(f"planning.integrations.{module}")
    assert str(caught.value) == message
