"""Routing: which worker should serve a request, and what a fleet makes of a workload. (Chapter 7.)

Three policies: in turn (`round_robin`), to the worker with the fewest active requests (`least_loaded`), or where the
prefix is, unless load speaks against it (`kv_aware`; `kvrouter` has the cost). A request is placed when it arrives and
stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from . import compiled
from .kvrouter import DEFAULT, Weights
from .router import Router
from .scheduler import Config, Record
from .trace import Trace
from .workload import Request, in_order, whole

__all__ = ["Placement", "Weights", "place", "prefill_saved", "simulate"]


def prefill_saved(prompt_tokens: int, cached_tokens: int) -> float:
    """Share of a prompt's prefill that a worker saves by having `cached_tokens` of it in its prefix cache, 0 … 1.

    Raises `ValueError` if the prompt is empty or more is cached than the prompt holds.
    """
    prompt_tokens = whole("prompt_tokens", prompt_tokens, least=1)
    cached_tokens = whole("cached_tokens", cached_tokens)
    if cached_tokens > prompt_tokens:
        raise ValueError(f"cached_tokens must not exceed the prompt's {prompt_tokens} tokens, not {cached_tokens}")
    return cached_tokens / prompt_tokens


class Placement(NamedTuple):
    """A routed run: the trace, and the worker of each request by its place in `configs`."""

    trace: Trace
    workers: tuple[int, ...]


def simulate(
    requests: Iterable[Request],
    configs: Sequence[Config],
    policy: str = "round_robin",
    weights: Weights = DEFAULT,
    seed: int = 0,
    core: str = "auto",
) -> Trace:
    """What a fleet of engines behind a router makes of a workload; `place` also says who served what.

    requests  in any order; the trace has the same one
    configs   one `scheduler.Config` per worker
    policy    "round_robin", "least_loaded" (fewest active requests, the first of equals) or "kv_aware"
    weights   of the KV-aware policy
    seed      of the KV-aware policy's choices between equal costs, or at a temperature above 0
    core      "python" or "numba" to insist, see `compiled.serve`; the result is the same

    Raises `ValueError` naming what is impossible: no workers, an unknown policy, workers of different block sizes
    behind a KV-aware router, or a request that its worker could never finish.
    """
    return place(requests, configs, policy, weights, seed, core).trace


def place(
    requests: Iterable[Request],
    configs: Sequence[Config],
    policy: str = "round_robin",
    weights: Weights = DEFAULT,
    seed: int = 0,
    core: str = "auto",
) -> Placement:
    """`simulate`, with the worker of each request.

    The KV-aware router knows what Dynamo's knows, with no delay: the blocks that each worker's cache holds, and of
    its own requests which have had their first and their last token. Known difference: a block counts as cached from
    the start of the step that computes it, not from its end.
    """
    requests = tuple(requests)
    record = Record(len(requests))
    router = Router(configs, record, policy, weights, seed)  # checks the arguments
    if served := compiled.serve(requests, configs, policy, weights, seed, core):
        trace = Trace(requests, *served[:3], cached_tokens=served.cached_tokens)
        return Placement(trace, tuple(served.workers))
    workers = [0] * len(requests)
    for index in in_order([request.arrival for request in requests]):
        workers[index] = router.send(requests[index], index)
    router.finish()
    return Placement(record.to_trace(requests), tuple(workers))
