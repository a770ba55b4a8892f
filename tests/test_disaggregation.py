"""Disaggregation: numbers by hand, one worker of each against plain recursion, and what must be conserved."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enginelab import disaggregation, scheduler, workload
from enginelab.scheduler import Config, StepTime
from enginelab.workload import Request

ROUND = StepTime(fixed=1.0, per_prefill_token=0.01, per_sequence=0.0, per_kv_token=0.0)


def test_one_request_by_hand():
    # 100 tokens: a step of 1 + 1 s, the first token; 100 * 8 bytes at 400 bytes/s, 2 s, and 0.5 s; then 3 more tokens,
    # the first after a step that computes the one token whose KV was not sent, 1.01 s, and two of 1 s.
    trace = disaggregation.simulate(
        [Request(1.0, 100, 4)], [Config(step_time=ROUND)], [Config(step_time=ROUND)], 400, 8, latency=0.5
    )
    assert trace.first_token == (3.0,)
    assert trace.last_token == pytest.approx((3.0 + 2.5 + 1.01 + 2.0,))


def test_prompts_wait_for_the_link_they_share():
    requests = [Request(0.0, 100, 2), Request(0.0, 100, 2)]
    config = Config(step_time=ROUND)
    one = disaggregation.simulate(requests, [config], [config] * 2, 10, 1)
    assert one.first_token == (3.0, 3.0)  # in one step
    assert one.last_token == pytest.approx((3.0 + 10 + 1.01, 3.0 + 20 + 1.01))
    two = disaggregation.simulate(requests, [config] * 2, [config] * 2, 10, 1)
    assert two.last_token == pytest.approx((2.0 + 10 + 1.01, 2.0 + 10 + 1.01))


def alone(requests, budget, fixed, per_token):
    """One prefill and one decode worker with nothing to send: every step walked; arrivals in order.

    Returns first and last token times.
    """
    first, last = [0.0] * len(requests), [0.0] * len(requests)
    now, waiting, left = 0.0, list(range(len(requests))), [r.prompt_tokens for r in requests]
    while waiting:
        now = max(now, requests[waiting[0]].arrival)
        room, done, computed = budget, [], 0
        for index in waiting:
            if requests[index].arrival > now or not room:
                break
            chunk = min(room, left[index])
            left[index], room, computed = left[index] - chunk, room - chunk, computed + chunk
            if not left[index]:
                done.append(index)
        now += fixed + per_token * computed
        for index in done:
            waiting.remove(index)
            first[index] = now
    arrived = sorted((i for i, r in enumerate(requests) if r.output_tokens > 1), key=lambda i: first[i])
    now, running = 0.0, {}
    while arrived or running:
        if not running:
            now = max(now, first[arrived[0]])
        new = [i for i in arrived if first[i] <= now]
        arrived = arrived[len(new) :]
        now += fixed + per_token * len(new)
        running.update((i, requests[i].output_tokens - 1) for i in new)
        for index in list(running):
            running[index] -= 1
            if not running[index]:
                last[index] = now
                del running[index]
    return first, [end or start for start, end in zip(first, last, strict=True)]


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from([7, 64, 1000]))
def test_one_worker_of_each_is_two_queues(seed, budget):
    draw, at, requests = random.Random(seed), 0.0, []
    for _ in range(draw.randrange(1, 25)):
        at += draw.choice([0, 0.5, 3]) * draw.randrange(3)
        requests.append(Request(at, draw.randrange(1, 300), draw.randrange(1, 30)))
    config = Config(max_num_batched_tokens=budget, max_num_seqs=1000, step_time=StepTime(1.0, 1 / 128, 0.0, 0.0))
    decode = Config(max_num_seqs=1000, step_time=config.step_time)
    trace = disaggregation.simulate(requests, [config], [decode], math.inf, 1e9)
    first, last = alone(requests, budget, 1.0, 1 / 128)
    assert trace.first_token == pytest.approx(first)
    assert trace.last_token == pytest.approx(last)


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_what_is_conserved(seed):
    draw = random.Random(seed)
    requests = workload.build(
        workload.poisson(draw.choice([1, 10, 100]), 60, seed),
        workload.lognormal(300, 1.0, 60, seed, longest=900),
        [draw.choice([1, 2, 50]) for _ in range(60)],
    )
    requests = workload.shared_prefix(requests, 64, groups=3, seed=seed)
    config = Config(num_blocks=draw.choice([70, 5000]), enable_prefix_caching=draw.random() < 0.5)
    pools = [config] * draw.randrange(1, 4), [config] * draw.randrange(1, 4)
    speed, latency = draw.choice([1e6, 1e9, math.inf]), draw.choice([0.0, 0.01])
    policy = draw.choice(["round_robin", "kv_aware"])
    trace = disaggregation.simulate(requests, *pools, speed, 1000, latency, policy)
    prefills = scheduler.simulate([Request(r.arrival, r.prompt_tokens, 1, r.block_ids) for r in requests], config)
    for index, request in enumerate(requests):
        first, last = trace.first_token[index], trace.last_token[index]
        assert request.arrival < first <= last < math.inf
        sent = request.prompt_tokens * 1000 / speed + latency
        if request.output_tokens == 1:
            assert last == first
        else:
            step = config.step_time.seconds(0, 1)
            assert last >= first + sent + (request.output_tokens - 1) * min(step, config.step_time.seconds(1))
    if len(pools[0]) == 1:
        assert trace.first_token == prefills.first_token, "what decodes elsewhere has no say in prefill"


def test_a_slower_link_only_delays():
    requests = workload.build(workload.poisson(5, 100, 1), 1000, 50)
    config = Config()
    fast, slow = (disaggregation.simulate(requests, [config], [config], rate, 131072) for rate in (1e11, 1e9))
    assert fast.first_token == slow.first_token
    assert sum(slow.last_token) > sum(fast.last_token)


def splits(rate, prompt, output, tpot):
    requests = workload.build(
        workload.poisson(rate, 800, 1), workload.lognormal(prompt, 0.5, 800, 1), workload.lognormal(output, 0.5, 800, 2)
    )
    config = Config(max_num_batched_tokens=8192)
    return disaggregation.splits(requests, config, 4, 1.0, tpot, 25e9, 131072, 0.002)


def test_it_pays_for_long_prompts_and_a_strict_limit_between_tokens():
    together, *apart = splits(20, 2000, 100, tpot=0.03)
    assert (together.prefill, together.decode) == (0, 0)
    assert [(split.prefill, split.decode) for split in apart] == [(1, 3), (2, 2), (3, 1)]
    assert max(split.goodput for split in apart) > 1.2 * together.goodput


def test_it_does_not_pay_where_all_do_well_or_the_pools_cannot_be_balanced():
    together, *apart = splits(16, 300, 300, tpot=0.1)
    assert together.attained == 1.0
    assert max(split.goodput for split in apart) <= together.goodput


@pytest.mark.parametrize(
    "change, named",
    [
        ({"prefill": []}, "prefill"),
        ({"decode": []}, "decode"),
        ({"bandwidth": 0}, "bandwidth"),
        ({"bandwidth": math.nan}, "bandwidth"),
        ({"kv_bytes_per_token": -1}, "kv_bytes_per_token"),
        ({"latency": -1}, "latency"),
        ({"policy": "any"}, "policy"),
        ({"decode": [Config(num_blocks=5)]}, "request 0"),
    ],
)
def test_bad_input_is_named(change, named):
    arguments = {
        "requests": [Request(0.0, 100, 5)],
        "prefill": [Config()],
        "decode": [Config()],
        "bandwidth": 1e9,
        "kv_bytes_per_token": 1000,
    }
    with pytest.raises(ValueError, match=f"^{named}"):
        disaggregation.simulate(**arguments | change)
