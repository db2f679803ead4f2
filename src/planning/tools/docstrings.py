"""A function's description and parameters from its docstring, in the three common styles.

Google: https://google.github.io/styleguide/pyguide.html#383-functions-and-methods
NumPy: https://numpydoc.readthedocs.io/en/latest/format.html
reST: https://www.sphinx-doc.org/en/master/usage/domains/python.html#info-field-lists
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from inspect import cleandoc
from itertools import groupby
from typing import Final

import attrs

__all__ = ["read_docstring"]

_PARAMETERS: Final = frozenset({
    "Args", "Arguments", "Keyword Args", "Keyword Arguments", "Other Parameters", "Parameters", "Params",
})  # fmt: skip
_OTHERS: Final = frozenset({
    "Attributes", "Example", "Examples", "Methods", "Note", "Notes", "Raises", "Receives", "References",
    "Return", "Returns", "See Also", "Todo", "Warning", "Warnings", "Warns", "Yield", "Yields",
})  # fmt: skip
_PARAMETER_FIELDS: Final = frozenset({"arg", "argument", "key", "keyword", "kwarg", "param", "parameter"})
_OTHER_FIELDS: Final = frozenset({
    "cvar", "except", "exception", "ivar", "meta", "raise", "raises", "return", "returns", "rtype", "type",
    "var", "vartype", "yield", "yields",
})  # fmt: skip

_HEADER: Final = re.compile(r"([A-Z]\w*+(?: \w++)?):\s*")
_RESULT: Final = re.compile(r"(?:Returns|Yields|Raises):\s.*")
_UNDERLINE: Final = re.compile(r"(?:-{3,}|={3,})\s*")
_FIELD: Final = re.compile(r":([a-z]++)(?:\s++([^:]*+))?:(?:\s++(.*))?")
_NAME: Final = r"\\?\*{0,2}[^\W\d]\w*+"
_NAMES: Final = re.compile(rf"{_NAME}(?:\s*+,\s*+{_NAME})*+")


class _Style(Enum):
    """How the lines of a section are read."""

    TEXT = auto()
    GOOGLE = auto()
    NUMPY = auto()
    FIELD = auto()
    OTHER = auto()


@attrs.frozen
class _Section:
    """A part of a docstring: how it is read, its lines, and which parameter a reST field is about."""

    style: _Style
    lines: list[str] = attrs.field(factory=list)
    name: str = ""


def read_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """Read a docstring; never raises.

    Args:
        text: As in the source, with its indentation; None and blank text are an empty docstring.

    Returns:
        The description: all that comes before the first section, as paragraphs of one line each with
        a blank line between. And what is said of each parameter, in one line, by its name without
        stars; of two entries for one name the first counts; empty entries are omitted.
    """
    if not isinstance(text, str) or not text.strip():
        return "", {}
    description, *sections = _sections(cleandoc(text).split("\n"))
    parameters: dict[str, str] = {}
    for section in sections:
        for names, lines in _entries(section):
            said = _one_line(lines)
            for name in names.split(",") if names and said else ():
                parameters.setdefault(name.strip(" \t\\*"), said)
    paragraphs = groupby(description.lines, key=lambda line: bool(line.strip()))
    return "\n\n".join(_one_line(lines) for filled, lines in paragraphs if filled), parameters


def _one_line(lines: Iterable[str]) -> str:
    return " ".join(" ".join(lines).split())


def _sections(lines: Iterable[str]) -> list[_Section]:
    """The sections in order; the first one is the description."""
    sections = [_Section(_Style.TEXT)]
    for line in lines:
        section = sections[-1]
        title = section.lines[-1].strip() if section.lines and _UNDERLINE.fullmatch(line) else ""
        if title in _PARAMETERS or title in _OTHERS:
            section.lines.pop()
            sections.append(_Section(_Style.NUMPY if title in _PARAMETERS else _Style.OTHER))
        elif not line.strip() or line[0].isspace():
            section.lines.append(line)
        elif (started := _started(line)) is not None:
            sections.append(started)
        elif _is_over(section):
            sections.append(_Section(_Style.OTHER, [line]))
        else:
            section.lines.append(line)
    return sections


def _started(line: str) -> _Section | None:
    """The section that a line starts on its own; None when it starts none."""
    field = _FIELD.fullmatch(line)
    if field and field[1] in _PARAMETER_FIELDS and field[2]:
        return _Section(_Style.FIELD, [field[3] or ""], name=field[2].split()[-1])
    header = _HEADER.fullmatch(line)
    if header and header[1] in _PARAMETERS:
        return _Section(_Style.GOOGLE)
    is_other = (field and field[1] in _OTHER_FIELDS) or (header and header[1] in _OTHERS)
    return _Section(_Style.OTHER) if is_other or _RESULT.fullmatch(line) else None


def _is_over(section: _Section) -> bool:
    """Whether a line without indentation is after a section, and not in it.

    A docstring's first line does not show the indentation of the others: below a header on it, the
    entries may have none.
    """
    if section.style is _Style.FIELD:
        return len(section.lines) > 1 and not section.lines[-1].strip()
    return section.style is _Style.GOOGLE and any(
        line[:1].isspace() for line in section.lines if line.strip()
    )


def _entries(section: _Section) -> Iterator[tuple[str, list[str]]]:
    """The parameters of a section, each with the lines about it; several names are separated by commas."""
    if section.style is _Style.FIELD:
        yield section.name, section.lines
    if section.style not in {_Style.GOOGLE, _Style.NUMPY}:
        return
    entry = _google_entry if section.style is _Style.GOOGLE else _numpy_entry
    names, said, base = "", list[str](), -1
    for line in filter(str.strip, section.lines):
        indentation = len(line) - len(line.lstrip())
        base = indentation if base < 0 else base
        found = entry(line.strip()) if indentation <= base else None
        if found is None:
            said.append(line)
        else:
            yield names, said
            names, said = found
    yield names, said


def _google_entry(line: str) -> tuple[str, list[str]] | None:
    names = _NAMES.match(line)
    rest = _behind_type(line[names.end() :].lstrip()) if names else ""
    if names is None or not rest.startswith(":") or rest.startswith(("::", ":/")):
        return None
    return names[0], [rest[1:]]


def _behind_type(text: str) -> str:
    """The text after a type in parentheses, which may be nested; the whole text if there is no type."""
    if not text.startswith("("):
        return text
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[place + 1 :].lstrip()
    return ""


def _numpy_entry(line: str) -> tuple[str, list[str]]:
    names = _NAMES.match(line)
    rest = line[names.end() :].lstrip() if names else line
    return (names[0], []) if names and (not rest or rest.startswith(":")) else ("", [])
