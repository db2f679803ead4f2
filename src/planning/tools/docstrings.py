"""A function's description and parameters from its docstring, in any common style."""

from __future__ import annotations

import re
from functools import lru_cache
from inspect import cleandoc
from textwrap import dedent, indent

_SECTION = re.compile(
    r"^(?:((?i:(?:keyword |other )?(?:arg|argument|param|parameter)s))|Returns|Yields|Raises|Examples?): *\n"
    r"((?:(?!\w+: *$).*\S.*\n)*(?:[ \t].*\n|\n)*)",
    re.MULTILINE,
)  # its lines, then what is indented
_DASH = re.compile(r"^((?:[-*] )?[`*]*\w+[`*]*(?: *\([^()]*\))?)[ \t]+--?[ \t]+(?=\S)", re.MULTILINE)


def read_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """Read a docstring; never raises.

    docstring-parser reads those of several lines. Without that library, the first paragraph is the
    description; of a malformed docstring it is all of the text.

    Returns:
        The description, as paragraphs of one line each; and by its name, the description of each parameter.
    """
    if not isinstance(text, str) or not text.strip():
        return "", {}
    text = cleandoc(text)
    if "\n" not in text:  # most are: the library takes 30 ms to load
        return _one_line(text), {}
    try:
        from docstring_parser import ParseError  # noqa: PLC0415 - of an extra
    except ImportError:
        return _one_line(text.partition("\n\n")[0]), {}
    try:
        return _parsed(text)
    except ParseError:
        return _paragraphs(text), {}


@lru_cache(maxsize=1)  # it is asked for the description, and then for those of the parameters
def _parsed(text: str) -> tuple[str, dict[str, str]]:
    from docstring_parser import DocstringStyle, parse  # noqa: PLC0415 - of an extra

    text = _tidied(text)
    parsed = parse(text)
    if not parsed.meta:  # malformed sections of this style would be taken for prose
        parse(text, DocstringStyle.GOOGLE)
    descriptions: dict[str, str] = {}
    for parameter in parsed.params:
        said = _one_line(parameter.description or "")
        for name in parameter.arg_name.split(",") if said else ():
            descriptions.setdefault(name.strip(" \\*`-"), said)
    return _paragraphs(parsed.description or ""), descriptions


def _tidied(text: str) -> str:
    """The text as the library reads it: prose first, then sections with indented entries and colons."""
    start, header, entries = f"{text}\n".partition("Parameters\n---")  # of numpy's style
    text = start + header + _DASH.sub(r"\1\n    ", entries)
    sections = [
        ("Args:\n" if found[1] else "Returns:\n") + indent(_DASH.sub(r"\1: ", dedent(found[2])), "    ")
        for found in _SECTION.finditer(text)
    ]
    return "\n".join([_SECTION.sub("", text), *sections])


def _paragraphs(text: str) -> str:
    """The paragraphs of a text, of one line each."""
    return "\n\n".join(filter(None, map(_one_line, text.split("\n\n"))))


def _one_line(text: str) -> str:
    return " ".join(text.split())
