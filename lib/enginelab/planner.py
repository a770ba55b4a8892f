"""The planner's arithmetic: what a load demands, and how many workers meet it. (Chapter 7.)

Dynamo's own planner reckons in requests: `replicas = max(ceil(demand_rps / engine_rps), min_endpoint)`, where
`engine_rps` is the rate one engine keeps up within the SLA (ai-dynamo 1.6.1, `planner/core/throughput_scaling.py`).
With an engine's rate in tokens divided by tokens per request, that is the sum below. `scaling` has what follows it:
the limits on one decision.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from .workload import number, whole


class Demand(NamedTuple):
    """Tokens per second that a load asks of each phase."""

    prefill: float
    decode: float


class Replicas(NamedTuple):
    """Workers for each phase."""

    prefill: int
    decode: int


def demand(rate: float, input_tokens: float, output_tokens: float) -> Demand:
    """Prefill and decode demand of `rate` requests/s with `input_tokens` and `output_tokens` each (means)."""
    rate = _exact("rate", rate)
    return Demand(*(_plain(rate * _exact(name, value)) for name, value in _lengths(input_tokens, output_tokens)))


def replicas(
    rate: float,
    input_tokens: float,
    output_tokens: float,
    prefill_tokens_per_s: float,
    decode_tokens_per_s: float,
    least: int = 1,
) -> Replicas:
    """Fewest workers of each kind that keep up with the load: demand over one worker's tokens/s, rounded up.

    `least` workers of each kind stay up when there is no load. Reckoned in decimals, so that no rounding error ever
    buys a worker. Raises `ValueError` for rates or lengths that are negative or not numbers, and worker
    speeds that are not above zero.
    """
    least = whole("least", least)
    speeds = {"prefill_tokens_per_s": prefill_tokens_per_s, "decode_tokens_per_s": decode_tokens_per_s}
    rate = _exact("rate", rate)
    counts = []
    for (name, tokens), (speed_name, speed) in zip(_lengths(input_tokens, output_tokens), speeds.items(), strict=True):
        number(speed_name, speed, above=0)
        counts.append(max(least, math.ceil(rate * _exact(name, tokens) / _exact(speed_name, speed))))
    return Replicas(*counts)


def _lengths(input_tokens: float, output_tokens: float):
    return ("input_tokens", input_tokens), ("output_tokens", output_tokens)


def _exact(name: str, value: float) -> Fraction:
    # Through the shortest decimal, so that 0.1 is a tenth and not the float just above it.
    return Fraction(repr(number(name, value, least=0)))


def _plain(value: Fraction) -> float:
    return int(value) if value.denominator == 1 else float(value)
