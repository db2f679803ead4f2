"""Problems and repairs of a document: one value for each place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import attrs


def _marks_of(wanted: Wanted) -> re.Pattern[str]:
    names = "|".join(filter(None, (wanted.item, *wanted.names)))
    return re.compile(rf"[\"']?\b(?:{names})[\"']?[\s\u200b\ufeff]*+:" if names else "")


@attrs.frozen
class Wanted:
    """The kind of document that text should contain.

    Attributes:
        noun: What messages call it.
        names: Fields that only such a document has. Without any, and without ``item``, every list and
            object is one.
        item: The field that the items of its list begin with. Several items without a list around them are
            one document, too. Empty where they are not.
        fields: All fields of the document and of its items, which belong nowhere else.
        is_fenced_first: Whether a document in a fence is preferred to those in prose. Otherwise two that
            differ are an error, wherever they are.
        is_within_text: Whether other text may be around it; thoughts, a fence and backticks always may.
        most_levels: How deep it may be nested.
        marks: Finds one of ``names``, or ``item``, with its colon.
    """

    noun: str
    names: tuple[str, ...] = ()
    item: str = ""
    fields: frozenset[str] = frozenset()
    is_fenced_first: bool = False
    is_within_text: bool = True
    most_levels: int = 64
    marks: re.Pattern[str] = attrs.field(init=False, default=attrs.Factory(_marks_of, takes_self=True))


ANYTHING = Wanted("JSON value", is_within_text=False)
"""Any list or object."""


Path = tuple[str | int, ...]


class Found(NamedTuple):
    """A finding before its place in the text is known.

    Attributes:
        code: One of ``CODES``.
        message: What is wrong, in ASCII and without a full stop.
        hint: What to do about it, in the imperative.
        path: Where in the parsed value.
        at_key: Whether the name of the last field is meant, and not its value.
        within: The part of a string that is meant, as start and end in its decoded text.
        span: The place in the text itself, as start and end, if no path leads there.
        step_index: Which step, from 0.
        step_id: The id of that step, if it has one.
    """

    code: str
    message: str
    hint: str
    path: Path = ()
    at_key: bool = False
    within: tuple[int, int] | None = None
    span: tuple[int, int] | None = None
    step_index: int | None = None
    step_id: str | None = None


_PLAIN: Final = "send plain JSON"

REMARKS: Final[Mapping[str, tuple[str, str, str]]] = {
    "fenced": ("the {noun} was in a code fence", "", "send the {noun} without a fence"),
    "surrounding_text": ("there is extra text around the {noun}", "", "send only the {noun}"),
    "encoded_plan": (
        "the {noun} was a JSON string, which was read once more", "", "send the {noun} itself, not a string"),
    "comment": ("a comment was ignored", "{count} comments were ignored", _PLAIN),
    "trailing_comma": ("a comma before a closing bracket was ignored",
        "{count} commas before a closing bracket were ignored", "remove the comma after the last item"),
    "missing_comma": (
        "a missing comma was added", "{count} missing commas were added", "separate items by commas"),
    "single_quotes": ("a string in single quotes was read", "{count} strings in single quotes were read",
        "write strings in double quotes"),
    "bare_key": ("a field name without quotes was read", "{count} field names without quotes were read",
        "write field names in double quotes"),
    "python_literal": (
        "a Python literal was read", "{count} Python literals were read", "write true, false and null"),
    "number_form": ("a number in a form that JSON does not have was read",
        "{count} numbers in a form that JSON does not have were read", "write numbers such as 1, 0.5 or 5.0"),
    "escape_form": ("an escape that JSON does not have was read",
        "{count} escapes that JSON does not have were read", "write \\u0041 for \\x41, and ' as it is"),
    "odd_space": ("spaces that JSON does not have were read as spaces",
        "spaces that JSON does not have were read as spaces in {count} places", "write plain spaces"),
    "raw_control": ("a control character in a string was kept",
        "{count} control characters in strings were kept", "write a line break as \\n and a tab as \\t"),
    "missing_bracket": ("a missing bracket was added", "{count} missing brackets were added",
        "check that nothing is missing, and close every bracket"),
    "extra_bracket": ("an extra closing bracket was ignored",
        "{count} extra closing brackets were ignored", "close every bracket once"),
}  # fmt: skip
"""By its code, what is said of a repair: of one, of several where that differs, and the hint."""
