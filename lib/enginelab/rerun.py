"""A cell of a page that its reader has changed, run again with what it needs of the cells before it. (Every chapter.)

The page sends the texts of the cells, and site/live/reader.py hands them to `run`. It needs the standard library alone,
for it runs in the browser; a test runs every cell of the book through it.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import linecache
import pprint
import traceback
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import NamedTuple

from .needed import needed, statements

MOST_PRINTED = 50_000
"""Characters of printed text that are kept: a page that shows more does not scroll any more."""
MOST_SHOWN = 2_000
"""Characters that are kept of the value of the last line."""
MOST_OF_ONE = 300
"""Characters that are kept of each value that a cell has set."""
CELL = "<cell>"


class Ending(NamedTuple):
    """How a cell ended.

    error   what went wrong, in one line; empty if nothing did
    line    the line of the cell where it did, from 1; None if it was not in the cell
    earlier the place of the earlier cell where it did, from 0, or None
    value   what the last line of the cell is worth, as text, if that is an expression
    names   what the cell has set, as pairs of name and text (indented to follow it); only if it shows nothing else
    before  the earlier lines that were run first
    """

    error: str = ""
    line: int | None = None
    earlier: int | None = None
    value: str = ""
    names: tuple[tuple[str, str], ...] = ()
    before: str = ""


class Printed(io.TextIOBase):
    """Passes on what a cell prints, up to `MOST_PRINTED` characters."""

    def __init__(self, screen):
        self.screen, self.left, self.any = screen, MOST_PRINTED, False

    def write(self, text: str) -> int:
        if self.left > 0:
            self.any = True
            self.screen.write(text[: self.left])
            self.left -= len(text)
            if self.left <= 0:
                self.screen.write("\n… and so on: the rest is not shown.\n")
        return len(text)

    def flush(self):
        self.screen.flush()


def run(earlier: Sequence[str], cell: str, screen) -> Ending:
    """Run `cell` after what it needs of `earlier`, the texts of all cells before it; write what it prints to `screen`.

    What the reader's code raises is in the `Ending`, and never raised here.
    """
    names, before, place = {"__name__": "__main__", "__builtins__": builtins}, "", None
    printed = Printed(screen)
    try:
        readable = [text if _is_python(text) else "" for text in earlier]
        lines = needed(readable, cell)
        before = "\n".join(line.text for line in lines)
        with contextlib.redirect_stdout(io.StringIO()):
            for line in lines:
                place = line.cell
                exec(compile(line.text, f"<cell {place}>", "exec"), names)
        place = None
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            value = _run(cell, names)
            shown = "" if value is None else _as_text(value)
            if value is not None or printed.any:
                return Ending(value=shown, before=before)
            return Ending(names=tuple(_set_by(cell, names)), before=before)
    except BaseException as error:  # whatever ends a cell must not end the worker that runs it
        return Ending(error=_in_words(error), line=_line(error), earlier=place, before=before)


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _run(cell: str, names: dict) -> object:
    """The value of the cell's last line, if that is an expression; a semicolon behind it hides it, as in a notebook."""
    linecache.cache[CELL] = len(cell), None, cell.splitlines(keepends=True), CELL
    tree = ast.parse(cell, CELL)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, CELL, "exec"), names)
    if last is None:
        return None
    value = eval(compile(ast.Expression(last.value), CELL, "eval"), names)
    return None if cell.rstrip().endswith(";") else value


def _line(error: BaseException) -> int | None:
    if isinstance(error, SyntaxError) and error.filename in (CELL, "<unknown>"):
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == CELL]
    return lines[-1] if lines else None


def _in_words(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not to be had in this page. Download the notebook to run this on your machine."
    try:
        said = error.msg if isinstance(error, SyntaxError) else str(error)
    except Exception:  # an error of the reader's own that cannot say what it is
        said = ""
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _as_text(value: object, most: int = MOST_SHOWN) -> str:
    """The value as a table or as Python writes it, on several lines if it is long, and cut if it is very long."""
    text = str(value) if hasattr(value, "_repr_markdown_") else repr(value)
    if len(text) > most:
        return f"{text[:most]} …"
    return text if "\n" in text else pprint.pformat(value, width=78, sort_dicts=False)


def _set_by(cell: str, names: dict) -> Iterator[tuple[str, str]]:
    """What assignments of the cell have set, without what is set in loops, private names and functions."""
    bound = dict.fromkeys(name for line in statements(cell) for name in sorted(line.settles & line.binds))
    for name in bound:
        value = names.get(name)
        try:
            text = _as_text(value, MOST_OF_ONE)
        except Exception as error:  # a number of too many digits, for one
            text = f"({_in_words(error)})"
        if not (name.startswith("_") or isinstance(value, ModuleType) or callable(value) or " object at 0x" in text):
            yield name, text.replace("\n", "\n" + " " * len(f"{name} = "))
