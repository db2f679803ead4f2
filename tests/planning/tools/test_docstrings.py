"""Docstrings: what they say of a function and of its parameters, in the three styles."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.tools.docstrings import read_docstring

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
described = st.dictionaries(st.from_regex(r"[a-z_]\w{0,8}", fullmatch=True), sentences, max_size=5)


def google(parameters: dict[str, str]) -> str:
    return "Args:\n" + "".join(f"    {name} (int): {text}\n" for name, text in parameters.items())


def numpy(parameters: dict[str, str]) -> str:
    entries = (f"{name} : int, optional\n    {text}\n" for name, text in parameters.items())
    return "Parameters\n----------\n" + "".join(entries)


def rest(parameters: dict[str, str]) -> str:
    return "".join(f":param int {name}: {text}\n" for name, text in parameters.items())


@pytest.mark.parametrize("text", [None, "", "  \n\t"])
def test_no_docstring_says_nothing(text: str | None) -> None:
    assert read_docstring(text) == ("", {})


def test_something_else_than_text_says_nothing() -> None:
    assert read_docstring(5) == ("", {})  # type: ignore[arg-type]  # what __doc__ may hold


def test_the_description_keeps_its_paragraphs_one_line_each() -> None:
    text = """Find  a registration.

        It looks by email
        first, then by\tID.


        Case does not matter.
        """
    assert read_docstring(text) == (
        "Find a registration.\n\nIt looks by email first, then by ID.\n\nCase does not matter.",
        {},
    )


@pytest.mark.parametrize("header", ["Args:", "Arguments:", "Parameters:", "Keyword Args:", "Args:  "])
def test_google_style(header: str) -> None:
    text = f"""Find a registration.

    {header}
        identifier (str): An email address
            or a registration ID.

            It may be old.
        kind (dict[str, Callable[[int], tuple(int)]], optional): Which one (badge: paper): any.
        *args: Further ones,
        on the same indentation.
        **options(int): The rest.
        plain:
            On the next line.
        said_nothing (int):
        broken (int: It never ends.
        url http://example.com
        std::vector

    Returns:
        found: Not a parameter.

    Afterword: neither.
    """
    assert read_docstring(text) == (
        "Find a registration.",
        {
            "identifier": "An email address or a registration ID. It may be old.",
            "kind": "Which one (badge: paper): any.",
            "args": "Further ones, on the same indentation.",
            "options": "The rest.",
            "plain": "On the next line.",
            "said_nothing": "broken (int: It never ends. url http://example.com std::vector",
        },
    )


def test_numpy_style() -> None:
    text = """Find a registration.

    Slowly.

    Parameters
    ----------
    identifier : str
        An email address

        or a registration ID.
    first, second: {'a', 'b'}, optional
        One of both.
    *args, **kwargs
        The rest.
    silent : int
    This is prose and no name
        that nobody reads.

    Other Parameters
    ================
    rare : int
        Seldom used.

    Returns
    -------
    found : bool
        Not a parameter.
    """
    assert read_docstring(text) == (
        "Find a registration.\n\nSlowly.",
        {
            "identifier": "An email address or a registration ID.",
            "first": "One of both.",
            "second": "One of both.",
            "args": "The rest.",
            "kwargs": "The rest.",
            "rare": "Seldom used.",
        },
    )


def test_rest_style() -> None:
    text = """Find a registration.

    :param identifier: An email address
        or a registration ID.

        It may be old.
    :type identifier: str
    :param int limit: How many
    at most.
    :keyword \\*\\*options: The rest.
    :param silent:
    :param: nobody
    :param  :
    :returns: What was found.
    :raises KeyError: Nothing was.

    Afterword.
    :unknown field: is not read
    """
    assert read_docstring(text) == (
        "Find a registration.",
        {
            "identifier": "An email address or a registration ID. It may be old.",
            "limit": "How many at most.",
            "options": "The rest.",
            "silent": ":param: nobody :param :",
        },
    )


def test_prose_behind_a_rest_field_is_not_part_of_it() -> None:
    assert read_docstring(":param x: It.\n\nAfterword.\n:param y: Why.") == ("", {"x": "It.", "y": "Why."})


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
    assert read_docstring(f"Summary.\n\n{section}\n\nMore: of it") == ("Summary.", {})
    assert read_docstring(f"Summary.\n{section}") == ("Summary.", {})


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
    ],
)
def test_prose_that_looks_like_a_section_is_description(text: str) -> None:
    assert read_docstring(text) == (text, {})


def test_a_heading_that_is_no_section_is_description() -> None:
    assert read_docstring("Finding\n-------\n\nIt finds.") == ("Finding -------\n\nIt finds.", {})
    assert read_docstring("-----\nText") == ("----- Text", {})


def test_a_docstring_may_start_with_its_parameters() -> None:
    text = """Args:
            x: It.
            y: Why.
    """
    assert read_docstring(text) == ("", {"x": "It.", "y": "Why."})
    assert read_docstring(text + "\n    Returns:\n        z: no\n") == ("", {"x": "It.", "y": "Why."})


def test_of_two_entries_for_a_parameter_the_first_counts() -> None:
    text = "Args:\n    x: It.\n    x: Again.\n\nKeyword Args:\n    y: Why.\n    x: Thrice."
    assert read_docstring(text) == ("", {"x": "It.", "y": "Why."})


@pytest.mark.parametrize("style", [google, numpy, rest])
@given(summary=sentences, parameters=described, indentation=st.integers(0, 8))
def test_each_style_gives_back_what_was_written(
    style: object, summary: str, parameters: dict[str, str], indentation: int
) -> None:
    assert callable(style)
    body = textwrap.indent(f"\n\n{style(parameters)}\nReturns:\n    x: no\n", " " * indentation)
    assert read_docstring(summary + body) == (summary, parameters)


@given(documents)
def test_any_text_is_read_into_single_lines(text: str) -> None:
    description, parameters = read_docstring(text)
    paragraphs = description.split("\n\n") if description else []
    for line in [*paragraphs, *parameters.values()]:
        assert line == " ".join(line.split()) != ""
    assert [name for name in parameters if name != name.strip(" *\\")] == []


@given(st.text(st.characters(exclude_characters=":-=")))
def test_text_without_any_section_is_all_description(text: str) -> None:
    description, parameters = read_docstring(text)
    assert (description.split(), parameters) == (text.split(), {})
