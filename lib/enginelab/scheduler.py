"""One engine: iteration-level batching under a token budget, with paged KV blocks. (Chapter 2; every prediction.)

The rules are those of vLLM 0.32's V1 scheduler, first come, first served. Every step:

1. Each running request gets its next token, or the next chunk of its prompt, in order of admission. When no block is
   free, the request admitted last is preempted: it loses its blocks, goes to the front of the queue, and its prompt
   and output so far will be computed again.
2. If none was preempted, waiting requests are admitted while there are budget, a seat, and blocks for all of their
   tokens (`scheduler_reserve_full_isl`). A prompt longer than the budget that is left is cut into chunks; with chunked
   prefill off it waits. The first that cannot be admitted stops those behind it.
3. With prefix caching an admitted request takes the full blocks that the cache holds of its tokens, but computes at
   least one token. Preempted requests find their own blocks again, output included.

Known differences. The tokens of a step come at its end and the next step starts then: asynchronous scheduling frees
a finished request's seat and blocks one step later. Every output has the length that was asked for, and shares no
content with other requests. There is no longest context, no watermark and no threshold for long prefills, which
vLLM's defaults leave out too. vLLM's `num_gpu_blocks` counts a null block that no request gets; `num_blocks` does not.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from . import compiled
from .engine import Engine
from .step_time import PICOSECONDS, StepTime
from .trace import Trace
from .workload import Request, in_order, whole

__all__ = ["AGAIN", "NEXT", "PROMPT", "Config", "Engine", "Record", "Step", "StepTime", "Work", "schedule", "simulate",
           "work_of"]  # fmt: skip

PROMPT, NEXT, AGAIN = "prompt", "next token", "computed again"
AT_ONCE = 1000  # requests handed to the engine together: its queue of arrivals stays short


@dataclass(frozen=True)
class Config:
    """The settings of one engine, named after vLLM's.

    max_num_seqs             requests that run at the same time
    max_num_batched_tokens   tokens that one step computes at most
    num_blocks               KV blocks that requests can use, None for unlimited; vLLM's `num_gpu_blocks` less one
    block_size               tokens in a block
    enable_prefix_caching    keep full blocks, and look them up
    enable_chunked_prefill   cut a prompt that is longer than the budget left
    step_time                how long a step takes

    Raises `ValueError` naming the setting that is impossible, and its value.
    """

    max_num_seqs: int = 256
    max_num_batched_tokens: int = 2048
    num_blocks: int | None = None
    block_size: int = 16
    enable_prefix_caching: bool = False
    enable_chunked_prefill: bool = True
    step_time: StepTime = field(default_factory=StepTime)

    def __post_init__(self):
        for name in ("max_num_seqs", "max_num_batched_tokens", "block_size"):
            whole(name, getattr(self, name), least=1)
        if self.num_blocks is not None:
            whole("num_blocks", self.num_blocks, least=1)
        for name in ("enable_prefix_caching", "enable_chunked_prefill"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be True or False, not {getattr(self, name)!r}")
        if not isinstance(self.step_time, StepTime):
            raise ValueError(f"step_time must be a StepTime, not {self.step_time!r}")

    def check(self, request: Request, index: int) -> None:
        """Raise `ValueError` naming the request, if this engine could never finish it."""
        longest = request.prompt_tokens + request.output_tokens - 1
        if self.num_blocks is not None and longest > self.num_blocks * self.block_size:
            raise ValueError(
                f"request {index} fills {longest} tokens of KV cache, more than num_blocks = {self.num_blocks} "
                f"of {self.block_size} tokens hold"
            )
        if not self.enable_chunked_prefill and request.prompt_tokens > self.max_num_batched_tokens:
            raise ValueError(
                f"request {index} has a prompt of {request.prompt_tokens} tokens; without chunked prefill it must fit "
                f"into one step of max_num_batched_tokens = {self.max_num_batched_tokens}"
            )


class Step(NamedTuple):
    """One engine step: from when to when (seconds), tokens computed by request, and the requests it preempted.

    `tokens` maps the index of a request to how many of its tokens the step computed, in the order of scheduling.
    """

    start: float
    end: float
    tokens: dict[int, int]
    preempted: tuple[int, ...]


class Record:
    """What became of `count` requests, by index; several engines may write into one. Seconds; nan until it happens.

    With `steps`, `steps` holds every `Step`; with `tokens`, `token_times[index]` when each token came. These two take
    time and memory in proportion to the tokens.
    """

    def __init__(self, count: int, steps: bool = False, tokens: bool = False):
        self.scheduled, self.first_token, self.last_token = (array("d", [math.nan]) * count for _ in range(3))
        self.cached_tokens = array("q", [0]) * count
        self.steps: list[Step] | None = [] if steps else None
        self.token_times: tuple[list[float], ...] | None = tuple([] for _ in range(count)) if tokens else None
        self.detailed = steps or tokens

    def note(self, start, first, growth, count, tokens, preempted=(), silent=()) -> None:
        """Write down `count` steps, called by the engine: from `start` on, each `growth` longer than the one before.

        Picoseconds. Each computes `tokens` by request, and gives a token to all of these but the `silent` ones.
        """
        ends = [start + i * first + growth * (i * (i - 1) >> 1) for i in range(count + 1)]
        if self.steps is not None:
            for begin, end in pairwise(ends):
                self.steps.append(Step(begin / PICOSECONDS, end / PICOSECONDS, tokens, preempted))
        if self.token_times is not None:
            times = [end / PICOSECONDS for end in ends[1:]]
            for index in tokens:
                if index not in silent:
                    self.token_times[index].extend(times)

    def to_trace(self, requests: Sequence[Request]) -> Trace:
        """The run as a `Trace`; `requests` in the order of their indices, all of them done."""
        tokens = None if self.token_times is None else tuple(map(tuple, self.token_times))
        return Trace(requests, self.first_token, self.last_token, self.scheduled, tokens, self.cached_tokens)


def simulate(requests: Iterable[Request], config: Config, token_times: bool = False, core: str = "auto") -> Trace:
    """What one engine makes of a workload: when each request is scheduled and gets its first and last token.

    requests     in any order; the trace has the same one
    token_times  also keep when every single token came, which only plain Python does
    core         "python" or "numba" to insist, see `compiled.serve`; the result is the same

    Raises `ValueError` naming the first request that the engine could never finish. 10,000 requests take about 0.1 s
    in plain Python.
    """
    requests = tuple(requests)
    if token_times and core == "numba":
        raise ValueError("core 'numba' keeps no token_times, and 'python' does")
    if served := compiled.serve(requests, [config], core="python" if token_times and core == "auto" else core):
        return Trace(requests, *served[:3], cached_tokens=served.cached_tokens)
    record = Record(len(requests), tokens=token_times)
    _run(requests, config, record)
    return record.to_trace(requests)


def schedule(requests: Iterable[Request], config: Config) -> list[Step]:
    """The same run step by step: which request got how many tokens in which step."""
    requests = tuple(requests)
    record = Record(len(requests), steps=True)
    _run(requests, config, record)
    return record.steps


class Work(NamedTuple):
    """What one step did for one request: `tokens` of a kind, after which `held` tokens lie in the KV cache."""

    kind: str
    tokens: int
    held: int


def work_of(requests: Sequence[Request], steps: Iterable[Step]) -> Iterator[dict[int, Work]]:
    """What each step of a `schedule` did, by the index of the request; for schedules without prefix caching.

    Kinds are `PROMPT`, `NEXT` for a single token after it, and `AGAIN` for what a preemption lost. Raises `ValueError`
    if the steps leave a request unfinished.
    """
    held, known = [0] * len(requests), [request.prompt_tokens for request in requests]
    preempted = set()
    for step in steps:
        for index in step.preempted:
            # Its output so far is computed again together with the prompt; the newest of it for the first time.
            known[index], held[index] = max(known[index], held[index] + 1), 0
            preempted.add(index)
        work = {}
        for index, tokens in step.tokens.items():
            kind = NEXT if held[index] >= known[index] else AGAIN if index in preempted else PROMPT
            held[index] += tokens
            work[index] = Work(kind, tokens, held[index])
        yield work
    for index, request in enumerate(requests):
        if held[index] != request.prompt_tokens + request.output_tokens - 1:
            raise ValueError(f"the schedule computes {held[index]} tokens of request {index}, not all of them")


def _run(requests: Sequence[Request], config: Config, record: Record) -> None:
    engine = Engine(config, record)
    arrivals = [request.arrival for request in requests]
    order = in_order(arrivals)
    for start in range(0, len(order), AT_ONCE):
        for index in order[start : start + AT_ONCE]:
            engine.submit(requests[index], index)
        engine.advance(arrivals[index])
    engine.advance()
