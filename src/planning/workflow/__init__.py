"""Workflows: a model's plan, read from almost-JSON, checked as a compiler checks a program, and run.

Every name is loaded when it is asked for.
"""

from typing import TYPE_CHECKING

from planning.lazy import lazy_names

if TYPE_CHECKING:
    from planning.workflow.capabilities import Capabilities
    from planning.workflow.codes import Category, Severity
    from planning.workflow.edits import add_step, remove_step, replace_step
    from planning.workflow.failures import StepError, WorkflowError, WorkflowLocked
    from planning.workflow.findings import Finding
    from planning.workflow.model import Workflow, WorkflowStep
    from planning.workflow.reports.report import Report
    from planning.workflow.run.engine import arun_workflow, run_workflow
    from planning.workflow.run.memory import MemoryItem, extract_value
    from planning.workflow.run.records import RunChanged, StepChanged, StepRecord, WorkflowRun
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
    "Category",
    "Severity",
    "dump_workflow",
    "schema_text",
    "run_workflow",
    "arun_workflow",
    "WorkflowResult",
    "StepError",
    "WorkflowError",
    "WorkflowLocked",
    "extract_value",
    "MemoryItem",
    "StepRecord",
    "WorkflowRun",
    "StepChanged",
    "RunChanged",
    "add_step",
    "replace_step",
    "remove_step",
]

_HOMES = {
    "Workflow": "model",
    "WorkflowStep": "model",
    "Capabilities": "capabilities",
    "validate_workflow": "validate",
    "Report": "reports.report",
    "Finding": "findings",
    "Category": "codes",
    "Severity": "codes",
    "dump_workflow": "wire.build",
    "schema_text": "wire.schemas",
    "run_workflow": "run.engine",
    "arun_workflow": "run.engine",
    "WorkflowResult": "run.result",
    "StepError": "failures",
    "WorkflowError": "failures",
    "WorkflowLocked": "failures",
    "extract_value": "run.memory",
    "MemoryItem": "run.memory",
    "StepRecord": "run.records",
    "WorkflowRun": "run.records",
    "StepChanged": "run.records",
    "RunChanged": "run.records",
    "add_step": "edits",
    "replace_step": "edits",
    "remove_step": "edits",
}

__getattr__, __dir__ = lazy_names(__name__, globals(), _HOMES, __all__)
