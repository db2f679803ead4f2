"""The tool that runs a workflow document, and the progress that its client is sent."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import jsonschema
import pytest
from frameworks import plans_of
from mcp import Client
from mcp_served import connecting, in_both_eras, over_both, said
from syrupy.assertion import SnapshotAssertion

from planning.integrations.mcp import build_server
from planning.workflow import Capabilities
from planning.workflow.run.records import WorkflowRun
from session import Session

RUN = "planning_run_workflow"


def step(step_id: str, name: str, *after: str, **inputs: Any) -> dict[str, Any]:
    return {
        "step_id": step_id,
        "description": f"Call {name}",
        "type": "tool",
        "name": name,
        "inputs": inputs,
        "depends_on": list(after),
    }


def document(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"schema_version": 2, "goal": "Look into it", "steps": list(steps)}


def find(topic: str) -> dict[str, Any]:
    return {"topic": topic, "pages": 3}


async def double(number: int) -> int:
    return number * 2


def fail() -> str:
    raise ValueError("bad luck")


CAPABILITIES = Capabilities(tools=[find, double, fail])
GOOD = document(
    step("find", "find", topic="${user_prompt}"),
    step("twice", "double", "find", number="${find.output.pages}"),
)


async def run(given: dict[str, Any], session: Session | None = None, mode: str = "auto") -> str:
    """What the model reads of a call."""
    async with Client(build_server(session=session, workflows=CAPABILITIES), mode=mode) as client:
        return said(await client.call_tool(RUN, given))


@over_both
@in_both_eras
@pytest.mark.parametrize("form", [GOOD, json.dumps(GOOD), f"```json\n{json.dumps(GOOD)}\n```"], ids=range(3))
async def test_a_document_is_run_and_its_progress_is_reported(way: str, mode: str, form: object) -> None:
    session = Session()
    reported: list[tuple[float, float | None]] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reported.append((progress, total))

    built = {"session": session, "workflows": CAPABILITIES}
    async with connecting(way, mode, **built) as connect, connect() as client:
        arguments = {"document": form, "prompt": "logins"}
        result = await client.call_tool(RUN, arguments, progress_callback=report)
        while not reported or reported[-1] != (2.0, 2.0):  # it is called in a task of its own
            await asyncio.sleep(0.01)
        text, structured, reported = [said(result), result.structured_content, reported]
    assert text == '{"outputs":{"twice":6}}'
    assert structured == {"message": text, "value": {"outputs": {"twice": 6}}}
    assert {(2.0, 2.0)} <= {*reported} <= {(1.0, 2.0), (2.0, 2.0)}  # what is late is omitted
    assert reported == sorted({*reported})
    assert plans_of(session) == [(2, 2)]


async def test_a_run_that_is_over_reports_nothing_of_the_next(caplog: pytest.LogCaptureFixture) -> None:
    session, given = Session(), {"document": GOOD, "prompt": "logins"}
    assert [await run(given, session) for _ in range(2)] == ['{"outputs":{"twice":6}}'] * 2
    assert caplog.records == []


@in_both_eras
async def test_a_document_with_problems_is_not_run_and_all_of_them_are_reported(
    mode: str, snapshot: SnapshotAssertion
) -> None:
    bad = document(step("a", "finds"), step("b", "double", "c"))
    assert await run({"document": bad}, mode=mode) == snapshot


async def test_a_document_that_refers_to_the_prompt_asks_for_it() -> None:
    session = Session()
    asked = "error: step 'find' refers to ${user_prompt}; send prompt, its value"
    assert await run({"document": GOOD}, session) == asked
    assert await run({"document": GOOD, "prompt": ""}, session) == '{"outputs":{"twice":6}}'
    assert [each.user_prompt for each in session.select_all(WorkflowRun)] == [""]


async def test_a_failed_step_is_named_and_a_second_call_repeats_only_that(
    snapshot: SnapshotAssertion,
) -> None:
    is_mended = False
    found: list[str] = []

    def find(topic: str) -> str:
        found.append(topic)
        return topic

    def flaky() -> str:
        if not is_mended:
            raise ValueError("bad luck")
        return "better"

    async with Client(build_server(workflows=Capabilities(tools=[find, flaky]))) as client:
        given = {"document": document(step("a", "find", topic="x"), step("b", "flaky", "a"))}
        first = said(await client.call_tool(RUN, given))
        is_mended = True
        second = said(await client.call_tool(RUN, given))
    assert first == snapshot
    assert (second, found) == ('{"outputs":{"b":"better"}}', ["x"])


async def test_a_client_that_cancels_stops_the_run_and_a_later_one_resumes_it() -> None:
    session = Session()
    cancelled: list[str] = []
    started, go = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        started.set()
        try:
            await go.wait()
        except asyncio.CancelledError:
            cancelled.append("wait")
            raise
        return "waited"

    server = build_server(session=session, workflows=Capabilities(tools=[find, wait]))
    given = {"document": document(step("a", "find", topic="x"), step("b", "wait", "a"))}
    async with Client(server, mode="legacy") as client:
        calling = asyncio.create_task(client.call_tool(RUN, given))
        await started.wait()
        calling.cancel()
        await asyncio.wait([calling])
        while not cancelled:
            await asyncio.sleep(0)
        go.set()
        result = said(await client.call_tool(RUN, given))
    assert result == '{"outputs":{"b":"waited"}}'


async def listed(capabilities: Capabilities | None) -> dict[str, Any]:
    async with Client(build_server(workflows=capabilities)) as client:
        return {each.name: each for each in (await client.list_tools()).tools}


async def test_the_schema_of_the_tool_describes_the_form_of_a_step(snapshot: SnapshotAssertion) -> None:
    definition = (await listed(CAPABILITIES))[RUN]
    stored, schema = definition.model_dump(mode="json", exclude_none=True), definition.input_schema
    assert json.dumps(stored, indent=2) + "\n" == snapshot
    validator = jsonschema.Draft202012Validator(schema)
    for taken in (GOOD, GOOD["steps"], "any text", {"goal": 5}):
        assert list(validator.iter_errors({"document": taken})) == []
    form = jsonschema.Draft202012Validator(schema["properties"]["document"]["anyOf"][0])
    assert list(form.iter_errors(GOOD)) == []
    wrong = document({**step("find", "find"), "depends_on": "none", "retries": -1})
    assert sorted(error.json_path for error in form.iter_errors(wrong)) == [
        "$.steps[0].depends_on",
        "$.steps[0].retries",
    ]
