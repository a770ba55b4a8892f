"""The planner's arithmetic: what a load demands, how many workers meet it, and how far to move. (Chapter 7.)

Dynamo's own planner reckons in requests: `replicas = max(ceil(demand_rps / engine_rps), min_endpoint)`, where
`engine_rps` is the rate one engine keeps up within the SLA (ai-dynamo 1.6.1, `planner/core/throughput_scaling.py`).
With an engine's rate in tokens divided by tokens per request, that is `replicas`. Then it limits the change and the
GPUs (`planner/core/budget.py`): that is `scale`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Limits:
    """How far one decision may go, and what a worker takes.

    least_prefill, least_decode  workers that stay up (Dynamo's `min_endpoint`)
    most_change                  of one kind that one decision adds or removes (`max_throughput_scaling_replicas`)
    gpus                         that both pools may take together, None for any number (`max_gpu_budget`)
    prefill_gpus, decode_gpus    that one worker of a kind takes

    Raises `ValueError` naming a limit that is impossible, or a budget that the least workers exceed.
    """

    least_prefill: int = 1
    least_decode: int = 1
    most_change: int = 8
    gpus: int | None = None
    prefill_gpus: int = 1
    decode_gpus: int = 1

    def __post_init__(self):
        for name in ("least_prefill", "least_decode"):
            whole(name, getattr(self, name))
        for name in ("most_change", "prefill_gpus", "decode_gpus"):
            whole(name, getattr(self, name), least=1)
        if self.gpus is not None and whole("gpus", self.gpus) < self.taken(self.least):
            raise ValueError(f"gpus must hold the least workers, which take {self.taken(self.least)}, not {self.gpus}")

    @property
    def least(self) -> Replicas:
        """The workers that stay up."""
        return Replicas(self.least_prefill, self.least_decode)

    def taken(self, workers: Replicas) -> int:
        """GPUs that so many workers take."""
        return workers.prefill * self.prefill_gpus + workers.decode * self.decode_gpus

    def fits(self, workers: Replicas) -> bool:
        """Whether so many workers stay within the budget."""
        return self.gpus is None or self.taken(workers) <= self.gpus


DEFAULT = Limits()


def wanted(rate: float, prefill_rate: float, decode_rate: float, limits: Limits = DEFAULT) -> Replicas:
    """Workers that `rate` requests/s need, if one keeps up `prefill_rate` or `decode_rate`, all in requests/s.

    As Dynamo reckons it, in floating point; `replicas` never buys a worker for a rounding error.
    """
    rate = number("rate", rate, least=0)
    speeds = number("prefill_rate", prefill_rate, above=0), number("decode_rate", decode_rate, above=0)
    return Replicas(*(max(math.ceil(rate / speed), least) for speed, least in zip(speeds, limits.least, strict=True)))


def scale(current: Replicas, target: Replicas, limits: Limits = DEFAULT) -> Replicas:
    """The workers to have next, on the way from `current` to `target`, as Dynamo's throughput scaling decides.

    Each kind moves by at most `most_change`, except up to its least. If the GPUs do not suffice, the nearest pair that
    does is taken: neither kind moves away from its target, and if one was to grow while the other shrinks, both do or
    none. At the full budget nothing grows but in such an exchange; above it the current workers are cut in proportion.
    """
    current, target = (Replicas(*(whole("workers", n) for n in pair)) for pair in (current, target))
    least, most = limits.least, limits.most_change
    aim = Replicas(
        *(
            max(min(max(to, max(0, now - most)), now + most), floor)
            for now, to, floor in zip(current, target, least, strict=True)
        )
    )
    if current.prefill < least.prefill or current.decode < least.decode:
        return _in_proportion(aim, limits)
    if not limits.fits(current):
        return _in_proportion(current, limits)
    aim = _nearest(current, aim, limits)
    exchange = (aim.prefill - current.prefill) * (aim.decode - current.decode) < 0
    grows = aim.prefill > current.prefill or aim.decode > current.decode
    full = limits.gpus is not None and limits.taken(current) >= limits.gpus
    return current if full and grows and not exchange else aim


def _nearest(current: Replicas, aim: Replicas, limits: Limits) -> Replicas:
    """The pair within the budget that is nearest to `aim`, between it and `current`."""
    if limits.fits(aim):
        return aim
    steps = Replicas(aim.prefill - current.prefill, aim.decode - current.decode)
    best, found = None, current
    for prefill in range(min(current.prefill, aim.prefill), max(current.prefill, aim.prefill) + 1):
        for decode in range(min(current.decode, aim.decode), max(current.decode, aim.decode) + 1):
            moved = abs(prefill - current.prefill), abs(decode - current.decode)
            half = steps.prefill * steps.decode < 0 and bool(moved[0]) != bool(moved[1])
            if half or not limits.fits(Replicas(prefill, decode)):
                continue
            short = abs(aim.prefill - prefill) + abs(aim.decode - decode)
            skew = abs(moved[0] * abs(steps.decode) - moved[1] * abs(steps.prefill))
            rank = short, skew, -sum(moved), prefill, decode
            if best is None or rank < best:
                best, found = rank, Replicas(prefill, decode)
    return found


def _in_proportion(workers: Replicas, limits: Limits) -> Replicas:
    """Both pools cut alike until they fit, but not below their least; what rounding leaves goes to decode."""
    if limits.fits(workers):
        return workers
    share = limits.gpus / limits.taken(workers)
    most = (limits.gpus - limits.least_decode * limits.decode_gpus) // limits.prefill_gpus
    prefill = max(limits.least_prefill, min(most, math.floor(workers.prefill * share)))
    decode = max(limits.least_decode, (limits.gpus - prefill * limits.prefill_gpus) // limits.decode_gpus)
    return Replicas(prefill, decode)


def _lengths(input_tokens: float, output_tokens: float):
    return ("input_tokens", input_tokens), ("output_tokens", output_tokens)


def _exact(name: str, value: float) -> Fraction:
    # Through the shortest decimal, so that 0.1 is a tenth and not the float just above it.
    return Fraction(repr(number(name, value, least=0)))


def _plain(value: Fraction) -> float:
    return int(value) if value.denominator == 1 else float(value)
