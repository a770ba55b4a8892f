"""What a load test sees, and what it leaves out. (The primer on latency and throughput.)

A client that holds requests back while others are under way offers less just when the engine is slow. Its list of
latencies then lacks the users who would have waited: *coordinated omission*, a name given by Gil Tene about 2013.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from heapq import heappop, heappush

from .scheduler import Config, Engine, Record
from .trace import Trace
from .workload import Request, in_order, whole

MOMENT = 1e-10  # seconds: more than times are rounded by, less than the nanosecond that every step takes


def limited(requests: Iterable[Request], config: Config, under_way: int) -> Trace:
    """One engine, and a client that has at most `under_way` requests open; the rest wait in the client.

    In the trace, `Request.arrival` is when a request was *sent*: the client's clock starts there. So do those of
    `vllm bench serve --max-concurrency`. With every arrival 0 this is a closed loop: so many users, each of whom asks
    again as soon as an answer is complete. `as_meant` starts the clocks at the arrivals of `requests`.

    Raises `ValueError` naming a request that the engine could never finish.
    """
    requests, under_way = tuple(requests), whole("under_way", under_way, least=1)
    sent, record = list(requests), Record(len(requests))
    engine, places, open_now = Engine(config, record), [0.0] * under_way, set()
    for index in in_order([request.arrival for request in requests]):
        while not places:
            _one_step(engine, min(sent[i].arrival for i in open_now))
            for done in [i for i in open_now if record.last_token[i] == record.last_token[i]]:  # nan until it is done
                open_now.remove(done)
                heappush(places, record.last_token[done])
        sent[index] = replace(requests[index], arrival=max(requests[index].arrival, heappop(places)))
        engine.submit(sent[index], index)
        open_now.add(index)
    engine.advance()
    return record.to_trace(sent)


def _one_step(engine: Engine, next_arrival: float) -> None:
    """The next step alone: whoever it makes ready may send something that the step after it should see."""
    start = engine.now if engine.running else max(engine.now, next_arrival)
    engine.advance(start + MOMENT)


def as_meant(trace: Trace, requests: Sequence[Request]) -> Trace:
    """The same run, with every clock started when its request was meant to be sent: the arrivals of `requests`."""
    return replace(trace, requests=tuple(requests))


def chunks(token_times: Sequence[float], size: int) -> tuple[float, ...]:
    """When a stream arrives that carries `size` tokens in a piece: with the last token of each, seconds.

    The first token is a piece of its own, as servers send it at once.
    """
    times, size = tuple(token_times), whole("size", size, least=1)
    ends = [*times[:1], *times[size::size]]
    return tuple(ends if not times or ends[-1] == times[-1] else [*ends, times[-1]])
