"""Errors and warnings about a plan, one value for each place; their kinds are one table."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

import attrs

from planning.reading import Path

_FENCE = re.compile(r"`{3,}|~{3,}")
_LONGEST = 500


class Category(StrEnum):
    """The subject of a finding; the most critical first."""

    JSON = "json"
    SCHEMA = "schema"
    CAPABILITY = "capability"
    DEPENDENCY = "dependency"
    REFERENCE = "reference"


class Severity(StrEnum):
    """The effect of a finding: an error makes a workflow invalid."""

    ERROR = "error"
    WARNING = "warning"


@attrs.frozen
class Kind:
    """A kind of finding.

    Attributes:
        category: What it is about.
        severity: Whether it makes a workflow invalid.
        meaning: One line for the catalogue.
    """

    category: Category
    severity: Severity
    meaning: str


def _kinds(category: Category, severity: Severity, **meanings: str) -> dict[str, Kind]:
    return {code: Kind(category, severity, meaning) for code, meaning in meanings.items()}


CODES: Final[dict[str, Kind]] = {
    **_kinds(
        Category.JSON,
        Severity.ERROR,
        not_text="The source is neither text nor a JSON value.",
        not_json="A Python value that JSON does not have.",
        bad_encoding="The bytes are not UTF-8.",
        too_long="The text exceeds a limit of the reader.",
        no_json="The text contains no JSON array or object.",
        several_documents="The text contains several workflows, and which one is meant is unknown.",
        truncated="The text ends before the workflow does.",
        too_deep="Values are nested too deeply.",
        duplicate_key="A field appears twice in one object.",
        not_a_number="NaN or Infinity, which JSON does not have.",
        bad_number="A number that is not written as in JSON, or is too large to keep.",
        lone_surrogate="Half of a surrogate pair, which is not a character.",
        bad_escape="A backslash in a string that does not start an escape.",
        unescaped_quote="A quote within a string, or a string without its closing quote.",
        unquoted_text="A string without quotes.",
        ambiguous_bracket="A bracket is missing, and its place is unknown.",
        syntax_error="Anything else that is not JSON.",
    ),
    **_kinds(
        Category.JSON,
        Severity.WARNING,
        fenced="The workflow was in a code fence.",
        encoded_plan="The workflow was a JSON string; the string was read.",
        surrounding_text="There was extra text around the workflow.",
        comment="Comments were removed.",
        trailing_comma="Commas before a closing bracket were removed.",
        missing_comma="Missing commas between lines were added.",
        single_quotes="Strings in single quotes were accepted.",
        bare_key="Field names without quotes were accepted.",
        python_literal="True, False or None was read as true, false or null.",
        number_form="Numbers such as +1, .5 or 5. were read as JSON numbers.",
        escape_form="Escapes that JSON does not have were accepted: \\' and \\x41.",
        odd_space="Spaces that JSON does not have were read as spaces.",
        raw_control="A string contained line breaks or other control characters; they were kept.",
        missing_bracket="Missing brackets were added.",
        extra_bracket="Closing brackets without an opening one were removed.",
    ),
    **_kinds(
        Category.SCHEMA,
        Severity.ERROR,
        unknown_version="Unknown schema version.",
        wrong_type="A value has the wrong type.",
        missing_field="A required field is missing.",
        unknown_field="A field that the schema does not have.",
        unknown_option="A value is not one of the allowed ones.",
        out_of_range="A number is too small or too large.",
        empty_value="A string or a list that must not be empty is empty.",
        conflicting_fields="Two fields exclude each other, or one needs another.",
        too_many_errors="There are more errors than a report lists.",
        duplicate_step_id="Two steps have the same id.",
    ),
    **_kinds(
        Category.SCHEMA,
        Severity.WARNING,
        empty_plan="The workflow has no steps.",
        single_step="A single step was read as a workflow of one step.",
        wrapped_plan="The workflow was inside another object; its other fields were ignored.",
        assumed_version="The object has no schema version; version 2 was assumed.",
        ignored_field="An unknown field next to the steps; it was ignored.",
        bad_condition="A done_check that can never be evaluated; the step would always run.",
    ),
    **_kinds(
        Category.CAPABILITY,
        Severity.ERROR,
        unknown_tool="No tool has this name.",
        unknown_handler="No handler has this name.",
        unknown_agent="No agent has this name.",
        wrong_capability="The name is known, but as something else: a tool named as a handler.",
        calls_nothing="A step has inputs and names no tool, handler or agent.",
        bad_input="The inputs are refused by the tool's own parameters.",
    ),
    **_kinds(
        Category.DEPENDENCY,
        Severity.ERROR,
        unknown_dependency="A step depends on one that does not exist.",
        self_dependency="A step depends on itself.",
        dependency_cycle="Steps depend on each other in a cycle.",
    ),
    **_kinds(
        Category.DEPENDENCY,
        Severity.WARNING,
        repeated_dependency="A dependency appears twice in one list.",
    ),
    **_kinds(
        Category.REFERENCE,
        Severity.ERROR,
        malformed_reference="A reference is not in a known form.",
        unclosed_reference="A reference has no closing brace.",
        unknown_reference="A reference to a step that does not exist.",
        self_reference="A step refers to its own output.",
        undeclared_dependency="A reference to a step that is not in depends_on.",
    ),
    **_kinds(
        Category.REFERENCE,
        Severity.WARNING,
        foreign_reference="A reference to a step in the notation of another program; it is plain text here.",
        indirect_reference="A reference to a step that is reachable only through others.",
        undeclared_output="A reference to a field that the step's outputs do not declare.",
    ),
}
"""By code, in the order of the catalogue."""


@attrs.frozen
class Finding:
    """One error or warning about a plan.

    Attributes:
        code: What kind of finding it is: one of the catalogue, and stable.
        message: What is wrong.
        hint: What to do about it.
        step_index: Which step it is about, from 0; None where it is about no single one.
        step_id: The id of that step, if it has one.
        pointer: Where in the parsed document: a JSON pointer (RFC 6901); empty for the whole.
        line: The line in the original text, from 1; None if there is no text.
        column: The column in that line, from 1, in characters.
        length: How many characters from there on are meant, at least 1.
    """

    code: str
    message: str
    hint: str
    step_index: int | None = None
    step_id: str | None = None
    pointer: str = ""
    line: int | None = None
    column: int | None = None
    length: int = 1

    @property
    def category(self) -> Category:
        """The subject of the finding."""
        return CODES[self.code].category

    @property
    def severity(self) -> Severity:
        """The effect of the finding: an error makes the plan invalid."""
        return CODES[self.code].severity


def pointer_of(path: Path) -> str:
    """A path as a JSON pointer (RFC 6901)."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def plain(text: str, limit: int = _LONGEST) -> str:
    r"""Text on one line of ASCII that controls nothing where it is shown: a line break becomes ``\n``."""
    shown = text if len(text) <= limit else text[: limit - 3] + "..."
    if not (shown.isascii() and shown.isprintable()):
        shown = "".join(each if " " <= each <= "~" else ascii(each)[1:-1] for each in shown)
    return _FENCE.sub(lambda fence: "".join(f"\\x{ord(each):02x}" for each in fence[0]), shown)
