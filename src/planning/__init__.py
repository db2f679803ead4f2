"""Planning for agents: a plan that lives in a session, and the tools that change it.

Put a ``PlanningToolsSection`` into a prompt, its tools into a ``Toolbox``, and read the plan at any
moment with ``select_latest(session, Plan)``.
"""

from planning.commands import AddStep, ClearPlan, MarkStep, NewPlanStep, ReadPlan, SetupPlan, UpdateStep
from planning.definitions import tool_definitions
from planning.diff import PlanDiff, diff_plans
from planning.errors import ToolValidationError
from planning.events import PlanChanged
from planning.model import Plan, PlanStatus, PlanStep, StepStatus
from planning.prompt import PlanningStrategy, PlanningToolsSection
from planning.render import plan_text, plan_to_dict
from planning.suite import register_plan
from planning.tools import Toolbox, ToolError, tool

__all__ = [
    "Plan",
    "PlanStep",
    "NewPlanStep",
    "SetupPlan",
    "AddStep",
    "UpdateStep",
    "MarkStep",
    "ClearPlan",
    "ReadPlan",
    "PlanStatus",
    "StepStatus",
    "PlanningStrategy",
    "PlanningToolsSection",
    "ToolValidationError",
    "ToolError",
    "Toolbox",
    "tool",
    "PlanChanged",
    "PlanDiff",
    "diff_plans",
    "plan_text",
    "plan_to_dict",
    "register_plan",
    "tool_definitions",
]
