"""Disaggregation: prefill and decode on workers of their own, and the KV cache sent between them. (Chapter 7.)

A long prefill in the same step holds up every request that decodes. Apart, decode steps stay short, at a price: the
KV cache of every prompt must be sent (Zhong et al., DistServe, OSDI 2024; Patel et al., Splitwise, ISCA 2024), and
GPUs of one pool cannot help the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from .kvrouter import DEFAULT, Weights
from .router import Router
from .routing import simulate as aggregated
from .scheduler import Config, Record
from .trace import Trace
from .workload import Request, in_order, number, whole

# Dynamo's router weighs only what a decode worker already holds; prefill is done, and no overlap counts.
DECODE = Weights(overlap_score_credit=0.0, prefill_load_scale=0.0)


class Transfer(NamedTuple):
    """How KV cache gets from prefill to decode.

    bandwidth           bytes/s out of each prefill worker, `math.inf` for no waiting; one prompt after the other
    kv_bytes_per_token  of the model (`hardware.Model.kv_bytes_per_token`)
    latency             seconds that each transfer takes besides
    """

    bandwidth: float
    kv_bytes_per_token: float
    latency: float = 0.0

    def check(self) -> None:
        """Raise `ValueError` naming the field that is impossible."""
        if self.bandwidth != math.inf:
            number("bandwidth", self.bandwidth, above=0)
        number("kv_bytes_per_token", self.kv_bytes_per_token, least=0)
        number("latency", self.latency, least=0)


def simulate(
    requests: Iterable[Request],
    prefill: Sequence[Config],
    decode: Sequence[Config],
    bandwidth: float,
    kv_bytes_per_token: float,
    latency: float = 0.0,
    policy: str = "least_loaded",
    weights: Weights = DEFAULT,
    seed: int = 0,
) -> Trace:
    """What a prefill pool and a decode pool make of a workload.

    requests         in any order; the trace has the same one
    prefill, decode  one `scheduler.Config` per worker of each pool
    bandwidth, kv_bytes_per_token, latency  of the transfer, as in `Transfer`
    policy, weights  of the router before the prefill pool; decode workers are chosen by the blocks they hold
    seed             of choices between equals

    A request is prefilled, which gives its first token; its prompt's KV is sent; a decode worker, chosen when it has
    come, makes the other tokens. One-token outputs end with the prefill. Known differences: an engine that hands out
    the first token only at the decode worker has a TTFT that is later by the transfer; blocks stay taken at the
    prefill worker only until the prefill's end; a prompt is sent whole, even if a decode worker has part of it.

    Raises `ValueError` naming what is impossible: an empty pool, a bandwidth that is not above 0, or a request that a
    worker could never finish.
    """
    requests = tuple(requests)
    transfer = Transfer(bandwidth, kv_bytes_per_token, latency)
    transfer.check()
    for name, pool in (("prefill", prefill), ("decode", decode)):
        if not pool:
            raise ValueError(f"{name} must name at least one worker")
    first, last = Record(len(requests)), Record(len(requests))
    workers = _send_all([replace(r, output_tokens=1) for r in requests], Router(prefill, first, policy, weights, seed))
    arrived = _arrivals(requests, workers, first.first_token, transfer, len(prefill))
    decoding = [i for i, request in enumerate(requests) if request.output_tokens > 1]
    router = Router(decode, last, "kv_aware", DECODE, seed)
    for index in sorted(decoding, key=lambda i: arrived[i]):
        moved = replace(requests[index], arrival=arrived[index])
        router.send(moved, index, generated=1, transferred=moved.prompt_tokens)
    router.finish()
    for index, request in enumerate(requests):
        if request.output_tokens == 1:
            last.last_token[index] = first.first_token[index]
    return Trace(requests, first.first_token, last.last_token, first.scheduled, None, first.cached_tokens)


def _send_all(requests: Sequence[Request], router: Router) -> list[int]:
    workers = [0] * len(requests)
    for index in in_order([request.arrival for request in requests]):
        workers[index] = router.send(requests[index], index)
    router.finish()
    return workers


def _arrivals(
    requests: Sequence[Request], workers: Sequence[int], done: Sequence[float], transfer: Transfer, links: int
) -> list[float]:
    """When each prompt's KV has come, given the prefill worker and the end of its prefill."""
    free, arrived = [0.0] * links, list(done)
    for index in sorted(range(len(requests)), key=lambda i: done[i]):
        if requests[index].output_tokens > 1:
            seconds = requests[index].prompt_tokens * transfer.kv_bytes_per_token / transfer.bandwidth
            end = max(done[index], free[workers[index]]) + seconds
            free[workers[index]], arrived[index] = end, end + transfer.latency
    return arrived


class Split(NamedTuple):
    """One way to use the GPUs: workers for prefill and for decode (0 and 0: all do both), and what it gives.

    goodput   requests/s that met both limits
    attained  share of the requests that did
    """

    prefill: int
    decode: int
    goodput: float
    attained: float
    trace: Trace


def splits(
    requests: Iterable[Request],
    config: Config,
    workers: int,
    ttft: float,
    tpot: float,
    bandwidth: float,
    kv_bytes_per_token: float,
    latency: float = 0.0,
    policy: str = "least_loaded",
) -> list[Split]:
    """An aggregated fleet of so many workers, then every split of them into two pools, on the same workload.

    `ttft` and `tpot` are the limits in seconds. Disaggregation pays where a split's `goodput` beats the first entry's.
    """
    requests, workers = tuple(requests), whole("workers", workers, least=1)
    ttft, tpot = number("ttft", ttft, above=0), number("tpot", tpot, above=0)
    traces = {(0, 0): aggregated(requests, [config] * workers, policy)}
    for prefill in range(1, workers):
        pools = [config] * prefill, [config] * (workers - prefill)
        traces[prefill, workers - prefill] = simulate(requests, *pools, bandwidth, kv_bytes_per_token, latency, policy)
    out = []
    for (prefill, decode), trace in traces.items():
        goodput = trace.goodput(ttft=ttft, tpot=tpot)
        out.append(Split(prefill, decode, goodput, goodput / trace.request_throughput, trace))
    return out
