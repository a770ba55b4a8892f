"""Workloads: the requests that a server is offered, and when. (Chapters 2 and 7.)

A workload is a list of `Request` in order of arrival. The generators take a seed and use `random.Random`,
so the same call gives the same workload on every machine, the reader's browser included.
"""

from __future__ import annotations

import csv
import json
import math
import operator
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, islice
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a model, as the scheduler sees it.

    arrival        seconds since the start of the workload
    prompt_tokens  tokens to prefill, at least 1
    output_tokens  tokens to decode, at least 1
    block_ids      one id per KV block of the prompt, if known: equal ids mean equal content up to there
    """

    arrival: float
    prompt_tokens: int
    output_tokens: int
    block_ids: tuple[int, ...] | None = None

    def __post_init__(self):
        number("arrival", self.arrival, least=0)
        whole("prompt_tokens", self.prompt_tokens, least=1)
        whole("output_tokens", self.output_tokens, least=1)


def whole(name: str, value, least: int = 0) -> int:
    """`value` as an `int`, or a `ValueError` that names the argument and what was given."""
    try:
        if not isinstance(value, (bool, str)) and (result := value.__index__()) >= least:
            return result
    except (AttributeError, TypeError):
        pass
    raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")


def number(name: str, value, least: float = -math.inf, above: float = -math.inf) -> float:
    """`value` as a finite `float`, at least `least` and greater than `above`, or a `ValueError` that says so."""
    try:
        if not isinstance(value, (bool, str)):
            result = float(value)
            if math.isfinite(result) and result >= least and result > above:
                return result
    except (TypeError, ValueError, OverflowError):
        pass
    bound = f" greater than {above:g}" if above > -math.inf else "" if least == -math.inf else f" of at least {least:g}"
    raise ValueError(f"{name} must be a finite number{bound}, not {value!r}")


def in_order(arrivals: Sequence[float]) -> Sequence[int]:
    """The indices of `arrivals` from the earliest to the latest; equal ones keep their order."""
    if any(map(operator.gt, arrivals, islice(arrivals, 1, None))):
        return sorted(range(len(arrivals)), key=arrivals.__getitem__)
    return range(len(arrivals))


def poisson(rate: float, count: int, seed: int = 0) -> list[float]:
    """Arrival times in seconds of `count` requests at `rate` requests/s, gaps exponentially distributed."""
    return bursty(rate, count, burstiness=1.0, seed=seed)


def bursty(rate: float, count: int, burstiness: float = 1.0, seed: int = 0) -> list[float]:
    """Arrival times in seconds with gamma-distributed gaps of mean 1/`rate`.

    `burstiness` is the shape of the gamma distribution, as in `vllm bench serve --burstiness`: 1 is a Poisson
    process, below 1 arrivals come in bunches, above 1 they come more evenly.
    """
    rate = number("rate", rate, above=0)
    shape = number("burstiness", burstiness, above=0)
    count = whole("count", count)
    draw = random.Random(seed).gammavariate
    return list(accumulate(draw(shape, 1 / (rate * shape)) for _ in range(count)))


def lognormal(median: float, sigma: float, count: int, seed: int = 0, longest: int = 8192) -> list[int]:
    """`count` token lengths whose logarithm is normal: many short ones, a few long, as in production traces.

    `median` in tokens, `sigma` the standard deviation of the natural logarithm; cut to 1 … `longest`.
    """
    median = number("median", median, above=0)
    sigma = number("sigma", sigma, least=0)
    longest = whole("longest", longest, least=1)
    draw = random.Random(seed).normalvariate
    middle, high = math.log(median), math.log(longest)
    # Cut in the logarithm: the exponential of an extreme draw does not fit a float.
    return [round(math.exp(min(high, max(0.0, draw(middle, sigma))))) for _ in range(whole("count", count))]


def build(
    arrivals: Sequence[float], prompt_tokens: Sequence[int] | int, output_tokens: Sequence[int] | int
) -> list[Request]:
    """Requests from arrival times (seconds) and lengths (tokens); one number serves every request."""
    columns = {}
    for name, lengths in (("prompt_tokens", prompt_tokens), ("output_tokens", output_tokens)):
        columns[name] = [lengths] * len(arrivals) if isinstance(lengths, int) else list(lengths)
        if len(columns[name]) != len(arrivals):
            raise ValueError(f"{name} must have one length per arrival ({len(arrivals)}), not {len(columns[name])}")
    rows = zip(arrivals, columns["prompt_tokens"], columns["output_tokens"], strict=True)
    return sorted((Request(*row) for row in rows), key=lambda request: request.arrival)


def shared_prefix(
    requests: Iterable[Request], prefix_tokens: int, groups: int = 1, block_size: int = 16, seed: int = 0
) -> list[Request]:
    """Put one of `groups` system prompts of `prefix_tokens` tokens before every prompt.

    Each request gets `block_ids` for its *full* blocks of `block_size` tokens: those that lie wholly inside the
    system prompt are shared by its group, all later ones are the request's own.
    """
    prefix_tokens = whole("prefix_tokens", prefix_tokens)
    groups, block_size = whole("groups", groups, least=1), whole("block_size", block_size, least=1)
    pick = random.Random(seed).randrange
    shared = prefix_tokens // block_size
    fresh = groups * shared
    out = []
    for request in requests:
        length = prefix_tokens + request.prompt_tokens
        own = length // block_size - shared
        first = pick(groups) * shared
        ids = (*range(first, first + shared), *range(fresh, fresh + own))
        fresh += own
        out.append(Request(request.arrival, length, request.output_tokens, ids))
    return out


def read_azure(path: str | Path) -> list[Request]:
    """The Azure LLM inference trace (CSV: TIMESTAMP, ContextTokens, GeneratedTokens) as a workload.

    Source: Azure/AzurePublicDataset, `data/AzureLLMInferenceTrace_conv.csv`, CC BY 4.0. Requests that generated
    nothing are left out: they never reach a decode step.
    """
    path, rows = Path(path), []
    with path.open(newline="", encoding="utf-8") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            try:
                # Seven decimals; datetime takes six.
                at = datetime.fromisoformat(row["TIMESTAMP"][:26])
                rows.append((at, int(row["ContextTokens"]), int(row["GeneratedTokens"])))
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{path.name}, line {line}: not a row of the Azure trace ({error})") from None
    rows.sort(key=lambda row: row[0])
    kept = ((at - rows[0][0], prompt, output) for at, prompt, output in rows if prompt > 0 and output > 0)
    return [Request(since.total_seconds(), prompt, output) for since, prompt, output in kept]


def read_mooncake(path: str | Path) -> list[Request]:
    """A Mooncake trace (JSON lines: timestamp in ms, input_length, output_length, hash_ids) as a workload.

    Source: kvcache-ai/Mooncake, `FAST25-release/traces`, Apache-2.0. `block_ids` are the trace's own hash ids, one
    per block of 512 prompt tokens, the last one partly filled.
    """
    path, requests = Path(path), []
    with path.open(encoding="utf-8") as file:
        for line, text in enumerate(file, start=1):
            if not text.strip():
                continue
            try:
                row = json.loads(text)
                ids = tuple(whole("hash_ids", block) for block in row["hash_ids"])
                at = number("timestamp", row["timestamp"], least=0) / 1000
                requests.append(Request(at, row["input_length"], row["output_length"], ids))
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{path.name}, line {line}: not a row of a Mooncake trace ({error})") from None
    return sorted(requests, key=lambda request: request.arrival)
