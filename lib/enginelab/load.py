"""Offer a running engine a workload, and get back what happened as a `Trace`. (The Measure of every lab.)

The generator is vLLM's own `vllm bench serve`, replaying the requests as a timed trace: each is sent at its arrival
time with a prompt and an answer of exactly its lengths. Any server with an OpenAI-compatible /v1/completions will do.
"""

from __future__ import annotations

import json
import math
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, count
from pathlib import Path
from tempfile import TemporaryDirectory

from .client import ClientError, readable
from .logs import SECRET_SHAPE
from .server import Server, sparingly
from .trace import Trace
from .workload import Request

BLOCK_SIZE = 16
TRACE_FILE, RESULT_FILE = "requests.jsonl", "result.json"


def command(url: str, model: str, tokenizer: str, requests: int) -> list[str]:
    """The argv that `offer` runs, in a folder that holds the requests' file and gets the result's.

    model: the name under which the server serves it; tokenizer: its folder or hub name; requests: how many.
    Needs a vLLM that knows the data set `timed_trace` (pull request 39795, 2026).
    """
    return [
        *("vllm", "bench", "serve", "--base-url", url, "--model", model, "--tokenizer", tokenizer),
        *("--dataset-name", "timed_trace", "--dataset-path", TRACE_FILE, "--num-prompts", str(requests)),
        *("--timed-trace-chunk-hash-size", str(BLOCK_SIZE), "--temperature", "0", "--ready-check-timeout-sec", "0"),
        *("--save-result", "--save-detailed", "--result-dir", ".", "--result-filename", RESULT_FILE),
    ]


def offer(
    engine: Server | str,
    requests: Sequence[Request],
    *,
    model: str,
    tokenizer: str,
    source: str,
    env: Mapping[str, str] | None = None,
    deadline: float = 600.0,
    on_progress: Callable[[float, str], None] | None = None,
) -> Trace:
    """Send every request at its arrival time, wait for all answers, and return the measured `Trace`.

    engine: a running `Server`, or a URL; requests: in order of arrival; source: what is measured, for the trace;
    env: added to this process's environment, whose PATH must lead to `vllm`; deadline: seconds for all of it;
    on_progress: called with the seconds so far and a line, some times a second.

    In the result, arrival is when the generator really sent the request, counted from the first one.
    Raises `ClientError` if any request fails or gets another length than it asked for, or the generator fails;
    `ServerError`, with the log, if the engine has died.
    """
    if any(a.arrival > b.arrival for a, b in zip(requests, requests[1:], strict=False)):
        raise ValueError("requests must be in order of arrival: sort them first")
    url = engine if isinstance(engine, str) else engine.url
    with TemporaryDirectory(prefix="enginelab-load-") as folder:
        Path(folder, TRACE_FILE).write_text("".join(map(_line, requests, _block_ids(requests))))
        if Path(tokenizer).exists():
            tokenizer = str(Path(tokenizer).resolve())
        try:
            _run(command(url, model, tokenizer, len(requests)), folder, env, deadline, on_progress or sparingly(5.0))
            return measured(Path(folder, RESULT_FILE).read_text(), requests, source)
        except (ClientError, OSError) as error:
            if isinstance(engine, Server):
                engine.check()
            if isinstance(error, OSError):
                raise ClientError("vllm bench serve left no readable result.") from None
            raise


def measured(result: str, requests: Sequence[Request], source: str) -> Trace:
    """The `Trace` in a result file of `vllm bench serve --save-detailed`, `requests` being what was asked.

    Each piece of an answer that the generator saw counts as one token time; if an engine sent several tokens in one
    piece, the trace has no `token_times`. Raises `ClientError` for a request that failed or got another length.
    """
    try:
        record = json.loads(result)
        columns = [record[name] for name in ("errors", "start_times", "ttfts", "itls", "input_lens", "output_lens")]
        rows = list(zip(requests, *columns, strict=True))
        failed = [str(error) for _, error, *_ in rows if error]
        if failed:
            raise ClientError(f"{len(failed)} of {len(rows)} requests failed, the first one with: {_reason(failed[0])}")
        first = min((start for _, _, start, *_ in rows), default=0.0)
        sent, times = [], []
        for number, (asked, _, start, ttft, gaps, prompt, output) in enumerate(rows, start=1):
            if output != asked.output_tokens:
                raise ClientError(f"Request {number} got {output} tokens, not the {asked.output_tokens} it asked for.")
            sent.append(Request(start - first, prompt, output, asked.block_ids))
            times.append(tuple(accumulate(gaps, initial=start - first + ttft)))
        whole = all(len(seen) == request.output_tokens for seen, request in zip(times, sent, strict=True))
        return Trace(
            sent,
            [seen[0] for seen in times],
            [seen[-1] for seen in times],
            token_times=times if whole else None,
            source=source,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ClientError(f"The result of vllm bench serve is not what this course knows: {_reason(error)}") from None


def _line(request: Request, block_ids: Sequence[int]) -> str:
    row = {"timestamp": request.arrival, "input_length": request.prompt_tokens}
    return json.dumps(row | {"output_length": request.output_tokens, "hash_ids": list(block_ids)}) + "\n"


def _block_ids(requests: Sequence[Request]) -> list[list[int]]:
    """One id for each block of each prompt: the request's own, then fresh ones that no other prompt shares."""
    fresh = count(1 + max((i for r in requests for i in r.block_ids or ()), default=-1))
    ids = []
    for request in requests:
        known = list(request.block_ids or ())
        ids.append(known + [next(fresh) for _ in range(math.ceil(request.prompt_tokens / BLOCK_SIZE) - len(known))])
    return ids


def _run(argv, folder, env, deadline, progress) -> None:
    """Run the generator to its end, whatever it prints going to `progress`; never leave it running."""
    environment = {**os.environ, **(env or {})}
    # The generator would send a key of the learner's to the server; the hash seed makes its prompts the same each time.
    environment.pop("OPENAI_API_KEY", None)
    environment |= {"PYTHONHASHSEED": "0", "NO_PROXY": "127.0.0.1,localhost"}
    started = time.monotonic()
    try:
        generator = subprocess.Popen(
            argv,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise ClientError("The program 'vllm' was not found: its environment must be on the PATH.") from None
    tail = ""
    try:
        while True:
            seconds = time.monotonic() - started
            if seconds > deadline:
                raise ClientError(f"The load was not through within {deadline:g} s: offer less, or give it longer.")
            if select.select([generator.stdout], [], [], 0.25)[0]:
                text = os.read(generator.stdout.fileno(), 65536)
                if not text:
                    break
                tail = (tail + text.decode(errors="replace"))[-4000:]
            done = re.findall(r"(\d+/\d+) \[", tail)
            progress(seconds, f"{done[-1]} requests answered" if done else "starting the load generator")
        if generator.wait():
            last = tail.replace("\r", "\n").strip().splitlines()[-1:]
            raise ClientError(f"vllm bench serve failed (status {generator.returncode}): {_reason(*last)}")
    finally:
        if generator.poll() is None:
            os.killpg(generator.pid, signal.SIGKILL)
        generator.wait()
        generator.stdout.close()


def _reason(error: object = "it said nothing") -> str:
    lines = readable(str(error)).strip().splitlines() or [type(error).__name__]
    return SECRET_SHAPE.sub("…", lines[-1])[:300]
