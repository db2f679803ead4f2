"""Agents that plan: one answers questions with SQL, one asks a planner which tools a request needs.

The graphs, the chat client and the SQL parser need extras: each name is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from planning.lazy import lazy_names

if TYPE_CHECKING:
    from planning.agent.chat import OpenAIChat
    from planning.agent.databases.base import Database
    from planning.agent.databases.files import SqlDatabase
    from planning.agent.graph import build_planner_graph, build_text_to_sql_graph
    from planning.agent.nodes import execute_tools_node
    from planning.agent.state import AgentState, decide_next_action

__all__ = [
    "AgentState",
    "decide_next_action",
    "execute_tools_node",
    "build_text_to_sql_graph",
    "build_planner_graph",
    "SqlDatabase",
    "Database",
    "OpenAIChat",
]

_HOMES = {
    "AgentState": "state",
    "decide_next_action": "state",
    "execute_tools_node": "nodes",
    "build_text_to_sql_graph": "graph",
    "build_planner_graph": "graph",
    "SqlDatabase": "databases.files",
    "Database": "databases.base",
    "OpenAIChat": "chat",
}

__getattr__, __dir__ = lazy_names(__name__, globals(), _HOMES, __all__)
