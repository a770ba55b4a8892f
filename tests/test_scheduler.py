"""The engine model, against a plain oracle, by its properties, and fed bit by bit."""

import math
import random
from dataclasses import replace

import pytest
from plain_engine import PlainEngine

from enginelab import batching
from enginelab.hardware import H100, LLAMA_3_1_8B
from enginelab.scheduler import Config, Engine, Record, StepTime, schedule, simulate
from enginelab.step_time import PICOSECONDS
from enginelab.workload import Request

SECOND = StepTime(1.0, 0.0, 0.0, 0.0)


def random_case(seed):
    """Requests and a configuration, often short of memory, often with prompts in common."""
    draw = random.Random(seed)
    size = draw.choice([1, 2, 4, 16])
    blocks = draw.choice([None, *(draw.randrange(4, 60) for _ in range(4))])
    chunked = draw.random() < 0.8
    longest = 300 if blocks is None else blocks * size
    prefixes = [tuple(draw.randrange(10**9) for _ in range(300)) for _ in range(3)]
    gap, sharing = draw.choice([0, 0.001, 0.1, 1.0]), draw.choice([0.0, 0.5, 1.0])
    arrival, requests = 0.0, []
    for _ in range(draw.randrange(1, 40)):
        arrival += gap * draw.expovariate(1.0)
        total = draw.randint(1, min(longest, draw.choice([20, 100, 300])))
        output = draw.choice([1, draw.randint(1, total)])
        prompt, ids = total - output + 1, None
        if draw.random() < 0.2:
            prompt = max(1, prompt // size * size)
        if draw.random() < sharing:
            shared = draw.randint(0, prompt // size)
            ids = draw.choice(prefixes)[:shared]
            ids += tuple(draw.randrange(10**9) for _ in range(draw.choice([prompt // size - shared, 0])))
            if draw.random() < 0.3 and requests and requests[-1].block_ids is not None:
                prompt, ids = requests[-1].prompt_tokens, requests[-1].block_ids
                output = min(output, longest - prompt + 1)
        requests.append(Request(arrival, prompt, output, ids))
    budget = draw.choice([draw.randint(1, 20), draw.randint(20, 200), 2048])
    if not chunked:
        budget = max(budget, *(r.prompt_tokens + r.output_tokens for r in requests))
    choices = ([0.01, 0.001], [0, 1e-4], [0, 1e-4], [0, 1e-7, 1e-5], [0, 0, 1e-3], [0, 0, 5e-3])
    step_time = StepTime(*map(draw.choice, choices))
    return requests, Config(draw.choice([1, 4, 256]), budget, blocks, size, draw.random() < 0.6, chunked, step_time)


@pytest.mark.parametrize("part", range(10))
def test_every_step_and_every_time_equals_the_plain_oracle(part):
    preempted = hits = 0
    for seed in range(part * 150, part * 150 + 150):
        requests, config = random_case(seed)
        plain = PlainEngine(requests, config).run()
        steps, trace = schedule(requests, config), simulate(requests, config, token_times=True)
        assert steps == plain.steps, seed
        assert [list(s.tokens) for s in steps] == [list(s.tokens) for s in plain.steps], seed
        assert trace.token_times == tuple(map(tuple, plain.token_times)), seed
        assert trace.scheduled == tuple(t / PICOSECONDS for t in plain.scheduled), seed
        assert trace.cached_tokens == tuple(plain.cached), seed
        assert simulate(requests, config).last_token == trace.last_token, seed
        preempted += any(s.preempted for s in steps)
        hits += any(plain.cached)
    assert preempted > 15 and hits > 20, "the random configurations are too easy"


def test_properties_of_the_trace():
    for seed in range(2000, 2300):
        requests, config = random_case(seed)
        record = Record(len(requests), steps=True, tokens=True)
        engine = Engine(config, record)
        for index, request in enumerate(requests):
            engine.submit(request, index)
        engine.advance()
        trace = record.to_trace(requests)
        assert [len(times) for times in trace.token_times] == [r.output_tokens for r in requests]
        assert all(list(times) == sorted(times) for times in trace.token_times)
        assert all(at >= r.arrival for at, r in zip(trace.scheduled, requests, strict=True))
        assert all(a < b for a, b in zip(trace.scheduled, trace.first_token, strict=True))
        assert trace.first_token == tuple(times[0] for times in trace.token_times)
        assert trace.last_token == tuple(times[-1] for times in trace.token_times)
        assert all(a.end <= b.start for a, b in zip(record.steps, record.steps[1:], strict=False))
        assert all(0 < sum(s.tokens.values()) <= config.max_num_batched_tokens for s in record.steps)
        assert all(len(s.tokens) <= config.max_num_seqs for s in record.steps)
        assert engine.active_blocks == engine.running == engine.waiting == engine.prefill_tokens == 0, "a leak"


def test_feeding_the_engine_bit_by_bit_changes_nothing():
    for seed in range(3000, 3200):
        requests, config = random_case(seed)
        draw, record = random.Random(seed), Record(len(requests))
        engine = Engine(config, record)
        for index, request in enumerate(requests):
            for part in sorted(draw.uniform(0, request.arrival) for _ in range(2)):
                engine.advance(part)
            engine.advance(request.arrival)
            assert engine.now >= request.arrival or not engine.running + engine.waiting
            engine.submit(request, index)
        until = requests[-1].arrival
        while any(map(math.isnan, record.last_token)):
            until += draw.choice([0.001, 0.1, 10.0])
            engine.advance(until)
        assert record.to_trace(requests) == simulate(requests, config), seed


def test_the_worked_example_of_the_lesson_takes_eight_steps():
    lengths = [2, 8, 3, 5, 3, 4]
    steps = schedule([Request(0.0, 8, n) for n in lengths], Config(max_num_seqs=4, max_num_batched_tokens=8192))
    slots = batching.continuous(lengths, slots=4)
    assert len(steps) == slots.steps == 8
    for index, run in enumerate(slots.runs):
        ran = [number for number, step in enumerate(steps, 1) if index in step.tokens]
        assert ran == list(range(run.first_step, run.last_step + 1))


def test_a_prompt_is_cut_to_the_budget_and_decodes_go_first():
    requests = [Request(0.0, 5, 3), Request(0.0, 20, 1)]
    steps = schedule(requests, Config(max_num_batched_tokens=10, step_time=SECOND))
    assert [s.tokens for s in steps] == [{0: 5, 1: 5}, {0: 1, 1: 9}, {0: 1, 1: 6}]


def test_without_chunked_prefill_a_prompt_waits_for_room_in_the_budget():
    requests = [Request(0.0, 5, 3), Request(0.0, 10, 1)]
    steps = schedule(requests, Config(max_num_batched_tokens=10, enable_chunked_prefill=False))
    assert [s.tokens for s in steps] == [{0: 5}, {0: 1}, {0: 1}, {1: 10}]


def test_the_last_admitted_is_preempted_and_computes_its_output_again():
    requests = [Request(0.0, 4, 5), Request(0.0, 4, 5)]
    config = Config(num_blocks=3, block_size=4, step_time=SECOND)
    steps = schedule(requests, config)
    assert [s.tokens for s in steps] == [{0: 4, 1: 4}, *[{0: 1}] * 4, {1: 5}, *[{1: 1}] * 3]
    assert [s.preempted for s in steps if s.preempted] == [(1,)]


def test_equal_prefixes_are_computed_once():
    requests = [Request(0.0, 33, 1, (1, 2)), Request(0.0, 33, 1, (1, 3)), Request(5.0, 32, 1, (1, 2))]
    config = Config(enable_prefix_caching=True, step_time=SECOND)
    assert simulate(requests, config).cached_tokens == (0, 16, 16), "a whole prompt is never taken from the cache"
    assert simulate(requests, replace(config, enable_prefix_caching=False)).cached_tokens == (0, 0, 0)


def test_time_is_affine_in_what_the_step_does():
    step_time = StepTime(1.0, 0.5, 0.25, 0.125)
    steps = schedule([Request(0.0, 4, 3), Request(0.0, 2, 3)], Config(step_time=step_time))
    assert [s.end - s.start for s in steps] == [1 + 0.5 * 6, 1 + 0.25 * 2 + 0.125 * 6, 1 + 0.25 * 2 + 0.125 * 8]


def test_a_roofline_engine_is_never_faster_than_its_weights_can_be_read():
    config = Config(step_time=StepTime.roofline(LLAMA_3_1_8B, H100))
    trace = simulate([Request(0.0, 1000, 100) for _ in range(50)], config)
    read = LLAMA_3_1_8B.weight_bytes / H100.bandwidth
    assert min(trace.tpot) > read and min(trace.tpot) < 1.5 * read
    assert min(trace.ttft) >= 2 * LLAMA_3_1_8B.active_parameters * 2048 / H100.flops - 1e-9


def test_another_engine_goes_on_where_one_stopped():
    """Disaggregation: the decode engine gets the prompt's KV and one token, and computes no prompt."""
    request = Request(2.0, 1000, 5)
    record = Record(1, steps=True)
    engine = Engine(Config(num_blocks=100, step_time=SECOND), record)
    engine.submit(request, 0, generated=1, transferred=1000)
    engine.advance(3.5)
    assert (engine.running, engine.active_blocks, engine.prefill_tokens) == (1, -(-1002 // 16), 0)
    engine.advance()
    assert [s.tokens for s in record.steps] == [{0: 1}] * 4
    assert math.isnan(record.first_token[0]) and record.last_token[0] == 6.0 and engine.active_blocks == 0


def test_the_state_that_a_router_sees():
    engine = Engine(Config(max_num_seqs=1, enable_prefix_caching=True, step_time=SECOND), Record(3))
    engine.submit(Request(0.0, 64, 10, (1, 2, 3, 4)), 0)
    engine.submit(Request(0.0, 40, 10, (1, 9)), 1)
    engine.advance(2.0)
    assert (engine.now, engine.running, engine.waiting, engine.prefill_tokens) == (2.0, 1, 1, 40)
    assert engine.active_blocks == -(-65 // 16)
    assert engine.overlap(Request(2.0, 64, 1, (1, 2, 3, 4))) == 3, "one token is always computed"
    assert engine.overlap(Request(2.0, 80, 1, (1, 2, 3, 4, 5))) == 4
    assert engine.overlap(Request(2.0, 80, 1, (2, 3))) == engine.overlap(Request(2.0, 80, 1)) == 0


def test_order_of_requests_is_kept_and_nothing_is_nothing():
    requests = [Request(5.0, 10, 2), Request(0.0, 10, 2), Request(5.0, 10, 2)]
    trace = simulate(requests, Config(step_time=SECOND))
    assert trace.requests == tuple(requests) and trace.first_token == (6.0, 1.0, 6.0)
    assert simulate([], Config()).requests == () and schedule([], Config()) == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"num_blocks": 0}, "num_blocks .* not 0"),
        ({"max_num_seqs": 0}, "max_num_seqs .* not 0"),
        ({"max_num_batched_tokens": -1}, "max_num_batched_tokens .* not -1"),
        ({"block_size": 1.5}, r"block_size .* not 1\.5"),
        ({"enable_prefix_caching": "no"}, "enable_prefix_caching .* not 'no'"),
        ({"step_time": 0.01}, r"step_time .* not 0\.01"),
    ],
)
def test_an_impossible_setting_is_named(settings, words):
    with pytest.raises(ValueError, match=words):
        Config(**settings)


def test_a_request_that_can_never_be_served_is_named():
    with pytest.raises(ValueError, match="request 1 fills 65 tokens .* num_blocks = 4"):
        simulate([Request(0.0, 60, 5), Request(0.0, 60, 6)], Config(num_blocks=4))
    with pytest.raises(ValueError, match="request 0 has a prompt of 11 tokens"):
        simulate([Request(0.0, 11, 1)], Config(max_num_batched_tokens=10, enable_chunked_prefill=False))
    tight = Config(256, 8, num_blocks=4, block_size=4, enable_chunked_prefill=False, step_time=SECOND)
    with pytest.raises(ValueError, match="request 1 has 9 tokens to compute again after a preemption"):
        simulate([Request(0.0, 4, 12), Request(1.0, 7, 5)], tight)


def test_an_engine_refuses_what_it_cannot_continue():
    engine = Engine(Config(), Record(2))
    engine.submit(Request(1.0, 10, 2), 0)
    with pytest.raises(ValueError, match="request 1 arrives at 0.5 s, before"):
        engine.submit(Request(0.5, 10, 2), 1)
    with pytest.raises(ValueError, match="generated must lie below the 2"):
        engine.submit(Request(1.0, 10, 2), 1, generated=2)
    with pytest.raises(ValueError, match="transferred must leave"):
        engine.submit(Request(1.0, 10, 2), 1, generated=1, transferred=11)
