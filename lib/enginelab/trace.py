"""Traces: what one run did, simulated or measured, in one type. (Every lab; chapter 2.)

The models and the client both return a `Trace`, so one summary and one figure serve prediction and measurement.
Metrics follow the names and definitions of `vllm bench serve`:

TTFT  time to first token: first token minus arrival
E2E   end-to-end latency: last token minus arrival
TPOT  time per output token after the first: (E2E - TTFT) / (output tokens - 1)
ITL   inter-token latency: the gaps between consecutive tokens
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from .workload import Request, number, whole


class Spread(NamedTuple):
    """Mean and percentiles of one metric, in its own unit."""

    mean: float
    p50: float
    p90: float
    p99: float


class Summary(NamedTuple):
    """One run in a few numbers: seconds for latencies, per second for throughputs."""

    requests: int
    duration: float
    request_throughput: float
    output_throughput: float
    ttft: Spread
    tpot: Spread
    e2e: Spread


@dataclass(frozen=True)
class Trace:
    """What happened to every request of one run.

    All times are seconds on one clock, whose zero is the zero of `Request.arrival`; all tuples are in request order.

    requests       what was asked
    first_token    when the first output token came
    last_token     when the last one came
    scheduled      when the engine first worked on the request, if known
    token_times    when each output token came, if known
    cached_tokens  prompt tokens found in the prefix cache, if known
    source         "simulated", or what was measured: "vLLM 0.32.0, 2 CPU cores"

    Raises `ValueError` if a column's length differs from the requests', or a time is not a number or runs backwards.
    """

    requests: tuple[Request, ...]
    first_token: tuple[float, ...]
    last_token: tuple[float, ...]
    scheduled: tuple[float, ...] | None = None
    token_times: tuple[tuple[float, ...], ...] | None = None
    cached_tokens: tuple[int, ...] | None = None
    source: str = "simulated"

    def __post_init__(self):
        for name in ("requests", "first_token", "last_token", "scheduled", "token_times", "cached_tokens"):
            column = getattr(self, name)
            if column is None:
                continue
            object.__setattr__(self, name, tuple(column))
            if len(column) != len(self.requests):
                raise ValueError(f"{name} must have one entry per request ({len(self.requests)}), not {len(column)}")
        rows = zip(self.requests, self.first_token, self.last_token, strict=True)
        for index, (request, first, last) in enumerate(rows):
            # `not <=` also catches nan.
            if not request.arrival <= first <= last < math.inf:
                raise ValueError(
                    f"request {index} must arrive, get its first token and its last token in that order, "
                    f"not at {request.arrival!r}, {first!r} and {last!r}"
                )

    @cached_property
    def ttft(self) -> tuple[float, ...]:
        """Time to first token of each request, seconds."""
        return tuple(f - r.arrival for f, r in zip(self.first_token, self.requests, strict=True))

    @cached_property
    def e2e(self) -> tuple[float, ...]:
        """End-to-end latency of each request, seconds."""
        return tuple(t - r.arrival for t, r in zip(self.last_token, self.requests, strict=True))

    @cached_property
    def tpot(self) -> tuple[float, ...]:
        """Time per output token after the first, seconds; nan where there is only one token."""
        return tuple(
            (last - first) / (r.output_tokens - 1) if r.output_tokens > 1 else math.nan
            for first, last, r in zip(self.first_token, self.last_token, self.requests, strict=True)
        )

    @property
    def itl(self) -> tuple[float, ...]:
        """Every gap between two consecutive tokens of one request, seconds, all requests one after the other.

        Raises `ValueError` if the run did not record its tokens one by one.
        """
        if self.token_times is None:
            raise ValueError("this trace has no token_times: inter-token latency is not known, only tpot")
        return tuple(b - a for times in self.token_times for a, b in zip(times, times[1:], strict=False))

    @property
    def duration(self) -> float:
        """Seconds from the first arrival to the last token; 0 for a run without requests."""
        return max(self.last_token) - min(r.arrival for r in self.requests) if self.requests else 0.0

    @property
    def output_throughput(self) -> float:
        """Output tokens per second over the whole run."""
        return _ratio(sum(r.output_tokens for r in self.requests), self.duration)

    @property
    def request_throughput(self) -> float:
        """Finished requests per second over the whole run."""
        return _ratio(len(self.requests), self.duration)

    def goodput(self, ttft: float = math.inf, tpot: float = math.inf, e2e: float = math.inf) -> float:
        """Requests per second that met every limit given (seconds); a one-token output has no TPOT to miss."""
        rows = zip(self.ttft, self.tpot, self.e2e, strict=True)
        return _ratio(sum(a <= ttft and not b > tpot and c <= e2e for a, b, c in rows), self.duration)

    def first(self, count: int) -> Trace:
        """The first `count` requests of the run, as they went in the presence of the others."""
        count = whole("count", count)
        cut = {
            name: column[:count]
            for name in ("requests", "first_token", "last_token", "scheduled", "token_times", "cached_tokens")
            if (column := getattr(self, name)) is not None
        }
        return Trace(**cut, source=self.source)

    def summary(self) -> Summary:
        """Throughput, and mean and percentiles of TTFT, TPOT and E2E."""
        return Summary(
            len(self.requests),
            self.duration,
            self.request_throughput,
            self.output_throughput,
            *(spread(getattr(self, metric)) for metric in ("ttft", "tpot", "e2e")),
        )


def _ratio(amount: float, seconds: float) -> float:
    return amount / seconds if seconds else math.nan


def percentile(values: Iterable[float], q: float) -> float:
    """The `q`-th percentile (0 … 100), linear between neighbours (numpy's default); nan entries are left out.

    Without any value the answer is nan.
    """
    if not 0 <= number("q", q) <= 100:
        raise ValueError(f"q must lie between 0 and 100, not {q!r}")
    ordered = sorted(v for v in values if v == v)
    if not ordered:
        return math.nan
    position = (len(ordered) - 1) * q / 100
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def spread(values: Sequence[float]) -> Spread:
    """Mean, median, 90th and 99th percentile; nan entries are left out."""
    known = [v for v in values if v == v]
    mean = math.fsum(known) / len(known) if known else math.nan
    return Spread(mean, *(percentile(known, q) for q in (50, 90, 99)))


def mape(measured: Trace, predicted: Trace, metric: str = "e2e") -> float:
    """Mean absolute percentage error of a metric ("ttft", "tpot", "e2e") over the requests, as a fraction.

    Requests are paired by position; those whose measured value is nan (TPOT of one token) or 0 are left out, for
    they have no percentage. Raises `ValueError` if the runs are of different length or no pair is left.
    """
    if metric not in ("ttft", "tpot", "e2e"):
        raise ValueError(f"metric must be 'ttft', 'tpot' or 'e2e', not {metric!r}")
    if len(measured.requests) != len(predicted.requests):
        raise ValueError(
            f"both runs must have the same requests: measured has {len(measured.requests)}, "
            f"predicted {len(predicted.requests)}"
        )
    pairs = zip(getattr(measured, metric), getattr(predicted, metric), strict=True)
    errors = [abs(p - m) / m for m, p in pairs if m > 0]
    if not errors:
        raise ValueError(f"no request has a measured {metric}: there is nothing to compare")
    return math.fsum(errors) / len(errors)


def read_run(path: str | Path) -> Trace:
    """A measured run from a CSV file, one request a row, as a `Trace`.

    Columns: request_id, input_tokens, output_tokens, queued_s, scheduled_s, first_token_s, last_token_s; seconds since
    the first arrival. Rows are put in order of arrival. Raises `ValueError` naming the line that is not such a row.
    """
    path, rows = Path(path), []
    with path.open(newline="", encoding="utf-8") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            try:
                request = Request(float(row["queued_s"]), int(row["input_tokens"]), int(row["output_tokens"]))
                times = [float(row[name]) for name in ("scheduled_s", "first_token_s", "last_token_s")]
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{path.name}, line {line}: not a row of a measured run ({error})") from None
            rows.append((request, *times))
    rows.sort(key=lambda row: row[0].arrival)
    requests, scheduled, first, last = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Trace(requests, first, last, scheduled, source=path.stem)
