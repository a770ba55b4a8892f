"""Run by an engine's Python: what the engine's own parser makes of whole commands, and what it declares.

On stdin a JSON list of commands, each a list of words that starts with a program of the engine: `vllm`, `sglang` or
`python3 -m MODULE`. The program is really started, up to the moment when its parser has read the words. On stdout a
JSON object:

    answers  for each command {"error": its complaint or null, "warnings": […]}
    options  for each program every option that its parsers declare, whether the commands used it or not
"""

import argparse
import contextlib
import importlib
import importlib.metadata
import io
import json
import logging
import re
import runpy
import sys
import warnings
from collections import defaultdict
from types import ModuleType, SimpleNamespace

REAL = argparse.ArgumentParser.parse_known_args
SAYS_DEPRECATED = re.compile(
    r"^\W*deprecated|(?:is|are) deprecated|^\W*this (?:flag|option|argument) .*deprecated", re.I
)


class Parsed(BaseException):
    """Raised where a program has read all its words; no `except Exception` of its own can swallow it."""


class Hook:
    """Takes the place of `parse_known_args`, notes the parsers that are asked, and stops the program after the last."""

    def __init__(self):
        self.parsers, self.depth = [], 0

    def __call__(self, parser, args=None, namespace=None):
        self.parsers.append(parser)
        self.depth += 1
        try:
            values, unknown = REAL(parser, args, namespace)
        finally:
            self.depth -= 1
        if not unknown and not self.depth:
            raise Parsed
        return values, unknown


def start(words: list[str]) -> None:
    """Start the program that `words` name, in this process."""
    if words[1:3] == ["-m", "dynamo.trtllm"]:
        # Its parser is all that runs without TensorRT-LLM, and takes four defaults from it.
        llmapi = ModuleType("tensorrt_llm.llmapi")
        llmapi.BuildConfig = SimpleNamespace(model_fields=defaultdict(lambda: SimpleNamespace(default=None)))
        sys.modules |= {"tensorrt_llm": ModuleType("tensorrt_llm"), "tensorrt_llm.llmapi": llmapi}
        importlib.import_module("dynamo.trtllm.args").parse_args(words[3:])
    elif words[1:2] == ["-m"]:
        sys.argv = words[2:]
        runpy.run_module(words[2], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        # Where two packages bring it, the one in front counts, as it does for imports.
        scripts = importlib.metadata.entry_points(group="console_scripts", name=words[0])
        next(iter(scripts)).load()()


def ask(words: list[str]) -> tuple[dict, list[argparse.ArgumentParser]]:
    """What the program says to `words`, and the parsers that it asked."""
    hook, complaint = Hook(), io.StringIO()
    argparse.ArgumentParser.parse_known_args = lambda *words, **named: hook(*words, **named)
    error, logged = None, logging.StreamHandler(complaint)
    logged.setLevel(logging.ERROR)
    logging.getLogger().addHandler(logged)
    with warnings.catch_warnings(record=True) as said, contextlib.redirect_stderr(complaint):
        warnings.simplefilter("always")
        try:
            start(words)
            error = "the program ended without reading its words"
        except Parsed:
            pass
        except SystemExit:
            error = complaint.getvalue().strip().rpartition("error: ")[2] or "the program gave up without a word"
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}"
        finally:
            logging.getLogger().removeHandler(logged)
    # Python's libraries warn of one another too; what is about a flag names it.
    spoken = sorted({text for one in said if "deprecat" in (text := str(one.message)).lower() and "--" in text})
    return {"error": error, "warnings": spoken}, hook.parsers


def declared(action: argparse.Action, parser: argparse.ArgumentParser) -> dict:
    """One option, as data."""
    text = action.help or ""
    gone = action in getattr(parser, "_deprecated", ()) or getattr(action, "deprecated", False)
    gone = gone or "Deprecated" in type(action).__name__ or bool(SAYS_DEPRECATED.search(text))
    return {
        "spellings": list(action.option_strings),
        "default": repr(action.default),
        "choices": None if action.choices is None else sorted(map(str, action.choices)),
        "deprecated": bool(gone),
    }


def main() -> None:
    """Answer what stdin asks."""
    answers, parsers = [], {}
    for words in json.load(sys.stdin):
        answer, asked = ask(words)
        answers.append(answer)
        program = " ".join(words[:3] if words[1:2] == ["-m"] else words[:2])
        known = parsers.setdefault(program, {})
        for parser in asked:
            for action in parser._actions:
                if action.option_strings:
                    known[action.option_strings[-1]] = declared(action, parser)
    if "sglang serve" in parsers and hasattr(
        importlib.import_module("sglang.cli.serve"), "_extract_model_type_override"
    ):
        # This one flag is taken out of the words by hand, before any parser sees them.
        kind = argparse.Action(["--model-type"], "model_type")
        parsers["sglang serve"]["--model-type"] = declared(kind, argparse.ArgumentParser())
    options = {program: list(known.values()) for program, known in parsers.items()}
    print(json.dumps({"answers": answers, "options": options}))


if __name__ == "__main__":
    main()
