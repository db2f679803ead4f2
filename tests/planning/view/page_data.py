"""Sessions to see, and their data as the page has it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from planning import Plan, PlanningToolsSection, PlanPolicy, Toolbox
from planning.observe.deltas import applied, plan_fields
from planning.observe.stores import PastStore
from planning.observe.timeline import Recent
from planning.tools import Tool
from planning.view.document import Document
from planning.view.sources import StoreSource, read_session
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
from planning.workflow.run.records import RunChanged, StepChanged, StepRecord, WorkflowRun, register_workflow
from session import Session
from session.stores import SqliteStore


def kept(path: Path, name: str = "nightly") -> tuple[Session, Toolbox]:
    """A session in a store, and its planning tools."""
    session = Session(session_id=name, store=SqliteStore(path))
    return session, Toolbox(PlanningToolsSection(session=session).tools(), session=session)


def in_memory() -> tuple[Session, Toolbox]:
    """A session in memory, and its planning tools."""
    session = Session()
    return session, Toolbox(PlanningToolsSection(session=session).tools(), session=session)


def waiting(path: Path, name: str = "nightly") -> tuple[Session, Toolbox]:
    """A session in a store whose plan waits for approval, and its tools: the planning ones and ``copy``."""
    session = Session(session_id=name, store=SqliteStore(path))
    policy = PlanPolicy(approval=True, dependencies=True, evidence="required")
    section = PlanningToolsSection(session=session, policy=policy)
    copy = Tool(name="copy", description="Copy", function=lambda: "copied")
    toolbox = Toolbox([*section.tools(), copy], session=session)
    steps = ["Copy it", {"title": "Check it", "depends_on": [1]}, "Delete the old"]
    call(toolbox, "setup_plan", objective="Move the data", initial_steps=steps)
    return session, toolbox


def call(toolbox: Toolbox, name: str, call_id: str | None = None, **arguments: object) -> None:
    """One call by the model."""
    toolbox.call(f"planning_{name}", arguments, context={"call_id": call_id, "actor": "agent"})


def eventful(path: Path) -> tuple[Session, Toolbox]:
    """A session in a store with a refusal, a failed call, a rewind and a fork."""
    session, toolbox = kept(path)
    first = {"title": "Reproduce it", "details": "On 3.12 only.\nSee the log."}
    call(toolbox, "setup_plan", objective="Fix the login", initial_steps=[first, "Find the cause", "Mend it"])
    call(toolbox, "mark_step", step_id="S001", status="in_progress")
    call(toolbox, "mark_step", step_id="S009", status="done")
    call(toolbox, "mark_step", step_id="S001", status="done", note="It was the cookie")
    with_tools(session, deploy=lambda: 1 / 0).call("deploy", {}, context={"actor": "bob"})
    call(toolbox, "add_step", steps=["Tell the team"])
    session.rewind(2, actor="ann")
    session.fork(3, session_id="what-if")
    return session, toolbox


def with_tools(session: Session, **functions: Any) -> Toolbox:
    """Other tools of a session."""
    tools = [Tool(name=name, description=name, function=each) for name, each in functions.items()]
    return Toolbox(tools, session=session)


def data_of(document: Document) -> Any:
    """What the page reads."""
    return json.loads("".join(document.parts()))


def of_store(path: Path, name: str = "nightly") -> Any:
    """A session of a store as the page has it."""
    store = PastStore(path)
    head = store.newest(name)
    assert head is not None
    return data_of(read_session(store, head, path.name)[0])


def of_memory(session: Session, **options: Any) -> Any:
    """A session in memory as the page has it."""
    document = Document(title="run", kind="session", source="run", **options)
    document.read(Recent(session))
    return data_of(document)


def plans_of(data: Any) -> dict[int, Any]:
    """The plan of each version, as the page makes it."""
    plan, plans = data["plan"], {data["from"]: data["plan"]}
    for change in data["changes"]:
        plan = plans[change["v"]] = applied(plan, change.get("plan"))
    return plans


def steps_of(data: Any) -> dict[int, Any]:
    """The steps of the run at each version, as the page makes them; a pending step has nothing."""
    steps, found = dict(data["steps"]), {data["from"]: data["steps"]}
    for change in data["changes"]:
        steps = {**({} if "graph" in change else steps), **change.get("steps", {})}
        found[change["v"]] = {name: fields for name, fields in steps.items() if fields}
    return found


def plan_at(session: Session, version: int) -> Any:
    """The plan of a version, as the session has it."""
    plan = session.at(version).select_latest(Plan)
    return None if plan is None else plan_fields(plan)


STEPS = {"fetch": [], "parse": ["fetch"], "bad": ["fetch"], "use": ["bad"], "say": ["parse", "fetch"]}


def a_workflow(steps: dict[str, list[str]]) -> Workflow:
    """A workflow whose steps call tools of their own names; one named ``hard`` fails the run if it fails."""
    made = (
        WorkflowStep(
            step_id=name, description=f"The step {name}", type="tool", name=name, depends_on=tuple(others),
            on_failure="fail" if name == "hard" else "skip_dependents",
        )
        for name, others in steps.items()
    )  # fmt: skip
    return Workflow(goal="Report the revenue", steps=tuple(made))


def run_of(session: Session, steps: dict[str, list[str]] = STEPS, fails: str = "bad") -> Session:
    """Run a workflow in a session; the tool of one name fails."""

    def tool(name: str) -> Any:
        def called() -> str:
            if name == fails:
                raise ConnectionError(f"{name} is gone")
            return name

        return called

    run_workflow(a_workflow(steps), Capabilities(tools={name: tool(name) for name in steps}), session=session)
    return session


def a_run_of(steps: dict[str, list[str]], fails: str = "") -> Any:
    """A run of a workflow as the page has it."""
    return of_memory(run_of(Session(), steps, fails))


BEGAN = datetime(2026, 1, 2, 3, 0, tzinfo=UTC)


def recorded(
    session: Session, flow: Workflow, *changes: Mapping[str, tuple[Any, float, Mapping[str, Any]]], **run: Any
) -> Session:
    """Leave a run as its process did, after changes: the status of steps at a second, and more of each."""
    register_workflow(session)
    now = WorkflowRun(run_id="r", workflow=flow, started_at=BEGAN.isoformat(), **run)
    session.dispatch(RunChanged(now, session_id=session.session_id))
    for change in changes:
        with session.transaction() as transaction:
            for step_id, (status, second, more) in change.items():
                at = (BEGAN + timedelta(seconds=second)).isoformat()
                record = StepRecord("r", step_id, status, at, called=True, **more)
                transaction.dispatch(StepChanged(record, session_id=session.session_id))
    return session


def embedded(page: bytes) -> Any:
    """The data in a page, as a browser finds it: up to the first end of a script."""
    text = page.decode().split('<script type="application/json" id="data">', 1)[1]
    return json.loads(text.split("</script", 1)[0])


@contextmanager
def serving(source: StoreSource | bytes, **options: bool) -> Iterator[str]:
    """Serve the page in a thread within the block; yields the link."""
    from planning.view.server import serve

    async def run() -> None:
        with suppress(asyncio.CancelledError):
            tasks.append(asyncio.create_task(serve(source, started=link.set_result, **options)))
            await tasks[0]

    link, tasks = Future[str](), list[asyncio.Task[None]]()
    thread = threading.Thread(target=asyncio.run, args=(run(),), name="page", daemon=True)
    thread.start()
    try:
        yield link.result(10.0)
    finally:
        tasks[0].get_loop().call_soon_threadsafe(tasks[0].cancel)
        thread.join()
