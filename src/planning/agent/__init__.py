"""Planning agents: a pure decision, nodes on the one path of every call, and graphs that LangGraph runs.

The graphs, the chat client and SQL's parser need extras: every name is loaded when it is asked for.
"""

from typing import TYPE_CHECKING

from planning.lazy import lazy_names

if TYPE_CHECKING:
    from planning.agent.chat import OpenAIChat
    from planning.agent.decide import decide_next_action
    from planning.agent.graph import build_planner_graph, build_text_to_sql_graph
    from planning.agent.nodes import aexecute_tools_node, execute_tools_node
    from planning.agent.progress import NodeFinished
    from planning.agent.sql.database import SqlDatabase
    from planning.agent.sql.tools import Database
    from planning.agent.state import AgentState, Attempt, PlannerState

__all__ = [
    "AgentState",
    "PlannerState",
    "Attempt",
    "decide_next_action",
    "execute_tools_node",
    "aexecute_tools_node",
    "build_text_to_sql_graph",
    "build_planner_graph",
    "SqlDatabase",
    "Database",
    "OpenAIChat",
    "NodeFinished",
]

_HOMES = {
    "AgentState": "state",
    "Attempt": "state",
    "PlannerState": "state",
    "decide_next_action": "decide",
    "execute_tools_node": "nodes",
    "aexecute_tools_node": "nodes",
    "build_text_to_sql_graph": "graph",
    "build_planner_graph": "graph",
    "SqlDatabase": "sql.database",
    "Database": "sql.tools",
    "OpenAIChat": "chat",
    "NodeFinished": "progress",
}

__getattr__, __dir__ = lazy_names(__name__, globals(), _HOMES, __all__)
