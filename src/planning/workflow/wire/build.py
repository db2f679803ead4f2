"""From a document to its steps, and from a workflow to JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from planning.reading import plain_value
from planning.reading.found import Path
from planning.workflow.codes import pointer_of
from planning.workflow.drafts import Draft
from planning.workflow.model import Workflow, WorkflowStep
from planning.workflow.wire.form import WORKFLOW, Form, is_numbered

_TYPES = frozenset({"tool", "handler"})
_STATE = ("status", "completed_at", "skipped")
_CARE = ("timeout", "retries", "on_failure")
_EXTRAS = ("expected_key", "done_check", *_CARE, *_STATE)
_FURTHER = frozenset({*_EXTRAS, "output_path"})
_NO_STEP = WorkflowStep(step_id="", description="")
_NO_WORKFLOW = Workflow()
_WHOLE = ("status", "created_at", "completed_at", "owner", "can_modify")


def draft_steps(form: Form) -> list[Draft]:
    """The steps as far as they can be read; what is not an object is omitted."""
    steps = enumerate(form.steps)
    return [_draft(index, form.step_path(index), step) for index, step in steps if isinstance(step, dict)]


def _draft(index: int, path: Path, step: Mapping[str, Any]) -> Draft:
    get = step.get
    step_id, outputs = get("step_id"), None
    depends: Sequence[str | None]
    if is_numbered(step):
        inputs_field, depends_field, tool, agent = "parameters", "dependencies", get("tool"), get("agent")
        step_id, name_field = _number(step_id), "tool" if agent is None else "agent"
        kind, name = ("tool", tool) if agent is None else ("agent", agent) if tool is None else (None, None)
        given = get(depends_field)
        depends = [_number(each) for each in given] if type(given) is list else ()
    else:
        inputs_field, depends_field, name_field = "inputs", "depends_on", "name"
        kind, name, outputs, given = get("type"), get("name"), _texts(get("outputs")), get(depends_field)
        if not isinstance(kind, str) or kind not in _TYPES:
            kind = name = None
            if "agent" in step and "type" not in step and "name" not in step:
                kind, name, name_field = "agent", get("agent"), "agent"
        depends = given if type(given) is list else ()
        if _texts(given) is None:
            depends = [each if isinstance(each, str) else None for each in depends]
    is_called, inputs = isinstance(name, str) and name, get(inputs_field)
    return Draft(
        index,
        path,
        step,
        step_id if isinstance(step_id, str) and step_id else None,
        kind if is_called else None,
        name if is_called else None,
        name_field,
        inputs if isinstance(inputs, dict) else None,
        inputs_field,
        outputs,
        depends,
        depends_field,
    )


def _texts(value: object) -> list[str] | None:
    if type(value) is not list:
        return None
    for each in value:  # faster than all() for a few
        if type(each) is not str:
            return None
    return value


def _number(value: object) -> str | None:
    """The id that a number is, as text; JSON does not tell 1 from 1.0."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return str(value) if type(value) is int else None


def make_workflow(form: Form, drafts: list[Draft]) -> Workflow:
    """The workflow of a document that is valid."""
    steps = tuple(map(_make, drafts))
    if form.version == 1:
        return Workflow(steps=steps)
    whole = {name: form.document[name] for name in _WHOLE if name in form.document}
    return Workflow(goal=form.document["goal"], steps=steps, **whole)


def _make(draft: Draft) -> WorkflowStep:
    fields, is_agent = draft.fields, draft.type == "agent"
    further: dict[str, Any] = {}
    if not _FURTHER.isdisjoint(fields):
        further = {name: fields[name] for name in _EXTRAS if name in fields}
        path = fields.get("output_path")
        further["output_path"] = None if path is None else tuple(path)
        if "retries" in further:
            further["retries"] = int(further["retries"])  # JSON does not tell 2 from 2.0
    return WorkflowStep(
        step_id=str(draft.step_id),
        description=fields["description"],
        type=None if is_agent else draft.type,  # type: ignore[arg-type] # the schema has checked it
        name=None if is_agent else draft.name,
        agent=draft.name if is_agent else None,
        inputs=draft.inputs or {},
        outputs=None if draft.outputs is None else tuple(draft.outputs),
        depends_on=tuple(draft.depends_on),  # type: ignore[arg-type] # the same
        **further,
    )


def dump_workflow(workflow: Workflow) -> str:
    """Write a workflow as canonical JSON of version 2, which reads back equal.

    The fields are in the order of the schema, those with default values are omitted, and the text is
    ASCII, indented by two spaces, with a line break at its end.

    Args:
        workflow: What to write.

    Raises:
        ValueError: It holds something that JSON does not have.
    """
    document, found = plain_value(document_of(workflow), WORKFLOW)
    if found:
        raise ValueError(f"{pointer_of(found[0].path)}: {found[0].message}")
    return json.dumps(document, indent=2) + "\n"


def document_of(workflow: Workflow) -> dict[str, Any]:
    """The document of version 2 that says what a workflow says; its fields may hold anything."""
    document = {"schema_version": 2, "goal": getattr(workflow, "goal", None)}
    document |= _drop_defaults(workflow, _NO_WORKFLOW, _WHOLE)
    steps: Any = getattr(workflow, "steps", None)
    if type(steps) in {tuple, list}:
        steps = [_step(each) if issubclass(type(each), WorkflowStep) else each for each in steps]
    return {**document, "steps": steps}


def _step(step: WorkflowStep) -> dict[str, Any]:
    names = ("type", "name", "agent", "inputs", "outputs", "depends_on", "expected_key", "output_path")
    written = {name: getattr(step, name, None) for name in ("step_id", "description")}
    return written | _drop_defaults(step, _NO_STEP, (*names, "done_check", *_CARE, *_STATE))


def _drop_defaults(given: object, plain: object, names: tuple[str, ...]) -> dict[str, Any]:
    """The fields that differ from those of one that says nothing."""
    values = {name: (getattr(given, name, None), getattr(plain, name)) for name in names}
    # Of the same type first: what is of another may compare in any way.
    return {name: is_ for name, (is_, was) in values.items() if type(is_) is not type(was) or is_ != was}
