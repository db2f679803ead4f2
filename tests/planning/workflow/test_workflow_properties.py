"""Laws of workflow documents, and texts of them whose every place is known."""

from __future__ import annotations

import json
import re
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning.reading import Document, read_document
from planning.reading.found import Found
from planning.workflow import Workflow, WorkflowStep, dump_workflow, validate_workflow
from planning.workflow.wire.form import WORKFLOW

Place = tuple[str | int, ...]
Span = tuple[int, int]

odd_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.text(
    "\"'\\/ ,:[]{}#\n\r\t*`~\u00e9\u2028\U0001f600\x00au0x$", max_size=8
)
"""Any text, and one of characters that mean something somewhere."""

_NAMING = re.compile(r"[<#$]|\{\{")  # what may name a step, here or in other formats
_OF_THOUGHTS = 3  # a thinking step has an id, a description and dependencies
_VISIBLE = re.compile(r"[^\s\x00-\x1f\x7f]")
_NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
_PLAIN = odd_texts.map(lambda text: _NAMING.sub("~", text))  # names no step
_SCALARS = st.none() | st.booleans() | _NUMBERS | _PLAIN


plain_values = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(odd_texts, inner, max_size=3),
    max_leaves=6,
)
"""Any JSON value of a few levels, without references."""


@st.composite
def workflows(draw: st.DrawFn, form: int = 2) -> Workflow:
    """A valid workflow without anything remarkable, of a version, or 0 for the older form."""
    number = draw(st.integers(1, 4))
    ids: list[str] = draw(
        st.lists(st.integers(-9, 10**6).map(str), min_size=number, max_size=number, unique=True)
        if form == 0
        else st.lists(odd_texts.filter(_VISIBLE.search), min_size=number, max_size=number, unique=True)
    )
    steps = tuple(draw(_steps(form, each, ids[:at])) for at, each in enumerate(ids))
    if form == 1:
        return Workflow(steps=steps)
    return Workflow(
        goal=draw(odd_texts),
        steps=steps,
        status=draw(st.sampled_from(["pending", "in_progress", "completed", "failed"])),
        created_at=draw(st.none() | odd_texts),
        completed_at=draw(st.none() | odd_texts),
        owner=draw(odd_texts),
        can_modify=draw(st.booleans()),
    )


@st.composite
def _steps(draw: st.DrawFn, form: int, step_id: str, earlier: list[str]) -> WorkflowStep:
    depends_on = draw(st.lists(st.sampled_from(earlier), unique=True)) if earlier else []
    said: dict[str, Any] = {"step_id": step_id, "description": draw(odd_texts)}
    said["depends_on"] = tuple(depends_on)
    kinds = {0: ["tool", "agent", ""], 1: ["tool", "handler"], 2: ["tool", "handler", "agent", ""]}[form]
    match draw(st.sampled_from(kinds)):
        case "agent":
            said["agent"] = draw(odd_texts.filter(bool))
        case "tool" | "handler" as kind:
            said |= {"type": kind, "name": draw(odd_texts.filter(bool))}
    values = plain_values | _references(depends_on)
    said["inputs"] = draw(st.dictionaries(odd_texts, values, max_size=3 if len(said) > _OF_THOUGHTS else 0))
    if form > 0:
        said["outputs"] = draw(st.none() | st.just(("x", "é")))
    if form != 1:
        said |= draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "expected_key": odd_texts.map(lambda text: f"{text} of {step_id}"),
                    "output_path": st.lists(odd_texts, min_size=1, max_size=3).map(tuple),
                    "done_check": st.sampled_from(["True", "len(memory) > 0", "memory.get('x') == 'é'"]),
                    "timeout": st.none() | st.floats(0.001, 1_000_000),
                    "retries": st.integers(0, 100),
                    "on_failure": st.sampled_from(["fail", "skip_dependents", "continue"]),
                    "status": st.sampled_from(["pending", "in_progress", "completed", "failed"]),
                    "completed_at": odd_texts,
                    "skipped": st.booleans(),
                },
            )
        )
    return WorkflowStep(**said)


def _references(ids: list[str]) -> st.SearchStrategy[str]:
    """Texts with references to the prompt and to steps, but no others."""
    named = [each for each in ids if re.fullmatch(r"[^.\[\]{}$\s]+", each)]
    known = ["${user_prompt}", *(f"${{{each}.output.x}}" for each in named)]
    return st.lists(st.sampled_from([*known, " and ", "$", "}"]), max_size=4).map("".join)


def documents(workflow: Workflow, form: int) -> Any:
    """What a document of a form says for a workflow, written in the plainest way."""
    steps = [_document_of(step, form) for step in workflow.steps]
    if form == 1:
        return steps
    kept = ("goal", "status", "created_at", "completed_at", "owner", "can_modify")
    said = {name: getattr(workflow, name) for name in kept}
    return {**({"schema_version": 2} if form == 2 else {}), **said, "steps": steps}


def _document_of(step: WorkflowStep, form: int) -> dict[str, Any]:
    said = {name: getattr(step, name) for name in WorkflowStep.__slots__}
    said = {name: list(value) if isinstance(value, tuple) else value for name, value in said.items()}
    if form == 0:
        said["step_id"] = int(step.step_id)
        said["dependencies"] = [int(each) for each in said.pop("depends_on")]
        said["parameters"] = said.pop("inputs")
        said["tool"] = said.pop("name")
        return {name: value for name, value in said.items() if name not in {"type", "outputs"}}
    if form == 1:
        fields = ("step_id", "description", "type", "name", "inputs", "outputs", "depends_on")
        said = {name: said[name] for name in fields}
    optional = {"type", "name", "agent", "outputs"}
    return {name: value for name, value in said.items() if value is not None or name not in optional}


@attrs.frozen
class Written:
    """A text, and by path the spans of its values and names, and where the characters of strings start."""

    text: str
    values: dict[Place, Span]
    keys: dict[Place, Span]
    characters: dict[Place, list[int]]


@st.composite
def written(draw: st.DrawFn, value: Any) -> Written:
    """A text in JSON, spaced and escaped at random; or a careless one, in single quotes and with comments."""
    writer = _Writer(draw, draw(st.sampled_from("\"'")))
    writer.gap()
    writer.value(value, ())
    writer.gap()
    return attrs.evolve(writer.made, text=writer.text)


class _Writer:
    def __init__(self, draw: st.DrawFn, quote: str) -> None:
        self.draw = draw
        self.quote = quote
        self.text = ""
        self.made = Written("", {}, {}, {})

    def gap(self) -> None:
        comments = ["/* a, \"b' }] */", "// it's ] \"}\n"] if self.quote == "'" else []
        self.text += self.draw(st.sampled_from(["", "", " ", "\n", "\r\n  ", "\t", "\r", *comments]))

    def value(self, value: Any, path: Place) -> None:
        start = len(self.text)
        if isinstance(value, dict):
            self.container("{}", [(name, each) for name, each in value.items()], path)
        elif isinstance(value, list):
            self.container("[]", list(enumerate(value)), path)
        elif isinstance(value, str):
            self.made.characters[path] = self.string(value)
        else:
            self.text += json.dumps(value)
        self.made.values[path] = start, len(self.text)

    def container(self, brackets: str, held: list[tuple[Any, Any]], path: Place) -> None:
        self.text += brackets[0]
        self.gap()
        for at, (name, each) in enumerate(held):
            start = len(self.text)
            if brackets == "{}":
                self.string(name)
                self.made.keys[(*path, name)] = start, len(self.text)
                self.gap()
                self.text += ":"
                self.gap()
            self.value(each, (*path, name))
            if brackets == "[]":
                self.made.keys[(*path, name)] = self.made.values[(*path, name)]
            self.gap()
            if at < len(held) - 1:
                self.text += ","
                self.gap()
        self.text += brackets[1]

    def string(self, string: str) -> list[int]:
        self.text += self.quote
        offsets = []
        for each in string:
            offsets.append(len(self.text))
            self.text += self.character(each)
        offsets.append(len(self.text))
        self.text += self.quote
        return offsets

    def character(self, each: str) -> str:
        if each in (self.quote, "\\"):
            return "\\" + each
        return json.dumps(each)[1:-1] if each < " " or self.draw(st.booleans()) else each


each_form = pytest.mark.parametrize("form", [2, 1, 0], ids=["version 2", "version 1", "the older form"])
some = settings(max_examples=settings().max_examples // 3)  # each draws much


@some
@given(workflows())
def test_a_written_workflow_reads_back_equal_and_is_checked_as_its_text(workflow: Workflow) -> None:
    text = dump_workflow(workflow)
    report = validate_workflow(text)
    assert (report.errors, report.warnings, report.workflow) == ((), (), workflow)
    assert dump_workflow(report.workflow) == text
    assert text.isascii()
    assert validate_workflow(workflow) == report


@each_form
@some
@given(data=st.data())
def test_a_document_means_its_workflow_and_has_its_places(form: int, data: st.DataObject) -> None:
    workflow = data.draw(workflows(form))
    value = documents(workflow, form)
    for source in (value, json.dumps(value)):
        report = validate_workflow(source)
        assert (report.errors, report.warnings, report.workflow) == ((), (), workflow)
    made = data.draw(written(value))
    report = validate_workflow(made.text)
    assert (report.errors, report.workflow) == ((), workflow)
    document = read_document(made.text, WORKFLOW)
    assert repr(document.value) == repr(value)
    check_places(document, made)


def check_places(document: Document, made: Written) -> None:
    """Every value, key and character is found where it was written."""
    for path, span in made.values.items():
        assert document.span(Found("c", "m", "h", path)) == span
        assert document.path_at(span[0]) == document.path_at(span[1] - 1) == path
    for path, span in made.keys.items():
        assert document.span(Found("c", "m", "h", path, at_key=True)) == span
        assert document.path_at(span[0]) == path
    for path, offsets in made.characters.items():
        last = len(offsets) - 1
        for part in {(0, last), (0, min(1, last)), (max(last - 1, 0), last), (last // 2, last // 2)}:
            found = Found("c", "m", "h", path, within=part)
            assert document.span(found) == (offsets[part[0]], offsets[part[1]])
