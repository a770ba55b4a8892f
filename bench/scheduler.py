"""How fast the engine model is: requests per second of CPU time, its ratio to a plain loop, growth and memory.

The workload is that of the published comparisons: lengths of the Azure 2023 conversation trace (output at most 1,024,
prompt and output at most 4,000 tokens), 6 requests/s as a Poisson process, 256 sequences, 27,000 blocks of 16 tokens.
The trace is read from the folder ENGINELAB_DATA; without it, lengths of about that distribution are drawn.

    python bench/scheduler.py [most]      the longest run has `most` requests, one million unless told
"""

import cProfile
import gc
import os
import pstats
import runpy
import sys
import time
import tracemalloc
from itertools import cycle, islice
from pathlib import Path

from enginelab import workload
from enginelab.scheduler import Config, simulate

ROOT = Path(__file__).parents[1]
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


def requests_of(count, rows):
    arrivals = workload.poisson(6.0, count, seed=0)
    return [workload.Request(at, *row) for at, row in zip(arrivals, islice(cycle(rows), count), strict=True)]


def seconds(function, *arguments, runs=5):
    """The fewest CPU seconds of `runs` runs."""
    times = []
    for _ in range(runs):
        begin = time.process_time()
        function(*arguments)
        times.append(time.process_time() - begin)
    return min(times)


def profile(requests, functions=8):
    """Print where the time goes: share of each function's own time, of all under the profiler."""
    profiler = cProfile.Profile()
    profiler.runcall(simulate, requests, CONFIG)
    stats = pstats.Stats(profiler)
    own = sorted(((row[2], name) for (_, _, name), row in stats.stats.items()), reverse=True)[:functions]
    print("time goes to        " + ", ".join(f"{name} {time / stats.total_tt:.0%}" for time, name in own))


def main(most=1_000_000):
    rows = lengths()
    plain = runpy.run_path(str(ROOT / "tests" / "plain_engine.py"))["PlainEngine"]
    few, requests = requests_of(1_000, rows), requests_of(10_000, rows)
    ours = seconds(simulate, few, CONFIG)
    slow = seconds(lambda: plain(few, CONFIG).run(), runs=1)
    print(f"plain loop          {len(few) / slow:12,.0f} requests/s   ({len(few):,} requests)")
    print(f"engine model        {len(few) / ours:12,.0f} requests/s   {slow / ours:,.0f} times the plain loop")
    for name, config in (("engine model", CONFIG), ("with prefix caching", CACHING)):
        print(f"{name:<20}{10_000 / seconds(simulate, requests, config):12,.0f} requests/s   (10,000 requests)")
    profile(requests)
    count = 100_000
    while count <= most:
        requests = requests_of(count, rows)
        gc.collect()
        tracemalloc.start()
        trace = simulate(requests[: count // 10], CONFIG)
        kept = tracemalloc.get_traced_memory()[0] / len(trace.requests)
        tracemalloc.stop()
        rate = count / seconds(simulate, requests, CONFIG, runs=1)
        print(f"{'engine model':<20}{rate:12,.0f} requests/s   ({count:,} requests; {kept:.0f} bytes kept for each)")
        count *= 10


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
