"""One decision of the planner: from the workers there are towards those that are wanted, within limits. (Chapter 7.)

The rules are those of Dynamo 1.6.1's throughput scaling (`planner/core/throughput_scaling.py`) and of its GPU budget
(`planner/core/budget.py`), for a prefill and a decode pool. It also has a least number of GPUs, which is left out here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .planner import Replicas
from .workload import number, whole


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

    As Dynamo reckons it, in floating point; `planner.replicas` never buys a worker for a rounding error.
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
