"""The result of every tool call."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable, Mapping
from enum import Enum
from math import isfinite
from typing import Any

import attrs

from planning.errors import LONGEST_MESSAGE, cut, writable
from planning.tools.errors import PASSING, ErrorKind, type_name

DEEPEST = 100
"""How many levels a value may have that is shown or kept."""
_SHOWN = 1_000
_MOST_REPEATS = 1_000_000
_PLAIN = (bool, int, float, str)
_FIXED = frozenset({type(None), bool, int, float, complex, str, bytes})
_MOST_BITS = 10_000  # of more than some 4,300 digits Python itself writes no number
_TEXTS = frozenset({
    "datetime.date", "datetime.time", "datetime.timedelta", "datetime.tzinfo", "uuid.UUID", "decimal.Decimal",
    "fractions.Fraction", "ipaddress.IPv4Address", "ipaddress.IPv6Address",
})  # fmt: skip
"""Types that JSON lacks and that are always written as text."""
_LONE_SURROGATE = "[\ud800-\udfff]"


class NoJsonForm(TypeError):
    """A value, or a part of it, has no JSON form; the text says why.

    Attributes:
        part: What it is that has none.
    """

    def __init__(self, part: object, why: str) -> None:
        super().__init__(why)
        self.part = part


@attrs.frozen(repr=False, slots=False)
class ToolResult:
    """The outcome of one call, built from what was committed.

    Its strings can be sent unchanged: they have at most 50,000 characters and can be written as UTF-8. A
    longer text is cut and says so; half a character (a lone surrogate) is escaped.

    Attributes:
        success: Whether the tool did what was asked.
        message: What the model reads, whether it succeeded or not.
        value: What Python code reads: the normalised command, the plan, a tool's own result. No store keeps
            it: of what a store restores, it is None.
        error: What went wrong; None on success. Never the text of an exception other than ``ToolError``.
        user_message: The message for a person instead; None if there is none.
        elapsed: How long it took, in seconds.
        code: Why it failed, a stable word; None on success.
        input_request: The question to put to the user, when the call waits for the answer.
        cause: The text of the exception behind a failure, for the developer; None if there is none, and
            always for a tool with private data.
        is_private: Whether ``repr`` hides its content.
    """

    success: bool
    message: str
    value: Any = attrs.field(default=None, metadata={"stored": False})
    error: str | None = None
    user_message: str | None = None
    elapsed: float = 0.0
    code: ErrorKind | None = None
    input_request: str | None = None
    cause: str | None = attrs.field(default=None, eq=False)
    is_private: bool = False

    def __attrs_post_init__(self) -> None:
        message, error = self.message, self.error
        if (
            type(message) is str
            and message.isascii()
            and len(message) <= LONGEST_MESSAGE
            and error is self.user_message is self.cause
            and self.input_request is None
            and (error is None or (type(error) is str and error in message))
        ):
            return  # nearly every call that succeeds or is refused comes here
        for name in ("message", "error", "user_message", "cause", "input_request"):
            text = getattr(self, name)
            if not (_is_sendable(text) or (text is None and name != "message")):
                object.__setattr__(self, name, _sendable(text))

    def __repr__(self) -> str:
        code = None if self.code is None else str(self.code)
        said = "private" if self.is_private else f"message={cut(self.message, _SHOWN)!r}"
        return f"ToolResult(success={self.success!r}, code={code!r}, {said})"

    @property
    def needs_user_input(self) -> bool:
        """Whether the call was not made because it lacks information from the user."""
        return self.input_request is not None

    def to_dict(self) -> dict[str, Any]:
        """The result as plain dictionaries and lists, ready for JSON; a failure has its ``code`` too."""
        shown = {
            "success": self.success,
            "message": self.message,
            "value": plain(self.value),
            "error": self.error,
            "user_message": self.user_message,
            "elapsed": self.elapsed,
        }
        return shown if self.success else {**shown, "code": None if self.code is None else str(self.code)}


def plain(value: Any, *, strict: bool = False) -> Any:
    """A value as JSON has it: records become objects, and dates, paths, decimals and the like their text.

    A part that is repeated once a million parts are repeats is a text that says so, so that the result is
    never much larger than the value.

    Args:
        value: Anything.
        strict: Whether to refuse what has no JSON form. If not, any other object becomes its ``str``, what
            cannot be read the name of its type, and a part that contains itself or is nested more than a
            hundred levels deep a text that says so.

    Raises:
        NoJsonForm: With ``strict``, a part has no JSON form.
        Exception: With ``strict``, whatever a part raises when it is read.
    """
    return _Reader(strict=strict).read(value)


def copied(value: Any) -> Any:
    """A copy that nothing changes; of what cannot be copied the JSON form, or else the name of its type."""
    kind = type(value)
    if kind in _FIXED:
        return value
    if kind is dict and _FIXED.issuperset(map(type, value.values())):
        return value.copy()  # the arguments of most calls
    for copy_of in (_deep_copy, plain):
        try:
            return copy_of(value)
        except PASSING:
            raise
        except BaseException:  # noqa: BLE001, S112 - any object may come here, and copying it may do anything
            continue
    return f"<{type_name(value)}>"


def safe_text(value: object) -> str:
    """``str(value)``, or the name of its type when that fails."""
    return read_safely(str, value)


def read_safely(read: Callable[[object], str], value: object) -> str:
    """What is read of any object, or the name of its type when that fails."""
    try:
        return read(value)
    except PASSING:
        raise
    except BaseException:  # noqa: BLE001 - any object may come here, and reading it may do anything
        return f"<{type_name(value)}>"


def field_names(value: object) -> tuple[str, ...] | None:
    """The fields of a dataclass, an attrs class, a pydantic model, a Struct or a named tuple.

    None for anything else.
    """
    kind = type(value)
    if kind in _FIXED:
        return None
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    if attrs.has(kind):
        return tuple(field.name for field in attrs.fields(kind))
    for names in ("model_fields", "__struct_fields__", "_fields"):
        found = getattr(kind, names, None)
        if isinstance(found, (dict, tuple)):
            return tuple(found)
    return None


def _is_sendable(text: object) -> bool:
    return (
        type(text) is str
        and len(text) <= LONGEST_MESSAGE
        and (text.isascii() or re.search(_LONE_SURROGATE, text) is None)
    )


def _sendable(given: object) -> str:
    text = writable("" if given is None else safe_text(given))
    if len(text) <= LONGEST_MESSAGE:
        return text
    kept = LONGEST_MESSAGE - 60  # leaves room for the rest
    return f"{text[:kept]}... ({len(text) - kept} more characters; ask for less)"


def _deep_copy(value: Any, known: dict[int, Any] | None = None) -> Any:
    """What ``copy.deepcopy`` makes, in a third of the time for the lists and dicts of JSON."""
    kind = type(value)
    if kind in _FIXED:
        return value
    known = {} if known is None else known
    if kind is list and id(value) not in known:
        items: list[Any] = []
        known[id(value)] = items
        items += [_deep_copy(item, known) for item in value]
        return items
    if kind is dict and id(value) not in known:
        named: dict[Any, Any] = {}
        known[id(value)] = named
        named |= {_deep_copy(key, known): _deep_copy(item, known) for key, item in value.items()}
        return named
    return copy.deepcopy(value, known)


class _Reader:
    """Reads one value as JSON has it."""

    __slots__ = ("_around", "_known", "_repeats", "_strict")

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._around: set[int] = set()
        self._known: dict[int, Any] = {}  # holds what it has read: an id must not be given out again
        self._repeats = 0

    def read(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind in _PLAIN:
            return writable(value) if kind is str else _number(value)
        is_inside = id(value) in self._around
        if is_inside or len(self._around) >= DEEPEST:
            why = "contains itself" if is_inside else f"is nested more than {DEEPEST} levels deep"
            if self._strict:
                raise NoJsonForm(value, why)
            return f"... (cut: {why})"
        if self._is_repeat_too_many(value):
            return f"... (cut: the values before repeat more than {_MOST_REPEATS:,} parts)"
        self._known[id(value)] = value
        self._around.add(id(value))
        try:
            return self._parts(value)
        except Exception:
            if not self._strict:
                return f"<{type_name(value)}>"
            raise
        finally:
            self._around.discard(id(value))

    def _is_repeat_too_many(self, value: Any) -> bool:
        if id(value) not in self._known:
            return False
        self._repeats += 1 + (len(value) if type(value) in {dict, list, tuple, set, frozenset} else 0)
        return self._repeats > _MOST_REPEATS

    def _parts(self, value: Any) -> Any:
        if isinstance(value, Enum):
            return self.read(value.value)
        for kind in _PLAIN:
            if isinstance(value, kind):
                return self.read(kind(value))
        if isinstance(value, Mapping):
            return self._named(value)
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.read(item) for item in value]
        if isinstance(value, (bytes, bytearray)):
            return writable(value.decode(errors="backslashreplace"))
        if hasattr(type(value), "model_dump"):  # a pydantic model
            return self.read(value.model_dump(mode="json"))
        if hasattr(type(value), "tolist"):  # a number or an array of numpy
            return self.read(value.tolist())
        names = field_names(value)
        if names is not None:
            return {name: self.read(getattr(value, name)) for name in names}
        if self._strict and not _has_text(value):
            raise NoJsonForm(value, "has no JSON form")
        return writable(str(value))

    def _named(self, value: Mapping[Any, Any]) -> dict[str, Any]:
        named: dict[str, Any] = {}
        for key, item in value.items():
            if type(key) is not str:
                self.read(key)  # a key without a JSON form is refused, too
            name = writable(str(key))
            if name in named:
                raise NoJsonForm(value, "has two keys that are the same text in JSON")
            named[name] = self.read(item)
        return named


def _number(value: int | float) -> int | float | str:
    """A number, or text if JSON has no such number or it has too many digits to be read back."""
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    return value if value.bit_length() < _MOST_BITS else hex(value)


def _has_text(value: object) -> bool:
    """Whether JSON lacks a value's type, and it is always written as text: a date, a path, a UUID ..."""
    kinds = type(value).__mro__
    return hasattr(kinds[0], "__fspath__") or any(f"{k.__module__}.{k.__qualname__}" in _TEXTS for k in kinds)
