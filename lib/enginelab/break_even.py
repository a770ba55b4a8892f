"""When a KV-aware router pays: the rate that a fleet keeps up with and without it, and what that saves. (Chapter 7.)"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .autoscaling import Sla
from .routing import simulate
from .scheduler import Config
from .trace import Trace
from .workload import Request, build, lognormal, number, poisson, shared_prefix, whole


@dataclass(frozen=True)
class Prompts:
    """Prompts of one length that begin with one of a few prefixes.

    share          of the prompt tokens that lies in the prefix, 0 … 1; at least one token is the request's own
    prompt_tokens  of every prompt
    prefixes       different ones, drawn at random, all alike
    output_tokens  median; lengths are lognormal (sigma 0.6), at most four times that
    seconds        that requests keep coming
    seed           of arrivals, lengths and prefixes

    Raises `ValueError` naming what is impossible.
    """

    share: float
    prompt_tokens: int = 4000
    prefixes: int = 64
    output_tokens: int = 200
    seconds: float = 15.0
    seed: int = 0

    def __post_init__(self):
        if not 0 <= number("share", self.share) <= 1:
            raise ValueError(f"share must lie between 0 and 1, not {self.share!r}")
        for name in ("prompt_tokens", "prefixes", "output_tokens"):
            whole(name, getattr(self, name), least=1)
        number("seconds", self.seconds, above=0)

    def at(self, rate: float) -> list[Request]:
        """The requests at so many a second, Poisson arrivals."""
        count, seed = max(1, round(number("rate", rate, above=0) * self.seconds)), self.seed
        prefix = min(self.prompt_tokens - 1, round(self.share * self.prompt_tokens))
        answers = lognormal(self.output_tokens, 0.6, count, seed + 1, longest=4 * self.output_tokens)
        requests = build(poisson(rate, count, seed), self.prompt_tokens - prefix, answers)
        return shared_prefix(requests, prefix, self.prefixes, seed=seed)


def kept(trace: Trace, sla: Sla, share: float = 0.9) -> bool:
    """Whether at least `share` of a run's requests met both limits; a one-token output has no TPOT to miss."""
    if not 0 < number("share", share) <= 1:
        raise ValueError(f"share must lie above 0 and be at most 1, not {share!r}")
    met = sum(ttft <= sla.ttft and not tpot > sla.tpot for ttft, tpot in zip(trace.ttft, trace.tpot, strict=True))
    return met >= share * len(trace.requests)


def most_rate(
    workload: Callable[[float], Iterable[Request]],
    rates: Sequence[float],
    configs: Sequence[Config],
    policy: str,
    sla: Sla,
    share: float = 0.9,
) -> float:
    """The highest of `rates` at which a fleet keeps its SLA; 0 if it is none of them.

    workload         makes the requests for a rate
    rates            requests/s, increasing
    configs, policy  of the fleet, as for `routing.simulate`
    sla, share       as for `kept`

    Found by halving: a fleet that fails at one rate is taken to fail at every higher one. Raises `ValueError` if the
    rates do not increase.
    """
    for low, high in pairwise(rates):
        if not low < high:
            raise ValueError(f"rates must increase: {high:g} comes after {low:g}")
    place = bisect(rates, False, key=lambda rate: not kept(simulate(workload(rate), configs, policy), sla, share))
    return rates[place - 1] if place else 0.0


def worth_from(plain: float, aware: float, price: float = 1.0) -> float:
    """Requests/s from which the better router saves `price` workers; infinite if it saves none.

    `plain` and `aware` are the requests/s that one worker keeps up without it and with it. A load of r requests/s
    needs r / plain workers or r / aware, fractions of a worker counted as such.
    """
    plain, aware = number("plain", plain, above=0), number("aware", aware, above=0)
    saved = 1 / plain - 1 / aware
    return number("price", price, above=0) / saved if saved > 0 else math.inf
