"""Every source has a report that never raises: each finding once, in order, with its place."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import count
from types import MappingProxyType
from typing import Any, NoReturn

import pytest
from plan_findings import check_words, nested, stored
from syrupy.assertion import SnapshotAssertion

from planning.reading import python_values
from planning.workflow import (
    Capabilities,
    Finding,
    Report,
    Workflow,
    WorkflowStep,
    dump_workflow,
    validate,
    validate_workflow,
)

STEP = {"step_id": "a", "description": "d", "type": "tool", "name": "search", "inputs": {}, "depends_on": []}


def codes(findings: tuple[Finding, ...]) -> list[str]:
    return [each.code for each in findings]


def test_of_very_many_errors_the_first_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "MOST_ERRORS", 3)
    source = [{**STEP, "step_id": str(number), "depends_on": ["x"]} for number in range(5)]
    report = validate_workflow(source)
    assert codes(report.errors) == ["unknown_dependency"] * 3 + ["too_many_errors"]
    assert report.errors[-1].message == "there are 2 more errors than are listed"
    assert codes(validate_workflow(source[:3]).errors) == ["unknown_dependency"] * 3
    report = validate_workflow([*source, {**STEP, "depends_on": ["x"]}])
    assert report.errors[-1].message == "there are many more errors than are listed"


def test_however_many_warnings_there_are_they_fail_no_plan() -> None:
    source: list[Any] = [STEP, {**STEP, "step_id": "b", "depends_on": ["a"] * 20_002}]
    report = validate_workflow(source)
    assert report.ok
    assert codes(report.warnings) == ["repeated_dependency"] * 20_000


def test_more_steps_than_are_read_are_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "MOST_STEPS", 2)
    report = validate_workflow([{"anything": 1}] * 3)
    assert told(report) == [("too_long", "", "the workflow has 3 steps, the limit is 2")]


def calculate_tip(bill: float, percent: int = 10, note: str = "") -> None: ...


def calculate_discount(price: float) -> None: ...


KNOWN = Capabilities(tools=[calculate_tip, calculate_discount], handlers=["notify"], agents=["researcher"])


def check_prompts(snapshot: SnapshotAssertion, *, is_taken: bool) -> None:
    """What a model reads of each stored plan."""
    cases = stored(snapshot)
    reports = {name: validate_workflow(source, KNOWN) for name, source in cases.items()}
    told = (f"# {name}\n{json.dumps(cases[name])}\n{each.to_prompt()}\n" for name, each in reports.items())
    assert "\n".join(told) == snapshot
    assert {each.ok for each in reports.values()} == {is_taken}


def test_a_wrong_plan_is_refused_with_the_remedy(snapshot: SnapshotAssertion) -> None:
    check_prompts(snapshot, is_taken=False)


def test_a_plan_that_can_be_meant_in_one_way_is_taken(snapshot: SnapshotAssertion) -> None:
    check_prompts(snapshot, is_taken=True)


TEXT = json.dumps([STEP])
SEARCHING = Capabilities(tools=["search"])


def _refuse(*_given: object, **_named: object) -> NoReturn:
    raise RuntimeError("never to be asked")


_fail: Any = _refuse


class FailingText(str):
    __slots__ = ()
    __str__ = __repr__ = __len__ = __iter__ = __getitem__ = __contains__ = __format__ = __eq__ = _fail
    encode = startswith = strip = isascii = removeprefix = _fail

    __hash__ = str.__hash__


class FailingList(list[Any]):
    __iter__ = __len__ = __getitem__ = __repr__ = __eq__ = __bool__ = _fail


class FailingDict(dict[str, Any]):
    __iter__ = __len__ = __getitem__ = __repr__ = __eq__ = __contains__ = _fail
    items = keys = values = get = _fail


class FailingObject:
    __str__ = __repr__ = __bool__ = __eq__ = __len__ = __iter__ = _fail
    __hash__ = object.__hash__


class NoClass:
    __class__: Any = property(_fail)


class FailingMapping(Mapping[str, Any]):
    """A mapping of which no value can be read."""

    def __iter__(self) -> Iterator[str]:
        return iter(["steps"])

    def __len__(self) -> int:
        return 1

    __getitem__ = _fail


class Endless(FailingMapping):
    """A mapping whose names never end."""

    def __iter__(self) -> Iterator[str]:
        return map(str, count())

    def __getitem__(self, name: str) -> Any:
        return None


def holding_itself() -> list[Any]:
    made: list[Any] = []
    made += [made, made]
    return made


def shared_by_all(levels: int) -> list[Any]:
    """A list whose items are one list, and so on: small, and as a tree very large."""
    made: list[Any] = [1]
    for _ in range(levels):
        made = [made, made]
    return made


def released() -> memoryview:
    view = memoryview(b"[]")
    view.release()
    return view


def step(**fields: Any) -> WorkflowStep:
    return WorkflowStep(**{"step_id": "a", "description": "d", **fields})


workflow: Any = Workflow  # takes other types than it says


def with_input(value: object) -> list[dict[str, Any]]:
    return [{**STEP, "inputs": {"x": value}}]


def told(report: Report) -> list[tuple[str, str, str]]:
    return [(each.code, each.pointer, each.message) for each in report.errors]


def checked(source: object) -> Report:
    """The report, when each of its forms could be made."""
    report = validate_workflow(source, SEARCHING)
    check_words(report)
    return report


NOT_TEXT: list[object] = [None, {1}, FailingObject(), NoClass(), released()]


def test_what_is_no_text_is_refused_in_words(snapshot: SnapshotAssertion) -> None:
    assert "".join(f"{told(checked(source))}\n" for source in NOT_TEXT) == snapshot


READ: dict[str, object] = {
    "bytes": TEXT.encode(),
    "a bytearray": bytearray(TEXT.encode()),
    "a memoryview": memoryview(TEXT.encode()),
    "a text that fails": FailingText(TEXT),
    "a list that fails": FailingList([STEP]),
    "a dict that fails": [FailingDict(STEP)],
    "a mapping": [MappingProxyType(STEP)],
    "a tuple": (STEP,),
    "names that fail": [{FailingText(name): value for name, value in STEP.items()}],
    "a text within that fails": [{**STEP, "description": FailingText("d")}],
    "a workflow with a mapping within its inputs": Workflow(
        steps=(step(type="tool", name="search", inputs={"x": MappingProxyType({"y": [1]})}),)
    ),
    "a workflow whose steps are a list": workflow(steps=[step()]),
}


@pytest.mark.parametrize("what", READ)
def test_what_can_be_read_is_read_however_it_behaves(what: str) -> None:
    assert checked(READ[what]).errors == ()


BROKEN: dict[str, object] = {
    "a list that is too deep": with_input(nested(100_000)),
    "two names that are one": [{**STEP, "inputs": {"?": 1, "\ud800": 2}}],
    "ten megabytes": "x" * 10_000_000,
    "bytes of another encoding": TEXT.encode("utf-16"),
    "a mapping that cannot be read": FailingMapping(),
    "a generator": iter([STEP]),
    "steps that are a number": workflow(steps=3),
    "a step that is nothing": workflow(steps=(None,)),
    "a step without a class": workflow(steps=(NoClass(),)),
    "a goal that is half a character": workflow(goal="\ud800"),
    "inputs that hold themselves": workflow(steps=(step(inputs={"x": holding_itself()}),)),
    "inputs that fail": workflow(steps=(step(inputs=FailingMapping()),)),
    "an input that is a function": workflow(steps=(step(inputs={"x": print}),)),
    "lists that are numbers": workflow(steps=(step(outputs=3, depends_on=None, output_path=4),)),
    "a workflow that was never made": object.__new__(Workflow),
    "a step that was never made": workflow(steps=(object.__new__(WorkflowStep),)),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_has_errors(what: str) -> None:
    assert not checked(BROKEN[what]).ok


@pytest.mark.parametrize("what", [name for name in BROKEN if isinstance(BROKEN[name], Workflow)])
def test_a_workflow_that_is_refused_cannot_be_written_so_that_it_is_taken(what: str) -> None:
    source: Any = BROKEN[what]
    try:
        assert not validate_workflow(dump_workflow(source)).ok
    except ValueError as error:
        assert str(error).isascii()


@pytest.mark.parametrize("source", [Endless(), shared_by_all(60)], ids=["endless", "shared"])
def test_what_never_ends_is_too_long(source: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_values, "MOST_VALUES", 1000)
    assert told(checked(source)) == [("too_long", "", "the workflow has more than 1000 values")]


@pytest.mark.parametrize("limit", [0, 640])
def test_how_many_digits_python_reads_is_what_a_number_may_have(limit: int) -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(limit)
    try:
        for source in (TEXT.replace("{}", "{'x': %s}" % ("1" * 641)), with_input(10**640)):
            assert [each.code for each in checked(source).errors] == ["bad_number"] * (limit > 0)
        assert checked(with_input(10**639)).errors == ()
    finally:
        sys.set_int_max_str_digits(before)


NEAR_THE_LIMIT: dict[str, object] = {
    "a plan": TEXT,
    "a plan as careless as can be": "```\n[{'step_id':'a',}, {]",
    "a deep plan": json.dumps(with_input(nested(50))),
    "a parsed plan": with_input(nested(50)),
    "a workflow": Workflow(steps=(step(),)),
    "no plan": "none",
}


@pytest.mark.parametrize("what", NEAR_THE_LIMIT)
def test_the_report_is_the_same_near_the_recursion_limit(what: str) -> None:
    source = NEAR_THE_LIMIT[what]
    expected = validate_workflow(source, SEARCHING)

    def descend(levels: int) -> Report:
        return descend(levels - 1) if levels else validate_workflow(source, SEARCHING)

    levels, reports = 0, list[Report]()
    with suppress(RecursionError):  # there is no room for a single call
        while True:
            reports.append(descend(levels))
            levels += 25 if levels < sys.getrecursionlimit() - 250 else 1
    assert len(reports) > 50
    assert all(each == expected for each in reports)
