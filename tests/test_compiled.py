"""The compiled core against the plain models, to the last bit; without numba, and out of its depth, it stands aside."""

import os
import random
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import count, islice
from pathlib import Path

import numba
import numpy
import pytest

from enginelab import compiled, routing, scheduler, workload
from enginelab.compiled import columns, memory
from enginelab.kvrouter import Weights
from enginelab.scheduler import Config, StepTime
from enginelab.step_time import clock
from enginelab.workload import Request

ROOT = Path(__file__).parents[1]
POLICIES = ("round_robin", "least_loaded", "kv_aware")
WEIGHTS = (
    Weights(),
    Weights(overlap_score_credit_decay=0.7, decode_active_request_weight=0.3),
    Weights(prefill_load_scale=2, overlap_score_credit=3.0),
    Weights(0, 0, 0),
)


def load(pick):
    """Requests that share prefixes, crowded or sparse, and an engine with little memory or much; some impossible."""
    fresh, size = count(pick.choice([0, -1000, 1 << 40])), pick.choice([1, 3, 4, 16])
    prefixes = [tuple(islice(fresh, 30)) for _ in range(3)]
    at, gap, requests = pick.choice([0.0, 0.0, 20_000.0]), pick.choice([0.0, 0.05, 0.3, 2.0]), []
    for _ in range(pick.randrange(1, 40)):
        at += pick.choice([0.0, pick.random() * gap])
        prompt, ids = pick.randrange(1, 40) * size - pick.choice([0, pick.randrange(size)]), None
        if pick.random() < 0.8:
            base = pick.choice(prefixes)[: pick.randrange(31)]
            ids = (base + tuple(islice(fresh, 40)))[: pick.choice([prompt // size, 5])]
        if requests and pick.random() < 0.3:  # the same again: its last block is computed again, and kept as a copy
            prompt, ids = requests[-1].prompt_tokens, requests[-1].block_ids
        requests.append(Request(at, prompt, pick.choice([1, pick.randrange(1, 90)]), ids))
    if pick.random() < 0.3:
        pick.shuffle(requests)
    longest, chunked = max(request.prompt_tokens for request in requests), pick.random() < 0.75
    most = max(-(-(r.prompt_tokens + r.output_tokens) // size) for r in requests)
    return requests, Config(
        max_num_seqs=pick.choice([1, 4, 256]),
        max_num_batched_tokens=pick.choice([16, 64, 2048] if chunked else [64, longest, longest + 9]),
        num_blocks=pick.choice([most, most + 5, most + 20, 2 * most, 10 * most, None, most // 2 + 1]),
        block_size=size,
        enable_prefix_caching=pick.random() < 0.7,
        enable_chunked_prefill=chunked,
        step_time=pick.choice(
            [StepTime(), StepTime(compute_per_token=1e-3), StepTime(1e-9, 1e-4, 0, 1e-5, prefilling=0.07)]
        ),
    )


def outcome(function, *arguments, **named):
    """Every column of a run, or the sentence with which it ended."""
    try:
        result = function(*arguments, **named)
    except ValueError as error:
        return str(error)
    trace, workers = result if isinstance(result, routing.Placement) else (result, ())
    return trace.first_token, trace.last_token, trace.scheduled, trace.cached_tokens, workers


def test_one_engine_does_the_same_on_random_loads():
    ends = []
    for seed in range(700):
        requests, config = load(random.Random(seed))
        plain = outcome(scheduler.simulate, requests, config, core="python")
        assert outcome(scheduler.simulate, requests, config, core="numba") == plain, f"seed {seed}"
        ends.append(plain)
    errors = [end for end in ends if isinstance(end, str)]
    for words in ("more than num_blocks", "must fit into one step", "after a preemption"):
        assert sum(words in error for error in errors) >= 2, words
    assert len(errors) < 300


def test_fleets_do_the_same_on_random_loads():
    for seed in range(700):
        pick = random.Random(-seed - 1)
        requests, config = load(pick)
        configs = [replace(config, max_num_seqs=pick.choice([2, 256])) for _ in range(pick.randrange(1, 6))]
        policy, weights = pick.choice(POLICIES), pick.choice(WEIGHTS)
        if policy != "kv_aware":
            configs[0] = replace(configs[0], block_size=2, enable_prefix_caching=not config.enable_prefix_caching)
        plain = outcome(routing.place, requests, configs, policy, weights, seed, core="python")
        assert outcome(routing.place, requests, configs, policy, weights, seed, core="numba") == plain, f"seed {seed}"


def crowd(number, rate=40.0, seed=0):
    """Requests that one engine of 3,000 blocks can barely serve, with 20 system prompts."""
    prompts, outputs = (workload.lognormal(median, 1.0, number, seed) for median in (200, 100))
    requests = workload.build(workload.poisson(rate, number, seed), prompts, outputs)
    return workload.shared_prefix(requests, 500, 20, seed=seed)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_long_crowded_run_is_the_same(policy):
    requests, configs = crowd(4000), [Config(num_blocks=3000, enable_prefix_caching=True)] * 3
    plain, fast = (routing.place(requests, configs, policy, seed=3, core=core) for core in ("python", "numba"))
    assert fast == plain and max(plain.trace.ttft) > 1, "nobody waited"


def test_a_quiet_run_is_the_same_where_decoding_evicts_what_the_router_looks_for():
    requests, configs = crowd(4000, rate=1.0), [Config(num_blocks=700, enable_prefix_caching=True)] * 3
    plain, fast = (routing.place(requests, configs, "kv_aware", core=core) for core in ("python", "numba"))
    assert fast == plain and max(plain.trace.ttft) < 1, "somebody waited"


def test_more_room_is_made_for_prompts_in_many_chunks(monkeypatch):
    rooms, real = [], memory.fresh
    monkeypatch.setattr(memory, "fresh", lambda *given: rooms.append(given[-1]) or real(*given))
    requests = [Request(0.0, 5000, 3, tuple(range(i, i + 400))) for i in (0, 1000, 2000)]
    config = Config(max_num_seqs=2, max_num_batched_tokens=16, block_size=4, enable_prefix_caching=True)
    plain, fast = (scheduler.simulate(requests, config, core=core) for core in ("python", "numba"))
    assert fast == plain and len(rooms) > 1


def test_the_clock_rounds_as_pythons_whole_numbers_do():
    inner = memory.seconds
    seconds = numba.njit(lambda ticks: inner(ticks))
    draw = random.Random(0)
    for _ in range(20_000):
        ticks = draw.getrandbits(draw.randrange(1, 63))
        assert seconds(ticks) == ticks / 10**12, ticks
    arrivals = [draw.random() * 10.0 ** draw.randrange(-13, 7) for _ in range(20_000)]
    assert list(columns._clock(numpy.array(arrivals))) == list(map(clock, arrivals))


def one_after_the_other(step, outputs):
    return [Request(0.0, 10, outputs)] * 6, Config(max_num_seqs=1, step_time=StepTime(step))


UNSUITED = {
    "53 days": ([Request(5e6, 10, 2)], Config()),
    "beyond 53 days": one_after_the_other(500.0, 2000),
    "steps are too long": one_after_the_other(1e6, 1000),
    "arrivals are not floats": ([Request(Fraction(1, 3), 10, 2)], Config()),
    "whole numbers of 64 bits": ([Request(0.0, 40, 2, (1 << 70, 2))], Config(enable_prefix_caching=True)),
    "tokens are too many": ([Request(0.0, 1 << 40, 2)], Config(max_num_batched_tokens=1 << 41)),
    "seats or its blocks are too large": ([Request(0.0, 10, 2)], Config(block_size=1 << 21)),
}


@pytest.mark.parametrize("words", UNSUITED)
def test_what_does_not_suit_the_compiled_core_is_left_to_python(words, monkeypatch):
    requests, config = UNSUITED[words]
    with pytest.raises(ValueError, match=f"core 'numba' cannot serve this load, and 'python' can: .*{words}"):
        scheduler.simulate(requests, config, core="numba")
    monkeypatch.setattr(compiled, "WORTH_IT", 0)
    assert scheduler.simulate(requests, config) == scheduler.simulate(requests, config, core="python")


def test_a_temperature_is_left_to_python(monkeypatch):
    hot, configs = Weights(temperature=0.5), [Config(enable_prefix_caching=True)] * 3
    with pytest.raises(ValueError, match="its router has a temperature above 0"):
        routing.place(crowd(50), configs, "kv_aware", hot, core="numba")
    monkeypatch.setattr(compiled, "WORTH_IT", 0)
    plain = routing.place(crowd(50), configs, "kv_aware", hot, core="python")
    assert routing.place(crowd(50), configs, "kv_aware", hot) == plain


def test_the_compiled_core_is_taken_for_large_loads_where_it_is_installed(monkeypatch):
    asked, real = [], columns.serve
    monkeypatch.setattr(columns, "serve", lambda requests, *rest: asked.append(len(requests)) or real(requests, *rest))
    many = [Request(0.1 * i, 10, 2) for i in range(compiled.WORTH_IT)]
    fast = scheduler.simulate(many, Config())
    scheduler.simulate(many[1:], Config())
    scheduler.simulate(many, Config(), core="python")
    scheduler.simulate(many, Config(), token_times=True)
    routing.simulate(many, [Config()])
    assert asked == [len(many)] * 2
    monkeypatch.delattr(compiled, "columns")
    monkeypatch.setitem(sys.modules, "enginelab.compiled.columns", None)  # importing it fails
    assert scheduler.simulate(many, Config()) == fast and len(asked) == 2
    with pytest.raises(ValueError, match="needs a package numba that works here"):
        scheduler.simulate(many, Config(), core="numba")


def test_what_it_cannot_do_is_said():
    with pytest.raises(ValueError, match="core must be 'auto', 'python' or 'numba', not 'fast'"):
        scheduler.simulate([], Config(), core="fast")
    with pytest.raises(ValueError, match="keeps no token_times"):
        scheduler.simulate([], Config(), token_times=True, core="numba")
    assert scheduler.simulate([], Config(), core="numba").requests == ()


def test_machine_code_is_kept_outside_the_checkout(tmp_path):
    """With the cache folder where a variable says, and with one that cannot be written."""
    program = (
        "import numba\n"
        "from enginelab.compiled import router\n"
        "assert not numba.config.CACHE_DIR, 'other functions would be kept there too'\n"
        "print(router.serve.stats.cache_path)"
    )
    (tmp_path / "a file").touch()
    for name, expected in (("folder", str(tmp_path / "folder")), ("a file", "None")):
        environment = os.environ | {"ENGINELAB_CACHE": str(tmp_path / name), "PYTHONPATH": str(ROOT / "lib")}
        environment.pop("NUMBA_CACHE_DIR", None)
        command = [sys.executable, "-c", program]
        run = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        assert run.stdout.startswith(expected), run.stdout
    assert not list((ROOT / "lib").rglob("*.nb[ci]"))
