"""The result of checking a workflow, in the forms that its readers need: a program, a model, a person."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import Any, Final

import attrs

from planning.errors import printable, show
from planning.reading import Source
from planning.workflow.codes import Category, Finding, Severity, plain
from planning.workflow.model import Workflow

_RANK: Final = {category: rank for rank, category in enumerate(Category)}
_POINTER_HEAD = 60
_POINTER_TAIL = 37


def _count_of(count: int, noun: str) -> str:
    """A number with its noun: ``1 error``, ``2 errors``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _list(errors: int, warnings: int, *, more: str = "") -> str:
    """The number of errors and warnings, omitting a count of zero."""
    numbers = ((errors, f"{more}error"), (warnings, f"{more}warning"))
    return " and ".join(_count_of(number, noun) for number, noun in numbers if number)


def _step(finding: Finding) -> str:
    """The step by its number, from 1, and its id; empty where the finding is about no single one."""
    if finding.step_index is None:
        return ""
    number = f"step {finding.step_index + 1}"
    return number if finding.step_id is None else f"{number} {plain(show(finding.step_id))}"


def _short_pointer(pointer: str) -> str:
    """The JSON pointer; a very long one without its middle."""
    if len(pointer) > _POINTER_HEAD + _POINTER_TAIL + 3:
        pointer = f"{pointer[:_POINTER_HEAD]}...{pointer[-_POINTER_TAIL:]}"
    return plain(pointer)


def _place(finding: Finding) -> str:
    """The place, as far as it is known: ``line 4, column 15, step 2 'fetch', /steps/1/name``."""
    line = "" if finding.line is None else f"line {finding.line}, column {finding.column}"
    return ", ".join(filter(None, (line, _step(finding), _short_pointer(finding.pointer))))


def _item(words: tuple[str, str]) -> str:
    """A message and its hint, on one line."""
    return "; ".join(plain(part) for part in words if part)


def sentence(finding: Finding) -> str:
    """The whole finding on one line."""
    at, what = _place(finding), _item((finding.message, finding.hint))
    return f"{at}: {what}" if at else what


def _by_importance(errors: Iterable[Finding]) -> Sequence[Finding]:
    """The most critical first; of the same category in the order of the document."""
    return sorted(errors, key=lambda each: _RANK[each.category])


_MOST_RENDERED = 100
_COLUMNS = 100
_NARROWEST = 40
_CUT: Final = "..."
_BOLD, _DIM, _CYAN, _GREEN = "1", "2", "36", "1;32"
_SGR: Final = MappingProxyType({Severity.ERROR: "1;31", Severity.WARNING: "1;33"})
_EXAMPLES = 3

# category -> (the key in the summary, the heading of its section, what such errors are)
_SECTIONS: Final = MappingProxyType({
    Category.JSON: ("has_json_error", "JSON", "The workflow is not valid JSON, or is cut off."),
    Category.SCHEMA: (
        "has_schema_error",
        "Structure",
        "Fields are missing, unknown or of the wrong type, or an id is used twice.",
    ),
    Category.CAPABILITY: (
        "has_tool_handler_error",
        "Tools, handlers and agents",
        "A step calls something that does not exist, or calls it with wrong inputs.",
    ),
    Category.DEPENDENCY: (
        "has_dependency_error",
        "Dependencies",
        "The steps cannot be ordered, because of their dependencies.",
    ),
    Category.REFERENCE: (
        "has_input_reference_error",
        "References",
        "An input refers to the output of a step in a way that cannot be followed.",
    ),
})  # fmt: skip

SUGGESTIONS: Final = MappingProxyType({
    "not_text": "Pass the model's text, or the list of steps that was parsed from it.",
    "bad_encoding": "Save the workflow as UTF-8.",
    "too_long": "Ask for a shorter workflow.",
    "no_json": "Ask for the workflow as JSON: a list of steps, and no other text.",
    "several_documents": "Send only one workflow.",
    "truncated": "Allow a longer answer or ask for a shorter workflow: this one is cut off.",
    "too_deep": "Make the inputs flatter: they are nested too deeply.",
    "duplicate_key": "Keep each field once in each object.",
    "unknown_version": "Use schema_version 2, or omit the field.",
    "duplicate_step_id": "Give each step a unique id.",
    "wrong_capability": "Say in 'type' whether a step calls a tool or a handler.",
    "bad_input": "Match the inputs to the parameters of the tool.",
    "unknown_dependency": "List in 'depends_on' only ids of steps in this workflow.",
    "self_dependency": "Remove each step's own id from its 'depends_on'.",
    "dependency_cycle": "Break each cycle: remove one of its dependencies.",
    "undeclared_dependency": "Add each step that an input refers to to 'depends_on'.",
    "self_reference": "Refer to the outputs of earlier steps only.",
})  # fmt: skip
"""The advice for a code, if its category's suggestion does not say enough."""

_GENERAL: Final = MappingProxyType({
    Category.JSON: "Write plain JSON: double quotes, a comma between values, every bracket closed.",
    Category.SCHEMA: "Compare each step with the schema: 'planning schema' prints it.",
    Category.CAPABILITY: "Use only names that exist, spelled exactly as they are listed.",
    Category.DEPENDENCY: "List in 'depends_on' only ids of steps in this workflow.",
    Category.REFERENCE: "Write references as ${user_prompt} or ${step_id.output.field}.",
})  # fmt: skip


def _friendly(ranked: Sequence[Finding], examples: Sequence[str]) -> Iterator[str]:
    yield f"The workflow cannot be used yet: it has {_count_of(len(ranked), 'error')}."
    for category, (_, heading, meaning) in _SECTIONS.items():
        number = _count(ranked, category)
        if number:
            yield f"\n{heading}: {_count_of(number, 'error')}\n  {meaning}"
    yield f"\nMost critical:\n  {examples[0]}"
    if len(examples) > 1:
        yield "\nAlso:"
    yield from (f"  - {example}" for example in examples[1:])
    left = len(ranked) - len(examples)
    if left:
        yield f"  ...and {_count_of(left, 'more error')}."
    yield "\nWhat you can do:"
    yield from (f"  - {suggestion}" for suggestion in _suggestions(ranked))


def _suggestions(ranked: Sequence[Finding]) -> list[str]:
    """The advice about each kind of error that there is, the most critical first, each once."""
    return list(dict.fromkeys(SUGGESTIONS.get(each.code, _GENERAL[each.category]) for each in ranked))


def _count(findings: Sequence[Finding], category: Category) -> int:
    return sum(finding.category is category for finding in findings)


_MOST = 40  # problems
_LONG = 1_000  # characters: beyond them
_ALIKE = 3  # problems of one kind are enough, and always places of one problem


def _text(errors: Sequence[Finding], warnings: Sequence[Finding], alike: int, like: str = "") -> str:
    wrong, errors_left = _lines(errors, _MOST, alike)
    also, warnings_left = _lines(warnings, _MOST - len(wrong), alike)
    if errors:
        count = _list(len(errors), len(warnings))
        lines = [
            f"The workflow was not accepted: {count}."
            " Send the whole corrected workflow as JSON, without any other text.",
            *wrong,
            *(["Warnings:"] if also else []),
        ]
    else:
        lines = [f"The workflow was accepted, with {_list(0, len(warnings))}:"]
    left = _list(errors_left, warnings_left, more="more ")
    return "\n".join([*lines, *also, *([f"...and {left}{like}."] if left else [])])


def _lines(findings: Sequence[Finding], limit: int, alike: int) -> tuple[list[str], int]:
    """A line for each problem, and how many findings are on none.

    The same problem at several places, and several problems at one, are one line.
    """
    problems: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        problems.setdefault((finding.message, finding.hint), []).append(finding)
    kinds = Counter[str]()
    lines: dict[str, list[str]] = {}
    left = len(findings)
    for words, found in problems.items():
        code = found[0].code
        if kinds.total() < limit and kinds[code] < alike:
            kinds[code] += 1
            left -= len(found)
            lines.setdefault(_places(found), []).append(_item(words))
    return [
        f"- {at}: {'. '.join(all_)}" if at else f"- {'. '.join(all_)}" for at, all_ in lines.items()
    ], left


def _places(found: Sequence[Finding]) -> str:
    places = list(dict.fromkeys(filter(None, map(_place, found))))
    more = len(places) - _ALIKE
    return "; ".join(places[:_ALIKE] + [f"and {more} more place{'' if more == 1 else 's'}"] * (more > 0))


@attrs.frozen
class Report:
    """All findings in a workflow, each once and with its place.

    Attributes:
        errors: The errors, in the order of the document.
        warnings: The warnings, which do not make it invalid, in the order of the document.
        workflow: The workflow, when there are no errors; otherwise the JSON value that could be
            parsed, or None.
        parsed_plan: The steps as far as they could be parsed.
        source: The original text; None where the workflow came parsed.
    """

    errors: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    workflow: Workflow | Any = attrs.field(default=None, hash=False)
    parsed_plan: list[Any] = attrs.field(factory=list, hash=False)
    source: Source | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def ok(self) -> bool:
        """True if the workflow has no errors."""
        return not self.errors

    def to_dict(self) -> dict[str, Any]:
        """The report as the response of the validation handler; every key is always there.

        It can be written as JSON whenever ``parsed_plan`` can.
        """
        errors = self.errors
        ranked = _by_importance(errors)
        examples = [sentence(finding) for finding in ranked[:_EXAMPLES]]
        return {
            "success": not errors,
            "error": "Plan validation failed." if errors else None,
            "validation_errors": [sentence(finding) for finding in errors],
            "validation_warnings": [sentence(finding) for finding in self.warnings],
            "error_summary": {
                **{key: bool(_count(errors, category)) for category, (key, _, _) in _SECTIONS.items()},
                "error_count": len(errors),
                "most_critical_error": examples[0] if errors else None,
                "example_errors": examples,
            },
            "user_friendly_error": "\n".join(_friendly(ranked, examples)) if errors else None,
            "parsed_plan": list(self.parsed_plan),
        }

    def to_prompt(self) -> str:
        """The message for a model that repairs its workflow: every problem, one a line, in plain ASCII.

        At most 40 findings are written out; then it says how many more there are. Of many of one kind the
        first three are.
        """
        if not (self.errors or self.warnings):
            return "The workflow was accepted."
        text = _text(self.errors, self.warnings, _MOST)
        return text if len(text) <= _LONG else _text(self.errors, self.warnings, _ALIKE, " like these")

    def render(self, *, color: bool = False, name: str = "workflow", width: int | None = None) -> str:
        """The report for a person in a terminal: the source line of each finding with carets under the place.

        At most 100 findings are shown, the errors first; then it says how many more there are. Nothing in the
        workflow can act on the terminal.

        Args:
            color: Whether to colour it with ANSI escape sequences; without, it holds none.
            name: What the workflow is called, such as its file's name.
            width: The columns that a source line is cut to, around the place; 100 where it is None.
        """
        errors, warnings = self.errors, self.warnings

        def paint(text: str, sgr: str) -> str:
            return f"\x1b[{sgr}m{text}\x1b[0m" if color else text

        shown = [*errors, *warnings][:_MOST_RENDERED]
        numbers = {each.line for each in shown if each.line is not None}
        # Each line is taken once: one may be the whole text.
        lines = {} if self.source is None else {number: self.source.line(number) for number in numbers}
        margin = " " * len(str(max(numbers, default=0)))
        room = (_COLUMNS if width is None else max(width, _NARROWEST)) - len(margin) - len(" | ")
        name = printable(name)

        def block(finding: Finding) -> Iterator[str]:
            sgr = _SGR[finding.severity]
            label = paint(f"{finding.severity}[{finding.code}]", sgr)
            yield label + paint(f": {plain(finding.message)}", _BOLD)
            at = "" if finding.line is None else f":{finding.line}:{finding.column}"
            yield f"{paint(f'{margin}-->', _DIM)} {name}{at}"
            if finding.line in lines and finding.column is not None:
                text, offset, carets = excerpt(lines[finding.line], finding.column, finding.length, room)
                yield paint(f"{margin} |", _DIM)
                yield f"{paint(f'{finding.line:>{len(margin)}} |', _DIM)} {text}".rstrip(" ")
                yield f"{paint(f'{margin} |', _DIM)} {' ' * offset}{paint('^' * carets, sgr)}"
            about = ", ".join(filter(None, (_step(finding), _short_pointer(finding.pointer))))
            if about:
                yield f"{paint(f'{margin} =', _DIM)} {about}"
            if finding.hint:
                yield f"{paint(f'{margin} =', _DIM)} {paint(f'help: {plain(finding.hint)}', _CYAN)}"

        blocks = ["\n".join(block(each)) for each in shown]
        warnings_left = len(warnings) - max(0, len(shown) - len(errors))
        left = _list(max(0, len(errors) - _MOST_RENDERED), warnings_left, more="more ")
        blocks += [f"...and {left}"] if left else []
        if errors:
            first = _by_importance(errors)[0]
            at = "" if first.line is None else f"{first.line}:{first.column}: "
            counts = paint(_list(len(errors), len(warnings)), _SGR[Severity.ERROR])
            blocks.append(f"{name}: {counts}\nmost critical: {at}{plain(first.message)}")
        else:
            steps = _count_of(len(self.workflow.steps), "step") if isinstance(self.workflow, Workflow) else ""
            valid = [paint("valid", _GREEN), *filter(None, (steps, _list(0, len(warnings))))]
            blocks.append(f"{name}: " + ", ".join(valid))
        return "\n\n".join(blocks)


def excerpt(line: str, column: int, length: int, width: int) -> tuple[str, int, int]:
    """The part of a line around a place, the columns before the place in it, and those of the place."""
    at, start, end = min(column - 1, len(line)), 0, len(line)
    width = width if line.isascii() else width // 2  # a character may take two columns
    if end > width:
        room = width - 2 * len(_CUT)
        start = min(max(0, at - room // 2), end - room)
        end = start + room
    before = _CUT * (start > 0) + printable(line[start:at])
    place, rest = printable(line[at : min(at + length, end)]), printable(line[min(at + length, end) : end])
    return before + place + rest + _CUT * (end < len(line)), _columns(before), max(1, _columns(place))


def _columns(text: str) -> int:
    """The number of columns that a terminal needs for text."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(each) in {"W", "F"} for each in text)
    return len(text) + wide - sum(unicodedata.category(each) in {"Mn", "Me"} for each in text)
