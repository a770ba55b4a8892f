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

UNSEEN = 5.0  # a request weighs up to six times less where it decoded beside others that the trace does not hold
FIRST_TOKEN = 0.3  # weight of the first token's error, beside those of E2E and TPOT
# How the parts of a decode step that grow with sequences and with context compare to the fixed part, as logarithms.
STARTS = ((-2.0, -2.0), (0.0, -2.0), (-2.0, 0.0), (-1.0, -1.0), (0.0, 0.0))


def fit(run: Trace, config: Config, workers: int = 1) -> StepTime:
    """The affine `StepTime` with which `workers` engines of `config`, fed round robin, best explain a measured run.

    `config.step_time` is not used. What counts is the mean absolute relative error of E2E and TPOT, and a little of
    TTFT. The run may be the first part of a longer one (`Trace.first`): nothing may have come after it, or more of the
    same; what explains the run better is assumed.

    Takes a few seconds for some hundred requests. Raises `ValueError` if the run has fewer than ten requests with at
    least two tokens, or one that the engine could never finish.
    """
    workers = whole("workers", workers, least=1)
    if sum(r.output_tokens > 1 for r in run.requests) < 10:
        raise ValueError("a fit needs at least 10 requests with two or more output tokens")
    step, prefill = _guess(run)
    alone, followed = _Loss(run, config, workers, run.requests), _Loss(run, config, workers, _again(run.requests))
    middle = [step, prefill, -1.0, -1.0]
    loss = min(alone, followed, key=lambda loss: _minimise(loss, middle, 0.5, 30)[0])
    ends = sorted(_minimise(loss, [step, prefill, *parts], 0.5, 30) for parts in STARTS)[:2]
    for size in (0.5, -0.5, 0.2):
        ends = [_minimise(loss, point, size, 50) for _, point in ends]
    return loss.step_time(min(ends)[1])


def _guess(run: Trace) -> tuple[float, float]:
    """The logarithms of the seconds of a typical decode step and of a prefilled token, to begin with."""
    prefill = [ttft / r.prompt_tokens for ttft, r in zip(run.ttft, run.requests, strict=True)]
    return math.log(max(percentile(run.tpot, 30), 1e-6)), math.log(max(percentile(prefill, 10) / 2, 1e-9))


def _again(requests: Sequence[Request]) -> list[Request]:
    """The same load twice, one after the other: stands for what came after the part that was measured."""
    gap = (requests[-1].arrival - requests[0].arrival) * len(requests) / (len(requests) - 1)
    later = [Request(r.arrival + gap, r.prompt_tokens, r.output_tokens) for r in requests]
    return [*requests, *later]


class _Loss:
    """How badly a point explains `run` when `load` is what the engines serve.

    A point is what latencies determine one by one, as logarithms: the time of a decode step at the run's mean number
    of sequences and mean context; the time of a prefilled token; and how the sequences' and the context's parts of that
    step compare to its fixed part. (The coefficients themselves make up for one another.)
    """

    def __init__(self, run: Trace, config: Config, workers: int, load: Sequence[Request]):
        self.run, self.config, self.workers, self.load = run, config, workers, load
        busy = sum(b - a for a, b in zip(run.first_token, run.last_token, strict=True))
        self.sequences = max(1.0, busy / run.duration / workers)
        self.context = self.sequences * sum(r.prompt_tokens + r.output_tokens / 2 for r in run.requests)
        self.context /= len(run.requests)
        self.weights = [1.0] * len(run.requests)
        if len(load) > len(run.requests):
            known_until = max(run.scheduled or [r.arrival for r in run.requests])
            for index, (first, last) in enumerate(zip(run.first_token, run.last_token, strict=True)):
                beside_unseen = max(0.0, last - max(first, known_until))
                self.weights[index] = 1 / (1 + UNSEEN * beside_unseen / max(last - first, 1e-9))

    def step_time(self, point: Sequence[float]) -> StepTime:
        step, prefill, sequences, context = (math.exp(max(-30.0, min(value, 10.0))) for value in point)
        fixed = step / (1 + sequences + context)
        return StepTime(max(fixed, 1e-9), prefill, fixed * sequences / self.sequences, fixed * context / self.context)

    def __call__(self, point: Sequence[float]) -> float:
        record = self._simulate(replace(self.config, step_time=self.step_time(point)))
        run, total, one_step = self.run, 0.0, math.exp(point[0])
        for index, request in enumerate(run.requests):
            first, last = record.first_token[index], record.last_token[index]
            ttft, e2e = run.first_token[index] - request.arrival, run.last_token[index] - request.arrival
            error = abs(last - run.last_token[index]) / e2e if e2e > 0 else 0.0
            if (decode := e2e - ttft) > 0:
                error += abs(last - first - decode) / decode
            # One step is added, because where in a step a request arrives is chance.
            error += FIRST_TOKEN * min(1.0, abs(math.log((first - request.arrival + one_step) / (ttft + one_step))))
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
