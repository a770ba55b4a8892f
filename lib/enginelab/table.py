"""Tables that a notebook shows as tables, a terminal as text, and a test as rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Column names and rows of cells; cells may hold anything with a `str`, in Markdown where that is wanted."""

    columns: tuple[str, ...]
    rows: tuple[tuple, ...]

    def __post_init__(self):
        for index, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(f"rows[{index}] must have {len(self.columns)} cells, not {len(row)}")

    def _repr_markdown_(self) -> str:
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)

    def __str__(self) -> str:
        lines = [[str(cell) for cell in line] for line in (self.columns, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(_padded(line, widths) for line in lines)


def _cell(cell) -> str:
    return str(cell).replace("|", "\\|").replace("\n", " ")


def _padded(line: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
