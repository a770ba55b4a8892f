"""The planner's loop: over a day of traffic, how many workers when, what it costs and whom it fails. (Chapter 7.)

Every interval a scaler looks at the load so far and says how many workers it wants. New ones take a while to start, so
that a scaler that only reacts is late by that much; one that forecasts asks for them before they are needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .engine_profile import Profile
from .forecast import Forecast
from .planner import Replicas
from .scaling import DEFAULT, Limits, scale, wanted
from .workload import number, whole


class Load(NamedTuple):
    """The traffic of one interval: requests/s, and mean tokens of a prompt and of an output."""

    rate: float
    input_tokens: float
    output_tokens: float


class Sla(NamedTuple):
    """What is promised, in seconds: time to first token, and time per output token."""

    ttft: float
    tpot: float


class Day(NamedTuple):
    """A fleet over a day.

    loads      of every interval
    workers    that served in it
    starting   workers, paid for, that did not serve yet
    met        whether it kept the SLA
    attained   share of all requests that fell into intervals that did
    gpu_hours  of serving and starting workers
    """

    loads: tuple[Load, ...]
    workers: tuple[Replicas, ...]
    starting: tuple[Replicas, ...]
    met: tuple[bool, ...]
    attained: float
    gpu_hours: float


Scaler = Callable[[Sequence[Load], Replicas], Replicas]
"""From the loads so far and the workers there are or will be, the workers to have."""


def fixed(workers: Replicas) -> Scaler:
    """The same workers, whatever comes."""
    workers = Replicas(*(whole("workers", count, least=1) for count in workers))
    return lambda history, current: workers


def reactive(profile: Profile, sla: Sla, limits: Limits = DEFAULT, target: float = 0.7) -> Scaler:
    """Enough workers for the last interval's load to use `target` of their capacity.

    The rule of Kubernetes' horizontal pod autoscaler, `ceil(current * usage / target usage)` (kubernetes.io, 2026),
    with usage as the share of what a worker keeps up within the SLA.
    """
    if not 0 < number("target", target) <= 1:
        raise ValueError(f"target must lie above 0 and be at most 1, not {target!r}")

    def scaler(history: Sequence[Load], current: Replicas) -> Replicas:
        if not history:
            return current
        load = history[-1]
        if not load.rate:
            return scale(current, limits.least, limits)
        return scale(current, wanted(load.rate / target, *capacities(load, profile, sla), limits), limits)

    return scaler


def planned(
    profile: Profile, sla: Sla, forecast: Forecast, limits: Limits = DEFAULT, ahead: int = 1, spare: float = 0.0
) -> Scaler:
    """As Dynamo plans: forecast rate and lengths, divide by what one worker keeps up within the SLA, then the limits.

    `ahead` in intervals: 1 plus those that a worker takes to start; the most that any of them asks for is wanted, since
    a worker that is dropped leaves at once. Dynamo looks one ahead. `spare` is a share of capacity kept in hand, for
    forecasts err.
    """
    ahead = whole("ahead", ahead, least=1)
    if not 0 <= number("spare", spare) < 1:
        raise ValueError(f"spare must be at least 0 and below 1, not {spare!r}")

    def scaler(history: Sequence[Load], current: Replicas) -> Replicas:
        if not history:
            return current
        columns = list(zip(*history, strict=True))
        target = limits.least
        for steps in range(1, ahead + 1):
            coming = Load(*(forecast(column, steps) for column in columns))
            if coming.rate:
                rates = (rate * (1 - spare) for rate in capacities(coming, profile, sla))
                target = Replicas(*map(max, target, wanted(coming.rate, *rates, limits)))
        return scale(current, target, limits)

    return scaler


def capacities(load: Load, profile: Profile, sla: Sla) -> tuple[float, float]:
    """Requests/s that one prefill and one decode worker keep up within the SLA, for requests of these lengths."""
    prefill = profile.prefill.capacity(sla.ttft) / number("input_tokens", load.input_tokens, above=0)
    return prefill, profile.decode.capacity(sla.tpot) / number("output_tokens", load.output_tokens, above=0)


def over_a_day(
    loads: Sequence[Load],
    scaler: Scaler,
    profile: Profile,
    sla: Sla,
    start: Replicas,
    limits: Limits = DEFAULT,
    interval: float = 300.0,
    startup: int = 0,
    history: Sequence[Load] = (),
) -> Day:
    """What a scaler does to a fleet, interval by interval.

    loads     one per `interval` seconds
    start     workers in the first interval
    startup   intervals until a new worker serves; it is paid for at once, and one that is dropped leaves at once
    history   loads of the intervals before, which the scaler knows of

    An interval keeps the SLA if, by the profile, its load over its workers does. Known differences: no backlog is
    carried from one interval to the next, and a worker that is starting is not called off before others are dropped.
    Raises `ValueError` for an interval that is not above 0 or a load that is negative.
    """
    hours = number("interval", interval, above=0) / 3600
    startup = whole("startup", startup)
    loads, history = (tuple(Load(*load) for load in part) for part in (loads, history))
    pools = [_Pool(count) for count in Replicas(*start)]
    serving, starting, met, gpu_hours, good = [], [], [], 0.0, 0.0
    for index, load in enumerate(loads):
        number(f"the rate of interval {index}", load.rate, least=0)
        if index:
            target = scaler((*history, *loads[:index]), Replicas(*(pool.all for pool in pools)))
            for pool, count in zip(pools, target, strict=True):
                pool.move_to(count, index + startup)
        serving.append(Replicas(*(pool.serving(index) for pool in pools)))
        starting.append(Replicas(*(pool.all - count for pool, count in zip(pools, serving[-1], strict=True))))
        met.append(_kept(load, serving[-1], profile, sla))
        gpu_hours += hours * (limits.taken(serving[-1]) + limits.taken(starting[-1]))
        good += load.rate * met[-1]
    total = math.fsum(load.rate for load in loads)
    return Day(loads, tuple(serving), tuple(starting), tuple(met), good / total if total else 1.0, gpu_hours)


class _Pool:
    """Workers of one kind, each by the interval from which it serves."""

    def __init__(self, count: int):
        self.since = [0] * count

    @property
    def all(self) -> int:
        return len(self.since)

    def serving(self, interval: int) -> int:
        return sum(since <= interval for since in self.since)

    def move_to(self, count: int, since: int) -> None:
        self.since = self.since[:count] + [since] * (count - len(self.since))


def _kept(load: Load, workers: Replicas, profile: Profile, sla: Sla) -> bool:
    if not load.rate:
        return True
    if not workers.prefill or not workers.decode:
        return False
    ttft = profile.prefill.at(load.rate * load.input_tokens / workers.prefill)
    return ttft <= sla.ttft and profile.decode.at(load.rate * load.output_tokens / workers.decode) <= sla.tpot
