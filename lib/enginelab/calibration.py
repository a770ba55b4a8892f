"""Fit the coefficients of a `StepTime` to a measured run. (The vLLM lab: calibrate, predict, measure, compare.)

The engine model is run with trial coefficients, and a Nelder-Mead search in their logarithms (Nelder and Mead, "A
simplex method for function minimization", 1965) makes its latencies like the measured ones. Least squares on single
steps would need to know what every step did; only requests are measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from .engine import Engine
from .scheduler import Config, Record
from .step_time import StepTime
from .trace import Trace, percentile
from .workload import Request, whole

UNSEEN = 5.0  # how much less a request weighs that decoded beside others which the trace does not hold
FIRST_TOKEN = 0.3  # weight of the relative error of the first token, which steps quantise, beside those of E2E and TPOT


def fit(run: Trace, config: Config, workers: int = 1) -> StepTime:
    """The affine `StepTime` with which `workers` engines of `config`, fed round robin, best explain a measured run.

    `config.step_time` is not used. What counts is the mean absolute relative error of E2E and TPOT, and a little of
    TTFT. The run may be the first part of a longer one (`Trace.first`): the search is started both as if nothing
    came after it and as if the same load came again, and goes on with what fits better.

    Takes a few seconds for some hundred requests. Raises `ValueError` if the run has fewer than ten requests with at
    least two tokens, or one that the engine could never finish.
    """
    workers = whole("workers", workers, least=1)
    if sum(r.output_tokens > 1 for r in run.requests) < 10:
        raise ValueError("a fit needs at least 10 requests with two or more output tokens")
    start = [math.log(value) for value in _guess(run, workers)]
    alone, followed = _Loss(run, config, workers, run.requests), _Loss(run, config, workers, _again(run.requests))
    tries = [(*_minimise(loss, start, 0.3, 60), loss) for loss in (alone, followed)]
    _, point, loss = min(tries, key=lambda tried: tried[0])
    _, point = _minimise(loss, point, 0.3, 80)
    _, point = _minimise(loss, point, -0.15, 80)
    return _from_logarithms(point)


def _guess(run: Trace, workers: int) -> tuple[float, float, float, float]:
    """Coefficients of the right order: half of a decode step is fixed, the rest goes to sequences and context."""
    decode = percentile(run.tpot, 20)
    running = max(1.0, sum(b - a for a, b in zip(run.first_token, run.last_token, strict=True)) / run.duration / workers)
    context = running * sum(r.prompt_tokens + r.output_tokens / 2 for r in run.requests) / len(run.requests)
    prefill = percentile([ttft / r.prompt_tokens for ttft, r in zip(run.ttft, run.requests, strict=True)], 10)
    return max(decode / 2, 1e-6), max(prefill / 2, 1e-9), decode / 10 / running, decode / 4 / context


def _again(requests: Sequence[Request]) -> list[Request]:
    """The same load twice, one after the other: stands for what came after the part that was measured."""
    gap = (requests[-1].arrival - requests[0].arrival) * len(requests) / (len(requests) - 1)
    later = [Request(r.arrival + gap, r.prompt_tokens, r.output_tokens) for r in requests]
    return [*requests, *later]


def _from_logarithms(point: Sequence[float]) -> StepTime:
    fixed, *others = (math.exp(min(value, 10.0)) for value in point)
    return StepTime(max(fixed, 1e-9), *others)


class _Loss:
    """How badly coefficients, given as logarithms, explain `run` when `load` is what the engines serve."""

    def __init__(self, run: Trace, config: Config, workers: int, load: Sequence[Request]):
        self.run, self.config, self.workers, self.load = run, config, workers, load
        self.weights = [1.0] * len(run.requests)
        if len(load) > len(run.requests):
            known_until = max(run.scheduled or [r.arrival for r in run.requests])
            for index, (first, last) in enumerate(zip(run.first_token, run.last_token, strict=True)):
                beside_unseen = max(0.0, last - max(first, known_until))
                self.weights[index] = 1 / (1 + UNSEEN * beside_unseen / max(last - first, 1e-9))

    def __call__(self, logarithms: Sequence[float]) -> float:
        step_time = _from_logarithms(logarithms)
        record = self._simulate(replace(self.config, step_time=step_time))
        run, total = self.run, 0.0
        for index, request in enumerate(run.requests):
            first, last = record.first_token[index], record.last_token[index]
            ttft, e2e = run.first_token[index] - request.arrival, run.last_token[index] - request.arrival
            error = abs(last - run.last_token[index]) / e2e if e2e > 0 else 0.0
            if (decode := e2e - ttft) > 0:
                error += abs(last - first - decode) / decode
            if ttft > 0:
                error += FIRST_TOKEN * min(1.0, abs(math.log((first - request.arrival) / ttft)))
            total += self.weights[index] * error
        return total / sum(self.weights)

    def _simulate(self, config: Config) -> Record:
        """Run the engines until they have done the requests that were measured."""
        record, measured = Record(len(self.load)), len(self.run.requests)
        for worker in range(self.workers):
            engine, mine = Engine(config, record), range(worker, len(self.load), self.workers)
            for index in mine:
                engine.submit(self.load[index], index)
            until, left = max(self.run.last_token), [index for index in mine if index < measured]
            while left:
                engine.advance(until)
                left = [index for index in left if math.isnan(record.last_token[index])]
                until *= 1.1
        return record


def _minimise(
    loss: Callable[[list[float]], float], point: list[float], size: float, rounds: int
) -> tuple[float, list[float]]:
    """The lowest loss that a Nelder-Mead search finds from a simplex of edge `size` at `point`, and where."""
    corners = [list(point)] + [[v + size * (i == k) for i, v in enumerate(point)] for k in range(len(point))]
    simplex = sorted((loss(corner), corner) for corner in corners)
    for _ in range(rounds):
        *kept, (worst, corner) = simplex
        middle = [sum(values) / len(kept) for values in zip(*(c for _, c in kept), strict=True)]

        def at(factor, middle=middle, corner=corner):
            moved = [m + factor * (c - m) for m, c in zip(middle, corner, strict=True)]
            return loss(moved), moved

        new = at(-1.0)
        if new < simplex[0]:
            new = min(new, at(-2.0))
        elif new >= kept[-1]:
            new = min(new, at(0.5 if new[0] >= worst else -0.5))
        if new[0] < worst:
            simplex = sorted([*kept, new])
        else:
            best = simplex[0][1]
            shrunk = ([(a + b) / 2 for a, b in zip(c, best, strict=True)] for _, c in simplex[1:])
            simplex = sorted([simplex[0], *((loss(c), c) for c in shrunk)])
        if simplex[-1][0] - simplex[0][0] < 1e-6:
            break
    return simplex[0]
