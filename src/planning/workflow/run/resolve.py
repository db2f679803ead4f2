"""References at run time: a step's inputs, with the values that its references stand for."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from typing import Any

from planning.errors import show
from planning.tools.result import plain
from planning.workflow.references import MARK, PROMPT, NoReference, Reference, StepIds, parse_references
from planning.workflow.run.memory import MissingValue, extract_value
from planning.workflow.run.records import StepRecord

__all__ = ["Values", "text_of"]


class Values:
    """What references stand for: the user's prompt, and the outputs of the steps that are done."""

    def __init__(
        self,
        outputs: Mapping[str, Any],
        user_prompt: str,
        ids: StepIds,
        private: Container[str] = (),
        states: Mapping[str, StepRecord] | None = None,
    ) -> None:
        """Take the outputs by step id, as they are now and will be.

        Args:
            outputs: By step id.
            user_prompt: What the user asked.
            ids: The ids of all steps.
            private: The ids of steps of whose outputs no message tells.
            states: What is known of the steps.
        """
        self._outputs = outputs
        self._private = private
        self._states = {} if states is None else states
        self._prompt = user_prompt
        self._ids = ids

    def resolve(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs with the values of their references; what holds none is shared, not copied.

        A text that is one reference as a whole becomes the value itself, of whatever type. Within a text
        a value becomes text. What was put in is not looked at again.

        Raises:
            MissingValue: A reference leads to no value, or is malformed.
        """
        resolved = dict(inputs)
        todo: list[tuple[Any, Any]] = [(inputs, resolved)]
        while todo:
            source, target = todo.pop()
            for key, value in source.items() if isinstance(source, Mapping) else enumerate(source):
                if isinstance(value, str):
                    if MARK in value:
                        target[key] = self._text(value)
                elif isinstance(value, Mapping):
                    target[key] = copied = dict(value)
                    todo.append((value, copied))
                elif isinstance(value, (list, tuple)):
                    target[key] = listed = list(value)
                    todo.append((value, listed))
        return resolved

    def _text(self, text: str) -> Any:
        parts, end = list[str](), 0
        for found in parse_references(text, self._ids):
            if isinstance(found, NoReference):
                told = show(text[found.start : found.end])
                raise MissingValue(f"{told} is no reference; write ${{STEP.output}} or ${{{PROMPT}}}")
            value = self._value(found, text)
            if found.start == 0 and found.end == len(text):
                return _copied(value)
            parts += [text[end : found.start], text_of(value)]
            end = found.end
        return "".join([*parts, text[end:]])

    def _value(self, reference: Reference, text: str) -> Any:
        if reference.step_id is None:
            return self._prompt
        if reference.step_id not in self._outputs:
            told = show(text[reference.start : reference.end])
            step = show(reference.step_id)[1:-1]
            if reference.step_id not in self._ids.all:
                raise MissingValue(f"{told} names no step of the workflow")
            state = self._states.get(reference.step_id)
            if state is not None and state.status == "completed":
                raise MissingValue(
                    f"{told} has no value: what step {step} gave is not known; let {step} store it under an "
                    "expected_key"
                )
            raise MissingValue(
                f"{told} has no value: step {step} gave no output; let this step depend on it, or leave the "
                "reference out"
            )
        if not reference.path:
            return self._outputs[reference.step_id]
        name = f"{show(reference.step_id)[1:-1]}.output"
        tells = reference.step_id not in self._private
        return extract_value(self._outputs[reference.step_id], reference.path, name=name, tells=tells)


def _copied(value: Any) -> Any:
    """A value with lists and dicts of its own: a tool may change what it is given."""
    root = [value]
    todo: list[Any] = [root]
    copies: dict[int, Any] = {}
    while todo:
        container = todo.pop()
        for key, each in container.items() if type(container) is dict else enumerate(container):
            kind = type(each)
            if kind in {dict, list}:
                copied = copies.get(id(each))
                if copied is None:
                    copied = copies[id(each)] = each.copy()
                    todo.append(copied)
                container[key] = copied
            elif kind is tuple:
                inner = tuple(map(_copied, each))
                if any(new is not old for new, old in zip(inner, each, strict=True)):
                    container[key] = inner
    return root[0]


def text_of(value: Any) -> str:
    """A value within a text: text as it is, everything else as JSON writes it.

    Raises:
        MissingValue: It holds a number of so many digits that nobody reads it.
    """
    if isinstance(value, str):
        return value
    told = plain(value)
    if told != value and _has_long_number(value):
        raise MissingValue(
            "a number of more than 3,000 digits cannot be part of a text; pass it on as a whole"
        )
    return json.dumps(told, ensure_ascii=False)


def _has_long_number(value: Any) -> bool:
    todo, seen = [value], set[int]()
    while todo:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, int) and isinstance(plain(each), str):
            return True
        if type(each) is dict:
            todo += each.values()
        elif type(each) in {list, tuple}:
            todo += each
    return False
