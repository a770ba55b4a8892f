"""TensorRT-LLM on this machine: its YAML read with care, which one is installed, and the steps it took. (Its lab.)"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import yaml

from . import client, trtllm
from .commands import Command
from .server import Server
from .trtllm import Finding
from .trtllm_reference import Version

LARGEST_YAML, DEEPEST_YAML = 16 * 1024, 20  # reading takes seconds per 64 KiB
PATIENCE = 180.0  # seconds for `trtllm-serve serve --help`, which imports all of PyTorch first
ASK_VERSION = "from importlib.metadata import version; print(version('tensorrt_llm'))"
CHOICES = re.compile(r"--backend\s*\[([\w|\s]+)\]")


@dataclass(frozen=True)
class Installation:
    """The TensorRT-LLM that a search path leads to.

    version: of the package; backends: what its `--backend` takes, () if it did not say; builds_engines: whether
    `trtllm-build`, the compiler of V0, is there.
    """

    version: str
    backends: tuple[str, ...]
    builds_engines: bool

    @property
    def generation(self) -> str:
        """ "V0", "V0 and V1" or "V1"."""
        compiles = "tensorrt" in self.backends or "trt" in self.backends
        if Version.parse(self.version) < Version(1, 0, 0, 0):
            return "V0"  # 0.x could serve from PyTorch on request, and compiled for TensorRT by itself
        return "V0 and V1" if compiles or (self.builds_engines and not self.backends) else "V1"

    @property
    def sentence(self) -> str:
        """What this generation means for whoever uses it."""
        means = {
            "V0": "it compiles a model for TensorRT before it serves it, and this lab is made for V1",
            "V0 and V1": "it runs models on PyTorch unless asked for `--backend tensorrt`, the old one",
            "V1": "it runs models on PyTorch and has no other back end",
        }
        return f"TensorRT-LLM {self.version} is installed, generation {self.generation}: {means[self.generation]}."


class Step(NamedTuple):
    """One step of the engine's scheduler, as `/metrics` tells it.

    number: its own count; milliseconds: how long it took; requests: how many took part; prompts: how many of them were
    in prefill; paused: how many had to wait for memory.
    """

    number: int
    milliseconds: float
    requests: int
    prompts: int
    paused: int


def read_yaml(text: str) -> object:
    """What a YAML text from anywhere holds, as the engine would read it.

    Raises ValueError for one that is too long or too deep, names a key twice, uses references or tags, or is no YAML.
    """
    if len(text) > LARGEST_YAML:
        raise ValueError(f"the YAML has {len(text)} characters, more than the {LARGEST_YAML} that this course reads")
    try:
        depth = 0
        for event in yaml.parse(text, yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            where = f"line {event.start_mark.line + 1}"
            if depth > DEEPEST_YAML:
                raise ValueError(f"{where}: the YAML is nested more than {DEEPEST_YAML} levels deep")
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                raise ValueError(f"{where}: this course reads no YAML with references (& and *)")
            if getattr(event, "tag", None):
                raise ValueError(f"{where}: this course reads no YAML with tags (!)")
        _complain_about_doubles(yaml.compose(text, yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise _no_yaml(error) from None
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date or a number that there cannot be
        raise _no_yaml(error) from None


def _no_yaml(error: Exception) -> ValueError:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}: " if mark else ""
    problem = client.readable(str(getattr(error, "problem", None) or error).partition("\n")[0])
    return ValueError(f"{where}this is no YAML ({problem[:100]})")


def _complain_about_doubles(node: yaml.Node | None) -> None:
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    name = client.readable(key.value)[:60]
                    raise ValueError(
                        f"line {key.start_mark.line + 1}: the key {name} is there twice, and the last counts"
                    )
                seen.add(key.value)
            _complain_about_doubles(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _complain_about_doubles(item)


def check(command: Command | Sequence[str], yaml_text: str | None, version: str = trtllm.NEWEST) -> tuple[Finding, ...]:
    """`trtllm.check`, with the YAML as text; a text that cannot be read is an error among the findings."""
    try:
        config = None if yaml_text is None else read_yaml(yaml_text)
    except ValueError as error:
        says = f"The YAML cannot be read: {error}."
        return (*trtllm.check(command, None, version), Finding("error", "YAML", says))
    return trtllm.check(command, config, version)


def installation(search_path: str | None = None, patience: float = PATIENCE) -> Installation | None:
    """The TensorRT-LLM on `search_path` (default: PATH), found out without a GPU's help; None if there is none.

    Takes as long as `trtllm-serve serve --help`, which may be half a minute. Raises ValueError if the package does not
    say its version.
    """
    program = shutil.which(trtllm.PROGRAM, path=search_path)
    if program is None:
        return None
    told = _output([*_interpreter(program), "-c", ASK_VERSION], 30.0).strip()
    try:
        Version.parse(told)
    except ValueError:
        raise ValueError(f"{trtllm.PROGRAM} is there, and its Python knows no package tensorrt_llm") from None
    found = CHOICES.search(_output([program, trtllm.SUBCOMMAND, "--help"], patience))
    backends = tuple("".join(found[1].split()).split("|")) if found else ()
    return Installation(told[:40], backends, shutil.which("trtllm-build", path=search_path) is not None)


def _interpreter(program: str) -> list[str]:
    """The Python that `program` runs with: the one its first line names, or else the one beside it."""
    with open(program, "rb") as file:
        first = file.readline(500).decode(errors="replace")
    named = first.removeprefix("#!").split() if first.startswith("#!") else []
    return named if any("python" in word for word in named) else [str(Path(program).with_name("python3"))]


def _output(argv: Sequence[str], patience: float) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, timeout=patience, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace")


def steps(engine: Server | str) -> tuple[Step, ...]:
    """The steps that the engine took since this was last asked, those without any request left out.

    TensorRT-LLM's GET /metrics is JSON, and hands out each record once; the YAML must say `enable_iter_perf_stats:
    true`. It keeps the last 1,000 by default (1.4), and waits up to two seconds for more. Raises `ClientError` for
    a page that is something else.
    """
    text = client.page(engine, "/metrics")
    try:
        records = json.loads(text)
        if not isinstance(records, list):
            raise TypeError("a list of steps was expected")
        return tuple(step for step in map(_step, records) if step.requests)
    except (ValueError, TypeError, KeyError) as error:
        raise client.ClientError(f"GET /metrics is not what TensorRT-LLM sends: {str(error)[:100]}.") from None


def _step(record: Mapping) -> Step:
    batch = record["inflightBatchingStats"]
    prompts, answers = int(batch["numContextRequests"]), int(batch["numGenRequests"])
    return Step(int(record["iter"]), float(record["iterLatencyMS"]), prompts + answers, prompts,
                int(batch.get("numPausedRequests", 0)))  # fmt: skip
