"""Random loads, what the real vLLM scheduler makes of them, and what `scheduler.schedule` makes of them.

As a program: `python tests/engines/vllm_fidelity.py [loads]` tries 2,000 loads, or as many as told, and prints a table.
What a full run found is kept for the pages that say how well the model agrees.
"""

import json
import random
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import NamedTuple

from enginelab import environments, fidelity
from enginelab.scheduler import Config, StepTime, schedule
from enginelab.workload import Request

FULL = 2000
LOCK = Path(__file__).parents[2] / "labs" / "envs" / "vllm-cpu.txt"
DRIVER = Path(__file__).with_name("vllm_scheduler_driver.py")
SETTINGS = ("max_num_seqs", "max_num_batched_tokens", "num_blocks", "block_size")
SWITCHES = ("enable_prefix_caching", "enable_chunked_prefill")
ONE_SECOND_A_STEP = StepTime(1.0, 0.0, 0.0, 0.0)  # so that arrivals are counted in steps


class Load(NamedTuple):
    config: Config
    requests: list[Request]

    def to_json(self) -> dict:
        rows = [[int(r.arrival), r.prompt_tokens, r.output_tokens, r.block_ids] for r in self.requests]
        return {"config": {name: getattr(self.config, name) for name in SETTINGS + SWITCHES}, "requests": rows}


def random_load(seed: int) -> Load:
    """Short and long prompts, budgets that cut them, caches that are too small, prefixes in common; by seed."""
    draw = random.Random(seed)
    size = draw.choice([1, 2, 4, 16])
    blocks = draw.choice([draw.randrange(3, 12), draw.randrange(12, 40), draw.randrange(40, 200), 4000])
    chunked = draw.random() < 0.8
    longest = min(blocks * size, draw.choice([20, 200, 200, 2000]))
    prefixes = [tuple(draw.randrange(10**6) for _ in range(longest // size)) for _ in range(3)]
    sharing, spread = draw.choice([0.0, 0.5, 1.0]), draw.choice([0, 1, 10, 100])
    arrival, requests = 0, []
    for _ in range(draw.randrange(1, 30)):
        arrival += draw.randrange(spread + 1)
        total = draw.randint(1, longest)
        output = draw.randint(1, min(total, draw.choice([1, 10, 100, 400])))
        prompt = total - output + 1
        if draw.random() < 0.2:
            prompt = max(1, prompt // size * size)
        ids = None
        if draw.random() < sharing:
            if requests and requests[-1].block_ids is not None and draw.random() < 0.3:
                prompt = requests[-1].prompt_tokens
                output = max(1, min(output, longest + 1 - prompt))
                ids = requests[-1].block_ids
            else:
                shared = draw.randint(0, prompt // size)
                ids = draw.choice(prefixes)[:shared]
                ids += tuple(draw.randrange(10**6, 10**9) for _ in range(prompt // size - shared))
        requests.append(Request(arrival, prompt, output, ids))
    needed = 1 if chunked else max(r.prompt_tokens + r.output_tokens for r in requests)
    budget = max(needed, draw.choice([draw.randint(1, 20), draw.randint(20, 200), 2048]))
    seats = draw.choice([1, 3, 8, 256])
    config = Config(seats, budget, blocks, size, draw.random() < 0.6, chunked, ONE_SECOND_A_STEP)
    return Load(config, requests)


def real(python: Path, loads: list[Load]) -> tuple[str, list[list[dict]]]:
    """vLLM's version, and the schedules that its own scheduler makes, one list of steps a load."""
    text = json.dumps([load.to_json() for load in loads])
    done = subprocess.run([python, DRIVER], input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the vLLM scheduler stopped: {done.stderr[-2000:]}")
    answer = json.loads(done.stdout)
    return answer["vllm"], answer["runs"]


def modelled(load: Load) -> list[dict]:
    """The schedule of `scheduler.schedule`, in the driver's form."""
    return [
        {"tokens": [list(pair) for pair in step.tokens.items()], "preempted": sorted(step.preempted)}
        for step in schedule(load.requests, load.config)
    ]


def first_difference(real: list[dict], model: list[dict]) -> str | None:
    """The first step that differs, in words; None if all are the same, in the same order of requests."""
    for number, (theirs, ours) in enumerate(zip(real, model, strict=False)):
        if theirs != ours:
            return f"step {number}: vLLM {theirs}, model {ours}"
    if len(real) != len(model):
        return f"vLLM takes {len(real)} steps, the model {len(model)}"
    return None


def main(count: int = FULL) -> int:
    loads = [random_load(seed) for seed in range(count)]
    version, runs = real(environments.python(LOCK), loads)
    models = list(map(modelled, loads))
    differences = [first_difference(*pair) for pair in zip(runs, models, strict=True)]
    rows = [("all", [True] * count), ("prefix caching", [load.config.enable_prefix_caching for load in loads])]
    rows.append(("preemption", [any(step["preempted"] for step in run) for run in runs]))
    rows.append(("no chunked prefill", [not load.config.enable_chunked_prefill for load in loads]))
    print(f"enginelab.scheduler against the scheduler of vLLM {version}, {sum(map(len, runs)):,} steps")
    print(f"{'loads':<20}{'tried':>8}{'identical':>11}")
    for name, chosen in rows:
        same = sum(mine and difference is None for mine, difference in zip(chosen, differences, strict=True))
        print(f"{name:<20}{sum(chosen):>8}{same:>11}")
    first = next(((seed, text) for seed, text in enumerate(differences) if text), None)
    print("first difference: " + ("none" if first is None else f"load {first[0]}, {first[1]}"))
    if count >= FULL:
        agreement = fidelity.Agreement(version, count, differences.count(None), date.today())
        fidelity.keep("vllm", agreement)
    return int(first is not None)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
