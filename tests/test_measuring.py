"""A client that holds back, against the engine run on what it sent, and against one request after the other."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab import measuring, workload
from enginelab.scheduler import Config, StepTime, simulate

EASY = StepTime(fixed=0.010, per_prefill_token=0.001, per_sequence=0, per_kv_token=0)
CONFIG = Config(max_num_seqs=3, max_num_batched_tokens=16, num_blocks=24, block_size=4, step_time=EASY)
some_requests = st.lists(
    st.builds(
        workload.Request,
        st.integers(0, 40).map(lambda n: n / 50),
        st.integers(1, 30),
        st.integers(1, 12),
    ),
    min_size=1,
    max_size=14,
).map(lambda requests: sorted(requests, key=lambda request: request.arrival))  # of two sent at once the first is served
places = st.integers(1, 6)


@given(some_requests, places)
def test_the_engine_does_with_what_was_sent_what_it_always_does(requests, under_way):
    seen = measuring.limited(requests, CONFIG, under_way)
    again = simulate(seen.requests, CONFIG)
    assert (seen.first_token, seen.last_token) == (again.first_token, again.last_token)


@given(some_requests, places)
def test_never_more_are_open_and_nobody_waits_without_need(requests, under_way):
    seen = measuring.limited(requests, CONFIG, under_way)
    for meant, sent in zip(requests, seen.requests, strict=True):
        at = sent.arrival
        open_then = [e for r, e in zip(seen.requests, seen.last_token, strict=True) if r.arrival <= at < e]
        assert len(open_then) <= under_way
        assert at == meant.arrival or (at > meant.arrival and at in seen.last_token)
        assert (sent.prompt_tokens, sent.output_tokens) == (meant.prompt_tokens, meant.output_tokens)


@given(some_requests)
def test_with_room_for_all_nothing_is_held_back(requests):
    assert measuring.limited(requests, CONFIG, len(requests)).requests == tuple(requests)


@given(some_requests)
def test_one_at_a_time_is_each_alone(requests):
    seen, end = measuring.limited(requests, CONFIG, 1), 0.0
    for index, request in enumerate(requests):
        alone = simulate([workload.Request(0, request.prompt_tokens, request.output_tokens)], CONFIG)
        end = max(end, request.arrival) + alone.e2e[0]
        assert math.isclose(seen.last_token[index], end, abs_tol=1e-9)


def test_a_closed_loop_keeps_so_many_busy_until_the_end():
    seen = measuring.limited([workload.Request(0, 2, 5)] * 40, CONFIG, 3)
    starts, ends = sorted(r.arrival for r in seen.requests), sorted(seen.last_token)
    assert starts[3:] == ends[:-3]


@given(some_requests, places)
def test_meant_clocks_start_no_later(requests, under_way):
    seen = measuring.limited(requests, CONFIG, under_way)
    meant = measuring.as_meant(seen, requests)
    assert meant.last_token == seen.last_token
    assert all(a >= b for a, b in zip(meant.ttft, seen.ttft, strict=True))


@given(st.lists(st.floats(0, 100), min_size=1, max_size=40).map(sorted), st.integers(1, 9))
def test_chunks_lose_no_token_and_end_with_the_last(times, size):
    times = [time + 0.01 * n for n, time in enumerate(times)]  # no two at one moment
    arrivals = measuring.chunks(times, size)
    carried = [
        sum(before < time <= at for time in times) for before, at in zip((-1.0, *arrivals), arrivals, strict=False)
    ]
    assert sum(carried) == len(times) and arrivals[-1] == times[-1]
    assert carried[0] == 1 and all(n == size for n in carried[1:-1])


def test_chunks_of_one_are_the_tokens():
    assert measuring.chunks((1.0, 2.0, 4.0), 1) == (1.0, 2.0, 4.0)
    assert measuring.chunks((), 3) == ()


@pytest.mark.parametrize("under_way", [0, -1, 1.5, True, "2"])
def test_a_client_without_a_place_is_named(under_way):
    with pytest.raises(ValueError, match="under_way"):
        measuring.limited([workload.Request(0, 1, 1)], CONFIG, under_way)


def test_a_request_too_large_is_named():
    with pytest.raises(ValueError, match="request 1"):
        measuring.limited([workload.Request(0, 1, 1), workload.Request(0, 900, 1)], CONFIG, 2)
