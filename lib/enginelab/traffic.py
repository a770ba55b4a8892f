"""Traffic over a day, for the planner's loop. (Chapter 7.)"""

from __future__ import annotations

import math
import random

from .autoscaling import Load
from .workload import number, whole


def working_day(
    night: float,
    day: float,
    noon: float = 0.0,
    input_tokens: float = 2000,
    output_tokens: float = 500,
    intervals: int = 288,
    noise: float = 0.03,
    seed: int = 0,
) -> list[Load]:
    """The load of each interval of a day that begins at midnight: quiet nights, a steep morning, a slow evening.

    night, day, noon  requests/s at night, what working hours (about 8:30 to 19:00) add, and what the peak at 13:00 adds
    noise             standard deviation of the rate, as a share of it; 0.2 at most
    seed              of the noise

    Raises `ValueError` naming what is negative, or a noise that could make a rate so.
    """
    levels = [number(name, value, least=0) for name, value in (("night", night), ("day", day), ("noon", noon))]
    if number("noise", noise, least=0) > 0.2:
        raise ValueError(f"noise must be at most 0.2, not {noise!r}")
    lengths = number("input_tokens", input_tokens, above=0), number("output_tokens", output_tokens, above=0)
    intervals, draw = whole("intervals", intervals, least=1), random.Random(seed)
    loads = []
    for hour in (24 * index / intervals for index in range(intervals)):
        working = 1 / (1 + math.exp(3 * (8.5 - hour))) / (1 + math.exp(1.5 * (hour - 19)))
        peak = math.exp(-(((hour - 13) / 0.6) ** 2))
        rate = sum(level * share for level, share in zip(levels, (1, working, peak), strict=True))
        loads.append(Load(rate * max(0.0, draw.gauss(1, noise)), *lengths))
    return loads
