"""Text from a model as a terminal may show it: on one line, and nothing in it acts on the terminal."""

from __future__ import annotations

__all__ = ["one_line", "printable"]


def printable(text: str) -> str:
    r"""The text with everything that does not print escaped: an ESC becomes ``\x1b``."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def one_line(text: str) -> str:
    """The text's lines beside each other, with a bar between them; tabs become spaces."""
    return " | ".join(printable(line.replace("\t", " ")) for line in text.split("\n"))
