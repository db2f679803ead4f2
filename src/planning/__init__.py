"""Planning for agents: a plan that lives in a session, and the tools that change it.

Put a ``PlanningToolsSection`` into a prompt, its tools into a ``Toolbox``, and read the plan at any
moment with ``select_latest(session, Plan)``.

Each name is loaded on first use, except the plan and the facts of a policy: a snapshot may contain them, and
reading one imports nothing.
"""

from planning.interrupts import leave_quietly as _leave_quietly  # noqa: F401 - before all else

# isort: split
from typing import TYPE_CHECKING

from planning.lazy import lazy_names
from planning.model import Plan, PlanStatus, PlanStep, StepStatus
from planning.plan_facts import EvidenceCall, PlanFacts, Proof  # noqa: F401 - read back with the plan

if TYPE_CHECKING:
    from planning.approval import answer_approval, pending_approval
    from planning.checks import ready_steps
    from planning.commands import (
        AddStep,
        ApprovePlan,
        ClearPlan,
        MarkStep,
        MoveStep,
        NewPlanStep,
        ReadPlan,
        RejectPlan,
        RemoveStep,
        SetupPlan,
        UpdateStep,
    )
    from planning.definitions import tool_definitions
    from planning.diff import PlanDiff, diff_plans
    from planning.errors import ToolValidationError
    from planning.events import PlanChanged
    from planning.family import FamilyProgress, family_progress
    from planning.health import Health, health_of
    from planning.policy import PlanPolicy
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
    "PlanPolicy",
    "ready_steps",
    "FamilyProgress",
    "family_progress",
    "Health",
    "health_of",
    "RemoveStep",
    "MoveStep",
    "ApprovePlan",
    "RejectPlan",
    "answer_approval",
    "pending_approval",
]

_HOMES = {
    "NewPlanStep": "commands",
    "SetupPlan": "commands",
    "AddStep": "commands",
    "UpdateStep": "commands",
    "MarkStep": "commands",
    "ClearPlan": "commands",
    "ReadPlan": "commands",
    "PlanningStrategy": "prompt",
    "PlanningToolsSection": "prompt",
    "ToolValidationError": "errors",
    "ToolError": "tools",
    "Toolbox": "tools",
    "tool": "tools",
    "PlanChanged": "events",
    "PlanDiff": "diff",
    "diff_plans": "diff",
    "plan_text": "render",
    "plan_to_dict": "render",
    "register_plan": "suite",
    "tool_definitions": "definitions",
    "PlanPolicy": "policy",
    "ready_steps": "checks",
    "answer_approval": "approval",
    "pending_approval": "approval",
    "FamilyProgress": "family",
    "family_progress": "family",
    "Health": "health",
    "health_of": "health",
    "RemoveStep": "commands",
    "MoveStep": "commands",
    "ApprovePlan": "commands",
    "RejectPlan": "commands",
}

__getattr__, __dir__ = lazy_names(__name__, globals(), _HOMES, __all__)
