"""Workflows: documents of steps that a model writes as JSON, checked like a program, and run.

Every name is loaded on first use. Executors are in ``executors``, edits in ``edits``, the kinds of findings
in ``codes``.
"""

from typing import TYPE_CHECKING

from planning.lazy import lazy_names

if TYPE_CHECKING:
    from planning.workflow.capabilities import Capabilities
    from planning.workflow.codes import Finding
    from planning.workflow.failures import StepFailure, WorkflowError, WorkflowLocked
    from planning.workflow.model import Workflow, WorkflowStep
    from planning.workflow.report import Report
    from planning.workflow.run.engine import arun_workflow, run_workflow
    from planning.workflow.run.memory import MemoryItem, extract_value
    from planning.workflow.run.records import RunChanged, StepChanged, StepRecord, WorkflowRun
    from planning.workflow.run.steps import WorkflowResult
    from planning.workflow.validate import validate_workflow
    from planning.workflow.wire.build import dump_workflow
    from planning.workflow.wire.form import schema_text

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
    "StepFailure",
    "WorkflowError",
    "WorkflowLocked",
    "extract_value",
    "WorkflowRun",
    "StepRecord",
    "RunChanged",
    "StepChanged",
    "MemoryItem",
]

_HOMES = {
    "Workflow": "model",
    "WorkflowStep": "model",
    "Capabilities": "capabilities",
    "validate_workflow": "validate",
    "Report": "report",
    "Finding": "codes",
    "dump_workflow": "wire.build",
    "schema_text": "wire.form",
    "run_workflow": "run.engine",
    "arun_workflow": "run.engine",
    "WorkflowResult": "run.steps",
    "StepFailure": "failures",
    "WorkflowError": "failures",
    "WorkflowLocked": "failures",
    "extract_value": "run.memory",
    "WorkflowRun": "run.records",
    "StepRecord": "run.records",
    "RunChanged": "run.records",
    "StepChanged": "run.records",
    "MemoryItem": "run.memory",
}

__getattr__, __dir__ = lazy_names(__name__, globals(), _HOMES, __all__)
