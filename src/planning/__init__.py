"""Planning for agents: a plan that lives in a session, and the tools that change it.

Put a ``PlanningToolsSection`` into a prompt, its tools into a ``Toolbox``, and read the plan at any
moment with ``select_latest(session, Plan)``.

Each name is loaded on first use, except the plan and the facts of a policy: a snapshot may contain them, and
reading one imports nothing.
"""

from planning.lazy import lazy_names

# isort: split
from typing import TYPE_CHECKING

from planning.plan.facts import EvidenceCall, PlanFacts, Proof  # noqa: F401 - read back with the plan
from planning.plan.model import Plan, PlanStatus, PlanStep, StepStatus

if TYPE_CHECKING:
    from planning.errors import ToolValidationError
    from planning.observe.family import FamilyProgress, family_progress
    from planning.observe.health import Health, health_of
    from planning.plan.commands import (
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
    from planning.plan.diff import PlanDiff, diff_plans
    from planning.plan.facts import ready_steps
    from planning.plan.render import plan_text, plan_to_dict
    from planning.policy.policy import PlanPolicy
    from planning.prompt import PlanningStrategy, PlanningToolsSection
    from planning.prompt.definitions import tool_definitions
    from planning.suite.approval import decide_approval, pending_approval
    from planning.suite.events import PlanChanged
    from planning.suite.tools import register_plan
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
    "decide_approval",
    "pending_approval",
]

_HOMES = {
    "NewPlanStep": "plan.commands",
    "SetupPlan": "plan.commands",
    "AddStep": "plan.commands",
    "UpdateStep": "plan.commands",
    "MarkStep": "plan.commands",
    "ClearPlan": "plan.commands",
    "ReadPlan": "plan.commands",
    "PlanningStrategy": "prompt",
    "PlanningToolsSection": "prompt",
    "ToolValidationError": "errors",
    "ToolError": "tools",
    "Toolbox": "tools",
    "tool": "tools",
    "PlanChanged": "suite.events",
    "PlanDiff": "plan.diff",
    "diff_plans": "plan.diff",
    "plan_text": "plan.render",
    "plan_to_dict": "plan.render",
    "register_plan": "suite.tools",
    "tool_definitions": "prompt.definitions",
    "PlanPolicy": "policy.policy",
    "ready_steps": "plan.facts",
    "decide_approval": "suite.approval",
    "pending_approval": "suite.approval",
    "FamilyProgress": "observe.family",
    "family_progress": "observe.family",
    "Health": "observe.health",
    "health_of": "observe.health",
    "RemoveStep": "plan.commands",
    "MoveStep": "plan.commands",
    "ApprovePlan": "plan.commands",
    "RejectPlan": "plan.commands",
}

# Stores and snapshots have the classes of these modules under the names that the modules had first.
__written_modules__ = {
    "planning.plan.model": "planning.model",
    "planning.plan.commands": "planning.commands",
    "planning.plan.facts": "planning.plan_facts",
    "planning.policy.reducers": "planning.facts",
    "planning.suite.events": "planning.events",
    "planning.tools.once": "planning.tools.repeats",
}

__getattr__, __dir__ = lazy_names(__name__, globals(), _HOMES, __all__)
