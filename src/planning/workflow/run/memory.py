"""The memory of a session: the values that steps stored, and how a value is found in an output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import attrs

from planning.errors import show
from planning.tools.result import safe_text
from planning.workflow.failures import StepFailed
from planning.workflow.references import spelled
from session.json_form import field_names, key_text, opened

_LISTED = 8
_DIGITS = 15


@attrs.frozen(kw_only=True, slots=False)
class MemoryItem:
    """One entry of the memory: a slice that only grows. Of the values under one key the newest counts.

    Attributes:
        type: ``input``, what the run was given; ``step_result``, what a step stored; ``step_skipped``, a
            step was skipped, and the value under its key stays as it was: the entry has none;
            ``step_withheld``, a step stored a private value, which a stored session does not keep.
        key: The name of the value; None if nothing is stored.
        value: The value, in its JSON form.
        step_id: The step; None for an input.
        created_at: When, as ISO 8601 in UTC.
    """

    type: Literal["input", "step_result", "step_skipped", "step_withheld"]
    key: str | None
    value: Any = attrs.field(default=None, repr=False)
    step_id: str | None = None
    created_at: str = ""


def memory_of(items: Iterable[MemoryItem]) -> dict[str, Any]:
    """The newest value under each key; none where that is withheld."""
    memory: dict[str, Any] = {}
    for item in items:
        take_item(memory, item)
    return memory


def take_item(memory: dict[str, Any], item: MemoryItem) -> None:
    """Put the value of an entry under its key; where it is withheld, nothing is there any more."""
    if item.key is None or item.type == "step_skipped":
        return
    if item.type == "step_withheld":
        memory.pop(item.key, None)
    else:
        memory[item.key] = item.value


class MissingValue(StepFailed, LookupError):
    """A path leads to no value."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "missing_value")


def extract_value(
    value: Any, path: Sequence[str | int], *, name: str = "the output", show_value: bool = True
) -> Any:
    """The value that a path leads to.

    The path leads through the JSON form of the value: names into objects, numbers into lists; a name of
    digits counts as a number there. A value that is there and None is a value.

    Args:
        value: Where the path begins.
        path: Names and indexes, such as ``["data", "Revenue"]``.
        name: What messages call the beginning.
        show_value: Whether messages may show the value that is there; not for private values.

    Raises:
        MissingValue: There is no such value; the message shows what is there instead.
    """
    if isinstance(path, str):
        raise TypeError(f"a path is a list of names, got a string; write [{path!r}]")
    for depth, part in enumerate(path):
        try:
            value = _inside(value, part)
        except Exception:  # noqa: BLE001 - a custom mapping or record may fail in any way
            message = f"{name}{spell_path(path[: depth + 1])} is missing"
            if show_value:
                with suppress(Exception):  # the same
                    message = f"{message}: {name}{spell_path(path[:depth])} {_there(value)}"
            raise MissingValue(message) from None
    return value


def spell_path(path: Iterable[str | int]) -> str:
    """A path as references spell it: ``.data.items[0]``; of a very long one only its ends."""
    parts = [f"[{part}]" if isinstance(part, int) else _show(part) for part in path]
    if len(parts) > 2 * _LISTED:
        parts = [*parts[:_LISTED], "...", *parts[-_LISTED:]]
    return "".join(parts)


def _show(name: str) -> str:
    """A name as references spell it; of a long one the beginning."""
    return spelled(name).replace(name, show(name)[1:-1])


def _inside(value: Any, part: str | int) -> Any:
    if type(value) is not dict and type(value) is not list:
        value = opened(value)
    if type(value) is dict:
        name = str(part)
        return value[name] if name in value else {key_text(key): value[key] for key in value}[name]
    digits = isinstance(part, str) and part.isascii() and part.isdigit() and len(part) <= _DIGITS
    index = int(part) if digits else part
    if type(value) is not list or type(index) is not int or index < 0:
        raise LookupError
    return value[index]


def _there(value: Any) -> str:
    """The value at the place where a path fails."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return f"has {len(value)} item{'' if len(value) == 1 else 's'}"
    if value is None:
        return "is null"
    names = list(value) if isinstance(value, Mapping) else field_names(value)
    if names is None:
        return f"is {show(value) if isinstance(value, str) else type(value).__name__}"
    listed = ", ".join(_show(safe_text(name)).removeprefix(".") for name in names[:_LISTED])
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"has {listed}{more}" if names else "is empty"
