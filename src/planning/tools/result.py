"""The result of every tool call."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
import reprlib
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import Any

import attrs

from planning.errors import LONGEST_MESSAGE, writable
from planning.tools.errors import PASSING, ErrorKind, type_name

__all__ = [
    "NoJsonForm",
    "ToolResult",
    "copied",
    "field_names",
    "json_parts",
    "plain",
    "read_safely",
    "safe_text",
]

_FIXED = frozenset({type(None), bool, int, float, complex, str, bytes})
_SAME = frozenset({type(None), bool})
_EXACT = 2**53
_MOST = 50_000_000
_OF_PART = 30  # counted for each part besides its characters, so that many small ones end as soon
_TEXTS = {
    "datetime": ("date", "time", "timedelta", "tzinfo"),
    "uuid": ("UUID",),
    "os": ("PathLike",),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "ipaddress": ("IPv4Address", "IPv6Address"),
}
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


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

    Its texts can be sent unchanged: each has at most 50,000 characters and can be written as UTF-8.
    A longer text is cut and says so; half a character (a lone surrogate) is escaped.

    Attributes:
        success: Whether the tool did what was asked.
        message: What the model reads, whether it succeeded or not.
        value: What Python code reads: the normalised command, the plan, a tool's own result. No store keeps
            it: of what a store restores, it is None.
        error: What went wrong; None on success. Never the text of an exception that is no ``ToolError``.
        user_message: The message for a person instead; None if there is none.
        elapsed: How long it took, in seconds.
        code: Why it failed, a stable word; None on success.
        input_request: The question to put to the user, when the call waits for the answer.
        cause: The text of the exception behind a failure, for the developer's eyes; None where there
            is none, and always for a tool with private data.
        is_private: Whether ``repr`` keeps what is in it to itself.
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
        text, is_alone = (
            self.message,
            self.error is self.user_message is self.input_request is self.cause is None,
        )
        if is_alone and type(text) is str and text.isascii() and len(text) <= LONGEST_MESSAGE:
            return  # nearly every call that succeeds comes here
        for name in ("message", "error", "user_message", "cause", "input_request"):
            text = getattr(self, name)
            if not (_is_sendable(text) or (text is None and name != "message")):
                object.__setattr__(self, name, _sendable(text))

    def __repr__(self) -> str:
        code = None if self.code is None else safe_text(self.code)
        head = f"success={_shown(self.success)}, code={_shown(code)}, elapsed={_shown(self.elapsed)}"
        if self.is_private:
            return f"ToolResult({head}, private)"
        return f"ToolResult({head}, message={_shown(self.message)}, value={_shown(self.value)})"

    @property
    def needs_user_input(self) -> bool:
        """Whether the call was not made because only the user can say what it lacks."""
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

    Args:
        value: Anything.
        strict: Whether to refuse what has no JSON form. If not, a part of another type becomes its ``str``,
            and a value that cannot be read, contains itself or is too large becomes the name of its type.

    Raises:
        NoJsonForm: With ``strict``, it has no JSON form.
        Exception: With ``strict``, whatever a part raises when it is read.
    """
    kind = type(value)
    if kind in _SAME or (kind is int and -_EXACT < value < _EXACT):
        return value
    if kind is str:
        return writable(value)
    try:
        return json.loads(_json_text(value, strict=strict), parse_constant=str)
    except Exception:  # any object may come here, and reading it may do anything
        if strict:
            raise
        return f"<{type_name(value)}>"


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
        and (text.isascii() or _LONE_SURROGATE.search(text) is None)
    )


def _sendable(given: object) -> str:
    text = writable("" if given is None else safe_text(given))
    if len(text) <= LONGEST_MESSAGE:
        return text
    kept = LONGEST_MESSAGE - 60  # leaves room for the rest
    return f"{text[:kept]}... ({len(text) - kept} more characters; ask for less)"


def _shown(value: object) -> str:
    """A short ``repr``, for any object and of any size."""
    shortening = reprlib.Repr()
    shortening.maxstring = shortening.maxother = shortening.maxlong = 1_000
    shortening.maxdict = shortening.maxlist = shortening.maxtuple = shortening.maxset = 20
    return read_safely(shortening.repr, value)


def _deep_copy(value: Any, known: dict[int, Any] | None = None) -> Any:
    """What ``copy.deepcopy`` makes, in a third of the time for the lists and dicts of JSON."""
    kind = type(value)
    if kind in _FIXED:
        return value
    known = {} if known is None else known
    if kind is list and id(value) not in known:
        items = known[id(value)] = list[Any]()
        items += [_deep_copy(item, known) for item in value]
        return items
    if kind is dict and id(value) not in known:
        named = known[id(value)] = dict[Any, Any]()
        named |= {_deep_copy(key, known): _deep_copy(item, known) for key, item in value.items()}
        return named
    return copy.deepcopy(value, known)


def _json_text(value: Any, *, strict: bool) -> str:
    """The JSON of a value, of bounded size: a part that occurs twice is written twice.

    Raises:
        NoJsonForm: A part has none, or the text is too long.
    """
    encoder = _STRICT if strict else _LENIENT
    parts, size = list[str](), 0
    try:
        for part in [encoder.encode(value)] if _is_flat(value) else encoder.iterencode(value):
            size += len(part) + _OF_PART
            if size > _MOST:
                raise NoJsonForm(value, f"is longer than {_MOST} characters as JSON")
            parts.append(part)
    except RecursionError:
        raise NoJsonForm(value, "is nested too deep for JSON") from None
    text = "".join(parts)
    return text if text.isascii() else _LONE_SURROGATE.sub(lambda half: rf"\\u{ord(half[0]):x}", text)


def json_parts(part: Any, *, strict: bool) -> Any:
    """One level of a value of a type that JSON lacks, in types that it has."""
    if isinstance(part, Enum):
        return part.value
    if isinstance(part, Mapping):
        return dict(part)
    if isinstance(part, (set, frozenset)):
        return sorted(part, key=repr)
    if isinstance(part, (bytes, bytearray)):
        return part.decode(errors="backslashreplace")
    if hasattr(type(part), "model_dump"):  # a pydantic model
        return part.model_dump(mode="json")
    if hasattr(type(part), "tolist"):  # a number or an array of numpy
        return part.tolist()
    names = field_names(part)
    if names is not None:
        return {name: getattr(part, name) for name in names}
    if strict and not _has_text(part):
        raise NoJsonForm(part, "has no JSON form")
    return str(part) if strict else safe_text(part)


def _has_text(value: object) -> bool:
    """Whether JSON lacks a value's type, and it is always written as text: a date, a path, a UUID ..."""
    for module, names in _TEXTS.items():  # a value of such a type can only exist once its module is loaded
        loaded = sys.modules.get(module)
        if loaded is not None and isinstance(value, tuple(getattr(loaded, name) for name in names)):
            return True
    return False


def _is_flat(value: Any) -> bool:
    """Whether a value has no parts that have parts: then its JSON is not much longer than it is large."""
    kind = type(value)
    return kind in {dict, list} and _FIXED.issuperset(map(type, value.values() if kind is dict else value))


_STRICT, _LENIENT = (
    json.JSONEncoder(ensure_ascii=False, default=partial(json_parts, strict=strict))
    for strict in (True, False)
)
