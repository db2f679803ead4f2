"""Docstrings: what a model is told of a function and of its parameters, in the three styles."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.tools import tool

NAMES = ["x", "y", "z", "args", "options"]
fragments = st.sampled_from(
    [
        "Args:", "Parameters", "----------", "Returns:", "Returns", "x: it", "x : int", "x (int): it",
        ":param x: it", ":param", ":type x: int", "    ", "\t", "\n", "\n\n", "*args", "(", ")", "Note:", ",",
        ":", "word", "\r",
    ]
)  # fmt: skip
documents = st.lists(fragments | st.text(max_size=4)).map("".join)
words = st.text("abcdefgh", min_size=1, max_size=8)
sentences = st.lists(words, min_size=1, max_size=6).map(" ".join)
described = st.dictionaries(st.sampled_from(NAMES), sentences, max_size=5)


def told(document: object) -> tuple[str, dict[str, str]]:
    """What a model reads of a function with this docstring, and of its parameters."""

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
def test_no_docstring_says_nothing(document: object) -> None:
    assert told(document) == ("", {})


def test_the_description_keeps_its_paragraphs_one_line_each() -> None:
    document = """Find  a registration.

        It looks by email
        first, then by\tID.


        Case does not matter.
        """
    assert told(document) == (
        "Find a registration.\n\nIt looks by email first, then by ID.\n\nCase does not matter.",
        {},
    )


@pytest.mark.parametrize("header", ["Args:", "Arguments:", "Parameters:", "Keyword Args:", "Args:  "])
def test_google_style(header: str) -> None:
    document = f"""Find a registration.

    {header}
        x (str): An email address
            or a registration ID.

            It may be old.
        y (dict[str, Callable[[int], tuple(int)]], optional): Which one (badge: paper): any.
        *args: Further ones,
        on the same indentation.
        **options(int): The rest.
        z:
            On the next line, http://example.com too.

    Returns:
        found: Not a parameter.

    Afterword: neither.
    """
    assert told(document) == (
        "Find a registration.",
        {
            "x": "An email address or a registration ID. It may be old.",
            "y": "Which one (badge: paper): any.",
            "z": "On the next line, http://example.com too.",
            "args": "Further ones, on the same indentation.",
            "options": "The rest.",
        },
    )


@pytest.mark.parametrize("line", ["y (int: It never ends.", "url http://example.com", "std::vector"])
def test_a_line_of_google_style_that_is_no_entry_belongs_to_the_entry_before(line: str) -> None:
    assert told(f"Find.\n\nArgs:\n    x (int):\n    {line}") == ("Find.", {"x": line})


def test_numpy_style() -> None:
    document = """Find a registration.

    Slowly.

    Parameters
    ----------
    x : str
        An email address

        or a registration ID.
    y, z: {'a', 'b'}, optional
        One of both.
    silent : int
    This is prose and no name
        that nobody reads.

    Other Parameters
    ================
    *args, **options
        The rest.

    Returns
    -------
    found : bool
        Not a parameter.
    """
    assert told(document) == (
        "Find a registration.\n\nSlowly.",
        {
            "x": "An email address or a registration ID.",
            "y": "One of both.",
            "z": "One of both.",
            "args": "The rest.",
            "options": "The rest.",
        },
    )


def test_rest_style() -> None:
    document = """Find a registration.

    :param x: An email address
        or a registration ID.

        It may be old.
    :type x: str
    :param int y: How many
    at most.
    :keyword \\*\\*options: The rest.
    :param z:
    :param: nobody
    :param  :
    :returns: What was found.
    :raises KeyError: Nothing was.

    Afterword.
    :unknown field: is not read
    """
    assert told(document) == (
        "Find a registration.",
        {
            "x": "An email address or a registration ID. It may be old.",
            "y": "How many at most.",
            "z": ":param: nobody :param :",
            "options": "The rest.",
        },
    )
    assert told(":param x: It.\n\nAfterword.\n:param y: Why.") == ("", {"x": "It.", "y": "Why."})


@pytest.mark.parametrize(
    "section",
    [
        "Returns:\n    x: it",
        "Returns: It.",
        "Raises:\n    KeyError: why",
        "Yields:\n    x",
        "Example:\n    >>> f()",
        "Note:\n    x",
        "See Also:\n    x",
        "Returns\n-------\nx : int\n    it",
        "Examples\n========\n>>> f()",
        ":returns: x",
        ":rtype: int",
    ],
)
def test_any_other_section_ends_the_description(section: str) -> None:
    assert told(f"Summary.\n\n{section}\n\nMore: of it") == ("Summary.", {})
    assert told(f"Summary.\n{section}") == ("Summary.", {})


@pytest.mark.parametrize(
    "text",
    [
        "Note: this is slow.",
        "Use one of: a, b",
        "Returns the sum.",
        "Args: x, the first.",
        ":mod:`planning` is a package.",
        "http://example.com: a site",
        "x: not a parameter",
        "Finding -------",
        "----- Text",
    ],
)
def test_prose_that_looks_like_a_section_is_description(text: str) -> None:
    assert told(text) == (text, {})
    assert told(text.replace(" -", "\n-").replace("- ", "-\n")) == (text, {})


def test_a_docstring_may_start_with_its_parameters() -> None:
    document = "Args:\n            x: It.\n            y: Why.\n    "
    assert told(document) == ("", {"x": "It.", "y": "Why."})
    assert told(document + "\n    Returns:\n        z: no\n") == ("", {"x": "It.", "y": "Why."})


def test_of_two_entries_for_a_parameter_the_first_counts() -> None:
    document = "Args:\n    x: It.\n    x: Again.\n\nKeyword Args:\n    y: Why.\n    x: Thrice."
    assert told(document) == ("", {"x": "It.", "y": "Why."})


@pytest.mark.parametrize("style", [google, numpy, rest])
@given(summary=sentences, parameters=described, indentation=st.integers(0, 8))
def test_each_style_gives_back_what_was_written(
    style: Callable[[dict[str, str]], str], summary: str, parameters: dict[str, str], indentation: int
) -> None:
    body = textwrap.indent(f"\n\n{style(parameters)}\nReturns:\n    x: no\n", " " * indentation)
    assert told(summary + body) == (summary, parameters)


@given(documents)
def test_any_text_is_read_into_single_lines(document: str) -> None:
    description, parameters = told(document)
    paragraphs = description.split("\n\n") if description else []
    for line in [*paragraphs, *parameters.values()]:
        assert line == " ".join(line.split()) != ""


@given(st.text(st.characters(exclude_characters=":-=")))
def test_text_without_any_section_is_all_description(document: str) -> None:
    description, parameters = told(document)
    assert (description.split(), parameters) == (document.split(), {})
