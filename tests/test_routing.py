"""Routing: the lesson's saved prefill; the fleet against plain counting and against single engines."""

import random
from collections import Counter
from itertools import count, islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enginelab import routing, scheduler, workload
from enginelab.engine import Engine
from enginelab.kvrouter import Load, Weights, costs
from enginelab.scheduler import Config, Record, StepTime
from enginelab.workload import Request


def test_the_lesson():
    assert routing.prefill_saved(prompt_tokens=1200, cached_tokens=1000) == 1000 / 1200
    assert round(100 * routing.prefill_saved(1200, 1000)) == 83


def test_nothing_cached_saves_nothing_and_everything_saves_all():
    assert routing.prefill_saved(1200, 0) == 0.0
    assert routing.prefill_saved(1200, 1200) == 1.0


@pytest.mark.parametrize(
    "prompt, cached, named",
    [
        (0, 0, "prompt_tokens"),
        (-1, 0, "prompt_tokens"),
        (5, -1, "cached_tokens"),
        (5, 6, "cached_tokens"),
        (5, "1", "cached_tokens"),
    ],
)  # fmt: skip
def test_bad_input_is_named(prompt, cached, named):
    with pytest.raises(ValueError, match=f"^{named} must"):
        routing.prefill_saved(prompt, cached)


def plainly_checked(requests, configs, policy, weights, workers):
    """Follow the placement with engines that are always up to date, counting everything anew, block by block.

    Asserts that every worker was one that the policy allows, and returns when each request had its last token.
    """
    record, size = Record(len(requests)), configs[0].block_size
    engines, sent, hits = [Engine(config, record) for config in configs], [[] for _ in configs], {}

    def blocks(index):
        request = requests[index]
        ids = (request.block_ids or ())[: request.prompt_tokens // size]
        return {*ids, *((index, b) for b in range(len(ids), request.prompt_tokens // size))}

    for index in sorted(range(len(requests)), key=lambda i: requests[i].arrival):
        request, now, loads = requests[index], requests[index].arrival, []
        for engine, mine in zip(engines, sent, strict=True):
            engine.advance(now)
            active = [i for i in mine if not record.last_token[i] <= now]
            ids = (request.block_ids or ())[: request.prompt_tokens // size]
            hit = engine.pool.match(ids, len(ids)).blocks
            prefill = sum(
                requests[i].prompt_tokens - hits[i] * size for i in active if not record.first_token[i] <= now
            )
            loads.append(Load(hit, prefill, len(blocks(index).union(*map(blocks, active))), len(active)))
        prices = costs(request.prompt_tokens, loads, size, weights)
        if policy == "least_loaded":
            prices = [load.requests for load in loads]
            assert workers[index] == prices.index(min(prices))
        assert prices[workers[index]] == min(prices), (index, loads)
        hits[index] = loads[workers[index]].overlap_blocks
        sent[workers[index]].append(index)
        engines[workers[index]].submit(request, index)
    for engine in engines:
        engine.advance()
    return tuple(record.last_token)


@st.composite
def fleets(draw):
    """Requests that share prefixes, at rates from idle to crowded, and workers with little memory or with much."""
    pick, fresh = random.Random(draw(st.integers(0, 2**32))), count()
    size = pick.choice([1, 4, 16])
    prefixes = [tuple(islice(fresh, 30)) for _ in range(3)]
    at, gap, requests = 0.0, pick.choice([0.0, 0.05, 0.3, 2.0]), []
    for _ in range(pick.randrange(1, 40)):
        at += pick.random() * gap
        prompt = pick.randrange(1, 40 * size)
        ids = None
        if pick.random() < 0.8:
            base = pick.choice(prefixes)[: pick.randrange(31)]
            ids = (base + tuple(islice(fresh, 40)))[: pick.choice([prompt // size, 5])]
        requests.append(Request(at, prompt, pick.randrange(1, 60), ids))
    most = max(-(-(r.prompt_tokens + r.output_tokens) // size) for r in requests)
    config = Config(
        max_num_seqs=pick.choice([1, 4, 256]),
        max_num_batched_tokens=pick.choice([16, 64, 2048]),
        num_blocks=pick.choice([most, most + 20, 10 * most, None]),
        block_size=size,
        enable_prefix_caching=pick.random() < 0.8,
        step_time=pick.choice([StepTime(), StepTime(compute_per_token=1e-3)]),
    )
    return requests, [config] * pick.randrange(1, 5)


@settings(max_examples=150)
@given(fleets(), st.sampled_from(["least_loaded", "kv_aware"]), st.sampled_from([0.0, 0.7]), st.integers(0, 9))
def test_every_choice_is_the_one_that_plain_counting_makes(fleet, policy, decay, seed):
    requests, configs = fleet
    weights = Weights(overlap_score_credit_decay=decay, decode_active_request_weight=decay)
    trace, workers = routing.place(requests, configs, policy, weights, seed)
    assert trace.last_token == plainly_checked(requests, configs, policy, weights, workers)


@settings(max_examples=40)
@given(fleets(), st.sampled_from(["round_robin", "least_loaded", "kv_aware"]))
def test_each_worker_is_an_engine_with_its_share(fleet, policy):
    requests, configs = fleet
    trace, workers = routing.place(requests, configs, policy)
    for worker, config in enumerate(configs):
        mine = [i for i, chosen in enumerate(workers) if chosen == worker]
        alone = scheduler.simulate([requests[i] for i in mine], config)
        assert alone.last_token == tuple(trace.last_token[i] for i in mine)
        assert alone.cached_tokens == tuple(trace.cached_tokens[i] for i in mine)


def chat(number, rate, groups, seed=0):
    """Requests with one of `groups` system prompts of 2,000 tokens."""
    requests = workload.build(workload.poisson(rate, number, seed), 200, 100)
    return workload.shared_prefix(requests, 2000, groups, seed=seed)


def test_round_robin_deals_in_order_of_arrival():
    requests = [Request(2.0, 10, 5), Request(1.0, 10, 5), Request(3.0, 10, 5)]
    assert routing.place(requests, [Config()] * 2).workers == (1, 0, 0)


def test_the_fewest_requests_win():
    requests = [Request(0.0, 10, 1000), Request(0.1, 10, 2), Request(0.11, 10, 2), Request(5.0, 10, 2)]
    assert routing.place(requests, [Config()] * 3, "least_loaded").workers == (0, 1, 2, 1)


def test_the_cache_attracts_and_load_repels():
    config = Config(enable_prefix_caching=True)
    ids = tuple(range(62))
    warm = [Request(0.0, 1000, 2, ids), Request(10.0, 1200, 2, (*ids, *range(100, 113)))]
    for seed in range(5):
        first, second = routing.place(warm, [config] * 2, "kv_aware", seed=seed).workers
        assert second == first
    busy = [warm[0], *(Request(9.9, 800, 5000, tuple(range(1000 * i, 1000 * i + 50))) for i in range(1, 4)), warm[1]]
    trace, workers = routing.place(busy, [config] * 2, "kv_aware", Weights(overlap_score_credit=0.1))
    assert set(workers[1:4]) == {0, 1}


def test_knowing_the_caches_saves_prefill():
    requests = chat(600, 20, groups=40)
    config = Config(num_blocks=3000, enable_prefix_caching=True)
    cached = {
        policy: sum(routing.simulate(requests, [config] * 4, policy).cached_tokens)
        for policy in ("round_robin", "least_loaded", "kv_aware")
    }
    assert cached["kv_aware"] > 1.3 * max(cached["round_robin"], cached["least_loaded"])


def test_the_same_seed_gives_the_same_run():
    requests, configs = chat(200, 20, groups=5), [Config(enable_prefix_caching=True)] * 3
    hot = Weights(temperature=0.5)
    runs = [routing.place(requests, configs, "kv_aware", hot, seed).workers for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    assert len(Counter(runs[0])) == 3


def test_requests_keep_their_order():
    requests = chat(50, 10, groups=3)
    shuffled = random.Random(0).sample(requests, len(requests))
    trace = routing.simulate(shuffled, [Config()] * 2, "least_loaded")
    assert trace.requests == tuple(shuffled)
    assert sorted(trace.last_token) == sorted(routing.simulate(requests, [Config()] * 2, "least_loaded").last_token)


@pytest.mark.parametrize(
    "change, named",
    [
        ({"configs": []}, "configs"),
        ({"configs": [Config(), "engine"]}, r"configs\[1\]"),
        ({"policy": "random"}, "policy"),
        ({"weights": 1.0}, "weights"),
        ({"policy": "kv_aware", "configs": [Config(), Config(block_size=32)]}, "workers behind a KV-aware router"),
        ({"requests": [Request(0.0, 5000, 5)], "configs": [Config(num_blocks=10)]}, "request 0"),
    ],
)
def test_impossible_fleets_are_named(change, named):
    arguments = {"requests": [Request(0.0, 10, 5)], "configs": [Config()]} | change
    with pytest.raises(ValueError, match=f"^{named}"):
        routing.simulate(**arguments)
