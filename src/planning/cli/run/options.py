"""What the options of a run mean: the prompt, values for the memory, what is called; and their spelling."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn

import attrs

from planning.errors import show
from planning.workflow.capabilities import Capabilities
from planning.workflow.model import WorkflowStep

__all__ = [
    "Given",
    "OptionError",
    "command_line",
    "given",
    "uncallable",
]

PROMPT: Final = "user_prompt"


class OptionError(Exception):
    """An option is given wrongly; the text says how it is meant."""


@attrs.frozen
class Given:
    """What a run was given.

    Attributes:
        prompt: What ``${user_prompt}`` stands for; None where nobody said.
        inputs: Values for the memory.
    """

    prompt: str | None
    inputs: dict[str, Any]


def given(prompt: str | None, pairs: Iterable[str]) -> Given:
    """What the prompt and the ``NAME=VALUE`` pairs say.

    Raises:
        OptionError: A pair is none, or a name stands twice.
    """
    inputs: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise OptionError(f"{show(pair)} is no NAME=VALUE; write --var year=2022")
        if name == PROMPT:
            if prompt is not None:
                raise OptionError("the prompt is given twice; keep one of --prompt and --var user_prompt=...")
            prompt = value
        elif name in inputs:
            raise OptionError(f"{show(name)} is given twice; keep one")
        else:
            inputs[name] = _value(value)
    return Given(prompt, inputs)


def _value(text: str) -> Any:
    """What a text is as JSON; the text itself where it is none."""
    try:
        value = json.loads(text, parse_constant=_refuse)
        json.dumps(value, allow_nan=False)  # 1e999 reads as infinity
    except (ValueError, RecursionError):
        return text
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


def uncallable(steps: Sequence[WorkflowStep], capabilities: Capabilities) -> str | None:
    """What to say of the first step that names something that cannot be called; None where there is none."""
    for step in steps:
        kind, name = ("agent", step.agent) if step.agent is not None else (step.type, step.name)
        if kind is None or name is None:
            continue
        known = getattr(capabilities, f"{kind}s")
        if known is None:
            return (
                f"step {show(step.step_id)} calls the {kind} {show(name)}, and no {kind}s are given; name an"
                f" object that holds them: --{kind}s my_app:{kind}s"
            )
        if known.get(name) is None:
            return (
                f"step {show(step.step_id)} calls the {kind} {show(name)}, which is given by its name alone;"
                f" name an object that holds it: --{kind}s my_app:{kind}s"
            )
    return None


def command_line(
    file: str, options: Iterable[tuple[str, Sequence[str | float] | str | float | bool | None]]
) -> str:
    """A command that runs a file with options, quoted for a shell."""
    words = ["planning", "run", file]
    for name, value in options:
        if isinstance(value, bool):
            words += [name] if value else []
        elif isinstance(value, (list, tuple)):
            for each in value:
                words += [name, f"{each}"]
        elif value is not None:
            words += [name, f"{value}"]
    return shlex.join(words)
