"""What text should contain, to distinguish it from other text that looks like JSON."""

from __future__ import annotations

import re

import attrs


def _marks_of(wanted: Wanted) -> re.Pattern[str]:
    names = "|".join(filter(None, (wanted.item, *wanted.names)))
    return re.compile(rf"[\"']?\b(?:{names})[\"']?[\s\u200b\ufeff]*+:" if names else "")


@attrs.frozen
class Wanted:
    """The kind of document that a text should contain.

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
