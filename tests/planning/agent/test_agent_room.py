"""The names of the package: loaded at first use, or an error that says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest


def run(program: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout + done.stderr


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    program = (
        "import sys\n"
        "from planning.agent import decide_next_action\n"
        "decide_next_action({})\n"
        "print([name for name in ('langgraph', 'langchain_core', 'sqlglot', 'duckdb', 'openai')"
        " if name in sys.modules])\n"
    )
    assert run(program) == "[]\n"


@pytest.mark.parametrize("missing", ["langgraph", "langchain_core"])
def test_without_langgraph_the_graphs_say_what_to_install(missing: str) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None; import planning.agent as a; a.build_planner_graph"
    )
    assert run(program).splitlines()[-1].startswith("ImportError: the graphs need LangGraph (")
    assert run(program).endswith(" is missing); install it with pip install 'session-planning[agent]'\n")
