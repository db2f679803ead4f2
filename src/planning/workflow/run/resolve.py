"""References at run time: a step's inputs, with the values of its references."""

from __future__ import annotations

import json
from collections.abc import Mapping
from sys import getsizeof
from typing import Any

import attrs

from planning.errors import show
from planning.tools.result import plain
from planning.workflow.model import Workflow
from planning.workflow.references import (
    LITERAL_MARK,
    MARK,
    PROMPT,
    NoReference,
    Reference,
    StepIds,
    parse_references,
    references_in,
)
from planning.workflow.run.known import Known
from planning.workflow.run.memory import MissingValue, extract_value, spell_path
from planning.workflow.run.records import StepRecord
from planning.workflow.values import MOST_BYTES, Meter

_NO_STEPS = StepIds(())  # a reference to the prompt is the same whatever the steps are called
_HOLD = "the inputs of this step contain"
_TOO_LARGE = (
    f"the inputs of this step come to more than {MOST_BYTES // 1_000_000} MB; refer to parts of the outputs, "
    "or let the earlier step store its data and return where it is"
)


@attrs.frozen
class Values:
    """The values of references: the user's prompt and the outputs of completed steps.

    It has the values of the run, its prompt, the ids of its steps, and the newest record of each step.
    """

    _known: Known
    _prompt: str | None
    _ids: StepIds
    _states: Mapping[str, StepRecord]

    def uses_private(self, inputs: Mapping[str, Any]) -> bool:
        """Whether inputs refer to an output that no store may keep."""
        return bool(self._known.private) and any(
            each.step_id in self._known.private for each in references_in(inputs, self._ids)
        )

    def resolve(self, inputs: Mapping[str, Any], most: int = MOST_BYTES) -> dict[str, Any]:
        """Copies of the inputs, with the values of their references.

        A string that is exactly one reference becomes the value and keeps its type. Within a longer string
        a value becomes text. Inserted text is not expanded again. A tool that changes its inputs changes
        neither the workflow nor an output.

        Raises:
            MissingValue: A reference leads to no value, or is malformed.
            StepFailed: The inputs take more bytes, and are not built; or a part has no form in JSON.
        """
        meter = Meter(_HOLD, _TOO_LARGE, most)
        resolved = dict(inputs)
        todo: list[tuple[Any, Any]] = [(inputs, resolved)]
        while todo:
            source, target = todo.pop()
            meter.spend(getsizeof(target))
            for key, value in source.items() if isinstance(source, Mapping) else enumerate(source):
                if isinstance(value, str) and MARK in value:
                    target[key] = self._text(value, meter)
                elif isinstance(value, Mapping):
                    target[key] = copied = dict(value)
                    todo.append((value, copied))
                elif isinstance(value, (list, tuple)):
                    target[key] = listed = list(value)
                    todo.append((value, listed))
                else:
                    target[key] = meter.copy(value)
        return resolved

    def _text(self, text: str, meter: Meter) -> Any:
        parts: list[str] = []
        end = 0
        meter.spend(len(text))  # a large one is not read on the event loop either
        meter.spend(-len(text))
        for found in parse_references(text, self._ids):
            if isinstance(found, NoReference):
                shown = show(text[found.start : found.end])
                raise MissingValue(f"{shown} is not a reference; write ${{STEP.output}} or ${{{PROMPT}}}")
            value = self._value(found, text)
            if found.start == 0 and found.end == len(text):
                return meter.copy(value)
            if type(value) is not str:
                Meter(_HOLD, _TOO_LARGE, meter.most).copy(value)
                value = text_of(value)
            between = text[end : found.start].replace(LITERAL_MARK, MARK)
            meter.spend(getsizeof(between) + getsizeof(value))
            parts += [between, value]
            end = found.end
        parts.append(text[end:].replace(LITERAL_MARK, MARK))
        whole = "".join(parts)
        if not whole.isascii():  # one wide character widens all
            meter.spend(max(0, getsizeof(whole) - sum(map(getsizeof, parts))))
        return whole

    def _value(self, reference: Reference, text: str) -> Any:
        step_id = reference.step_id
        if step_id is None:
            return self._prompt
        known, path = self._known, reference.path
        name = f"{show(step_id)[1:-1]}.output"
        if step_id in known.parts:
            kept, value = known.parts[step_id]
            name += spell_path(kept)
            if tuple(map(str, path[: len(kept)])) != kept:
                raise self._missing(reference, text, f"only {name} was kept; refer to that")
            path = path[len(kept) :]
        elif step_id in known.outputs:
            value = known.outputs[step_id]
        else:
            raise self._missing(reference, text, self._why_missing(step_id))
        return extract_value(value, path, name=name, tells=step_id not in known.private)

    def _missing(self, reference: Reference, text: str, why: str) -> MissingValue:
        shown = show(text[reference.start : reference.end])
        return MissingValue(f"{shown} has no value: {why}")

    def _why_missing(self, step_id: str) -> str:
        step, state = show(step_id)[1:-1], self._states.get(step_id)
        if step_id in self._known.private:
            return (
                f"the output of step {step} is private and was not kept; run that step again under another "
                "step_id, and refer to it"
            )
        if state is not None and state.status == "completed":
            return f"the output of step {step} is not known; store it under an expected_key"
        return f"step {step} gave no output; let this step depend on it, or remove the reference"


def step_with_prompt(workflow: Workflow) -> str | None:
    """The id of the first step whose inputs refer to the user's prompt; None where no step does."""
    for step in workflow.steps:
        if step.inputs and any(each.step_id is None for each in references_in(step.inputs, _NO_STEPS)):
            return step.step_id
    return None


def text_of(value: Any) -> str:
    """A value within a longer string: containers as JSON, everything else as plain text."""
    shown = plain(value)
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
