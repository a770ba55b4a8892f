"""What `trtllm-serve` accepts: its flags and the keys of its YAML, as NVIDIA's repository publishes them. (Chapter 5.)

TensorRT-LLM has no CPU build, so its own parser cannot be asked here. `trtllm_reference.json`, beside this file, is a
table of facts made from what NVIDIA's own tests hold to the truth; it names its sources. On how it is made again from
a checkout: `tests/engines/trtllm_reference.py`.

Types, of flags and of keys, are written like this: `int`, `float`, `bool`, `str`, `map`, `any`; `none` for what only
Python can set; `int>=0`, `float>=0<=1` with bounds; `=a|b` one of these words; `[int]` a list; `@Section` a mapping
whose keys are those of that section; `@key:a=One|b=Two` one whose section depends on what it says for `key`; `int or
str`; a last `?` also allows null. A flag may also be a `switch`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).with_suffix(".json")
VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:\.?rc(\d+))?")
NUMBER = re.compile(r"(int|float)((?:>=|<=|>|<).+)?")
BOUND = re.compile(r"(>=|<=|>|<)(-?[\d.]+)")
WORDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text", "map": "a mapping"}


class Version(NamedTuple):
    """A release of TensorRT-LLM; a candidate stands before its final release."""

    major: int
    minor: int
    patch: int = 0
    candidate: float = math.inf

    @classmethod
    def parse(cls, text: str) -> Version:
        """The version that `text` names: "1.2.1", "1.3.0rc20", "1.4"; ValueError if it names none."""
        found = VERSION.match(str(text).strip())
        if not found:
            raise ValueError(f"a version of TensorRT-LLM looks like 1.2.1 or 1.3.0rc20, not {text!r:.40}")
        major, minor, patch, candidate = found.groups()
        return cls(int(major), int(minor), int(patch or 0), int(candidate) if candidate else math.inf)


class Option(NamedTuple):
    """One option of `trtllm-serve`.

    key      its name in the program, and, for most, in the YAML
    names    its spellings, the preferred one first, each with the version since which it exists (see `presence`)
    type     as described above; default: when it is not given; status: "prototype", "beta", "stable" or "deprecated"
    """

    key: str
    names: Mapping[str, str]
    type: str
    default: object
    status: str

    @property
    def preferred(self) -> str:
        """The spelling to use."""
        return next(iter(self.names))


@dataclass(frozen=True)
class Reference:
    """The table.

    newest      the version whose keys were read
    sections    section -> key -> "type" or "type / status"; the section "" is the top of the file
    keys_since  top-level keys that are newer than 1.2, with their `presence`
    gone_keys   top-level keys that older versions have and the newest has not; gone_flags: flag -> what replaced it
    """

    newest: str
    sources: tuple[Mapping[str, str], ...]
    options: tuple[Option, ...]
    sections: Mapping[str, Mapping[str, str]]
    keys_since: Mapping[str, str]
    gone_keys: frozenset[str]
    gone_flags: Mapping[str, str]

    def option(self, name: str) -> Option | None:
        """The option that is spelled `name`, or None."""
        return next((option for option in self.options if name in option.names), None)

    def key(self, section: str, name: str) -> tuple[str, str]:
        """Type and status of a key of `section`; KeyError if it has none of that name. Status "" means committed."""
        written, _, status = self.sections[section][name].partition(" / ")
        return written, status


@cache
def read() -> Reference:
    """The table, from the file beside this one."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    return Reference(
        next(source["version"] for source in table["sources"] if source["what"] == "keys"),
        tuple(table["sources"]),
        tuple(Option(key, **facts) for key, facts in table["flags"].items()),
        table["keys"],
        table["keys_since"],
        frozenset(table["gone_keys"]),
        table["gone_flags"],
    )


def presence(since: str, at: Version) -> str:
    """Whether something is in version `at`: "there", "missing", or "unknown", if the sources leave it open.

    since: "" for older than 1.2, "1.3.0rc7", or "1.2.0rc0..1.3.0rc7" for what came at some time between the two.
    """
    first, _, certain = since.partition("..")
    if not since or at >= Version.parse(certain or first):
        return "there"
    return "missing" if not certain or at <= Version.parse(first) else "unknown"


def alternatives(written: str) -> list[str]:
    """The parts of a type between its " or ", and "null" if it ends in a question mark."""
    bare = written.removesuffix("?")
    parts, depth = [""], 0
    for word in bare.split(" "):
        if word == "or" and not depth:
            parts.append("")
            continue
        depth += word.count("[") - word.count("]")
        parts[-1] += f" {word}"
    return [part.strip() for part in parts] + ["null"] * (bare != written)


def fits(written: str, value: object) -> bool:
    """Whether `value`, as YAML gives it, is of that type. A section's own keys are not looked at."""
    return any(_fits(part, value) for part in alternatives(written))


def _fits(part: str, value: object) -> bool:
    if part in ("any", "null", "none"):
        return part == "any" or value is None
    if part.startswith("="):
        return isinstance(value, str) and value in part[1:].split("|")
    if part.startswith("["):
        return isinstance(value, list) and all(fits(part[1:-1], each) for each in value)
    if part.startswith("@") or part == "map":
        return isinstance(value, Mapping)
    number = NUMBER.fullmatch(part)
    if not number:
        return isinstance(value, {"bool": bool, "str": str}[part])
    right = isinstance(value, int if number[1] == "int" else (int, float)) and not isinstance(value, bool)
    return right and all(_within(value, sign, float(limit)) for sign, limit in BOUND.findall(number[2] or ""))


def _within(value: float, sign: str, limit: float) -> bool:
    return {">=": value >= limit, "<=": value <= limit, ">": value > limit, "<": value < limit}[sign]


def described(written: str) -> str:
    """A type in words: "a number of at least 0 and at most 1, or null"."""
    return ", or ".join(map(_described, alternatives(written)))


def _described(part: str) -> str:
    if part.startswith("="):
        return "one of " + ", ".join(part[1:].split("|"))
    if part.startswith("["):
        return f"a list, each of its items {described(part[1:-1])}"
    if part.startswith("@"):
        return WORDS["map"]
    number = NUMBER.fullmatch(part)
    if number and number[2]:
        names = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
        return f"{WORDS[number[1]]}, " + " and ".join(f"{names[sign]} {n}" for sign, n in BOUND.findall(number[2]))
    return WORDS.get(part, {"any": "anything", "none": "left out, since only Python can set it"}.get(part, part))
