"""How true the engine model is to hardware: fitted on the first half of a measured run, it predicts the second.

Every run in the folder `vllm-runs` of ENGINELAB_DATA counts: a CSV file of requests as `trace.read_run` reads it, and
beside it a JSON file of the engine's settings, null where they were not recorded. The fit sees the first half of the
requests; the model then serves all of them, and the second half is compared. Times are in milliseconds.
"""

import json
import os
import time
from dataclasses import replace
from pathlib import Path

from enginelab import routing, trace
from enginelab.scheduler import Config, StepTime
from enginelab.table import Table

ROOT = Path(__file__).parents[1]


def config_of(settings):
    """The model's configuration; what the settings do not say keeps its default. vLLM's blocks count a null block."""
    names = ("max_num_seqs", "max_num_batched_tokens", "block_size", "enable_prefix_caching")
    known = {name: settings[name] for name in names if settings.get(name) is not None}
    blocks = settings.get("num_gpu_blocks")
    return Config(num_blocks=blocks and blocks - 1, **known)


def half(run):
    """The second half of the requests."""
    start = len(run.requests) // 2
    return trace.Trace(run.requests[start:], run.first_token[start:], run.last_token[start:], source=run.source)


def rows(file):
    """One row for each metric of a run."""
    run, settings = trace.read_run(file), json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
    config, workers = config_of(settings), settings.get("data_parallel_size") or 1
    begin = time.process_time()
    fitted = StepTime.fit(run.first(len(run.requests) // 2), config, workers)
    seconds = time.process_time() - begin
    measured = half(run)
    predicted = half(routing.simulate(run.requests, [replace(config, step_time=fitted)] * workers))
    print(f"{file.stem}: {fitted}, fitted in {seconds:.1f} s of CPU time")
    for metric in ("ttft", "tpot", "e2e"):
        cells = [file.stem, metric.upper(), f"{trace.mape(measured, predicted, metric):.1%}"]
        for q in (50, 90, 99):
            both = (trace.percentile(getattr(one, metric), q) * 1000 for one in (measured, predicted))
            cells.extend(f"{value:,.1f}" for value in both)
        yield tuple(cells)


def main():
    folder = Path(os.environ.get("ENGINELAB_DATA", ROOT.parent / "shared" / "data"), "vllm-runs")
    files = sorted(folder.glob("*.csv"))
    if not files:
        print("No measured runs to compare with: ENGINELAB_DATA names no folder that holds vllm-runs/*.csv.")
        return
    columns = ("run", "ms", "MAPE", *(name for q in (50, 90, 99) for name in (f"p{q} measured", f"p{q} predicted")))
    print(Table(columns, tuple(row for file in files for row in rows(file))))


if __name__ == "__main__":
    main()
