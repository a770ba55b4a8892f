"""What of an engine's log may be shown: its last lines, its present stage, never a secret.

A log is text from outside: it may hold control characters, progress bars, half a line, or the token it was given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

SECRET_FLAGS = ("--api-key", "--hf-token")
SECRET_NAME = re.compile(r"(TOKEN|KEY|SECRET|PASSWORD)$", re.I)
# A hub's token has 34 letters and digits after hf_; what is shorter may be a module, such as hf_transformers.
SECRET_SHAPE = re.compile(r"\b(?:hf_[a-z\d]{20,}|sk-[\w-]{8,}|nvapi-[\w-]{8,})|(?<=Bearer )\S+", re.I)
CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
PREFIX = re.compile(
    r"(?:\(\S+ pid=\d+\) )?(?:(?:DEBUG|INFO|ERROR):?\s+)?(?:\[?[\d/-]+[ T][\d:.,]+\]? )?(?:\[\S+:\d+\]\s*)?"
)
WARNING = re.compile(r"^(?:\(\S+ pid=\d+\) )?(?:W\d{4} |WARNING\b)|Warning: ")
FOLDER = re.compile(r"(?:file://|(?<![\w:/.]))(?:~|/[\w.+@-]+)(?:/[\w.+@-]+)*/(?=[\w.+@-])")
ERROR = re.compile(r"\b[\w.]*(?:Error|Exception): \S")
READ_BYTES, LINE_CHARACTERS, STAGE_CHARACTERS = 256 * 1024, 300, 100


def values(argv: Sequence[str], flags: Sequence[str]) -> list[str]:
    """Return every value that `argv` gives to one of `flags`, as `--flag value` or `--flag=value`, in order.

    A word that begins with `--` is the next flag and no value.
    """
    pairs = enumerate(zip(argv, argv[1:], strict=False))
    spaced = [(i, value) for i, (flag, value) in pairs if flag in flags and not value.startswith("--")]
    joined = [(i, w.partition("=")[2]) for i, w in enumerate(argv) if "=" in w and w.partition("=")[0] in flags]
    return [value for _, value in sorted(spaced + joined)]


def redactor(argv: Sequence[str], environment: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that blanks secrets in a text.

    Secret are: what `argv` gives to --api-key or --hf-token, the value of any environment variable whose name ends in
    TOKEN, KEY, SECRET or PASSWORD, and whatever looks like a token (hf_…, sk-…, nvapi-…, after "Bearer").
    """
    known = [value for name, value in environment.items() if SECRET_NAME.search(name) and len(value) >= 6]
    known += [value for value in values(argv, SECRET_FLAGS) if value]
    longest_first = sorted(set(known), key=len, reverse=True)
    exact = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
    return lambda text: SECRET_SHAPE.sub("[secret]", exact.sub("[secret]", text))


def lines(log: Path) -> list[str]:
    """Return the lines in the last 256 KiB of a log: no blank ones, no control characters, bars as last drawn.

    They are whole, since half a secret would not be known for one: hide first, cut then.
    """
    try:
        with log.open("rb") as file:
            before = max(0, log.stat().st_size - READ_BYTES)
            file.seek(before)
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return []
    if before:
        _, *rest = re.split(r"[\r\n]", text, maxsplit=1)  # the first line, or bar, may have lost its beginning
        text = "".join(rest)
    drawn = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return [line for line in (CONTROL.sub("", line).rstrip() for line in drawn) if line]


def stage(log: Path, hide: Callable[[str], str]) -> str:
    """Return the log's last line that is no warning, without time stamp and folders, for a line of progress.

    Indented lines only go on with what another one began, such as a warning.
    """
    begun = (line for line in reversed(lines(log)) if not line[0].isspace())
    line = hide(next((line for line in begun if not WARNING.search(line)), ""))
    text = FOLDER.sub("…/", line[PREFIX.match(line).end() :])
    return text if len(text) <= STAGE_CHARACTERS else text[: STAGE_CHARACTERS - 1] + "…"


def explain(sentence: str, log: Path, hide: Callable[[str], str], last: int = 15) -> str:
    """Return `sentence`, then the log's first error if it lies further up, then its `last` lines."""
    everything = [hide(line)[:LINE_CHARACTERS] for line in lines(log)]
    if not everything:
        return hide(f"{sentence} It logged nothing.")
    parts = [sentence]
    errors = (line for line in everything[:-last] if ERROR.search(line) and not WARNING.search(line))
    first_error = next(errors, None)
    if first_error:
        parts += ["The first error in its log:", f"  {first_error}"]
    parts += [f"The last lines of its log, {log}:", *(f"  {line}" for line in everything[-last:])]
    return hide("\n".join(parts))
