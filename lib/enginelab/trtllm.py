"""Check a `trtllm-serve` command and its YAML before anything is started, on any machine. (Chapter 5 and its lab.)

What it is held against is NVIDIA's published reference (`trtllm_reference`), not the engine, which cannot run here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from . import trtllm_reference as facts
from .commands import Command
from .trtllm_reference import Option, Version

NEWEST = facts.read().newest
PROGRAM, SUBCOMMAND = "trtllm-serve", "serve"
# Pull request 14812, June 2026, made explicit flags win over the file. Which candidate was the first to have it, the
# sources do not say: 1.3.0rc20, of June 2026, may be before or after it.
FILE_WINS_UP_TO, FLAG_WINS_FROM = Version(1, 3, 0, 7), Version(1, 3, 0, 21)
NEWER = Version(1, 4, 0, 0)  # from here on the newest reference holds word for word
LAST_ENGINE_BACKEND = Version(1, 3, 0, 20)
ENGINE_BACKENDS = ("tensorrt", "trt")
# Where the YAML keeps what a flag sets, if not under the flag's own key.
PLACES = {
    "free_gpu_memory_fraction": ("kv_cache_config", "free_gpu_memory_fraction"),
    "kv_cache_dtype": ("kv_cache_config", "dtype"),
}
ALL_NETWORKS = ("0.0.0.0", "::", "[::]")


@dataclass(frozen=True)
class Finding:
    """One thing to know about a command or its YAML.

    level  "error": it will not start; "warning": it starts, and does something else than it seems to say, or may not
           start on this version; "note": it works, and there is a better way
    about  the flag, or the key with the keys that lead to it: "kv_cache_config.dtype"
    says   what is the matter and what to do, in a sentence
    """

    level: str
    about: str
    says: str


def check(command: Command | Sequence[str], config: object = None, version: str = NEWEST) -> tuple[Finding, ...]:
    """Everything there is to say about `command` (words, or a `Command`) and its parsed YAML, for one version.

    config: what the YAML holds, None if there is no file; version: such as "1.2.1" (default: the newest that was read).
    Raises ValueError for a command of another program, and for a text that is no version.
    """
    at = Version.parse(version)
    words = command.argv if isinstance(command, Command) else list(command)
    if not words or words[0] != PROGRAM:
        raise ValueError(f"the command must begin with {PROGRAM}; it begins with {_shown(' '.join(words[:1]))!r}")
    found, given = _check_flags(words[1:], at)
    if config is not None:
        found += [*_check_section("", config, (), at), *_check_both(given, config, at)]
        if "extra_llm_api_options" not in given:
            says = "There is a YAML file, and the command does not name it: add --extra_llm_api_options FILE."
            found.append(Finding("warning", "--extra_llm_api_options", says))
    return tuple(found)


def _winner(at: Version) -> str:
    """Which counts when a flag and the YAML set the same: "the file", "the flag", or "unknown"."""
    return "the file" if at <= FILE_WINS_UP_TO else "the flag" if at >= FLAG_WINS_FROM else "unknown"


def _check_flags(words: Sequence[str], at: Version) -> tuple[list[Finding], dict[str, tuple[str, str | None]]]:
    """What there is to say about the flags, and those given: key -> (spelling, value)."""
    found: list[Finding] = []
    given: dict[str, tuple[str, str | None]] = {}
    models = 0
    rest = iter(words[1:] if words[:1] == [SUBCOMMAND] else words)
    for word in rest:
        if not word.startswith("-"):
            models += 1
            continue
        name, joined, value = word.partition("=")
        option = facts.read().option(name)
        if option is None:
            found.append(_unknown_flag(name, at))
            meant = facts.read().option(_nearest_flag(name))
            if meant and meant.type != "switch" and not joined:
                next(rest, None)  # its value, and no second model
            continue
        if option.type == "switch":
            value = None
            if joined:
                found.append(Finding("error", name, f"{name} is a switch and takes no value."))
        elif not joined:
            value = next(rest, None)
            if value is None:
                found.append(Finding("error", name, f"{name} needs a value."))
                continue
        if option.key in given and not option.type.startswith("["):
            found.append(Finding("warning", name, f"{name} sets again what {given[option.key][0]} has set: leave one."))
        given[option.key] = (name, value)  # the last one counts
    if models != 1:
        found.append(Finding("error", "MODEL", f"The command must name one model; it names {models or 'none'}."))
    for name, value in given.values():
        found += _check_flag(facts.read().option(name), name, value, at)
    return found, given


def _unknown_flag(name: str, at: Version) -> Finding:
    table = facts.read()
    if name in table.gone_flags:
        says = f"{name} became {table.gone_flags[name]}: write that from 1.4 on."
        return Finding("error" if at >= NEWER else "warning", name, says)
    near = _nearest_flag(name)
    hint = f": did you mean {near}?" if near else ", nor one like it."
    return Finding("error", _shown(name), f"{PROGRAM} has no flag {_shown(name)}{hint}")


def _nearest_flag(name: str) -> str:
    """The spelling that is most like `name`, "" if none is."""
    known = [spelling for option in facts.read().options for spelling in option.names]
    return next(iter(get_close_matches(name, known, 1, 0.7)), "")


def _check_flag(option: Option, name: str, value: str | None, at: Version) -> Iterator[Finding]:
    since = option.names[name]
    others = [other for other in option.names if not option.names[other]]
    instead = f": write {others[0]}, which every version takes." if others else "."
    there = facts.presence(since, at)
    first, _, certain = since.partition("..")
    if there == "missing":
        came = f"after {first}" if certain else f"with {first}"
        yield Finding("error", name, f"{name} came {came}, and this version is older{instead}")
    elif there == "unknown":
        yield Finding("warning", name, f"{name} came after {first}, by {certain}, and may be missing{instead}")
    elif name != option.preferred and facts.presence(option.names[option.preferred], at) == "there":
        yield Finding("note", name, f"{name} is another name of {option.preferred}, and works.")
    if option.status == "deprecated" and at >= NEWER:
        yield Finding("note", name, f"{name} is deprecated and will go: leave it out.")
    if value is not None:
        yield from _check_value(option, name, value, at)
    if option.key == "host" and value in ALL_NETWORKS:
        yield Finding(
            "warning",
            name,
            f"{name} {value} lets every machine that reaches this one use the server, "
            "which asks for no password: write 127.0.0.1.",
        )
    if option.key == "trust_remote_code":
        yield Finding(
            "note", name, f"{name} runs Python code that comes with the model: leave it out unless the model needs it."
        )


def _check_value(option: Option, name: str, value: str, at: Version) -> Iterator[Finding]:
    if option.key == "backend" and value in ENGINE_BACKENDS:
        if at > LAST_ENGINE_BACKEND:
            yield Finding("error", name, f"The back end {value} left after 1.3.0rc20: take pytorch.")
        return
    for convert in (int, float) if option.type == "float" else (int,) if option.type == "int" else (str,):
        try:
            if facts.fits(option.type.strip("[]"), convert(value)):
                return
        except ValueError:
            continue
    # The words that a flag allows were read in the newest reference only.
    level = "error" if at >= NEWER or option.type in ("int", "float") else "warning"
    yield Finding(level, name, f"{name} must be {facts.described(option.type)}; it is {_shown(value)}.")


def _check_section(section: str, value: object, path: tuple[str, ...], at: Version) -> Iterator[Finding]:
    """What there is to say about the keys of one mapping; path: the keys that lead to it."""
    table = facts.read()
    if not isinstance(value, Mapping):
        yield Finding("error", ".".join(path) or "YAML", f"The YAML must be a mapping of keys; it is {_told(value)}.")
        return
    for key, inner in value.items():
        about = ".".join((*path, _shown(key)))
        if key not in table.sections[section]:
            yield _unknown_key(section, key, about, at)
            continue
        written, status = table.key(section, key)
        if not section and facts.presence(table.keys_since.get(key, ""), at) != "there":
            says = f"{about} is not in the reference of the 1.2 line, so this version may refuse it."
            yield Finding("warning", about, says)
        if status == "deprecated":
            yield Finding("note", about, f"{about} is deprecated and will go: leave it out.")
        if not facts.fits(written, inner):
            says = f"{about} must be {facts.described(written)}; it is {_told(inner)}."
            yield Finding("error" if at >= NEWER or not path else "warning", about, says)
        elif isinstance(inner, Mapping):
            yield from _check_inner(written, inner, (*path, key), at)


def _check_inner(written: str, inner: Mapping, path: tuple[str, ...], at: Version) -> Iterator[Finding]:
    reference = next((part[1:] for part in facts.alternatives(written) if part.startswith("@")), "")
    if ":" in reference:
        key, _, choices = reference.partition(":")
        sections = dict(choice.split("=") for choice in choices.split("|"))
        chosen = inner.get(key, "decode" if key == "mode" else None)
        if not isinstance(chosen, str) or chosen not in sections:
            about = ".".join((*path, key))
            yield Finding("error", about, f"{about} must be one of {', '.join(sections)}; it is {_told(chosen)}.")
            return
        reference = sections[chosen]
    if reference:
        yield from _check_section(reference, inner, path, at)


def _unknown_key(section: str, key: object, about: str, at: Version) -> Finding:
    table = facts.read()
    if not section and key in table.gone_keys and at < NEWER:
        return Finding("warning", about, f"{about} is a key of the 1.2 line, and the newest reference has it no more.")
    near = get_close_matches(str(key), table.sections[section], 1, 0.7)
    hint = f": did you mean {near[0]}?" if near else ", nor one like it."
    # Of older versions only the top-level keys were read, and those of the 1.2 line only.
    level = "error" if at >= NEWER or (not section and at >= Version(1, 2)) else "warning"
    return Finding(level, about, f"The reference of {table.newest} has no key {about}{hint}")


def _check_both(given: Mapping[str, tuple[str, str | None]], config: object, at: Version) -> Iterator[Finding]:
    """What both the command and the YAML set, and what the YAML takes from the command unseen."""
    if not isinstance(config, Mapping):
        return
    wins = _winner(at)
    verdict = {
        "the file": "the file wins",
        "the flag": "the flag wins",
        "unknown": "which wins depends on the build: before June 2026 the file, since then the flag",
    }
    for key, (name, value) in given.items():
        *sections, last = PLACES.get(key, (key,))
        inside = config.get(sections[0]) if sections else config
        about = ".".join((*sections, last))
        if isinstance(inside, Mapping) and last in inside:
            yield Finding(
                "warning", name, f"{name} and {about} in the YAML set the same, and {verdict[wins]}: keep one."
            )
        elif sections and isinstance(inside, Mapping) and wins != "the flag":
            dropped = f"{name} {_shown(value)} is dropped where the YAML has any {sections[0]}, as up to 1.2"
            yield Finding("warning", name, f"{dropped}: write it as {about}.")


def _told(value: object) -> str:
    """A value of the YAML: a text in quotes, so that it is told from a number."""
    return f"the text '{_shown(value)}'" if isinstance(value, str) else "null" if value is None else _shown(value)


def _shown(value: object) -> str:
    """A key or value from outside, short and without what could move a cursor."""
    text = value if isinstance(value, str) else repr(value)
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)[:60]
