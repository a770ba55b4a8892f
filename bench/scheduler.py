"""How fast the engine model is: requests per second of CPU time, beside a plain loop over steps, requests and blocks.

The load is that of the published comparisons: lengths of the Azure 2023 conversation trace (output at most 1,024,
prompt and output at most 4,000 tokens), 6 requests/s as a Poisson process, 256 sequences, 27,000 blocks of 16 tokens.
The trace is read from the folder ENGINELAB_DATA; without it, lengths of about that distribution are drawn. For shared
prefixes one of 16 system prompts of 1,000 tokens stands before every prompt.

    python bench/scheduler.py             about 15 seconds
    python bench/scheduler.py --large     also one million and ten million requests: five minutes, 5 GB
    python bench/scheduler.py --vidur     also the same load by Vidur, installed into the cache folder at first
"""

import argparse
import cProfile
import gc
import json
import os
import pstats
import resource
import runpy
import subprocess
import time
from itertools import cycle, islice
from pathlib import Path

from enginelab import environments, workload
from enginelab.scheduler import Config, simulate
from enginelab.table import Table

ROOT = Path(__file__).parents[1]
PEERS = Path(__file__).parent / "peers"
CONFIG = Config(max_num_seqs=256, max_num_batched_tokens=2048, num_blocks=27_000, block_size=16)
CACHING = Config(256, 2048, 27_000, 16, enable_prefix_caching=True)


def lengths():
    """(prompt, output) of the trace's requests, cut as the comparison cuts them."""
    trace = Path(os.environ.get("ENGINELAB_DATA", ROOT.parent / "shared" / "data"), "azure-2023-conv.csv")
    if trace.is_file():
        rows = [(r.prompt_tokens, r.output_tokens) for r in workload.read_azure(trace)[:10_000]]
    else:
        print("(no trace found: lengths drawn from distributions like it)")
        rows = list(zip(workload.lognormal(1020, 0.8, 10_000), workload.lognormal(129, 1.0, 10_000, 1), strict=True))
    return [(min(prompt, 4000 - min(output, 1024)), min(output, 1024)) for prompt, output in rows]


def load(count, rows):
    """The first `count` requests; the trace's lengths come round again."""
    arrivals = workload.poisson(6.0, count, seed=0)
    return [workload.Request(at, *row) for at, row in zip(arrivals, islice(cycle(rows), count), strict=True)]


def best(function, *arguments, runs=5):
    """The fewest CPU seconds of `runs` runs, and the result."""
    times = []
    for _ in range(runs):
        begin = time.process_time()
        result = function(*arguments)
        times.append(time.process_time() - begin)
    return min(times), result


def against_the_plain_loop(cases):
    """Requests/s of both on each case's first 500 requests, which must come out alike, and of ours on all."""
    plain = runpy.run_path(str(ROOT / "tests" / "plain_engine.py"))["PlainEngine"]
    for name, requests, config in cases:
        few = requests[:500]
        slow, oracle = best(plain(few, config).run, runs=1)
        quick, trace = best(simulate, few, config)
        assert trace.last_token == tuple(times[-1] for times in oracle.token_times), "the two do not agree"
        all_of_them, _ = best(simulate, requests, config)
        rates = (len(few) / slow, len(few) / quick, len(requests) / all_of_them)
        yield name, *(f"{rate:,.0f}" for rate in rates), f"{slow / quick:,.0f}"


def where_time_goes(requests, config, functions=10):
    """Each function's own share of the time under Python's profiler, which makes calls look dearer than they are."""
    profiler = cProfile.Profile()
    profiler.runcall(simulate, requests, config)
    stats = pstats.Stats(profiler)
    own = sorted(((seconds, calls, where) for where, (_, calls, seconds, *_) in stats.stats.items()), reverse=True)
    for seconds, calls, (file, _, name) in own[:functions]:
        module = Path(file).stem if file.endswith(".py") else "Python"
        yield f"{module}: {name}", f"{calls / len(requests):.2f}", f"{seconds / stats.total_tt:.0%}"


def growth(rows, counts=(1_000_000, 10_000_000)):
    """Requests/s at each count, and by how many bytes a request the process is larger for having served it."""
    for count in counts:
        requests = load(count, rows)
        gc.collect()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds, trace = best(simulate, requests, CONFIG, runs=1)
        peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / count
        yield f"{count:,}", f"{count / seconds:,.0f}", f"{peak:,.0f}"
        del requests, trace


def vidur(requests):
    """CPU seconds that Vidur takes for the requests, and when the last of them ends on its clock."""
    python = environments.make(PEERS / "vidur.txt", no_deps=False) / "bin" / "python"
    step = CONFIG.step_time
    given = {
        "requests": [(r.arrival, r.prompt_tokens, r.output_tokens) for r in requests],
        "step_time": [step.fixed, step.per_prefill_token, step.per_sequence, step.per_kv_token],
        **{name: getattr(CONFIG, name) for name in ("max_num_seqs", "max_num_batched_tokens", "num_blocks")},
        "block_size": CONFIG.block_size,
    }
    run = subprocess.run(
        [python, PEERS / "vidur_load.py"], input=json.dumps(given), capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise SystemExit(f"Vidur did not serve the load: {run.stderr.strip().splitlines()[-1]}")
    answer = json.loads(run.stdout.splitlines()[-1])
    return answer["seconds"], answer["end"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="go on to ten million requests")
    parser.add_argument("--vidur", action="store_true", help="serve the same load with Vidur 0.0.26")
    asked = parser.parse_args()
    rows = lengths()
    requests = load(10_000, rows)
    shared = workload.shared_prefix(requests, 1000, groups=16)
    cases = (
        ("no prefix cache", requests, CONFIG),
        ("nothing to share", requests, CACHING),
        ("shared prefixes", shared, CACHING),
    )
    columns = ("requests/s", "plain loop, 500", "ours, 500", "ours, 10,000", "times the plain loop")
    print(Table(columns, tuple(against_the_plain_loop(cases))))
    for name, load_, config in (cases[0], cases[2]):
        print()
        print(Table((f"{name}: time goes to", "calls a request", "share"), tuple(where_time_goes(load_, config))))
    if asked.vidur:
        theirs, end = vidur(requests)
        ours, trace = best(simulate, requests, CONFIG)
        rates = (f"{len(requests) / seconds:,.0f}" for seconds in (theirs, ours))
        ends = (f"{seconds:,.1f}" for seconds in (end, max(trace.last_token)))
        print()
        print(
            Table(
                ("10,000 requests", "Vidur 0.0.26", "ours", "times Vidur"),
                (("requests/s", *rates, f"{theirs / ours:,.0f}"), ("last token at, s", *ends, "")),
            )
        )
    if asked.large:
        print()
        for row in growth(rows):
            print(Table(("requests", "requests/s", "bytes a request, at the peak"), (row,)), flush=True)


if __name__ == "__main__":
    main()
