"""What an integration says whose framework is not installed."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest


@pytest.mark.parametrize(
    ("module", "blocked", "what", "package", "extra"),
    [
        ("langchain", "langchain", "planning in LangChain's agents", "langchain", "langchain"),
        ("pydantic_ai", "pydantic_ai", "planning in Pydantic AI's agents", "pydantic-ai", "pydantic-ai"),
        ("openai_agents", "agents", "planning in the OpenAI Agents SDK", "openai-agents", "openai-agents"),
        ("google_adk", "google.adk", "planning in Google ADK's agents", "google-adk", "google-adk"),
        ("opentelemetry", "opentelemetry", "telemetry", "opentelemetry-api", "opentelemetry"),
    ],
)
def test_a_missing_framework_is_named_with_what_installs_it(
    module: str, blocked: str, what: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (blocked, *(each for each in sys.modules if each.startswith(f"{blocked}."))):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"planning.integrations.{module}", raising=False)
    with pytest.raises(ImportError) as caught:
        import_module(f"planning.integrations.{module}")
    assert str(caught.value) == f"{what} needs {package}: pip install 'session-planning[{extra}]'"
