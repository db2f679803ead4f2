"""A function's description and parameters from its docstring, in any common style."""

from __future__ import annotations

from functools import lru_cache
from inspect import cleandoc

__all__ = ["read_docstring"]


def read_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """Read a docstring; never raises.

    docstring-parser reads those of several lines. Without that library, and of a malformed docstring, the
    first paragraph is the description.

    Returns:
        The description, as paragraphs of one line each; and by its name, the description of each parameter.
    """
    if not isinstance(text, str) or not text.strip():
        return "", {}
    text = cleandoc(text)
    if "\n" not in text:  # most are: the library takes 30 ms to load
        return _one_line(text), {}
    first = _one_line(text.partition("\n\n")[0])
    try:
        from docstring_parser import ParseError  # noqa: PLC0415 - of an extra
    except ImportError:
        return first, {}
    try:
        return _parsed(text)
    except ParseError:
        return first, {}


@lru_cache(maxsize=1)  # it is asked for the description, and then for those of the parameters
def _parsed(text: str) -> tuple[str, dict[str, str]]:
    from docstring_parser import DocstringStyle, parse  # noqa: PLC0415 - of an extra

    parsed = parse(text)
    if not parsed.meta:  # malformed sections of this style would be taken for prose
        parse(text, DocstringStyle.GOOGLE)
    descriptions: dict[str, str] = {}
    for parameter in parsed.params:
        said = _one_line(parameter.description or "")
        for name in parameter.arg_name.split(",") if said else ():
            descriptions.setdefault(name.strip(" \\*"), said)
    paragraphs = map(_one_line, (parsed.description or "").split("\n\n"))
    return "\n\n".join(filter(None, paragraphs)), descriptions


def _one_line(text: str) -> str:
    return " ".join(text.split())
