"""Every command and flag that the built book prints, put before the engines' own parsers."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import parsers

from enginelab.drift import Option, Said, abbreviates, declared
from enginelab.printed import Printed

REFERENCE = "NVIDIA's reference of trtllm-serve"


class Checked(NamedTuple):
    """What came of it, in sentences.

    refused    printed without a mark, and no engine takes it
    alive      marked as refused, and an engine takes it
    reported   taken, but "deprecated", an "abbreviation", or unknown to an "older" release than the newest:
               (flag or command, which of these, pages, sentence)
    asked      how many commands and flags were put before a parser
    declares   engine -> every option of its newest release
    """

    refused: list[str]
    alive: list[str]
    reported: list[tuple[str, str, tuple[str, ...], str]]
    asked: int
    declares: dict[str, list[Option]]


class Engine(NamedTuple):
    """One release of an engine: its name for people, the least that each program needs, and what it said."""

    name: str
    programs: Mapping[str, str]
    said: Said


def check(pages: Mapping[str, list[Printed]]) -> Checked:
    """Ask all engines about `pages` (page -> what it prints). Raises RuntimeError if one cannot be asked."""
    where = defaultdict(list)
    for page, printed in pages.items():
        for each in printed:
            where[each].append(page)
    everything = list(where)
    covered = {pair for each in everything if each.is_command for pair in _pairs(each.words)}
    # A table that explains a command shows its flags once more, with the same values.
    questions = [each for each in everything if each.is_command or len(each.words) == 1 or each.words not in covered]
    engines = _ask(questions)
    refused, alive, reported = [], [], _reports(where, engines)
    tried = {page for page, printed in pages.items() if any(each.mark == "tried" for each in printed)}
    for each in questions:
        complaints = _complaints(each, engines)
        # The newest release decides; labs have run what they show on the others.
        taken = any(said[0] is None for name, said in complaints.items() if each.by in ("", name.lower()))
        text = f"{' '.join(each.words)} ({', '.join(where[each])})"
        if each.by and each.by not in map(str.lower, engines):
            alive.append(f"{text}: there is no engine by-{each.by}")
        if each.mark == "refused" and taken:
            alive.append(text)
        if each.mark == "tried" and not taken:
            tried -= set(where[each])
        if not each.mark and not taken:
            told = {complaint for releases in complaints.values() for complaint in releases if complaint}
            refused.append(f"{text}: {'; '.join(sorted(told)) or 'no engine here has such a program'}")
        for releases in complaints.values():
            if taken and releases[0] is None:
                reported += [(each.words[0], "older", tuple(where[each]), says) for says in releases[1:] if says]
    declares = {
        name: [option for options in releases[0].said.options.values() for option in options]
        for name, releases in engines.items()
    }
    alive += [f"a cell with the tag `refused` ({page})" for page in sorted(tried)]
    return Checked(refused, alive, reported, len(questions), declares)


def _pairs(words: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
    return zip(words, words[1:], strict=False)


def _ask(questions: list[Printed]) -> dict[str, list[Engine]]:
    """Engine -> its releases, each asked about all that may concern it."""
    engines = defaultdict(list)
    for parser in parsers.PARSERS:
        words = _words(questions, parser.programs)
        engines[parser.name].append(Engine(str(parser), parser.programs, parsers.ask(parser, words)))
    least = {"trtllm-serve": "MODEL"}
    engines["TensorRT-LLM"].append(Engine(REFERENCE, least, parsers.ask_reference(_words(questions, least))))
    return engines


def _words(questions: list[Printed], programs: Mapping[str, str]) -> list[tuple[str, ...]]:
    commands = [each.words for each in questions if each.is_command and _speaks(programs, each)]
    flags = [each.words for each in questions if not each.is_command and len(each.words) > 1]
    return commands + [_with(program, least, flag) for program, least in programs.items() for flag in flags]


def _speaks(programs: Mapping[str, str], each: Printed) -> bool:
    """Whether a command belongs to one of `programs`, or to another subcommand of the same one."""
    return each.program in programs or any(
        program.split()[0] == each.words[0] for program in programs if not program.startswith("python3")
    )


def _with(program: str, least: str, flag: tuple[str, ...]) -> tuple[str, ...]:
    return (*program.split(), *least.split(), *flag)


def _complaints(each: Printed, engines: Mapping[str, list[Engine]]) -> dict[str, list[str | None]]:
    """Engine -> the complaint of each of its releases about `each`, None where it takes it."""
    concerned = {
        name: [one for one in releases if not each.is_command or _speaks(one.programs, each)]
        for name, releases in engines.items()
    }
    return {name: [_complaint(each, one) for one in releases] for name, releases in concerned.items() if releases}


def _complaint(each: Printed, engine: Engine) -> str | None:
    if each.is_command:
        if " ".join(each.words) == each.program in engine.programs:
            return None
        error = engine.said.answers[each.words].error
        return error and f"{engine.name}: {error}"
    flag = each.words[0]
    if len(each.words) == 1:
        known = any(declared(o, flag) or abbreviates(o, flag) for o in engine.said.options.values())
        return None if known else f"{engine.name} does not know it"
    errors = [engine.said.answers[_with(*program, each.words)].error for program in engine.programs.items()]
    return None if None in errors else f"{engine.name}: {errors[0]}"


def _reports(where: Mapping[Printed, list[str]], engines: Mapping[str, list[Engine]]) -> list[tuple]:
    """What commands use that is deprecated, or no declared spelling."""
    found = defaultdict(set)
    for each in where:
        if not each.is_command or each.mark:
            continue
        for engine in (one for releases in engines.values() for one in releases if _speaks(one.programs, each)):
            options = engine.said.options.get(each.program, ())
            for flag in {word.partition("=")[0] for word in each.words if word.startswith("--")}:
                option = declared(options, flag)
                if option is None and (longer := abbreviates(options, flag)):
                    says = f"{engine.name} takes {flag} as an abbreviation of {longer}"
                    found[flag, "abbreviation", says].update(where[each])
                elif option and option.deprecated:
                    found[flag, "deprecated", f"{engine.name} calls {flag} deprecated"].update(where[each])
            answer = engine.said.answers.get(each.words)
            for warning in answer.warnings if answer else ():
                flag = next((word for word in each.words if word.startswith("--") and word in warning), "")
                found[flag, "deprecated", f"{engine.name}: {warning}"].update(where[each])
    return [(flag, kind, tuple(sorted(pages)), says) for (flag, kind, says), pages in sorted(found.items())]
