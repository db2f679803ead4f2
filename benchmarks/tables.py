"""A table that reads the same in a terminal and in a Markdown file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["table"]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A Markdown table, padded so that it also reads as plain text; numbers stand on the right."""
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        first, *others = (
            cell.rjust(width) if index else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join([first, *others])} |"

    yield line(head)
    yield f"|{'|'.join('-' * (width + 1) + (':' if index else '-') for index, width in enumerate(widths))}|"
    yield from (line(row) for row in rows)
