"""Every kind of finding: its code, what it is about, and whether it fails a plan. One table."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import attrs

__all__ = ["CODES", "Category", "Kind", "Severity"]


class Category(StrEnum):
    """What a finding is about; the most critical first."""

    JSON = "json"
    SCHEMA = "schema"
    CAPABILITY = "capability"
    DEPENDENCY = "dependency"
    REFERENCE = "reference"


class Severity(StrEnum):
    """Whether a finding fails a plan."""

    ERROR = "error"
    WARNING = "warning"


@attrs.frozen
class Kind:
    """A kind of finding.

    Attributes:
        category: What it is about.
        severity: Whether it fails a plan.
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
        too_long="The text is longer than is read.",
        no_json="The text holds no JSON array or object.",
        several_documents="The text holds several plans, and which one is meant is unknown.",
        truncated="The text ends before the plan does.",
        too_deep="Values are nested too deep.",
        duplicate_key="A field stands twice in one object.",
        not_a_number="NaN or Infinity, which JSON does not have.",
        bad_number="A number that is written in no form of JSON, or too large to be kept.",
        lone_surrogate="Half of a surrogate pair, which is no character.",
        bad_escape="A backslash in a string that begins no escape.",
        unescaped_quote="A quote within a string, or a string without its closing quote.",
        unquoted_text="Text that should be a string, without quotes.",
        ambiguous_bracket="A bracket is missing, and where is unknown.",
        syntax_error="Anything else that is not JSON.",
    ),
    **_kinds(
        Category.JSON,
        Severity.WARNING,
        fenced="The plan stood in a code fence.",
        encoded_plan="The plan was a JSON string; the string was read.",
        surrounding_text="Other text stood around the plan.",
        comment="Comments were left out.",
        trailing_comma="Commas before a closing bracket were left out.",
        missing_comma="Commas between two lines were put in.",
        single_quotes="Strings in single quotes were taken.",
        bare_key="Field names without quotes were taken.",
        python_literal="True, False or None was read as true, false or null.",
        number_form="Numbers such as +1, .5 or 5. were read as JSON has them.",
        escape_form="Escapes that JSON does not have were read: \\' and \\x41.",
        odd_space="Spaces that JSON does not have were read as spaces.",
        raw_control="Line breaks or other control characters stood in a string; they were kept.",
        missing_bracket="Brackets that were not closed, or not opened, were put in.",
        extra_bracket="Closing brackets without an opening one were left out.",
    ),
    **_kinds(
        Category.SCHEMA,
        Severity.ERROR,
        unknown_version="The schema version is none that is known.",
        wrong_type="A value is of the wrong type.",
        missing_field="A required field is missing.",
        unknown_field="A field that the schema does not have.",
        unknown_option="A value is none of the allowed ones.",
        out_of_range="A number is too small or too large.",
        empty_value="A text or a list that must not be empty is empty.",
        conflicting_fields="Two fields exclude each other, or one needs another.",
        too_many_errors="More is wrong than is written out.",
        duplicate_step_id="Two steps have the same id.",
    ),
    **_kinds(
        Category.SCHEMA,
        Severity.WARNING,
        empty_plan="The plan has no steps.",
        single_step="A single step was read as a plan of one step.",
        wrapped_plan="The plan stood within another object; its other fields were passed over.",
        assumed_version="The object says no schema version; version 2 was assumed.",
        ignored_field="A field beside the steps that plans do not have; it was ignored.",
        shared_key="Two steps that may run at the same time have the same expected_key.",
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
        Category.CAPABILITY,
        Severity.WARNING,
        number_as_text="An input is a number in quotes where the tool takes only a number.",
    ),
    **_kinds(
        Category.DEPENDENCY,
        Severity.ERROR,
        unknown_dependency="A step depends on one that does not exist.",
        self_dependency="A step depends on itself.",
        dependency_cycle="Steps depend on each other in a circle.",
    ),
    **_kinds(
        Category.DEPENDENCY,
        Severity.WARNING,
        repeated_dependency="A dependency stands twice in one list.",
    ),
    **_kinds(
        Category.REFERENCE,
        Severity.ERROR,
        malformed_reference="A reference is written in none of the known forms.",
        unclosed_reference="A reference has no closing brace.",
        unknown_reference="A reference to a step that does not exist.",
        self_reference="A step refers to its own output.",
        undeclared_dependency="A reference to a step that is not in depends_on.",
    ),
    **_kinds(
        Category.REFERENCE,
        Severity.WARNING,
        foreign_reference="A reference to a step in the notation of another format; it is plain text here.",
        indirect_reference="A reference to a step that is reachable only through others.",
        undeclared_output="A reference to a field that the step's outputs do not declare.",
    ),
}
"""By code, in the order of the catalogue."""
