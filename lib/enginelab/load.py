"""Offer a running engine a workload, and get back what happened as a `Trace`. (The Measure of every lab.)

Each request is sent at its arrival time, with a prompt and an answer of exactly its lengths, by one of the programs
that `generators` knows. Any server with an OpenAI-compatible /v1/completions will do.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from . import logs
from .client import ClientError
from .generators import AIPERF, VLLM, Generator, Job, reason
from .server import Server, sparingly
from .supervised import Supervised, stop
from .trace import Trace
from .workload import Request

GENERATORS = {"vllm": VLLM, "aiperf": AIPERF}
GRACE = 3.0  # seconds for a generator that is stopped to leave by itself


def offer(
    engine: Server | str,
    requests: Sequence[Request],
    *,
    model: str,
    tokenizer: str = "",
    source: str,
    env: Mapping[str, str] | None = None,
    deadline: float = 600.0,
    on_progress: Callable[[float, str], None] | None = None,
    generator: str = "vllm",
    block_size: int = 16,
    seed: int = 0,
) -> Trace:
    """Send every request at its arrival time, wait for all answers, and return the measured `Trace`.

    engine: a running `Server`, or a URL; requests: in order of arrival; source: what is measured, for the trace;
    env: added to this process's environment, whose PATH must lead to the generator; deadline: seconds for all of it;
    on_progress: called with the seconds so far and a line, some times a second; generator: "vllm", which needs the
    model's tokenizer, or "aiperf", which needs none and works beside any engine; block_size: tokens to each of the
    requests' `block_ids`; seed: an engine that caches prefixes has seen the prompts of an earlier load of this seed.

    In the result, arrival is when the generator really sent the request, counted from the first one: within some 5 ms
    of its time, but tenths of a second late now and then if all cores are busy. Prompt lengths are as the server
    counted them (aiperf) or as the tokenizer did (vllm: a server that puts a start token first counts one more).
    aiperf tells `cached_tokens`, if the server does.

    Raises `ClientError` if any request fails or gets another length than it asked for, or the generator fails;
    `ServerError`, with the log, if the engine has died.
    """
    if any(a.arrival > b.arrival for a, b in zip(requests, requests[1:], strict=False)):
        raise ValueError("requests must be in order of arrival: sort them first")
    if generator not in GENERATORS:
        raise ValueError(f"generator must be one of {', '.join(GENERATORS)}, not {generator!r}")
    if generator == "vllm" and not tokenizer:
        raise ValueError("vllm bench serve makes its prompts from the model's tokenizer: name its folder or hub name")
    if Path(tokenizer).exists():
        tokenizer = str(Path(tokenizer).resolve())
    url = engine if isinstance(engine, str) else engine.url
    job, program = Job(url, model, tokenizer, requests, block_size, seed), GENERATORS[generator]
    with TemporaryDirectory(prefix="enginelab-load-") as folder:
        try:
            failure = _run(program, job, Path(folder), env or {}, deadline, on_progress or sparingly(5.0))
            records = _records(program, Path(folder))
            if not records:
                raise ClientError(failure or f"{program.name} left no readable result.")
            trace = program.measured(records, requests, source)
            if failure:
                raise ClientError(failure)
            return trace
        except ClientError:
            if isinstance(engine, Server):
                engine.check()
            raise


def _run(program: Generator, job: Job, folder: Path, env: Mapping[str, str], deadline: float, progress) -> str:
    """Run the generator to its end and never leave it running; a sentence if it says that it failed, else ""."""
    for name, content in program.files(job).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    argv, log = program.argv(job), folder / "log.txt"
    # The generator would send a key of the learner's to the server; of the two spellings the small one wins.
    here = "127.0.0.1,localhost"
    ours = {"OPENAI_API_KEY": None, "NO_PROXY": here, "no_proxy": here, "TMPDIR": str(folder)}
    settings = {**os.environ, **env, **ours, **program.environment(job)}
    environment = {name: value for name, value in settings.items() if value is not None}
    if not shutil.which(argv[0], path=environment.get("PATH")):
        raise ClientError(f"The program '{argv[0]}' was not found: its environment must be on the PATH.")
    started, process = time.monotonic(), Supervised(GRACE, program.name)
    try:
        process.start(argv, log, environment, folder)
        while not process.ended(0.25):
            seconds = time.monotonic() - started
            if seconds > deadline:
                raise ClientError(f"The load was not through within {deadline:g} s: offer less, or give it longer.")
            done = _found(program.answered, reversed(logs.lines(log)))
            progress(seconds, f"{done} requests answered" if done else "starting the load generator")
    finally:
        stop([process])
    if process.exit == 0:
        return ""
    lines = logs.lines(log)
    last = next((line for line in reversed(lines) if re.search(r"\w", line)), "it said nothing")
    return f"{program.name} failed ({process.how}): {reason(_found(program.complaint, lines) or last)}"


def _found(pattern: str, lines) -> str:
    return next((match[1] for line in lines if (match := re.search(pattern, line))), "")


def _records(program: Generator, folder: Path) -> str:
    """What the generator has left, as text; empty if there is nothing that can be read."""
    for pattern in program.results:
        if files := sorted(folder.glob(pattern)):
            return "".join(file.read_text(errors="replace") for file in files)
    return ""
