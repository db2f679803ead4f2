"""Workflows: a model's plan, read from almost-JSON, checked as a compiler checks a program, and run.

Every name is loaded when it is first used. The rest is imported from its module: what a session keeps of a
run from ``run.records`` and ``run.memory``, edits from ``edits``, the kinds of findings from ``codes``.
"""

from typing import TYPE_CHECKING

from planning.lazy import lazy_names

if TYPE_CHECKING:
    from planning.workflow.capabilities import Capabilities
    from planning.workflow.failures import StepError, WorkflowError, WorkflowLocked
    from planning.workflow.findings import Finding
    from planning.workflow.model import Workflow, WorkflowStep
    from planning.workflow.reports.report import Report
    from planning.workflow.run.engine import arun_workflow, run_workflow
    from planning.workflow.run.memory import extract_value
    from planning.workflow.run.result import WorkflowResult
    from planning.workflow.validate import validate_workflow
    from planning.workflow.wire.build import dump_workflow
    from planning.workflow.wire.schemas import schema_text

__all__ = [
    "Workflow",
    "WorkflowStep",
    "Capabilities",
    "validate_workflow",
    "Report",
    "Finding",
    "dump_workflow",
    "schema_text",
    "run_workflow",
    "arun_workflow",
    "WorkflowResult",
    "StepError",
    "WorkflowError",
    "WorkflowLocked",
    "extract_value",
]

_HOMES = {
    "Workflow": "model",
    "WorkflowStep": "model",
    "Capabilities": "capabilities",
    "validate_workflow": "validate",
    "Report": "reports.report",
    "Finding": "findings",
    "dump_workflow": "wire.build",
    "schema_text": "wire.schemas",
    "run_workflow": "run.engine",
    "arun_workflow": "run.engine",
    "WorkflowResult": "run.result",
    "StepError": "failures",
    "WorkflowError": "failures",
    "WorkflowLocked": "failures",
    "extract_value": "run.memory",
}

__getattr__, __dir__ = lazy_names(__name__, globals(), _HOMES, __all__)
