"""What one worker of each kind keeps up: latency against load, and the most load within a limit. (Chapter 7.)

A planner does not model engines; it looks them up. The tables come from a measurement, or from the simulator here.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .engine import Engine
from .scheduler import Config, Record
from .scheduler import simulate as run
from .trace import Trace, percentile
from .workload import Request, build, number, poisson, whole


@dataclass(frozen=True)
class Curve:
    """Latency in seconds against load, in tokens/s of one worker; linear between the points.

    Below the first load the latency is that of the first; above the last it is infinite, for nobody has seen it.
    Raises `ValueError` unless there are as many latencies as loads, and the loads increase.
    """

    loads: tuple[float, ...]
    latencies: tuple[float, ...]

    def __post_init__(self):
        for name in ("loads", "latencies"):
            values = tuple(number(f"{name}[{i}]", v, least=0) for i, v in enumerate(getattr(self, name)))
            object.__setattr__(self, name, values)
        if not self.loads or len(self.loads) != len(self.latencies):
            raise ValueError(f"a curve needs a latency per load: {len(self.loads)} and {len(self.latencies)} given")
        for a, b in zip(self.loads, self.loads[1:], strict=False):
            if not a < b:
                raise ValueError(f"loads must increase: {b:g} comes after {a:g}")

    def at(self, load: float) -> float:
        """The latency at a load."""
        load = number("load", load, least=0)
        if load > self.loads[-1]:
            return math.inf
        right = bisect_left(self.loads, load)
        if right == 0:
            return self.latencies[0]
        return self._between(right, load)

    def _between(self, right: int, load: float) -> float:
        a, b = self.loads[right - 1], self.loads[right]
        low, high = self.latencies[right - 1], self.latencies[right]
        return low + (high - low) * (load - a) / (b - a)

    def capacity(self, limit: float) -> float:
        """The most load up to which the latency stays within `limit` seconds.

        Raises `ValueError` if not even the least load does: then no number of workers helps.
        """
        limit = number("limit", limit, above=0)
        if self.latencies[0] > limit:
            raise ValueError(f"a limit of {limit:g} s is below the latency of an idle worker, {self.latencies[0]:g} s")
        for right in range(1, len(self.loads)):
            if self.latencies[right] > limit:
                low, high = self.latencies[right - 1], self.latencies[right]
                a, b = self.loads[right - 1], self.loads[right]
                return a + (b - a) * (limit - low) / (high - low)
        return self.loads[-1]


class Profile(NamedTuple):
    """One worker of each kind: TTFT against prompt tokens/s, and TPOT against output tokens/s."""

    prefill: Curve
    decode: Curve


def simulated(
    config: Config,
    input_tokens: int,
    output_tokens: int,
    prefill_rates: Sequence[float],
    decode_rates: Sequence[float],
    count: int = 1000,
    percent: float = 90.0,
    seed: int = 0,
) -> Profile:
    """The profile of an engine, from runs of `count` requests at each rate (requests/s, Poisson arrivals).

    `percent` says which percentile of TTFT and TPOT stands in the tables: the share of requests that an SLA met there
    means. A prefill worker makes first tokens only; a decode worker gets prompts whose KV has come.
    """
    for name, rates in (("prefill_rates", prefill_rates), ("decode_rates", decode_rates)):
        if not rates:
            raise ValueError(f"{name} must hold at least one rate")
    whole("output_tokens", output_tokens, least=2)
    prefill, decode = [], []
    for rate in prefill_rates:
        requests = build(poisson(rate, count, seed), input_tokens, 1)
        prefill.append(percentile(run(requests, config).ttft, percent))
    for rate in decode_rates:
        requests = build(poisson(rate, count, seed), input_tokens, output_tokens)
        decode.append(percentile(_decoded(requests, config).tpot, percent))
    return Profile(
        Curve(tuple(rate * input_tokens for rate in prefill_rates), tuple(prefill)),
        Curve(tuple(rate * output_tokens for rate in decode_rates), tuple(decode)),
    )


def _decoded(requests: Sequence[Request], config: Config) -> Trace:
    """What a decode worker makes of requests whose first token and KV come with them."""
    record = Record(len(requests))
    engine = Engine(config, record)
    for index, request in enumerate(requests):
        engine.submit(request, index, generated=1, transferred=request.prompt_tokens)
        engine.advance(request.arrival)
    engine.advance()
    first = tuple(request.arrival for request in requests)
    return Trace(tuple(requests), first, record.last_token)
