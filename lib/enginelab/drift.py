"""What changed between two releases of an engine for the commands and flags that the course prints.

The two sides are what the engine's own parser said, in its old release and in its new one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

BREAKS = ("gone", "refused")


class Option(NamedTuple):
    """One option as a parser declares it.

    spellings   all of them
    default     as text, since a default may be of any kind
    choices     None where anything may stand
    deprecated  whether the engine says so
    """

    spellings: tuple[str, ...]
    default: str
    choices: tuple[str, ...] | None
    deprecated: bool


class Answer(NamedTuple):
    """What a parser says to one command: its complaint or None, and what it warns of."""

    error: str | None
    warnings: tuple[str, ...] = ()


class Said(NamedTuple):
    """What one release says: command (its words) -> answer, and program -> its options."""

    answers: Mapping[tuple[str, ...], Answer]
    options: Mapping[str, Sequence[Option]]


class Change(NamedTuple):
    """One change. kind: "gone", "refused", "deprecated", "abbreviated", "default" or "choices"."""

    kind: str
    what: str
    says: str


@dataclass(frozen=True)
class Watched:
    """One engine's result: the two versions, what changed, and `trouble`, why it could not be asked, or ""."""

    engine: str
    old: str
    new: str
    changes: tuple[Change, ...] = ()
    trouble: str = ""

    @property
    def broke(self) -> bool:
        """Whether something that the course prints works no more, or nobody can tell."""
        return bool(self.trouble) or any(change.kind in BREAKS for change in self.changes)


def declared(options: Iterable[Option], spelling: str) -> Option | None:
    """The option with that spelling, None if there is none."""
    return next((option for option in options if spelling in option.spellings), None)


def abbreviates(options: Iterable[Option], spelling: str) -> str | None:
    """The one declared spelling that `spelling` begins, as Python's parsers allow; None if none or several."""
    longer = {option.spellings: s for option in options for s in option.spellings if s.startswith(spelling)}
    return next(iter(longer.values())) if len(longer) == 1 and spelling.startswith("--") else None


def compare(old: Said, new: Said, flags: Collection[str]) -> tuple[Change, ...]:
    """What changed for the commands that both sides were asked, and for each of `flags` that the old side declares."""
    changes = dict.fromkeys(_refused(old, new))
    for program, before in old.options.items():
        after = new.options.get(program, ())
        for flag in flags:
            was, now = declared(before, flag), declared(after, flag)
            if was is not None:
                changes |= dict.fromkeys(_changed(flag, was, now, before, after))
    return tuple(sorted(changes, key=lambda change: (change.kind not in BREAKS, change)))


def _refused(old: Said, new: Said) -> Iterator[Change]:
    for command, before in old.answers.items():
        if command not in new.answers:
            continue
        after = new.answers[command]
        if before.error is None and after.error is not None:
            yield Change("refused", " ".join(command), after.error)
        for warning in set(after.warnings) - set(before.warnings):
            yield Change("deprecated", " ".join(command), warning)


def _changed(flag: str, was: Option, now: Option | None, before, after) -> Iterator[Change]:
    if now is None:
        if longer := abbreviates(after, flag):
            yield Change("abbreviated", flag, f"is not declared any more, and still taken as short for {longer}")
            return
        near = _successors(flag, was, before, after)
        yield Change(
            "gone", flag, f"is gone: perhaps {' or '.join(near)} now" if near else "is gone, nothing like it came"
        )
        return
    if now.deprecated and not was.deprecated:
        yield Change("deprecated", flag, "is deprecated now")
    if now.default != was.default:
        yield Change("default", flag, f"is {now.default} when not given, and was {was.default}")
    if lost := set(was.choices or ()) - set(now.choices or was.choices or ()):
        yield Change("choices", flag, f"takes no longer {', '.join(sorted(lost))}")


def _successors(flag: str, was: Option, before: Sequence[Option], after: Sequence[Option]) -> list[str]:
    """What may stand for a flag that is gone: a spelling that stays, a longer one, or a new one that looks like it."""
    known = {spelling for option in before for spelling in option.spellings}
    spellings = [spelling for option in after for spelling in option.spellings]
    return (
        [spelling for spelling in was.spellings if spelling in spellings]
        or [spelling for spelling in spellings if spelling.startswith(f"{flag}-")]
        or get_close_matches(flag, [spelling for spelling in spellings if spelling not in known], 2, 0.7)
    )


def report(watched: Sequence[Watched], read: str) -> str:
    """The report as Markdown; read: the day on which the releases were looked up."""
    broken = [each.engine for each in watched if each.broke]
    verdict = f"Needs work: {', '.join(broken)}." if broken else "Nothing that the course prints broke."
    lines = ["# What the newest releases change for this course", "", f"{read}. {verdict}"]
    for each in watched:
        lines += ["", f"## {each.engine}: {each.old} → {each.new}", ""]
        if each.trouble:
            lines += [f"Could not be asked: {each.trouble}"]
        elif each.old == each.new:
            lines += ["The course is at the newest release."]
        elif not each.changes:
            lines += ["No change for the commands and flags of the course."]
        lines += [
            f"- {'**' + c.kind + '**' if c.kind in BREAKS else c.kind}: `{c.what}` {_cell(c.says)}"
            for c in each.changes
        ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    # Complaints and defaults are an engine's words: one line, of a length that a report can bear.
    line = " ".join(text.split())
    return line if len(line) <= 300 else f"{line[:300]} …"
