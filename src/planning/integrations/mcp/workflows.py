"""The tool that runs a workflow document, and the progress that its client is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final

from mcp.server.session import ServerSession

from planning.errors import ToolError, show
from planning.integrations._rewind import setting
from planning.tools.context import ToolContext
from planning.tools.tool import Tool
from planning.workflow.capabilities import Capabilities
from planning.workflow.failures import WorkflowError
from planning.workflow.model import Workflow
from planning.workflow.run.engine import arun_workflow
from planning.workflow.run.records import StepChanged
from planning.workflow.run.steps import WorkflowResult
from planning.workflow.run.values import step_with_prompt
from planning.workflow.validate import validate_workflow
from planning.workflow.wire.form import schema
from session import Session

_CLIENT: ContextVar[ServerSession | None] = ContextVar("planning_mcp_client", default=None)
_OPEN: Final = ("pending", "in_progress")
_FIELDS: Final = ("step_id", "description", "type", "name", "agent", "inputs", "outputs", "depends_on",
                 "expected_key", "output_path", "done_check", "timeout", "retries", "on_failure")  # fmt: skip


def _schema() -> dict[str, Any]:
    """The arguments of the tool: any object, array or text is taken; the first form says what to write."""
    whole = schema(2)
    known, step = whole["$defs"], whole["$defs"]["step"]["properties"]
    fields = {name: known[step[name]["$ref"].split("/")[-1]] if "$ref" in step[name] else step[name]
              for name in _FIELDS}  # fmt: skip
    document = {
        "type": "object",
        "properties": {
            **{name: whole["properties"][name] for name in ("schema_version", "goal")},
            "steps": {
                "type": "array",
                "items": {"type": "object", "properties": fields, "required": ["step_id", "description"]},
            },
        },
        "required": ["schema_version", "goal", "steps"],
    }
    return {
        "type": "object",
        "properties": {
            "document": {
                "description": "The workflow, or only the array of its steps; also as JSON text.",
                "anyOf": [document, {"type": "object"}, {"type": "array"}, {"type": "string"}],
            },
            "prompt": {"type": "string", "description": "The value of ${user_prompt}."},
        },
        "required": ["document"],
        "additionalProperties": False,
    }


def progress_of(client: ServerSession) -> AbstractContextManager[None]:
    """Send the progress of workflows that run in this block to a client."""
    return setting(_CLIENT, client)


def workflow_tool(capabilities: Capabilities) -> Tool:
    """The tool that checks a workflow document and runs it in the session of the call."""

    async def run(arguments: dict[str, Any], context: ToolContext) -> Any:
        report = await asyncio.to_thread(validate_workflow, arguments["document"], capabilities)
        workflow = report.workflow
        if not report.ok or workflow is None:
            raise ToolError(report.to_prompt())
        asking = step_with_prompt(workflow)
        if asking is not None and arguments.get("prompt") is None:
            raise ToolError(f"step {show(asking)} refers to ${{user_prompt}}; send prompt, its value")
        session = context.session or Session()
        try:
            async with _reporting(session, workflow):
                result = await arun_workflow(
                    workflow, capabilities, session=session, user_prompt=arguments.get("prompt")
                )
        except WorkflowError as error:
            raise ToolError(str(error)) from None
        if result.status != "completed":
            raise ToolError(_failure(workflow, result))
        return _answer(workflow, result)

    names = ", ".join(capabilities.tools or ()) or "none"
    description = (
        "Run a workflow document: steps that call tools, with dependencies. A document that is not valid does"
        f" not run; all its problems are reported. Its steps may call: {names}."
    )
    return Tool("planning_run_workflow", description, run, parameters=_schema())


@asynccontextmanager
async def _reporting(session: Session, workflow: Workflow) -> AsyncIterator[None]:
    """Report how many steps have ended to the client of the call, if there is one."""
    client = _CLIENT.get()
    if client is None:
        yield
        return
    ended: set[str] = set()
    loop = asyncio.get_running_loop()

    def note(event: StepChanged) -> None:
        if event.session_id == session.session_id and event.record.status not in _OPEN:
            loop.call_soon_threadsafe(reports.put_nowait, event.record.step_id)

    reports = asyncio.Queue[str]()

    async def report() -> None:
        while True:
            step_id = await reports.get()
            if step_id not in ended:
                ended.add(step_id)
                await client.report_progress(len(ended), len(workflow.steps))
            reports.task_done()

    session.bus.subscribe(StepChanged, note)
    task = asyncio.create_task(report())
    try:
        yield
        await asyncio.sleep(0)  # until the last steps are in the queue
        await asyncio.wait([task, asyncio.ensure_future(reports.join())], return_when=asyncio.FIRST_COMPLETED)
    finally:
        session.bus.unsubscribe(StepChanged, note)
        task.cancel()


def _answer(workflow: Workflow, result: WorkflowResult) -> dict[str, Any]:
    """The outputs of the steps that no other step depends on, and the warnings."""
    needed = {other for step in workflow.steps for other in step.depends_on}
    last = [step.step_id for step in workflow.steps if step.step_id not in needed]
    outputs = {step_id: result.outputs[step_id] for step_id in last if step_id in result.outputs}
    return {"outputs": outputs, **({"warnings": list(result.warnings)} if result.warnings else {})}


def _failure(workflow: Workflow, result: WorkflowResult) -> str:
    lines = [
        f"The workflow failed: {len(result.outputs)} of {len(workflow.steps)} steps completed.",
        *(f"- {step_id}: {error.message}" for step_id, error in result.errors.items()),
        "Call this tool again with the same arguments to retry; completed steps do not run again.",
    ]
    return "\n".join(lines)
