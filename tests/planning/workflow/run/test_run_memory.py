"""The memory of a run: what steps store, what is skipped because it is there, and what conditions may be."""

from __future__ import annotations

from typing import Any

import pytest
from run_cases import called, capable, changes, flow, heard, plan_notes, states, thought, told

from planning.workflow import WorkflowResult, run_workflow
from planning.workflow.conditions import ConditionInvalid, is_done
from planning.workflow.run.memory import MemoryItem
from session import Session

DATA = {"Revenue": {"2023": 5, "2024": None}, "rows": [{"id": 7}, {"id": 8}]}


def run(*steps: Any, **options: Any) -> tuple[WorkflowResult, list[Any]]:
    calls: list[Any] = []

    def fetch() -> Any:
        calls.append("fetch")
        return DATA

    def note(value: Any) -> Any:
        calls.append(value)
        return value

    return run_workflow(flow(*steps), capable(fetch=fetch, note=note), **options), calls


def items(result: WorkflowResult) -> list[tuple[Any, ...]]:
    found = result.session.select_all(MemoryItem)
    assert all(item.created_at.endswith("+00:00") for item in found)
    return [(item.type, item.key, item.value, item.step_id) for item in found]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (None, DATA),
        (("Revenue", "2023"), 5),
        (("Revenue", "2024"), None),
        (("rows", "1", "id"), 8),
    ],
)
def test_the_value_at_the_output_path_is_stored_under_the_key(path: Any, value: Any) -> None:
    result, _ = run(called("a", tool="fetch", expected_key="key", output_path=path))
    assert (dict(result.memory), dict(result.outputs)) == ({"key": value}, {"a": DATA})
    assert items(result) == [("step_result", "key", value, "a")]


@pytest.mark.parametrize("key", ["key", None])
def test_a_path_that_leads_nowhere_is_an_error_and_nothing_is_stored(key: str | None) -> None:
    result, calls = run(
        called("a", tool="fetch", expected_key=key, output_path=("Revenue", "2025")), thought("b", "a")
    )
    message = "the output.Revenue.2025 is missing: the output.Revenue has 2023, 2024"
    assert (dict(result.errors), calls) == ({"a": told(message)}, ["fetch"])
    assert (dict(result.memory), dict(result.outputs), items(result)) == ({}, {}, [])
    assert states(result.workflow) == {"a": "failed", "b": "pending"}


# Skipping

TRUE = ["True", "memory['key'] == 5", "key > 4 and len(memory) == 1"]


@pytest.mark.parametrize("check", TRUE)
def test_a_true_condition_skips_the_step_and_keeps_the_stored_value(check: str) -> None:
    session = Session()
    records = heard(session)
    step = called("a", tool="fetch", expected_key="key", done_check=check)
    result, calls = run(step, inputs={"key": 5}, session=session)
    assert (calls, states(result.workflow), result.warnings) == ([], {"a": "completed, skipped"}, ())
    assert items(result) == [("input", "key", 5, None), ("step_skipped", "key", None, "a")]
    assert (dict(result.memory), dict(result.outputs)) == ({"key": 5}, {"a": 5})
    assert changes(records) == [("a", "completed")]
    assert (records[0].skipped, records[0].attempt, records[0].called) == (True, 0, False)
    assert result.workflow.steps[0].completed_at == records[0].at
    assert plan_notes(session) == [("done", ("Skipped: its done_check is true",))]


def ignored(check: str) -> tuple[str, ...]:
    """The warning for a condition that says neither yes nor no."""
    with pytest.raises(ConditionInvalid) as invalid:
        is_done(check, {"key": 5}, "key")
    return (f"step a: done_check ignored: {invalid.value}",)


@pytest.mark.parametrize(
    ("check", "warnings"),
    [
        *((check, ()) for check in ("False", "memory['other'] == 5", "key > 'text'")),
        *((check, ignored(check)) for check in ("(", "__import__('os')", "key")),
    ],
)
def test_a_condition_that_is_not_true_runs_the_step_and_is_a_warning_if_it_is_invalid(
    check: str, warnings: tuple[str, ...]
) -> None:
    result, calls = run(called("a", tool="fetch", expected_key="key", done_check=check), inputs={"key": 5})
    assert (calls, states(result.workflow), result.status) == (["fetch"], {"a": "completed"}, "completed")
    assert ([item[0] for item in items(result)], result.warnings) == (["input", "step_result"], warnings)


@pytest.mark.parametrize(
    ("path", "reference"),
    [
        (None, "${a.output}"),
        (("Revenue", "2023"), "${a.output.Revenue.2023}"),
        (("rows", "0", "id"), "${a.output.rows[0].id}"),
        (("rows", "1"), "${a.output.rows.1}"),
    ],
)
def test_references_find_the_stored_value_of_a_skipped_step_where_its_output_would_have_it(
    path: Any, reference: str
) -> None:
    def steps(**fields: Any) -> list[Any]:
        behind = called("b", "a", tool="note", inputs={"value": reference})
        return [called("a", tool="fetch", expected_key="key", output_path=path, **fields), behind]

    kept = run(*steps())[0].memory["key"]
    result, calls = run(*steps(done_check="True"), inputs={"key": kept})
    assert (calls, result.outputs.get("b")) == ([kept], kept)


def test_a_step_is_skipped_whatever_other_code_has_stored_under_its_key() -> None:
    session = Session()

    def keep() -> None:
        session.dispatch(MemoryItem(type="input", key="key", value=[session]))

    steps = called("a", tool="keep"), called("b", "a", expected_key="key", done_check="True")
    result = run_workflow(flow(*steps), capable(keep=keep), session=session)
    assert (result.status, result.errors) == ("completed", {})
    assert states(result.workflow) == {"a": "completed", "b": "completed, skipped"}
    assert result.outputs["b"] == [repr(session)]


HITS = called("find", tool="fetch", expected_key="hit", output_path=("hits", "2"), done_check="True")


@pytest.mark.parametrize("reference", ["${find.output.hits[0]}", "${find.output}"])
def test_what_a_skipped_step_did_not_keep_is_missing_and_never_made_up(reference: str) -> None:
    inputs = {"value": f"It is {reference}."}
    result, calls = run(HITS, called("b", "find", tool="note", inputs=inputs), inputs={"hit": "third"})
    message = f"'{reference}' has no value: only find.output.hits.2 was kept; refer to that"
    assert (calls, result.status, dict(result.errors)) == ([], "failed", {"b": told(message)})
    assert dict(result.outputs) == {}


def test_what_a_skipped_step_kept_is_found_and_nothing_beside_it() -> None:
    steps = [
        called("b", "find", tool="note", inputs={"value": "${find.output.hits[2].url}"}),
        called("c", "find", tool="note", inputs={"value": "${find.output.hits[2].title}"}),
    ]
    result, calls = run(HITS, *steps, inputs={"hit": {"url": "x"}})
    message = "find.output.hits.2.title is missing: find.output.hits.2 has url"
    assert (calls, dict(result.outputs), dict(result.errors)) == (["x"], {"b": "x"}, {"c": told(message)})


def test_a_resumed_run_knows_of_a_skipped_step_what_was_there_when_it_was_skipped() -> None:
    steps = [
        HITS,
        called("other", "find", tool="fetch", expected_key="hit"),
        called("fail", "other", tool="nobody"),
        called("b", "fail", tool="note", inputs={"value": "${find.output.hits[2]}"}),
    ]
    first, _ = run(*steps, inputs={"hit": "third"})
    assert dict(first.memory) == {"hit": DATA}
    mended = [*steps[:2], thought("fail", "other"), steps[3]]
    result, calls = run(*mended, inputs={"hit": "third"}, session=first.session)
    assert (result.status, calls) == ("completed", ["third"])
