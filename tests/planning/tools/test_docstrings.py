"""Docstrings: the descriptions of a function and of its parameters, in the common styles."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.tools import tool

NAMES = ["x", "y", "z", "args", "options"]
words = st.text("abcdefgh", min_size=1, max_size=8)
sentences = st.lists(words, min_size=1, max_size=6).map(" ".join)
described = st.dictionaries(st.sampled_from(NAMES), sentences, min_size=1, max_size=5)


def read(document: object) -> tuple[str, dict[str, str]]:
    """The descriptions that a model reads of a function with this docstring, and of its parameters."""

    def function(**_given: int) -> None: ...

    function.__doc__ = document  # type: ignore[assignment]  # some are none
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(name, kind, annotation=int) for name in NAMES]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # as decorators do
    made = tool(function)
    fields = made.parameters_schema()["properties"]
    return made.description, {
        name: field["description"] for name, field in fields.items() if "description" in field
    }


def google(parameters: dict[str, str]) -> str:
    return "Args:\n" + "".join(f"    {name} (int): {text}\n" for name, text in parameters.items())


def numpy(parameters: dict[str, str]) -> str:
    entries = (f"{name} : int, optional\n    {text}\n" for name, text in parameters.items())
    return "Parameters\n----------\n" + "".join(entries)


def rest(parameters: dict[str, str]) -> str:
    return "".join(f":param int {name}: {text}\n" for name, text in parameters.items())


@pytest.mark.parametrize("document", [None, "", "  \n\t", 5])
def test_no_docstring_is_an_empty_description(document: object) -> None:
    assert read(document) == ("", {})


WHOLE = """Find  a registration.

        It looks by email
        first, then by\tID.

        Args:
            x (str): An email address
                or a registration ID.
            *args: Further ones.

        Returns:
            found: Not a parameter.
        """
DESCRIPTION = "Find a registration.\n\nIt looks by email first, then by ID."


def test_the_description_keeps_its_paragraphs_and_parameters_are_one_line_each() -> None:
    assert read(WHOLE) == (
        DESCRIPTION,
        {"x": "An email address or a registration ID.", "args": "Further ones."},
    )


def test_without_the_library_the_first_paragraph_is_the_description(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docstring_parser", None)
    assert read(WHOLE) == ("Find a registration.", {})
    assert read("Find a\nregistration.") == ("Find a registration.", {})


@pytest.mark.parametrize("line", ["url without a colon", "more text,"])
def test_a_malformed_docstring_is_the_description_as_a_whole(line: str) -> None:
    document = f"Find it.\n\nArgs:\n    x (int): It.\n    {line}\n\nIt costs."
    assert read(document) == (f"Find it.\n\nArgs: x (int): It. {line}\n\nIt costs.", {})


BOTH = {"x": "The first.", "y": "The second."}


@pytest.mark.parametrize(
    "section",
    [
        "Args:\n    x: The first.\n    y: The second.",
        "Args:\nx: The first.\ny: The second.",
        "Args:\nx: The\n  first.\ny (int): The second.",
        "Args:\n    x -- The first.\n    y -- The second.",
        "Args:\n    x - The first.\n    y (int) - The second.",
        "Args:\n    x -- The\n        first.\n    y: The second.",
        "Args:\n    - x: The first.\n    - `y`: The second.",
        "args:\n\tx: The first.\n\ty: The second.",
        "Keyword arguments:\nx -- The first.\ny -- The second.",
        "Params:\n    x: The first.\n    y: The second.\n\nReturns:\nNothing -- at all.",
        "Parameters\n----------\nx : int\n    The first.\ny\n    The second.",
        ":param x: The first.\n:param int y: The\n    second.",
    ],
)
@pytest.mark.parametrize("before", ["", "Find it.\n", "Find it.\n\n", "\n    "])
def test_entries_are_read_however_they_are_written(section: str, before: str) -> None:
    indented = textwrap.indent(section, "    ").lstrip() if before.endswith("    ") else section
    assert read(before + indented) == (before.strip(), BOTH)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("Args:\n    x: It.\n\nFind it.", ("Find it.", {"x": "It."})),
        ("Find it.\n\nArgs:\n    x: It.\n\nIt costs.\n\nNote:\n    Much.", (
            "Find it.\n\nIt costs.\n\nNote: Much.", {"x": "It."})),
        ("Find it.\n\nArgs:\nx: It.\n\ny: This.", ("Find it.\n\ny: This.", {"x": "It."})),
        ("Find it.\n\nArgs:\n    x = it", ("Find it.\n\nArgs: x = it", {})),
        ("Find it.\n\nParameters\n----------\nx -- it", ("Find it.", {"x": "it"})),
        ("Find it.\n\nArgs:\n    x: At a -- or b.", ("Find it.", {"x": "At a -- or b."})),
        ("Find it -- now.\n\nor - later.", ("Find it -- now.\n\nor - later.", {})),
    ],
)  # fmt: skip
def test_no_part_of_a_description_is_lost(document: str, expected: tuple[str, dict[str, str]]) -> None:
    assert read(document) == expected


@pytest.mark.parametrize("style", [google, numpy, rest])
@given(summary=sentences, parameters=described, indentation=st.integers(0, 8))
def test_each_style_gives_back_what_was_written(
    style: Callable[[dict[str, str]], str], summary: str, parameters: dict[str, str], indentation: int
) -> None:
    body = textwrap.indent(f"\n\n{style(parameters)}", " " * indentation)
    assert read(summary + body) == (summary, parameters)
