"""The room as others see it: names are loaded when they are asked for, and it is said why one cannot be."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

import planning.agent as room


def run(program: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout + done.stderr


def test_every_public_name_is_there() -> None:
    for name in room.__all__:
        assert getattr(room, name).__name__ == name
    assert set(room.__all__) <= set(dir(room))


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(AttributeError, match=r"^module 'planning\.agent' has no attribute 'nonsense'$"):
        _ = room.nonsense


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    program = (
        "import sys\n"
        "from planning.agent import decide_next_action\n"
        "decide_next_action({})\n"
        "print([name for name in ('langgraph', 'langchain_core', 'sqlglot', 'duckdb', 'openai')"
        " if name in sys.modules])\n"
    )
    assert run(program) == "[]\n"


def test_a_module_of_langgraph_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.find_spec("planning.agent.graph")
    assert spec is not None
    assert spec.loader is not None
    monkeypatch.setitem(sys.modules, "langgraph.graph", None)
    with pytest.raises(ImportError) as caught:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert str(caught.value) == (
        "the graphs need LangGraph (langgraph.graph is missing); install it with"
        " pip install 'session-planning[agent]'"
    )


@pytest.mark.parametrize("missing", ["langgraph", "langchain_core"])
def test_without_langgraph_the_graphs_say_what_to_install(missing: str) -> None:
    program = (
        "import sys\n"
        f"sys.modules[{missing!r}] = None\n"
        "from planning.agent import execute_tools_node\n"
        "try:\n"
        "    from planning.agent import build_text_to_sql_graph\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    told = run(program)
    assert told.startswith("the graphs need LangGraph (")
    assert told.endswith(" is missing); install it with pip install 'session-planning[agent]'\n")
