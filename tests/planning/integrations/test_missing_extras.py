"""What an integration says whose framework is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

BLOCKED = """
import sys
sys.modules[{blocked!r}] = None
try:
    import planning.integrations.{module}
except ImportError as error:
    print(error)
"""


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
def test_a_missing_framework_is_named_with_what_installs_it(module: str, blocked: str, message: str) -> None:
    program = BLOCKED.format(module=module, blocked=blocked)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == f"{message}\n"
