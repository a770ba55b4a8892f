"""How fast the engine model is: requests per second of CPU time, beside a plain loop over steps, requests and blocks.

Both cores are measured, the default one in plain Python and the compiled one, and must give the same bits. Compiling is
done beforehand and not counted; how long it took stands in the first line.

The load is that of the published comparisons: lengths of the Azure 2023 conversation trace (output at most 1,024,
prompt and output at most 4,000 tokens), 6 requests/s as a Poisson process, 256 sequences, 27,000 blocks of 16 tokens.
The trace is read from the folder ENGINELAB_DATA; without it, lengths of about that distribution are drawn. For shared
prefixes one of 16 system prompts of 1,000 tokens stands before every prompt.

    python bench/scheduler.py             about 20 seconds
    python bench/scheduler.py --large     also one million and ten million requests: eight minutes, 5 GB
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
from concurrent.futures import ProcessPoolExecutor
from itertools import cycle, islice, product
from pathlib import Path

from enginelab import compiled, environments, workload
from enginelab.scheduler import Config, simulate
from enginelab.table import Table

ROOT = Path(__file__).parents[1]
CORES = ("python", "numba")
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
    """Requests/s of all three on each case's first 500 requests or on all; all must come out alike."""
    plain = runpy.run_path(str(ROOT / "tests" / "plain_engine.py"))["PlainEngine"]
    for name, requests, config in cases:
        few = requests[:500]
        slow, oracle = best(plain(few, config).run, runs=1)
        quick, trace = best(simulate, few, config, False, "python")
        assert trace.last_token == tuple(times[-1] for times in oracle.token_times), "the two do not agree"
        times, traces = zip(*(best(simulate, requests, config, False, core) for core in CORES), strict=True)
        assert traces[0] == traces[1], "the two cores do not agree"
        rates = (len(few) / slow, len(few) / quick, *(len(requests) / seconds for seconds in times))
        yield name, *(f"{rate:,.0f}" for rate in rates), f"{slow / quick:,.0f}", f"{times[0] / times[1]:.1f}"


def where_time_goes(requests, config, core, functions=8):
    """Each function's own share of the time under Python's profiler, which makes calls look dearer than they are."""
    profiler = cProfile.Profile()
    profiler.runcall(simulate, requests, config, False, core)
    stats = pstats.Stats(profiler)
    own = sorted(((seconds, calls, where) for where, (_, calls, seconds, *_) in stats.stats.items()), reverse=True)
    for seconds, calls, (file, _, name) in own[:functions]:
        module = Path(file).stem if file.endswith(".py") else "Python"
        if (module, name) == ("router", "serve"):
            name = "serve, all machine code"
        yield f"{module}: {name}", f"{calls / len(requests):.2f}", f"{seconds / stats.total_tt:.0%}"


def growth(count, rows, core):
    """Requests/s of `count` requests, and by how many bytes a request the process is larger for having served it."""
    requests = load(count, rows)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, _ = best(simulate, requests, CONFIG, False, core, runs=1)
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / count
    return f"{count:,}", core, f"{count / seconds:,.0f}", f"{peak:,.0f}"


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
    print(compiled.prepare())
    columns = ("requests/s", "plain loop, 500", "Python, 500", "Python, 10,000", "numba, 10,000")
    ratios = ("Python / loop", "numba / Python")
    print(Table((*columns, *ratios), tuple(against_the_plain_loop(cases))))
    for (name, load_, config), core in product((cases[0], cases[2]), CORES):
        title = f"{name}, {core}: time goes to"
        print()
        print(Table((title, "calls a request", "share"), tuple(where_time_goes(load_, config, core))))
    if asked.vidur:
        theirs, end = vidur(requests)
        times, (trace, _) = zip(*(best(simulate, requests, CONFIG, False, core) for core in CORES), strict=True)
        rates = (f"{len(requests) / seconds:,.0f}" for seconds in (theirs, *times))
        last = f"{max(trace.last_token):,.1f}"
        rows_ = (
            ("requests/s", *rates),
            ("times Vidur", "", *(f"{theirs / seconds:,.0f}" for seconds in times)),
            ("last token at, s", f"{end:,.1f}", last, last),
        )
        print()
        print(Table(("10,000 requests", "Vidur 0.0.26", "Python", "numba"), rows_))
    if asked.large:
        print()
        for count, core in product((1_000_000, 10_000_000), CORES):
            with ProcessPoolExecutor(1) as fresh:  # the most memory a process ever used is not forgotten
                row = fresh.submit(growth, count, rows, core).result()
            print(Table(("requests", "core", "requests/s", "bytes a request, at the peak"), (row,)), flush=True)


if __name__ == "__main__":
    main()
