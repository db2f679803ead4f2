"""The values of a run, in their JSON form: its memory, the outputs of its steps, and references to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from sys import getsizeof
from typing import Any, TypeVar, TypeVarTuple

import attrs

from planning.errors import show
from planning.tools.errors import ErrorKind, type_name
from planning.tools.tool import Tool
from planning.workflow.failures import StepFailed
from planning.workflow.model import Workflow, WorkflowStep
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
from planning.workflow.run.callables import Callables, key_of
from planning.workflow.run.memory import MemoryItem, MissingValue, extract_value, spell_path, take_item
from planning.workflow.run.records import StepRecord
from session.json_form import (
    DEEPEST,
    IN_ITSELF,
    NO_FORM,
    TOO_DEEP,
    TOO_LONG,
    JsonForms,
    JsonTooLarge,
    NoJsonForm,
    json_form,
    key_text,
)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MOST_BYTES = 32_000_000
"""The most bytes of one output, and of the inputs of one step."""
MOST_KEPT = 256_000_000
"""The most bytes of the outputs and inputs that a run keeps."""

_AT_ONCE = 250_000  # bytes that are copied on the event loop
_MB = 1_000_000
_OUTPUT_TOO_LARGE = (
    f"{{}} returned more than {MOST_BYTES // _MB} MB, which is too much to keep; let it store its data and "
    "return where it is"
)
_RUN_TOO_LARGE = (
    f"with the output of {{0}} the run would keep more than {MOST_KEPT // _MB} MB; let {{0}} store its data "
    "and return where it is"
)
_INPUT_TOO_LARGE = (
    f"the input {{}} takes more than {MOST_BYTES // _MB} MB; store the data and pass where it is"
)
_INPUTS_TOO_LARGE = (
    f"the inputs of this step come to more than {MOST_BYTES // _MB} MB; refer to parts of the outputs, or "
    "let the earlier step store its data and return where it is"
)
_NO_STEPS = StepIds(())  # a reference to the prompt is the same whatever the steps are called


class Copies(Mapping[str, Any]):
    """A read-only view of a dict of JSON values: each is a copy, made when it is first read.

    A caller that changes a value changes only what this view shows.
    """

    __slots__ = ("_copies", "_values")

    def __init__(self, values: dict[str, Any]) -> None:
        """Show a dict, also what is put into it later."""
        self._values = values
        self._copies: dict[str, tuple[Any, Any]] = {}

    def __getitem__(self, key: str) -> Any:
        """A copy of the newest value under a key, the same one each time.

        Raises:
            KeyError: There is none.
        """
        value = self._values[key]
        known, made = self._copies.get(key, (None, None))
        if known is not value:
            made = json_form(value)
            self._copies[key] = value, made
        return made

    def __iter__(self) -> Iterator[str]:
        """The keys of this moment: other threads may add some meanwhile."""
        return iter(list(self._values))

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._values)

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self._values),)  # in another process it is what it was when it was sent


async def run_in_worker(making: Callable[[*Ts, int], T], *values: *Ts) -> T:
    """Make the JSON forms of values without holding the event loop: of large ones in a thread.

    Raises:
        StepFailed: They take more than ``MOST_BYTES``, or JSON cannot hold them.
    """
    try:
        return making(*values, _AT_ONCE)
    except StepFailed as error:
        if error.code != "too_large":
            raise
    import asyncio  # noqa: PLC0415 - the names of `planning` load this module, and not that

    return await asyncio.to_thread(making, *values, MOST_BYTES)


def keep_inputs(inputs: Mapping[str, Any], limit: int = MOST_BYTES) -> tuple[dict[str, Any], int]:
    """The JSON forms of the values that a run starts with, and their bytes.

    Raises:
        StepFailed: A value takes more, or JSON cannot hold it.
    """
    kept, size = dict[str, Any](), 0
    for key, value in inputs.items():
        name = show(key)
        # A snapshot has it one level deep.
        form, took = _form({key: value}, f"the input {name} holds", _INPUT_TOO_LARGE, name, limit)
        kept |= form
        size += took
    return kept, size


def _keep(output: Any, name: str, limit: int = MOST_BYTES) -> tuple[Any, int]:
    """The JSON form of an output, and its bytes."""
    if type(output) is str and output.isascii() and (size := getsizeof(output)) <= limit:
        return output, size  # most outputs
    return _form(output, f"{name} returned", _OUTPUT_TOO_LARGE, name, limit)


def _form(value: Any, subject: str, too_large: str, name: str, limit: int) -> tuple[Any, int]:
    """The JSON form of a value, and its bytes."""
    forms = JsonForms(strict=True, limit=limit)
    try:
        return forms.of(value), forms.spent
    except Exception as error:  # noqa: BLE001 - reading a value runs its code
        raise _refusal(error, value, subject, too_large.format(name)) from None


def _refusal(error: Exception, value: Any, subject: str, too_large: str) -> StepFailed:
    """The error of a step for values that JSON cannot hold, or that take too many bytes."""
    why = str(error)
    if isinstance(error, (JsonTooLarge, MemoryError)):
        return StepFailed(too_large, "too_large")
    if not isinstance(error, NoJsonForm):
        what = f"an object of type {type_name(value)}, which cannot be read"
    elif why == NO_FORM:
        what = f"an object of type {type_name(error.part)}, which has no form in JSON"
    elif why in {IN_ITSELF, TOO_DEEP}:
        what = f"a value that contains itself or is nested more than {DEEPEST} levels deep"
    else:
        what = f"{'a number of' if why == TOO_LONG else 'an object with'} {why.removeprefix('has ')}"
    return StepFailed(f"{subject} {what}; use text, numbers, lists and objects", ErrorKind.BAD_RESULT)


@attrs.define(slots=False)
class RunValues:
    """The values of a run, which so far keeps so many bytes; and the values of references to them.

    Attributes:
        callables: Finds the tools of steps.
        prompt: The user's prompt; None if none was given.
        steps: The steps of the run by id.
        states: The newest record of each step.
        memory: The newest value under each key, as of the last ``recall`` or ``store``.
        outputs: The output of each completed step, by its id.
        parts: For steps that did not run here and whose output is known only in part: the path within the
            output, and the value there.
        private: The steps whose outputs no message may show, and no store may keep.
        private_keys: The keys of the memory whose values no store may keep.
    """

    callables: Callables
    prompt: str | None
    steps: Mapping[str, WorkflowStep]
    _kept: int
    states: dict[str, StepRecord] = attrs.field(factory=dict)
    memory: dict[str, Any] = attrs.field(factory=dict)
    outputs: dict[str, Any] = attrs.field(factory=dict)
    parts: dict[str, tuple[tuple[str, ...], Any]] = attrs.field(factory=dict)
    private: set[str] = attrs.field(factory=set)
    private_keys: set[str] = attrs.field(factory=set)
    _recalled: int = 0
    _withheld: dict[str, tuple[str, Any]] = attrs.field(factory=dict)

    @cached_property
    def _ids(self) -> StepIds:
        return StepIds(self.steps)

    # Outputs and the memory

    async def take(self, output: Any, name: str) -> Any:
        """The JSON form of an output; it counts as kept.

        Raises:
            StepFailed: The output or all that the run keeps is too large, or JSON cannot hold the output.
        """
        kept, size = await run_in_worker(_keep, output, name)
        if self._kept + size > MOST_KEPT:
            raise StepFailed(_RUN_TOO_LARGE.format(name), "too_large")
        self._kept += size
        return kept

    def store(self, item: MemoryItem, value: Any) -> None:
        """Note a value that is about to be stored in the memory, or withheld from it."""
        if item.type == "step_withheld":
            self._withheld[item.key or ""] = item.created_at, value
        self._take(item)

    def recall(self, items: tuple[MemoryItem, ...], waiting: Iterable[MemoryItem | None] = ()) -> None:
        """Take over what the run or other code has stored in the memory since the last time."""
        if len(items) < self._recalled:  # rolled back
            self.memory.clear()
            self._recalled = 0
        for item in (*items[self._recalled :], *waiting):
            if item is not None:
                self._take(item)
        self._recalled = len(items)

    def _take(self, item: MemoryItem) -> None:
        take_item(self.memory, item)
        if item.key is None or item.type == "step_skipped":
            return
        self.private_keys.discard(item.key)
        at, value = self._withheld.get(item.key, ("", None))
        if item.type == "step_withheld" and item.created_at == at:  # this process has its value
            self.memory[item.key] = value
            self.private_keys.add(item.key)

    def keep(self, step: WorkflowStep, output: Any) -> None:
        """Keep the output of a step that does not run now; it counts as kept."""
        with suppress(StepFailed):  # it was kept before
            output, size = _keep(output, step.step_id)
            self._kept += size
        self.outputs[step.step_id] = output
        if self.is_private(step):
            self.private.add(step.step_id)

    def remember(self, step: WorkflowStep, memory: Mapping[str, Any]) -> None:
        """Keep what a memory holds of the output of a step that does not run now."""
        key = key_of(step, self.tool_of(step))
        if key is None or key not in memory:
            return
        if step.output_path:
            self.parts[step.step_id] = (step.output_path, memory[key])
            if self.is_private(step):
                self.private.add(step.step_id)
        else:
            self.keep(step, memory[key])

    def remember_all(self, done: Mapping[str, tuple[WorkflowStep, str]], items: Iterable[MemoryItem]) -> None:
        """Keep what the memory held of the outputs of completed steps at the times of their records.

        Another step may have stored another value under the same key since.
        """
        memory: dict[str, Any] = {}
        for item in items:
            take_item(memory, item)
            step, at = done.get(item.step_id or "", (None, ""))
            if step is not None and item.created_at <= at:
                self.remember(step, memory)

    def is_private(self, step: WorkflowStep) -> bool:
        """True if a step's tool has private data."""
        tool = self.tool_of(step)
        return tool is not None and tool.returns_private_data

    def tool_of(self, step: WorkflowStep) -> Tool | None:
        """The tool that a step calls; None where it calls nothing, or the tool does not exist."""
        try:
            return self.callables.find(step)
        except StepFailed:
            return None

    # References

    def uses_private(self, inputs: Mapping[str, Any]) -> bool:
        """True if inputs refer to an output that no store may keep."""
        return bool(self.private) and any(
            each.step_id in self.private for each in references_in(inputs, self._ids)
        )

    def resolve(self, inputs: Mapping[str, Any], limit: int = MOST_BYTES) -> dict[str, Any]:
        """The JSON form of a step's inputs, with the values of their references.

        A string that is exactly one reference becomes the value. Within a longer string a value becomes
        text. Inserted text is not expanded again. A tool that changes its inputs changes neither the workflow
        nor an output.

        Raises:
            MissingValue: A reference leads to no value, or is malformed.
            StepFailed: The inputs take more bytes, and are not built; or a part has no form in JSON.
        """
        try:
            return self._resolve(inputs, JsonForms(strict=True, limit=limit))
        except StepFailed:
            raise
        except Exception as error:  # noqa: BLE001 - reading a value runs its code
            raise _refusal(error, inputs, "the inputs of this step contain", _INPUTS_TOO_LARGE) from None

    def _resolve(self, inputs: Mapping[str, Any], forms: JsonForms) -> dict[str, Any]:
        resolved = _named(inputs)
        todo: list[dict[str, Any] | list[Any]] = [resolved]
        while todo:
            target: Any = todo.pop()
            forms.spend(getsizeof(target))
            for key, value in target.items() if type(target) is dict else enumerate(target):
                if isinstance(value, str) and MARK in value:
                    target[key] = self._text(value, forms)
                elif isinstance(value, (Mapping, list, tuple)):
                    target[key] = inner = _named(value) if isinstance(value, Mapping) else list(value)
                    todo.append(inner)
                else:
                    target[key] = forms.of(value)
        return resolved

    def _text(self, text: str, forms: JsonForms) -> Any:
        parts: list[str] = []
        end = 0
        forms.spend(len(text))  # a large one is not read on the event loop either
        forms.spend(-len(text))
        for found in parse_references(text, self._ids):
            if isinstance(found, NoReference):
                shown = show(text[found.start : found.end])
                raise MissingValue(f"{shown} is not a reference; write ${{STEP.output}} or ${{{PROMPT}}}")
            value = self._value(found, text)
            if found.start == 0 and found.end == len(text):
                return forms.of(value)
            if type(value) is not str:
                # A string that is too large is not built.
                JsonForms(strict=True, limit=forms.limit).of(value)
                value = json.dumps(value, ensure_ascii=False)
            between = text[end : found.start].replace(LITERAL_MARK, MARK)
            forms.spend(getsizeof(between) + getsizeof(value))
            parts += [between, value]
            end = found.end
        parts.append(text[end:].replace(LITERAL_MARK, MARK))
        whole = "".join(parts)
        if not whole.isascii():  # one wide character widens all
            forms.spend(max(0, getsizeof(whole) - sum(map(getsizeof, parts))))
        return whole

    def _value(self, reference: Reference, text: str) -> Any:
        step_id = reference.step_id
        if step_id is None:
            return self.prompt
        path = reference.path
        name = f"{show(step_id)[1:-1]}.output"
        if step_id in self.parts:
            kept, value = self.parts[step_id]
            name += spell_path(kept)
            if tuple(map(str, path[: len(kept)])) != kept:
                raise self._missing(reference, text, f"only {name} was kept; refer to that")
            path = path[len(kept) :]
        elif step_id in self.outputs:
            value = self.outputs[step_id]
        else:
            raise self._missing(reference, text, self._why_missing(step_id))
        return extract_value(value, path, name=name, show_value=step_id not in self.private)

    def _missing(self, reference: Reference, text: str, why: str) -> MissingValue:
        shown = show(text[reference.start : reference.end])
        return MissingValue(f"{shown} has no value: {why}")

    def _why_missing(self, step_id: str) -> str:
        step, state = show(step_id)[1:-1], self.states.get(step_id)
        if step_id in self.private:
            return (
                f"the output of step {step} is private and was not kept; run that step again under another "
                "step_id, and refer to it"
            )
        if state is not None and state.status == "completed":
            return f"the output of step {step} is not known; store it under an expected_key"
        return f"step {step} gave no output; let this step depend on it, or remove the reference"


def _named(fields: Mapping[Any, Any]) -> dict[str, Any]:
    """A mapping with names as JSON has them."""
    return {key_text(key): value for key, value in fields.items()}


def step_with_prompt(workflow: Workflow) -> str | None:
    """The id of the first step whose inputs refer to the user's prompt; None if no step does."""
    for step in workflow.steps:
        if step.inputs and any(each.step_id is None for each in references_in(step.inputs, _NO_STEPS)):
            return step.step_id
    return None
