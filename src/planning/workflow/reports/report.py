"""The result of checking a workflow, in the forms that its readers need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Any, Final

import attrs

from planning.reading import Source
from planning.workflow.codes import Category
from planning.workflow.findings import Finding
from planning.workflow.model import Workflow
from planning.workflow.reports.terminal import rendered
from planning.workflow.reports.wording import by_importance, counted, item, listed, place, sentence

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
"""What to do about a code, where there is something to say that its category's suggestion does not."""

_GENERAL: Final = MappingProxyType({
    Category.JSON: "Write plain JSON: double quotes, a comma between values, every bracket closed.",
    Category.SCHEMA: "Compare each step with the schema: 'planning schema' prints it.",
    Category.CAPABILITY: "Use only names that exist, spelled exactly as they are listed.",
    Category.DEPENDENCY: "List in 'depends_on' only ids of steps in this workflow.",
    Category.REFERENCE: "Write references as ${user_prompt} or ${step_id.output.field}.",
})  # fmt: skip


def response_of(
    errors: Sequence[Finding], warnings: Sequence[Finding], parsed_plan: Sequence[Any]
) -> dict[str, Any]:
    """The response for a workflow; its keys are the same whether the workflow has errors or not."""
    ranked = by_importance(errors)
    examples = [sentence(finding) for finding in ranked[:_EXAMPLES]]
    return {
        "success": not errors,
        "error": "Plan validation failed." if errors else None,
        "validation_errors": [sentence(finding) for finding in errors],
        "validation_warnings": [sentence(finding) for finding in warnings],
        "error_summary": {
            **{key: bool(_count(errors, category)) for category, (key, _, _) in _SECTIONS.items()},
            "error_count": len(errors),
            "most_critical_error": examples[0] if errors else None,
            "example_errors": examples,
        },
        "user_friendly_error": _friendly(ranked, examples) if errors else None,
        "parsed_plan": list(parsed_plan),
    }


def _friendly(ranked: Sequence[Finding], examples: Sequence[str]) -> str:
    return "\n".join(_friendly_lines(ranked, examples))


def _friendly_lines(ranked: Sequence[Finding], examples: Sequence[str]) -> Iterator[str]:
    yield f"The workflow cannot be used yet: it has {counted(len(ranked), 'error')}."
    for category, (_, heading, meaning) in _SECTIONS.items():
        number = _count(ranked, category)
        if number:
            yield f"\n{heading}: {counted(number, 'error')}\n  {meaning}"
    yield f"\nMost critical:\n  {examples[0]}"
    if len(examples) > 1:
        yield "\nAlso:"
    yield from (f"  - {example}" for example in examples[1:])
    left = len(ranked) - len(examples)
    if left:
        yield f"  ...and {counted(left, 'more error')}."
    yield "\nWhat you can do:"
    yield from (f"  - {suggestion}" for suggestion in _suggestions(ranked))


def _suggestions(ranked: Sequence[Finding]) -> list[str]:
    """What to do about each kind of error that there is, the most critical first, each once."""
    return list(dict.fromkeys(SUGGESTIONS.get(each.code, _GENERAL[each.category]) for each in ranked))


def _count(findings: Sequence[Finding], category: Category) -> int:
    return sum(finding.category is category for finding in findings)


_MOST = 40  # problems
_LONG = 1_000  # characters: beyond them
_ALIKE = 3  # problems of one kind are enough, and always places of one problem


def prompt_text(errors: Sequence[Finding], warnings: Sequence[Finding]) -> str:
    """What a model reads about its workflow; of many problems of one kind the first three, and a count."""
    if not (errors or warnings):
        return "The workflow was accepted."
    text = _text(errors, warnings, _MOST)
    return text if len(text) <= _LONG else _text(errors, warnings, _ALIKE, " like these")


def _text(errors: Sequence[Finding], warnings: Sequence[Finding], alike: int, like: str = "") -> str:
    wrong, errors_left = _lines(errors, _MOST, alike)
    also, warnings_left = _lines(warnings, _MOST - len(wrong), alike)
    if errors:
        count = listed(len(errors), len(warnings))
        lines = [
            f"The workflow was not accepted: {count}."
            " Send the whole corrected workflow as JSON, without any other text.",
            *wrong,
            *(["Warnings:"] if also else []),
        ]
    else:
        lines = [f"The workflow was accepted, with {listed(0, len(warnings))}:"]
    left = listed(errors_left, warnings_left, more="more ")
    return "\n".join([*lines, *also, *([f"...and {left}{like}."] if left else [])])


def _lines(findings: Sequence[Finding], most: int, alike: int) -> tuple[list[str], int]:
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
        if kinds.total() < most and kinds[code] < alike:
            kinds[code] += 1
            left -= len(found)
            lines.setdefault(_places(found), []).append(item(words))
    return [
        f"- {at}: {'. '.join(all_)}" if at else f"- {'. '.join(all_)}" for at, all_ in lines.items()
    ], left


def _places(found: Sequence[Finding]) -> str:
    places = list(dict.fromkeys(filter(None, map(place, found))))
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
        """Whether the workflow has no errors."""
        return not self.errors

    def to_dict(self) -> dict[str, Any]:
        """The report as the response of the validation handler; every key is always there.

        It can be written as JSON whenever ``parsed_plan`` can.
        """
        return response_of(self.errors, self.warnings, self.parsed_plan)

    def to_prompt(self) -> str:
        """What a model gets in order to repair its workflow: every problem, one a line, in plain ASCII.

        At most 40 findings are written out; then it says how many more there are.
        """
        return prompt_text(self.errors, self.warnings)

    def render(self, *, color: bool = False, name: str = "workflow", width: int | None = None) -> str:
        """What a person reads in a terminal: the source line of each finding with carets under the place.

        At most 100 findings are shown; then it says how many more there are. Nothing in the workflow can
        act on the terminal.

        Args:
            color: Whether to colour it with ANSI escape sequences; without, it holds none.
            name: What the workflow is called, such as its file's name.
            width: The columns that a source line is cut to, around the place; 100 where it is None.
        """
        steps = len(self.workflow.steps) if isinstance(self.workflow, Workflow) else None
        return rendered(
            self.errors, self.warnings, self.source, steps=steps, color=color, name=name, width=width
        )
