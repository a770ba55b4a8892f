"""What a built page prints that an engine would have to understand: its commands and its flags.

Read from the HTML that a reader sees, so that nothing can be forgotten in a list. What a page shows on purpose though
no engine takes it carries the class `refused`: `` `--old`{.refused} ``; if only one engine refuses it, also that one's,
as `{.refused .by-tensorrt-llm}`. A cell that shows among others such a flag has tags of these names. What belongs to a
program that is no engine, and to no line on the page that starts this program, has the class `other`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

CONSOLE_PROGRAMS = ("vllm", "sglang", "aiperf")
MODULES = re.compile(r"(?:vllm|sglang|dynamo|tensorrt_llm|aiperf)(?:\.\w+)*")
TENSORRT_LLM_PROGRAM = re.compile(r"trtllm-[a-z]+")
SUBCOMMAND = re.compile(r"[a-z][a-z-]*")
# Their flags are not an engine's, nor those of a cell that installs something.
OTHER_TOOLS = re.compile(r"[$ ]*(?:pip3?|uv|git|make|kubectl|helm|curl|apt-get|nvidia-smi|jupyter|docker)(?: |$)")
# What may stand before a program on its line.
BEFORE_A_COMMAND = re.compile(r"\$|\w+=.*|nohup|exec|time|sudo|numactl.*|-.*")
AFTER_A_COMMAND = re.compile(r"\d?[<>].*|[&|;]+|#.*")
INSTALLS = re.compile(r"[\"']pip[\"']|[%!]pip ")
FLAG = re.compile(r"(?<![\w/.-])--[A-Za-z][\w-]*(?!\w)")
MARKS = {"refused": "refused", "tag_refused": "tried", "other": "other", "tag_other": "other"}
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


# What the pages are made from.
SOURCES = (
    "_config.yml",
    "_toc.yml",
    "index.md",
    "chapters/*.md",
    "techniques/*.md",
    "labs/*.ipynb",
    "lib/**/*.py",
    "lib/**/*.json",
    "site/**/*.py",
)


class NoBook(RuntimeError):
    """There is no built book to read, or it is older than what it is made from; the text says what to do."""


class Snippet(NamedTuple):
    """Text that a page sets as code.

    text  without markup
    kind  "inline", "block", or "source" for the Python of a code cell
    mark  "refused"; "tried", where some of a cell's flags are; "other"; or ""
    by    the engine that refuses it, as "tensorrt-llm"; "" for all of them
    """

    text: str
    kind: str
    mark: str
    by: str = ""


class Printed(NamedTuple):
    """A command, or a flag that stands alone with or without a value.

    words  beginning with the program or with the flag
    mark   as in `Snippet`, and so is `by`
    """

    words: tuple[str, ...]
    mark: str = ""
    by: str = ""

    @property
    def is_command(self) -> bool:
        """Whether it begins with a program."""
        return not self.words[0].startswith("-")

    @property
    def program(self) -> str:
        """The words that say which parser reads the rest; "" for a flag alone."""
        if not self.is_command:
            return ""
        if self.words[1:2] == ("-m",):
            return f"python3 -m {self.words[2]}"
        return " ".join(self.words[: 2 if self.words[0] in CONSOLE_PROGRAMS else 1])


def book(root: Path) -> dict[str, list[Printed]]:
    """Page -> what it prints, for every page of the book built from the checkout `root`. Raises `NoBook`."""
    html = root / "_build" / "html"
    pages = [path for path in sorted(html.rglob("*.html")) if not path.relative_to(html).parts[0].startswith("_")]
    if not pages:
        raise NoBook("The built book is missing: type `make book` first.")
    built = min(path.stat().st_mtime for path in pages)
    newer = [path for source in SOURCES for path in root.glob(source) if path.stat().st_mtime > built]
    if newer:
        raise NoBook(f"The built book is older than {newer[0].relative_to(root)}: type `make book` first.")
    return {str(path.relative_to(html).with_suffix("")): read(path.read_text(encoding="utf-8")) for path in pages}


def snippets(html: str) -> list[Snippet]:
    """Every piece of code on a page, in order."""
    reader = _Reader()
    reader.feed(html)
    return reader.found


def read(html: str) -> list[Printed]:
    """Every command and flag on a page, in order, each once."""
    pieces = snippets(html)
    others = {tuple(_words(line)) for snippet in pieces for line in _lines(snippet) if _is_another_tools(line)}
    found = dict.fromkeys(printed for snippet in pieces for printed in _read(snippet))
    return [each for each in found if each.mark != "other" and not any(_within(each.words, line) for line in others)]


def _read(snippet: Snippet) -> Iterator[Printed]:
    if snippet.kind == "source":
        # What a cell hands to `commands.parse` was parsed when the page was built; a word of it may be a variable.
        if not INSTALLS.search(snippet.text):
            yield from (Printed((flag,), snippet.mark, snippet.by) for flag in FLAG.findall(snippet.text))
        return
    for line in _lines(snippet):
        words = _words(line)
        start = _start(words)
        if _is_another_tools(line):
            continue
        if start is not None:
            yield Printed((*_program(words[start:]),), snippet.mark, snippet.by)
        elif snippet.kind == "inline" and re.match(r"--?[A-Za-z]", line):
            yield Printed(tuple(words), snippet.mark, snippet.by)
        else:
            yield from (Printed((flag,), snippet.mark, snippet.by) for flag in FLAG.findall(line))


def _lines(snippet: Snippet) -> list[str]:
    return [] if snippet.kind == "source" else snippet.text.replace("\\\n", " ").splitlines()


def _is_another_tools(line: str) -> bool:
    return bool(OTHER_TOOLS.match(line)) and _start(_words(line)) is None


def _within(words: tuple[str, ...], line: tuple[str, ...]) -> bool:
    return any(line[at : at + len(words)] == words for at in range(len(line)))


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:  # an apostrophe in an output is no quote
        return line.split()


def _start(words: list[str]) -> int | None:
    """Where in a line an engine's program begins; None if nowhere. A container may be what starts it."""
    contained = OTHER_TOOLS.match(" ".join(words)) and "docker" in words[:2]
    for at, word in enumerate(words):
        if _begins(word, words[at + 1 : at + 3]):
            return at
        if not contained and not BEFORE_A_COMMAND.fullmatch(word):
            return None
    return None


def _begins(word: str, after: list[str]) -> bool:
    if word in CONSOLE_PROGRAMS:
        return bool(after) and bool(SUBCOMMAND.fullmatch(after[0]))
    if re.fullmatch(r"(?:\S*/)?python3?", word):
        return after[:1] == ["-m"] and len(after) > 1 and bool(MODULES.fullmatch(after[1]))
    return bool(TENSORRT_LLM_PROGRAM.fullmatch(word))


def _program(words: list[str]) -> list[str]:
    own = list(takewhile(lambda word: not AFTER_A_COMMAND.fullmatch(word), words))
    return ["python3", *own[1:]] if own[1:2] == ["-m"] else own


class _Reader(HTMLParser):
    """Collects the text of `code` and `pre` elements."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.found: list[Snippet] = []
        self.open: list[tuple[str, set[str]]] = []
        self.text: list[str] | None = None
        self.depth = 0

    def handle_starttag(self, tag, attributes):
        if tag in VOID:
            return
        self.open.append((tag, set((dict(attributes).get("class") or "").split())))
        if tag in ("code", "pre") and self.text is None:
            self.text, self.depth = [], len(self.open)

    def handle_data(self, data):
        if self.text is not None:
            self.text.append(data)

    def handle_endtag(self, tag):
        if tag in VOID or tag not in (name for name, _ in self.open):
            return
        # What HTML lets a page leave open ends with what holds it.
        while self.open:
            if self.text is not None and len(self.open) == self.depth:
                self._keep()
            if self.open.pop()[0] == tag:
                return

    def _keep(self):
        classes = set().union(*(names for _, names in self.open))
        kind = "source" if "cell_input" in classes else "block" if self.open[-1][0] == "pre" else "inline"
        mark = next((mark for name, mark in MARKS.items() if name in classes), "")
        by = next((name.partition("by-")[2] for name in sorted(classes) if re.match(r"(?:tag_)?by-", name)), "")
        self.found.append(Snippet("".join(self.text).strip("\n"), kind, mark, by))
        self.text = None
