"""The tests of the document that asked for the agent, under their names, on the public functions."""

from __future__ import annotations

from typing import Any

from agent_samples import COUNT, QUESTION, SCHEMA, ShopTools

from planning.agent import build_text_to_sql_graph, decide_next_action, execute_tools_node

INITIAL: dict[str, Any] = {
    "resolved_query": "test",
    "schema": None,
    "sql_query": None,
    "execution_result": None,
    "validation_result": None,
    "next_action": None,
    "iteration": 0,
    "max_iterations": 10,
    "tool_calls": [],
    "is_complete": False,
    "error": None,
}


def test_planning_logic() -> None:
    updates = decide_next_action({**INITIAL, "schema": None})
    assert updates["next_action"] == "get_schema"
    updates = decide_next_action({**INITIAL, "schema": "schema", "sql_query": None})
    assert updates["next_action"] == "generate_sql"


def test_execute_tools_node() -> None:
    state = {**INITIAL, "next_action": "get_schema", "resolved_query": "test"}
    updates = execute_tools_node(state, ShopTools().tools())
    assert updates["schema"] == SCHEMA
    assert len(updates["tool_calls"]) == 1
    call = updates["tool_calls"][0]
    elapsed = call.pop("elapsed")
    assert call == {"success": True, "tool": "get_schema", "result": SCHEMA, "error": None}
    assert type(elapsed) is float


def test_workflow_loops() -> None:
    shop = ShopTools()
    workflow = build_text_to_sql_graph(shop.tools(), lambda question, schema: COUNT)
    final_state = workflow.invoke({**INITIAL, "resolved_query": QUESTION})
    assert len(final_state["tool_calls"]) >= 2
    assert final_state["is_complete"] is True
    assert shop.names == ["get_schema", "execute_sql", "validate_results"]
    assert final_state["execution_result"]["data"] == [[3]]
