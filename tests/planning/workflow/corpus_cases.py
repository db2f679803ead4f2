"""Reads the corpus: plans that are malformed or wrong, and what must be found in each.

A file holds cases: ``=== a sentence``, ``--- text``, and where needed ``--- value`` (the document that was
meant; ``same`` where the text is that), ``--- parsed`` (the steps as far as they can be read),
``--- finished`` (the model ended the text by itself), and ``--- tools``, ``--- handlers`` or ``--- agents``
with the names that exist. The text is exact, but for what is in ``<<`` and ``>>``:

- ``<<code>>`` or ``<<code /a/pointer>>``: a finding of this code must be given for this place.
- ``<<U+FEFF>>``: this character; ``<<LF>>`` a line feed, for the end of a text.
- ``<<step a>>``: a step of version 1; ``<<head a>>`` its id and description, ``<<rest>>`` its other fields;
  ``<<thought a>>`` a step of version 2 that only thinks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from planning.workflow.codes import CODES

FOLDER = Path(__file__).parent / "corpus"
KNOWN = {
    "tools": ("search", "fetch", "summarise"),
    "handlers": ("notify", "store"),
    "agents": ("researcher",),
}
NOTHING = object()  # no value is said

_MARK = re.compile(r"<<([^<>\n]+)>>")
_HEAD = '"step_id": "{0}", "description": "Do {0}."'
_REST = '"type": "tool", "name": "search", "inputs": {}, "depends_on": []'


@attrs.frozen(order=True)
class Expected:
    """A finding that must be given; ``pointer`` is None where the case does not say."""

    line: int
    column: int
    code: str
    pointer: str | None = attrs.field(default=None, order=False)


@attrs.frozen
class Case:
    """What the model wrote, the names that exist, and what must be found, in the order of places."""

    name: str
    text: str = attrs.field(repr=False)
    findings: tuple[Expected, ...]
    value: Any = attrs.field(default=NOTHING, repr=False)
    parsed: Any = attrs.field(default=NOTHING, repr=False)
    known: dict[str, tuple[str, ...]] = attrs.field(factory=lambda: dict(KNOWN))
    finished: bool = False


def exact(value: object) -> str:
    """A JSON value as text that tells 1, 1.0 and true apart, and keeps the order of fields."""
    return json.dumps(value, indent=1)


def corpus() -> list[Case]:
    return [case for path in sorted(FOLDER.glob("*.txt")) for case in read_cases(path)]


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of one file."""
    name, parts = "", dict[str, list[str]]()
    lines: list[str] | None = None
    for line in path.read_text("utf-8").split("\n"):
        if line.startswith("=== "):
            if name:
                yield _case(name, parts)
            name, parts, lines = line[4:], {}, None
        elif line.startswith("--- "):
            lines = parts.setdefault(line[4:], [])
        elif lines is not None:
            lines.append(line)
        elif line.strip() and not line.startswith("# "):
            raise ValueError(f"{path.name}: a line that belongs to nothing: {line!r}")
    if name:
        yield _case(name, parts)


def _case(name: str, parts: dict[str, list[str]]) -> Case:
    read = {part: _read_marked("\n".join(lines).rstrip("\n"), name) for part, lines in parts.items()}
    text, findings = read.pop("text")
    known, value, parsed = dict(KNOWN), NOTHING, NOTHING
    for part, (written, _) in read.items():
        what, _, names = part.partition(" ")
        if what in KNOWN:
            known[what] = tuple(filter(None, names.split(", ")))
        elif what == "value":
            value = json.loads(text if names == "same" else written)
        elif part == "parsed":
            parsed = json.loads(written)
        elif part != "finished":
            raise ValueError(f"{name}: {part!r} is no part of a case")
    return Case(name, text, findings, value, parsed, known, "finished" in parts)


def _read_marked(written: str, name: str) -> tuple[str, tuple[Expected, ...]]:
    text, findings = "", list[Expected]()
    end = 0
    for mark in _MARK.finditer(written):
        text += written[end : mark.start()]
        end = mark.end()
        what, _, of = mark[1].partition(" ")
        if what in CODES:
            findings.append(Expected(*_place(text), what, of or None))
        else:
            text += _expanded(what, of, name)
    text += written[end:]
    return text, tuple(sorted(findings))


def _expanded(what: str, of: str, name: str) -> str:
    """What a mark stands for that is no finding."""
    if what.startswith("U+"):
        return chr(int(what[2:], 16))
    head = _HEAD.format(of)
    parts = {"LF": "\n", "head": head, "rest": _REST, "step": f"{{{head}, {_REST}}}"}
    parts["thought"] = f"{{{head}}}"
    if what not in parts:
        raise ValueError(f"{name}: <<{what}>> means nothing")
    return parts[what]


def _place(before: str) -> tuple[int, int]:
    """Line and column behind a text: counted here by hand, and not by what is tested."""
    lines = before.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return len(lines), len(lines[-1]) + 1
