"""Values that a run keeps and hands on: copies, which no tool changes later, and their bounds."""

from __future__ import annotations

import sys
import threading
import tracemalloc
from collections import Counter, UserDict
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import PurePosixPath
from sys import getsizeof
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from json_runs import STEPS, Colour, Page, Pair, Part, Row, giving, kept, values
from plan_findings import nested
from run_cases import (
    called,
    capable,
    flow,
    heard,
    plan_of,
    plan_states,
    refusal,
    restored,
    states,
    thought,
    told,
)
from syrupy.assertion import SnapshotAssertion

from planning.tools import Tool, ToolContext, ToolResult
from planning.tools.parameters.model import FreeModel
from planning.workflow import Capabilities, WorkflowError, WorkflowResult, run_workflow
from planning.workflow.model import WorkflowStep
from planning.workflow.run.memory import MemoryItem
from planning.workflow.run.records import StepChanged, StepRecord, WorkflowRun
from session import Session, Snapshot
from session.stores import MemoryStore

HOLDERS: list[tuple[Any, Callable[[Any], Any], Any]] = [
    ([1], lambda value: value, [1]),
    ({"deep": [{"rows": ([1],)}]}, lambda value: value["deep"][0]["rows"][0], {"deep": [{"rows": [[1]]}]}),
    (Pair([1], 2), lambda value: value.first, [[1], 2]),
    (Row("a", [1]), lambda value: value.tags, {"name": "a", "tags": [1]}),
    (Part("a", [1]), lambda value: value.parts, {"name": "a", "parts": [1]}),
    (Page(title="a", lines=[1]), lambda value: value.lines, {"title": "a", "lines": [1]}),
    (UserDict(rows=[1]), lambda value: value["rows"], {"rows": [1]}),
    (MappingProxyType({"rows": [1]}), lambda value: value["rows"], {"rows": [1]}),
]
"""Values, what finds the list inside that a tool changes later, and their JSON form."""


def done(value: Any) -> ToolResult:
    return ToolResult(True, "Done.", value)


@pytest.mark.parametrize(("value", "inside", "form"), HOLDERS, ids=range(len(HOLDERS)))
def test_no_tool_can_change_what_was_kept(value: Any, inside: Callable[[Any], list[int]], form: Any) -> None:
    session, snapshots = Session(), list[Snapshot]()
    records = heard(session)

    def change() -> None:
        snapshots.append(session.snapshot())
        inside(value).append(2)

    produced, echoed = called("a", tool="produce", expected_key="key"), {"value": "${a.output}"}
    workflow = flow(produced, called("b", "a", tool="change"), called("c", "b", tool="echo", inputs=echoed))
    tools = capable(produce=lambda: done(value), echo=done, change=change)
    result = run_workflow(workflow, tools, session=session)
    assert dict(result.errors) == {}
    kept = [
        result.outputs["a"],
        result.outputs["c"],
        result.memory["key"],
        session.select_all(MemoryItem)[0].value,
        *(record.output for record in records if (record.step_id, record.status) == ("a", "completed")),
        snapshots[0].select_all(MemoryItem)[0].value,
    ]
    assert (inside(value), kept) == ([1, 2], [form] * 6)


def test_whoever_changes_what_the_context_shows_changes_nobodys_memory() -> None:
    seen: list[Any] = []

    def greedy(context: ToolContext) -> str:
        memory = context.values["memory"]
        assert [each for each in ("__setitem__", "pop", "update", "clear") if hasattr(memory, each)] == []
        memory["rows"].append(3)
        memory["given"]["deep"].append("changed")
        seen.append((memory["rows"], memory["given"]))
        return "tried"

    session, given = Session(), {"deep": ["kept"]}
    again = called("b", "a", tool="greedy"), called("c", "b", tool="greedy")
    workflow = flow(called("a", tool="produce", expected_key="rows"), *again)
    tools = capable(produce=lambda: [1, 2], greedy=greedy)
    result = run_workflow(workflow, tools, session=session, inputs={"given": given})
    assert seen == [([1, 2, 3], {"deep": ["kept", "changed"]})] * 2
    assert (given, result.outputs["a"]) == ({"deep": ["kept"]}, [1, 2])
    assert result.memory == {"given": {"deep": ["kept"]}, "rows": [1, 2]}
    assert [item.value for item in session.select_all(MemoryItem)] == [{"deep": ["kept"]}, [1, 2]]


def test_whoever_changes_a_result_does_not_change_the_session() -> None:
    result = run_workflow(flow(called("a", expected_key="key")), capable(work=lambda: {"rows": [1]}))
    result.outputs["a"]["rows"].append(2)
    result.memory["key"]["rows"].append(3)
    assert (result.outputs, result.memory) == ({"a": {"rows": [1, 2]}}, {"key": {"rows": [1, 3]}})
    assert [record.output for record in result.session.select_all(StepRecord)][-1] == {"rows": [1]}
    assert result.session.select_all(MemoryItem)[0].value == {"rows": [1]}


def test_an_attempt_that_changes_its_inputs_changes_neither_the_next_attempt_nor_the_workflow() -> None:
    import stamina

    seen: list[Any] = []

    def take_apart(inputs: dict[str, Any]) -> int:
        seen.append((list(inputs["rows"]), inputs.pop("options")))
        inputs["rows"].clear()
        if len(seen) < 3:
            raise ConnectionError
        return len(seen)

    inputs = {"rows": [1, 2], "options": {"deep": ["${a.output}"]}}
    step = thought("b", "a", type="handler", name="take_apart", inputs=inputs, retries=2)
    with stamina.set_testing(True, attempts=10, cap=True):
        result = run_workflow(flow(thought("a"), step), Capabilities(handlers={"take_apart": take_apart}))
    assert seen == [([1, 2], {"deep": ["Do a"]})] * 3
    assert (dict(result.errors), result.outputs["b"]) == ({}, 3)
    assert inputs == {"rows": [1, 2], "options": {"deep": ["${a.output}"]}}
    assert result.workflow.steps[1].inputs == inputs


def resumed(value: Any, store: MemoryStore | None) -> str:
    """What a run keeps that stopped at its gate, and was resumed from a store or from a snapshot's JSON."""
    breaks = [1, 0]

    def gate() -> None:
        1 // breaks.pop()

    session = Session(session_id="run", store=store)
    first = run_workflow(STEPS, giving(value, gate), session=session)
    assert list(first.errors) == ["gate"]
    again = restored(session) if store is None else Session(session_id="run", store=store)
    breaks[:] = [1]
    return kept(run_workflow(STEPS, giving(value, gate), session=again))


@settings(max_examples=settings().max_examples // 2)  # each is five runs
@given(values)
def test_each_step_gets_and_keeps_the_same_live_and_after_a_resume(value: Any) -> None:
    live = kept(run_workflow(STEPS, giving(value)))
    assert resumed(value, None) == live
    assert resumed(value, MemoryStore()) == live


TYPED: list[Any] = [
    date(2024, 1, 2), timedelta(days=-1, hours=3), timedelta(days=2, microseconds=1), UUID(int=5),
    Decimal("1.50"), PurePosixPath("/a"), Colour.RED, Row("a", [1]), Part("a", [1]),
    Page(title="a", lines=[1]), {1, 2}, (1, 2), b"raw",
]  # fmt: skip


@pytest.mark.parametrize("value", TYPED, ids=lambda each: type(each).__name__)
def test_a_parameter_with_a_type_is_made_of_the_json_of_an_output(value: Any) -> None:
    seen: list[Any] = []

    def take(value: Any) -> None:
        seen.append(value)

    take.__annotations__["value"] = type(value)
    steps = [called("a", tool="give"), called("b", "a", tool="take", inputs={"value": "${a.output}"})]
    result = run_workflow(flow(*steps), capable(give=lambda: done(value), take=take))
    assert (dict(result.errors), seen, type(seen[0])) == ({}, [value], type(value))


def test_what_may_be_kept_is_whole_in_a_snapshot_and_in_a_result_as_json() -> None:
    deepest, less = nested(99, ["here"]), nested(98, ["here"])
    workflow = flow(called("a", tool="produce", expected_key="key"))
    tools = capable(produce=lambda: done(deepest))
    result = run_workflow(workflow, tools, inputs={"first": 1, "given": less})
    assert dict(result.errors) == {}
    snapshot = Snapshot.from_json(result.session.snapshot().to_json())
    assert [item.value for item in snapshot.select_all(MemoryItem)] == [1, less, deepest]
    assert [run.inputs for run in snapshot.select_all(WorkflowRun)] == [{"first": 1, "given": less}]
    told = result.to_dict()
    assert (told["outputs"], told["memory"]) == ({"a": deepest}, {"first": 1, "given": less, "key": deepest})
    with pytest.raises(WorkflowError):
        run_workflow(workflow, tools, inputs={"given": deepest})


class Connection:
    def __repr__(self) -> str:
        return "<Connection to postgres://u:hunter2@h>"


class Greedy(dict[str, int]):
    def __sizeof__(self) -> int:
        raise MemoryError


PLAIN = "use text, numbers, lists and objects"
AN_OBJECT = "an object of type Connection, which has no form in JSON"
UNKEPT: list[Any] = [
    Connection(),
    {"in": [Connection()]},
    {("a", 1): 2},
    {1: 2, "1": 3},
    -(10**3000),
    [10**3000],
    nested(101),
    Greedy(a=1),
]


def test_an_output_that_json_cannot_hold_is_an_error_of_its_step(snapshot: SnapshotAssertion) -> None:
    steps = called("a", tool="produce", expected_key="key"), thought("b", "a"), thought("c")
    told_of = list[str]()
    for value in [*map(done, UNKEPT), *UNKEPT[:2]]:
        result = run_workflow(flow(*steps), capable(produce=lambda value=value: value))
        assert (list(result.errors), dict(result.memory)) == (["a"], {})
        assert states(result.workflow) == {"a": "failed", "b": "pending", "c": "completed"}
        error = result.errors["a"]
        told_of.append(f"{error.code}: {error.message} ({error.cause})\n")
    assert "".join(told_of) == snapshot


def test_an_input_without_a_json_form_is_an_error_of_its_step() -> None:
    steps = flow(called("a", inputs={"value": [Connection()]}), thought("b", "a"), thought("c"))
    result = run_workflow(steps, capable(work=lambda value: value))
    message = f"the inputs of this step contain {AN_OBJECT}; {PLAIN}"
    assert dict(result.errors) == {"a": told(message, "bad_result")}
    assert states(result.workflow) == {"a": "failed", "b": "pending", "c": "completed"}


def test_a_number_of_three_thousand_digits_is_an_output() -> None:
    value = [10**3000 - 1, -(10**3000) + 1]
    assert dict(run_workflow(flow(called("a")), capable(work=lambda: value)).outputs) == {"a": value}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Connection(), f"the input '{{db}}' holds {AN_OBJECT}; {PLAIN}"),
        ("x" * 33_000_000, "the input '{db}' takes more than 32 MB; store the data and pass where it is"),
    ],
)  # fmt: skip
def test_a_run_does_not_begin_with_an_input_that_it_cannot_keep(value: Any, message: str) -> None:
    given: dict[str, Any] = {"session": Session(), "inputs": {"x": 1, "{db}": value}}
    assert refusal(WorkflowError, run_workflow, flow(thought("a")), capable(), **given) == message
    assert given["session"].snapshot().slices == {}


TOO_MUCH = (
    "the inputs of this step come to more than 32 MB; refer to parts of the outputs, or let the earlier step "
    "store its data and return where it is"
)


def doubled(levels: int) -> dict[str, Any]:
    """Inputs that hold one output so often, at so many levels."""
    value: Any = "${a.output}"
    for _ in range(levels):
        value = [value, value]
    return {"value": value}


def taking(output: Any, inputs: dict[str, Any]) -> tuple[WorkflowResult, list[Any]]:
    """A run whose second step is given the output of the first, and what it got."""
    seen: list[Any] = []
    workflow = flow(called("a", tool="produce"), called("b", "a", tool="take", inputs=inputs), thought("c"))
    take = Tool("take", "", seen.append, parameters=FreeModel())
    return run_workflow(workflow, capable(take, produce=lambda: done(output))), seen


def test_inputs_may_come_to_32_mb() -> None:
    output = "x" * 1_000_000
    result, seen = taking(output, {"value": ["${a.output}"] * 31})
    assert (dict(result.errors), seen[0]["value"]) == ({}, [output] * 31)


@pytest.mark.parametrize(
    ("output", "inputs"),
    [
        ("x" * 50_000, {"value": "${a.output}" * 18_000}),
        ("\u00fc" * 30_000, {"value": "${a.output}-" * 5_000}),
        ("x" * 1_000_000, {"value": ["${a.output}"] * 33}),
        ("x" * 1_000_000, {"value": "\U0001f600" + "${a.output}" * 9}),
        (["x" * 1_000] * 1_000, {"value": "${a.output}" * 33}),
        ({"deep": ["x" * 1_000] * 1_000}, doubled(8)),
        ("x" * 100_000, doubled(12)),
        ("x", {"value": "y" * 33_000_000}),
    ],
    ids=range(8),
)  # fmt: skip
def test_too_large_inputs_are_an_error_before_they_are_built(output: Any, inputs: dict[str, Any]) -> None:
    tracemalloc.start()
    try:
        result, seen = taking(output, inputs)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (dict(result.errors), seen) == ({"b": told(TOO_MUCH, "too_large")}, [])
    assert result.outputs["c"] == "Do c"
    assert peak < 200_000_000


def test_an_output_may_take_32_mb_and_no_more() -> None:
    most = "x" * (32_000_000 - getsizeof(""))
    tools = {"a": lambda: most, "b": lambda: [most[:-100]], "c": lambda: most + "x"}
    result = run_workflow(flow(*(called(name, tool=name) for name in tools)), capable(**tools))
    message = "c returned more than 32 MB, which is too much to keep"
    message += "; let it store its data and return where it is"
    assert dict(result.errors) == {"c": told(message, "too_large")}


def test_a_run_keeps_so_much_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    output = "x" * 1_000
    monkeypatch.setattr("planning.workflow.run.values.MOST_KEPT", 4 * getsizeof(output))
    steps, tools = flow(*(called(each) for each in "abcde")), capable(work=lambda: output)
    session, inputs = Session(), {"given": output[:300]}
    message = (
        "with the output of work the run would keep more than 256 MB; let work store its data and return "
        "where it is"
    )
    for _ in "12":
        result = run_workflow(steps, tools, session=session, inputs=inputs, max_parallel=1)
        assert dict(result.errors) == {name: told(message, "too_large") for name in "de"}
        assert list(result.outputs) == ["a", "b", "c"]
    alone = run_workflow(steps, tools, max_parallel=1)
    assert (list(alone.outputs), list(alone.errors)) == (["a", "b", "c", "d"], ["e"])


def test_a_run_keeps_256_mb() -> None:
    output, steps = "x" * 31_990_000, flow(*(called(each) for each in "abcdefghi"))
    result = run_workflow(steps, capable(work=lambda: output), max_parallel=1)
    assert (list(result.outputs), list(result.errors)) == ([*"abcdefgh"], ["i"])


def test_a_large_value_is_copied_beside_the_event_loop() -> None:
    threads: list[threading.Thread] = []

    class Watched(dict[str, Any]):
        def __sizeof__(self) -> int:
            threads.append(threading.current_thread())
            return super().__sizeof__()

    async def produce(text: str) -> Any:
        return done(Watched(rows=[text]))

    async def take(value: Any) -> int:
        return len(value)

    steps = list[WorkflowStep]()
    for name, text in (("a", "x"), ("b", "x" * 2_000_000)):
        steps.append(called(name, tool="produce", inputs={"text": text}))
        steps.append(called(f"take {name}", name, tool="take", inputs={"value": f"${{{name}.output}}"}))
    result = run_workflow(flow(*steps), capable(produce=produce, take=take))
    assert result.status == "completed"
    assert Counter(thread is threading.main_thread() for thread in threads) == {True: 2, False: 1}


def test_thousands_of_steps_complete() -> None:
    steps = [thought(f"s{n}", *([f"s{n - 1}"] if n else [])) for n in range(4_000)]
    result = run_workflow(flow(*steps), capable())
    assert (result.status, dict(result.errors)) == ("completed", {})
    plan = plan_of(result.session)
    assert (plan.status, set(plan_states(result.session))) == ("completed", {"done"})
    assert len(result.session.select_all(StepRecord)) == len(steps)


def test_inputs_nested_deeper_than_the_stack_are_an_error_of_their_step_or_arrive() -> None:
    deep: Any = "${a.output}"
    for _ in range(sys.getrecursionlimit()):
        deep = [deep]
    steps = [thought("a"), called("b", "a", inputs={"value": deep}), thought("c", "a")]
    result = run_workflow(flow(*steps), capable(work=lambda value: 1))
    assert result.outputs["c"] == "Do c"
    assert ("b" in result.errors) is not ("b" in result.outputs)


def test_a_session_that_runs_out_of_memory_stops_the_run_which_can_be_resumed() -> None:
    is_full = [True]

    def keep(_slice: tuple[Any, ...], event: StepChanged) -> tuple[Any, ...]:
        if event.record.status == "completed" and is_full:
            raise MemoryError
        return ()

    session = Session()
    session.register_reducer(StepChanged, keep, Capabilities)
    message = refusal(WorkflowError, run_workflow, flow(thought("a")), capable(), session=session)
    assert message == "memory ran out; run the workflow in this session again to resume it"
    is_full.clear()
    assert run_workflow(flow(thought("a")), capable(), session=session).status == "completed"
    assert len(session.select_all(WorkflowRun)) == 1
