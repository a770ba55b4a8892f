"""How fast routed fleets are: requests per second of CPU time, beside Dynamo's own offline replay of the same trace.

Four workers with prefix caching behind the KV-aware router. Lengths of the Azure 2023 conversation trace, 24 requests/s
as a Poisson process (6 a worker), after one of 400 system prompts of 512 tokens; 256 sequences, 2,048 tokens a step,
27,000 blocks of 16 tokens a worker. The trace is read from the folder ENGINELAB_DATA; without it, lengths of about that
distribution are drawn. Both cores are measured, plain Python and the compiled one, and must give the same bits;
compiling is not counted. Dynamo replays the very same requests in its own environment, with the step times of its
mocker.

    python bench/routing.py [count]      10,000 requests unless told; `--alone` leaves Dynamo out
"""

import cProfile
import gc
import json
import os
import pstats
import subprocess
import sys
import tempfile
import time
from functools import partial
from itertools import cycle, islice
from pathlib import Path

from enginelab import compiled, environments, routing, workload
from enginelab.scheduler import Config
from enginelab.table import Table

ROOT = Path(__file__).parents[1]
WORKERS, RATE, PREFIX, PROMPTS = 4, 24.0, 512, 400
CONFIG = Config(256, 2048, 27_000, 16, enable_prefix_caching=True)
CORES = ("python", "numba")
POLICIES = {"kv_aware": "kv_router", "round_robin": "round_robin"}  # our names and Dynamo's


def requests_of(count):
    """The workload, `count` requests long."""
    trace = Path(os.environ.get("ENGINELAB_DATA", ROOT.parent / "shared" / "data"), "azure-2023-conv.csv")
    if trace.is_file():
        rows = [(r.prompt_tokens, r.output_tokens) for r in workload.read_azure(trace)]
        rows = [row for row in rows if row[1] <= 1024 and sum(row) <= 4000]
    else:
        print("(no trace found: lengths drawn from distributions like it)")
        rows = list(zip(workload.lognormal(1020, 0.8, 10_000), workload.lognormal(129, 1.0, 10_000, 1), strict=True))
    prompts, outputs = zip(*islice(cycle(rows), count), strict=True)
    requests = workload.build(workload.poisson(RATE, count), prompts, outputs)
    return workload.shared_prefix(requests, PREFIX, PROMPTS, CONFIG.block_size)


def seconds(function, *arguments, runs=5):
    """The fewest CPU seconds of `runs` runs, and the last result."""
    times = []
    for _ in range(runs):
        gc.collect()
        begin = time.process_time()
        result = function(*arguments)
        times.append(time.process_time() - begin)
    return min(times), result


def replayed(requests, policy):
    """CPU seconds of Dynamo's offline replay, its version, and the share of prompt tokens that it found cached."""
    size = CONFIG.block_size
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        for index, request in enumerate(requests):
            rest = [-index - 1] if request.prompt_tokens % size else []  # every block has an id, the last one its own
            ids = [block + len(requests) for block in (*request.block_ids, *rest)]
            row = {"timestamp": 1000 * request.arrival, "input_length": request.prompt_tokens, "hash_ids": ids}
            file.write(json.dumps(row | {"output_length": request.output_tokens}) + "\n")
        file.flush()
        engine = {
            "block_size": size,
            "num_gpu_blocks": CONFIG.num_blocks,
            "max_num_seqs": CONFIG.max_num_seqs,
            "max_num_batched_tokens": CONFIG.max_num_batched_tokens,
            "enable_prefix_caching": True,
        }
        asked = json.dumps({"trace": file.name, "engine": engine, "workers": WORKERS, "policy": policy})
        python = environments.python(ROOT / "labs" / "envs" / "dynamo.txt")
        program = ROOT / "tests" / "engines" / "dynamo_replay.py"
        done = subprocess.run([python, program], input=asked, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["summary"]["completed_requests"] == len(requests)
    return answer["seconds"], answer["dynamo"], answer["summary"]["prefix_cache_reused_ratio"]


def profile(requests, core, functions=8):
    """Print where the time goes: own time of each function under the profiler; all machine code is `router.serve`."""
    profiler = cProfile.Profile()
    profiler.runcall(routing.simulate, requests, [CONFIG] * WORKERS, "kv_aware", core=core)
    stats = pstats.Stats(profiler)
    own = sorted(((row[2], Path(file).stem, name) for (file, _, name), row in stats.stats.items()), reverse=True)
    shares = [f"{module}.{name} {time / stats.total_tt:.0%}" for time, module, name in own[:functions]]
    print(f"{core}: time goes to {'; '.join(shares).replace('~.', '')}")


def main(count=10_000, beside_dynamo=True):
    requests = requests_of(count)
    prompt_tokens = sum(request.prompt_tokens for request in requests)
    print(compiled.prepare())
    rows, columns = [], ["requests/s", "Python", "numba", "times Python", "prompts cached"]
    for policy, theirs in POLICIES.items():
        fleet = [CONFIG] * WORKERS
        runs = [seconds(partial(routing.simulate, requests, fleet, policy, core=core)) for core in CORES]
        (python, trace), (numba, same) = runs
        assert same == trace, "the two cores do not agree"
        share = sum(trace.cached_tokens) / prompt_tokens
        row = [policy, f"{count / python:,.0f}", f"{count / numba:,.0f}", f"{python / numba:.1f}", f"{share:.1%}"]
        if beside_dynamo:
            slow, version, share = min(replayed(requests, theirs) for _ in range(3))
            row += [f"{count / slow:,.0f}", f"{share:.1%}", f"{slow / python:.1f}", f"{slow / numba:.1f}"]
        rows.append(tuple(row))
    if beside_dynamo:
        columns += [f"Dynamo {version}", "prompts cached", "Python, times Dynamo", "numba, times Dynamo"]
    print(Table(tuple(columns), tuple(rows)))
    for core in CORES:
        profile(requests, core)


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if word != "--alone"]
    main(*map(int, given), beside_dynamo="--alone" not in sys.argv)
