"""The entry point: a source and capabilities -> a report."""

from __future__ import annotations

from collections.abc import Container
from functools import partial
from threading import Thread
from typing import Any

from planning.reading import Document, read_document
from planning.reading.found import Found, Path
from planning.workflow.capabilities import Capabilities
from planning.workflow.checks.steps import KINDS, check_steps
from planning.workflow.codes import CODES, Finding, Severity, pointer_of
from planning.workflow.drafts import Draft
from planning.workflow.model import Workflow
from planning.workflow.report import Report
from planning.workflow.wire.build import document_of, draft_steps, dump_workflow, make_workflow
from planning.workflow.wire.form import WORKFLOW, Form, check_shape, form_of

MOST_STEPS = 100_000
MOST_ERRORS = 10_000
_OF_WHOLE_STEPS = frozenset({"undeclared_dependency", "indirect_reference", "calls_nothing"})


def validate_workflow(
    source: object, capabilities: Capabilities | None = None, *, finished: bool = False
) -> Report:
    """Check a workflow and report every problem in it; never raises.

    Args:
        source: What a model wrote: JSON or almost JSON, as text or bytes, bare, fenced or within prose;
            or the parsed value; or a ``Workflow``.
        capabilities: The tools, handlers and agents that exist. Without them no name is checked.
        finished: Whether the text is complete, as the provider's finish reason says. Then missing closing
            brackets at the end are added, with a warning. Otherwise such text was cut, and is an error.
    """
    try:
        return _validate(source, capabilities, is_finished=finished)
    except RecursionError:  # the caller is near the limit; a thread has its own stack
        reports: list[Report] = []
        again = partial(_validate, source, capabilities, is_finished=finished)
        thread = Thread(target=lambda: reports.append(again()))
        thread.start()
        thread.join()
        return reports[0]


def _validate(source: object, capabilities: Capabilities | None, *, is_finished: bool) -> Report:
    if issubclass(type(source), Workflow):
        source = _write(source)
    document = read_document(source, WORKFLOW, is_finished=is_finished)
    found = list(document.found)
    if document.value is None:
        return _report(document, found, None, [], [])
    form = form_of(document.value)
    found += form.found
    if form.version is None:
        return _report(document, found, form, [], [])
    if len(form.steps) > MOST_STEPS:
        message = f"the workflow has {len(form.steps)} steps, the limit is {MOST_STEPS}"
        found.append(Found("too_long", message, "send a shorter workflow", form.steps_path))
        return _report(document, found, form, [], [])
    shape, drafts = check_shape(form), draft_steps(form)
    unread = {each.path for each in document.found}
    found += [each for each in shape if not _follows(each, document, unread)]
    if capabilities is None:
        checked = check_steps(drafts)
    else:
        known = capabilities.tools, capabilities.handlers, capabilities.agents
        checked = check_steps(drafts, dict(zip(KINDS, known, strict=True)), capabilities.inputs)
    if document.found or shape:
        checked = _causes(checked, shape, document, form, drafts)
    found += checked
    if not form.steps and not shape and not document.is_broken(form.steps_path):
        message = "the workflow has no steps"
        found.append(
            Found("empty_plan", message, "send the steps, if there is anything to do", form.steps_path)
        )
    return _report(document, found, form, drafts, form.steps)


def _write(workflow: Any) -> object:
    """A workflow as JSON text; as a document if it has no JSON, so that the reader reports why."""
    try:
        return dump_workflow(workflow)
    except ValueError:
        return document_of(workflow)


def _follows(found: Found, document: Document, unread: Container[Path] = ()) -> bool:
    """True if something is wrong only because it, or what is around it, could not be read."""
    if found.code == "missing_field":
        field = found.message.partition(" ")[0]
        return document.is_broken(found.path) or (*found.path, field) in unread
    path = found.path[:-1] if found.code == "unknown_field" else found.path
    return document.is_broken(path)


def _causes(
    checked: list[Found], shape: list[Found], document: Document, form: Form, drafts: list[Draft]
) -> list[Found]:
    """The errors that are not there because something could not be read or has another name."""
    twice = {each.path for each in document.found if each.code == "duplicate_key"}
    is_lost = _is_a_step_lost(document, form, drafts, twice)
    lost = {"unknown_dependency", "unknown_reference"} if is_lost else set()
    odd = {_step_index(each.path, form) for each in shape if each.code in {"unknown_field", "missing_field"}}
    holders = {path[:-1] for path in twice}
    unclear = odd | {
        draft.number for draft in drafts if draft.path in holders or document.is_broken(draft.path)
    }
    steps = {draft.path for draft in drafts}  # where inputs are missed that the step may have elsewhere
    return [
        each
        for each in checked
        if each.code not in lost
        and not (each.step_index in unclear and each.code in _OF_WHOLE_STEPS)
        and not (each.step_index in odd and each.path in steps)
        and not (each.code == "bad_input" and _follows(each, document))
    ]


def _is_a_step_lost(document: Document, form: Form, drafts: list[Draft], twice: Container[Path]) -> bool:
    """True if there may be steps whose ids could not be read; ``twice`` are the fields that occur twice."""
    return (
        form.steps_path in twice
        or document.is_broken(form.steps_path)
        or any(
            (draft.step_id is None and document.is_broken(draft.path)) or (*draft.path, "step_id") in twice
            for draft in drafts
        )
    )


def _report(
    document: Document, found: list[Found], form: Form | None, drafts: list[Draft], steps: list[Any]
) -> Report:
    if not found and form is not None:
        return Report((), (), make_workflow(form, drafts), steps, document.source)
    wrong = [each for each in found if CODES[each.code].severity is Severity.ERROR]
    if len(wrong) > MOST_ERRORS:
        more = len(wrong) - MOST_ERRORS
        message = f"there are {more if more < MOST_ERRORS else 'many'} more errors than are listed"
        found = [each for each in found if CODES[each.code].severity is Severity.WARNING]
        found += [*wrong[:MOST_ERRORS], Found("too_many_errors", message, "fix the errors above first")]
    ids = {draft.number: draft.step_id for draft in drafts}
    placed = sorted(
        (_place(each, document, form, ids) for each in found),
        key=lambda finding: (finding.line or 0, finding.column or 0),
    )
    errors = tuple(each for each in placed if each.severity is Severity.ERROR)
    warnings = tuple(each for each in placed if each.severity is Severity.WARNING)
    is_valid = not errors and form is not None
    workflow = make_workflow(form, drafts) if is_valid and form is not None else document.value
    return Report(errors, warnings, workflow, steps, document.source)


def _place(found: Found, document: Document, form: Form | None, ids: dict[int, str | None]) -> Finding:
    """A finding with its place: in the text, in the document, and in the plan."""
    span, path = document.span(found), found.path
    if span is not None and not path:
        path = document.path_at(span[0])
    index = found.step_index
    if index is None and form is not None:
        index = _step_index(path, form)
    step_id = found.step_id if found.step_id is not None or index is None else ids.get(index)
    line = column = None
    length = 1
    if span is not None and document.source is not None:
        line, column = document.source.place(span[0])
        length = max(span[1] - span[0], 1)
    return Finding(
        found.code, found.message, found.hint, index, step_id, pointer_of(path), line, column, length
    )


def _step_index(path: Path, form: Form) -> int | None:
    """The step that a path leads into."""
    if form.is_single:
        return 0
    depth = len(form.steps_path)
    part = path[depth] if len(path) > depth and path[:depth] == form.steps_path else None
    return part if isinstance(part, int) else None
