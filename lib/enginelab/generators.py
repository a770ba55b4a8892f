"""The two load generators that `load` runs, each as data: its command, its input, and its records as a `Trace`.

VLLM    `vllm bench serve` replays a timed trace. It comes with vLLM and makes the prompts itself, from a tokenizer.
AIPERF  NVIDIA's aiperf sends ready-made requests on a fixed schedule, to any server with an OpenAI-compatible
        /v1/completions: SGLang, TensorRT-LLM, Dynamo, vLLM. It needs an environment (labs/envs/aiperf.txt) and no
        tokenizer, since its prompts are lists of token ids: their lengths and shared blocks are exact everywhere.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, count
from typing import NamedTuple

from .client import ClientError, readable
from .logs import SECRET_SHAPE
from .trace import Trace
from .workload import Request

# Below the size of any vocabulary, and above the special tokens and single bytes that many begin with.
FIRST_TOKEN, LAST_TOKEN = 300, 999


class Job(NamedTuple):
    """What a generator is to do.

    url: of the server; model: the name under which it serves it; tokenizer: its folder or hub name; requests: in
    order of arrival; block_size: tokens to each of their `block_ids`; seed: prompts of another seed share nothing.
    """

    url: str
    model: str
    tokenizer: str
    requests: Sequence[Request]
    block_size: int = 16
    seed: int = 0


class Generator(NamedTuple):
    """A program that offers a load.

    name: what messages call it; argv: its command, run in a folder that holds `files`, file name -> content;
    environment: set for it (None: taken from it); results: patterns of files that it leaves, the first that matches
    counts; measured: from their text, the requests and a source to a `Trace`; answered: finds "12/32" in its output;
    complaint: finds there what went wrong.
    """

    name: str
    argv: Callable[[Job], list[str]]
    files: Callable[[Job], dict[str, str]]
    environment: Callable[[Job], Mapping[str, str | None]]
    results: tuple[str, ...]
    measured: Callable[[str, Sequence[Request], str], Trace]
    answered: str
    complaint: str


def vllm_argv(job: Job) -> list[str]:
    """The command. Needs a vLLM that knows the data set `timed_trace` (pull request 39795, 2026)."""
    return [
        *("vllm", "bench", "serve", "--base-url", job.url, "--model", job.model, "--tokenizer", job.tokenizer),
        *("--dataset-name", "timed_trace", "--dataset-path", "requests.jsonl", "--num-prompts", str(len(job.requests))),
        *("--timed-trace-chunk-hash-size", str(job.block_size), "--temperature", "0", "--ready-check-timeout-sec", "0"),
        *("--save-result", "--save-detailed", "--result-dir", ".", "--result-filename", "result.json"),
    ]


def vllm_files(job: Job) -> dict[str, str]:
    """The timed trace: arrival in seconds, lengths in tokens, one id a block."""
    rows = (
        {"timestamp": request.arrival, "input_length": request.prompt_tokens, "output_length": request.output_tokens}
        | {"hash_ids": ids}
        for request, ids in zip(job.requests, block_ids(job), strict=True)
    )
    return {"requests.jsonl": "".join(json.dumps(row) + "\n" for row in rows)}


def vllm_measured(result: str, requests: Sequence[Request], source: str) -> Trace:
    """The `Trace` in a result file of `vllm bench serve --save-detailed`, `requests` being what was asked.

    Each piece of an answer that the generator saw counts as one token time; if an engine sent several tokens in one
    piece, the trace has no `token_times`. Raises `ClientError` for a request that failed or got another length.
    """
    try:
        record = json.loads(result)
        columns = [record[name] for name in ("errors", "start_times", "ttfts", "itls", "input_lens", "output_lens")]
        answers = [
            _Answer(error, start, tuple(accumulate(gaps, initial=start + ttft)), prompt, output, None)
            for error, start, ttft, gaps, prompt, output in zip(*columns, strict=True)
        ]
        return _trace(answers, requests, source)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ClientError(f"The result of vllm bench serve is not what this course knows: {reason(error)}") from None


def aiperf_argv(job: Job) -> list[str]:
    """The command, for aiperf 0.13. One worker: on one machine more of them only take cores from the engine."""
    return [
        *("aiperf", "profile", "--url", job.url, "--endpoint-type", "completions", "--streaming", "--model", job.model),
        *("--input-file", "requests.jsonl", "--custom-dataset-type", "mooncake_trace", "--fixed-schedule"),
        *("--tokenizer", "./tokenizer", "--use-server-token-count", "--workers-max", "1", "--record-processors", "1"),
        *("--no-gpu-telemetry", "--no-server-metrics", "--ui", "simple"),
        *("--artifact-dir", "records", "--export-level", "raw"),
    ]


def aiperf_files(job: Job) -> dict[str, str]:
    """The requests as they go to the server, each with its time in milliseconds, and a tokenizer of one word.

    aiperf loads a tokenizer and puts a text of its own through it, whether or not it then makes any prompt. The
    smallest there can be saves ten seconds, and a look at the hub for the model's.
    """
    rows = []
    for number, (request, ids) in enumerate(zip(job.requests, block_ids(job), strict=True)):
        prompt = [token for block in ids for token in _tokens(job, block)]
        payload = {"model": job.model, "prompt": prompt[: request.prompt_tokens], "max_tokens": request.output_tokens}
        payload |= {"ignore_eos": True, "temperature": 0, "stream": True, "stream_options": {"include_usage": True}}
        rows.append({"session_id": str(number), "timestamp": request.arrival * 1000, "payload": payload})
    word = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
    return {
        "requests.jsonl": "".join(json.dumps(row) + "\n" for row in rows),
        "tokenizer/tokenizer.json": json.dumps({"version": "1.0", "added_tokens": [], "model": word}),
        "tokenizer/tokenizer_config.json": json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "a"}),
    }


def aiperf_measured(records: str, requests: Sequence[Request], source: str) -> Trace:
    """The `Trace` in the raw records of aiperf, one JSON object a line, `requests` being what was asked.

    Lengths are as the server counted them. Token times come from the pieces as they arrived: aiperf's own figures
    leave out pieces without text, which a token of half a character makes. Raises as `vllm_measured` does.
    """
    try:
        rows = {int(row["metadata"]["conversation_id"]): row for row in map(json.loads, records.splitlines())}
        missing = set(range(len(requests))) - set(rows)
        if missing:
            raise ClientError(f"aiperf has no record of {len(missing)} of {len(requests)} requests.")
        return _trace([_aiperf_answer(rows[number]) for number in range(len(requests))], requests, source)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ClientError(f"The records of aiperf are not what this course knows: {reason(error)}") from None


class _Answer(NamedTuple):
    """What a generator saw of one request; times in seconds on any clock."""

    error: object
    start: float
    times: tuple[float, ...]
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int | None


def _aiperf_answer(row: dict) -> _Answer:
    error, usage, pieces = row.get("error"), None, []
    for response in row["responses"]:
        for packet in response["packets"]:
            if packet["name"] == "data" and packet["value"] != "[DONE]":
                said = json.loads(packet["value"])
                error = error or said.get("error")
                usage = said.get("usage") or usage
                pieces += [(response["perf_ns"] / 1e9, choice) for choice in said.get("choices", ())]
    if isinstance(error, dict):
        error = error.get("message") or json.dumps(error)
    start = row["start_perf_ns"] / 1e9
    if error or not usage or not pieces:
        return _Answer(error or f"the answer broke off after {len(pieces)} pieces", start, (), 0, 0, None)
    # Dynamo 1.6.1 ends with a piece that holds no token.
    if len(pieces) > usage["completion_tokens"] and not pieces[-1][1].get("text"):
        pieces.pop()
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
    times = tuple(at for at, _ in pieces)
    return _Answer(None, start, times, usage["prompt_tokens"], usage["completion_tokens"], cached)


def _trace(answers: Sequence[_Answer], requests: Sequence[Request], source: str) -> Trace:
    failed = [answer.error for answer in answers if answer.error]
    if failed:
        raise ClientError(f"{len(failed)} of {len(answers)} requests failed, the first one with: {reason(failed[0])}")
    zero = min((answer.start for answer in answers), default=0.0)
    sent, times = [], []
    for number, (asked, answer) in enumerate(zip(requests, answers, strict=True), start=1):
        if answer.output_tokens != asked.output_tokens:
            wanted = f"not the {asked.output_tokens} it asked for"
            raise ClientError(f"Request {number} got {answer.output_tokens} tokens, {wanted}.")
        sent.append(Request(answer.start - zero, answer.prompt_tokens, answer.output_tokens, asked.block_ids))
        times.append([at - zero for at in answer.times])
    # SGLang 0.5.14 says nothing where nothing was cached.
    told = any(answer.cached_tokens is not None for answer in answers)
    return Trace(
        sent,
        [seen[0] for seen in times],
        [seen[-1] for seen in times],
        token_times=times if all(len(a.times) == a.output_tokens for a in answers) else None,
        cached_tokens=[answer.cached_tokens or 0 for answer in answers] if told else None,
        source=source,
    )


def block_ids(job: Job) -> list[list[int]]:
    """One id for each block of each prompt: the request's own, then fresh ones that no other prompt shares."""
    fresh = count(1 + max((i for request in job.requests for i in request.block_ids or ()), default=-1))
    ids = []
    for request in job.requests:
        blocks = math.ceil(request.prompt_tokens / job.block_size)
        known = list(request.block_ids or ())[:blocks]
        ids.append(known + [next(fresh) for _ in range(blocks - len(known))])
    return ids


def _tokens(job: Job, block: int) -> list[int]:
    return random.Random(f"{job.seed} {block}").choices(range(FIRST_TOKEN, LAST_TOKEN + 1), k=job.block_size)


def reason(error: object) -> str:
    """`error` in one line: the last one of a traceback, short, without control characters and secrets."""
    lines = readable(str(error)).strip().splitlines() or [type(error).__name__]
    return SECRET_SHAPE.sub("…", lines[-1])[:300]


VLLM = Generator(
    name="vllm bench serve",
    argv=vllm_argv,
    files=vllm_files,
    environment=lambda job: {"PYTHONHASHSEED": str(job.seed)},  # it seeds each block's text with Python's hash
    results=("result.json",),
    measured=vllm_measured,
    answered=r"(\d+/\d+) \[",
    complaint=r"(?!)",
)
AIPERF = Generator(
    name="aiperf",
    argv=aiperf_argv,
    files=aiperf_files,
    # Told to be offline, aiperf looks for a tokenizer's folder in the hub's cache. It asks the hub for nothing here.
    environment=lambda job: {
        "AIPERF_DATASET_MMAP_CACHE_ENABLED": "false",
        "HF_HUB_OFFLINE": None,
        "TRANSFORMERS_OFFLINE": None,
    },
    results=("records/profile_export_raw.jsonl", "records/raw_records/*.jsonl"),  # the latter if every request failed
    measured=aiperf_measured,
    answered=r"Profiling: (\d+/\d+) ",
    complaint=r"\bERROR +(.+)",
)
