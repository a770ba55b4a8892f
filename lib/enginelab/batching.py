"""The slot model: static and continuous batching, one token per running request and step. (Chapter 2.)

A server has `slots` places; a request of length n holds one of them for n steps. Static batching fills the slots and
waits until the slowest request of the batch is done. Continuous batching refills a slot at the step after it falls
free. The model leaves prefill, memory and step time out: it counts steps, so that one can check it by hand.

Both functions jump from one finish to the next; neither walks step by step.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush, heapreplace
from typing import NamedTuple

from .trace import Trace
from .workload import Request, in_order, number, whole


class Run(NamedTuple):
    """Where and when one request ran; slots and steps count from 1, both steps are included."""

    slot: int
    first_step: int
    last_step: int


@dataclass(frozen=True)
class Schedule:
    """What a batching policy did with the requests: lengths in tokens, everything else in steps, in request order.

    lengths   output tokens of each request
    slots     how many requests can run at once
    arrivals  after how many steps each request arrived: 0 is before the first step
    started   how many steps had passed when the request started
    """

    lengths: Sequence[int]
    slots: int
    arrivals: Sequence[int]
    started: Sequence[int]

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The `Run` of each request; of several free slots it took the lowest."""
        runs = [None] * len(self.lengths)
        busy: list[tuple[int, int]] = []
        free = list(range(min(self.slots, len(runs))))
        for request in in_order(self.arrivals):
            start, end = self.started[request], self.started[request] + self.lengths[request]
            while busy and busy[0][0] <= start:
                heappush(free, heappop(busy)[1])
            slot = heappop(free)
            heappush(busy, (end, slot))
            runs[request] = Run(slot + 1, start + 1, end)
        return tuple(runs)

    @cached_property
    def steps(self) -> int:
        """Steps until the last request is done, counted from the beginning."""
        return max(map(operator.add, self.started, self.lengths), default=0)

    @cached_property
    def useful_slot_steps(self) -> int:
        """Slot-steps that made a token: the sum of all lengths."""
        return sum(self.lengths)

    @property
    def slot_steps(self) -> int:
        """Slot-steps that there were: steps times slots."""
        return self.steps * self.slots

    @property
    def idle(self) -> tuple[Run, ...]:
        """Every stretch of an unused slot before the last request is done, as a `Run`, slot by slot."""
        stretches = []
        for slot in range(1, self.slots + 1):
            done = 0
            for run in sorted(run for run in self.runs if run.slot == slot):
                if run.first_step > done + 1:
                    stretches.append(Run(slot, done + 1, run.first_step - 1))
                done = run.last_step
            if done < self.steps:
                stretches.append(Run(slot, done + 1, self.steps))
        return tuple(stretches)

    @property
    def utilization(self) -> float:
        """Useful share of all slot-steps, 0 … 1; 0 when nothing ran."""
        return self.useful_slot_steps / self.slot_steps if self.slot_steps else 0.0

    def to_trace(self, step_seconds: float | Callable[[int], float], prompt_tokens: int = 1) -> Trace:
        """The same schedule in seconds, as a predicted `Trace`.

        `step_seconds` is what one step takes: a number, or a function of how many requests run in that step.
        `prompt_tokens` fills the requests' prompt length; the slot model makes no use of it.
        """
        clock = _clock(self.runs, self.steps, step_seconds)
        requests = tuple(
            Request(clock[arrival], prompt_tokens, length)
            for arrival, length in zip(self.arrivals, self.lengths, strict=True)
        )
        return Trace(
            requests,
            first_token=tuple(clock[run.first_step] for run in self.runs),
            last_token=tuple(clock[run.last_step] for run in self.runs),
            scheduled=tuple(clock[run.first_step - 1] for run in self.runs),
            token_times=tuple(tuple(clock[run.first_step : run.last_step + 1]) for run in self.runs),
        )


def _clock(runs: Sequence[Run], steps: int, step_seconds: float | Callable[[int], float]) -> list[float]:
    """Seconds that have passed after 0, 1, … `steps` steps."""
    change = [0] * (steps + 2)
    for run in runs:
        change[run.first_step] += 1
        change[run.last_step + 1] -= 1
    clock, running = [0.0], 0
    for step in range(1, steps + 1):
        running += change[step]
        taken = step_seconds(running) if callable(step_seconds) else step_seconds
        clock.append(clock[-1] + number("step_seconds", taken, above=0))
    return clock


def static(lengths: Sequence[int], slots: int, arrivals: Sequence[int] | None = None) -> Schedule:
    """Static batching: take what is waiting, up to `slots` requests, and run until the slowest of them is done.

    lengths   output tokens of each request, at least 1
    slots     requests that can run at once, at least 1
    arrivals  steps that have passed when each request arrives; default all 0

    First come, first served; equal arrivals in request order. An idle server starts as soon as one request is there.
    Raises `ValueError` for anything else, naming the argument and the value.
    """
    lengths, slots, arrivals = _checked(lengths, slots, arrivals)
    order, started = in_order(arrivals), [0] * len(lengths)
    begin = now = 0
    while begin < len(order):
        now = max(now, arrivals[order[begin]])
        end = begin + 1
        while end < len(order) and end - begin < slots and arrivals[order[end]] <= now:
            end += 1
        batch = order[begin:end]
        for request in batch:
            started[request] = now
        now += max(lengths[request] for request in batch)
        begin = end
    return Schedule(lengths, slots, arrivals, started)


def continuous(lengths: Sequence[int], slots: int, arrivals: Sequence[int] | None = None) -> Schedule:
    """Continuous batching: a finished request leaves at once, a waiting one takes its slot at the next step.

    Arguments, order and errors are those of `static`.
    """
    lengths, slots, arrivals = _checked(lengths, slots, arrivals)
    order = in_order(arrivals)
    rows = zip(arrivals, lengths, strict=True)
    if not isinstance(order, range):
        rows = ((arrivals[request], lengths[request]) for request in order)
    # When each slot falls free. Which of them a request takes does not change when it starts.
    free = [0] * min(slots, len(lengths))
    starts: list[int] = []
    keep, replace = starts.append, heapreplace
    for arrival, length in rows:
        start = free[0]
        if start < arrival:
            start = arrival
        keep(start)
        replace(free, start + length)
    if not isinstance(order, range):
        starts = [start for _, start in sorted(zip(order, starts, strict=True))]
    return Schedule(lengths, slots, arrivals, starts)


def _checked(lengths, slots, arrivals) -> tuple[list[int], int, list[int]]:
    """The arguments, lists as lists of plain ints."""
    lengths = _whole_numbers("lengths", lengths, least=1)
    slots = whole("slots", slots, least=1)
    if arrivals is None:
        return lengths, slots, [0] * len(lengths)
    arrivals = _whole_numbers("arrivals", arrivals, least=0)
    if len(arrivals) != len(lengths):
        raise ValueError(f"arrivals must have one entry per request ({len(lengths)}), not {len(arrivals)}")
    return lengths, slots, arrivals


def _whole_numbers(name: str, values, least: int) -> list[int]:
    """A list of ints, checked at C speed; one by one only where that fails, to convert or to name the culprit."""
    if isinstance(values, (str, bytes, dict, set)) or not hasattr(values, "__iter__"):
        raise ValueError(f"{name} must be a list of whole numbers, not {values!r:.80}")
    values = list(values)
    if set(map(type, values)) <= {int} and (not values or min(values) >= least):
        return values
    return [whole(f"{name}[{index}]", value, least) for index, value in enumerate(values)]
