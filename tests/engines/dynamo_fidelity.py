"""Random states and loads, what the real Dynamo makes of them, and what the course's router and planner do.

As a program: `python tests/engines/dynamo_fidelity.py [cases]` tries 2,000 of each, or as many as told, and prints a
table. What a full run found is kept for the pages that say how well the models agree.
"""

import json
import random
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import NamedTuple

from enginelab import environments, fidelity
from enginelab.kvrouter import Load, Weights, choose, costs, probabilities
from enginelab.planner import Replicas
from enginelab.scaling import Limits, scale, wanted

FULL = 2000
HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parents[1] / "labs" / "envs"
ROUTER, PLANNER = ENVIRONMENTS / "dynamo.txt", ENVIRONMENTS / "dynamo-planner.txt"
VARIABLES = {  # Dynamo's names for the weights
    "overlap_score_credit": "DYN_ROUTER_KV_OVERLAP_SCORE_CREDIT",
    "overlap_score_credit_decay": "DYN_ROUTER_KV_OVERLAP_SCORE_CREDIT_DECAY",
    "prefill_load_scale": "DYN_ROUTER_PREFILL_LOAD_SCALE",
    "decode_active_request_weight": "DYN_ROUTER_DECODE_ACTIVE_REQUEST_WEIGHT",
    "temperature": "DYN_ROUTER_TEMPERATURE",
}
A_GROUP = 50  # states under the same weights


class State(NamedTuple):
    """A fleet and a request: block ids and left-over tokens of its prompt, and for each worker what it is busy with."""

    weights: Weights
    block_size: int
    blocks: list[int]
    tail: int
    workers: list[dict]

    @property
    def prompt_tokens(self) -> int:
        return len(self.blocks) * self.block_size + self.tail

    def loads(self) -> list[Load]:
        """What the router should make of the state, counted block by block."""
        return [
            Load(
                max((_common(chain, self.blocks) for chain in worker["cached"]), default=0),
                sum(active["prefill_tokens"] for active in worker["active"] if not active["prefilled"]),
                len({*self.blocks, *(block for active in worker["active"] for block in active["blocks"])}),
                len(worker["active"]),
            )
            for worker in self.workers
        ]


def _common(a: list[int], b: list[int]) -> int:
    return next((i for i, pair in enumerate(zip(a, b, strict=False)) if pair[0] != pair[1]), min(len(a), len(b)))


def random_weights(seed: int) -> Weights:
    draw = random.Random(seed)
    if seed % 3 == 0:
        return Weights()
    return Weights(
        overlap_score_credit=draw.choice([0.0, 0.5, 1.0, round(draw.random(), 3)]),
        overlap_score_credit_decay=draw.choice([0.0, 0.0, 1.0, round(draw.uniform(0, 4), 3)]),
        prefill_load_scale=draw.choice([0.0, 1.0, round(draw.uniform(0, 4), 3)]),
        decode_active_request_weight=draw.choice([0.0, 1.0, round(draw.uniform(0, 20), 3)]),
    )


def random_state(seed: int) -> State:
    """Prompts that share prefixes, caches that hold some, requests in every phase; by seed, block ids of its own."""
    draw = random.Random(seed)
    size = draw.choice([16, 16, 32, 64])
    numbers = iter(range(1 + 2000 * (seed % 10_000), 1 << 62))  # content no other state has, so that none is in its way
    prompts = []
    for _ in range(draw.randrange(1, 5)):
        base = draw.choice(prompts)[: draw.randrange(40)] if prompts and draw.random() < 0.7 else []
        prompts.append(base + [next(numbers) for _ in range(draw.randrange(1, 40))])
    workers = []
    for _ in range(draw.choice([2, 3, 4, 4, 8])):
        active = []
        for _ in range(draw.choice([0, 0, 1, 2, 5])):
            blocks = draw.choice(prompts)
            blocks = blocks[: draw.randrange(len(blocks) + 1)] + [next(numbers) for _ in range(draw.randrange(20))]
            tail = draw.randrange(size) if blocks else draw.randrange(1, size)
            tokens = draw.randint(0, len(blocks) * size + tail)
            active.append({"blocks": blocks, "tail": tail, "prefill_tokens": tokens, "prefilled": draw.random() < 0.5})
        cached = [chain[: draw.randrange(1, len(chain) + 1)] for chain in prompts if draw.random() < 0.4]
        workers.append({"cached": cached, "active": active})
    blocks = draw.choice(prompts)
    tail = draw.choice([0, draw.randrange(size)])
    return State(random_weights(seed // A_GROUP), size, blocks, tail, workers)


def ask(lock: Path, program: str, cases: list) -> tuple[str, list]:
    """Dynamo's version, and what `program`, run by that environment's Python, answers to each case."""
    command = [environments.python(lock), HERE / program]
    done = subprocess.run(command, input=json.dumps(cases), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{program} stopped: {done.stderr[-2000:]}")
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["dynamo"], answer["answers"]


def real_choices(states: list[State], again: int = 0) -> tuple[str, list[dict]]:
    """Dynamo's version, and per state the worker that its router takes, what each would cost, and `again` choices."""
    groups = []
    for state in states:
        settings = {VARIABLES[name]: str(getattr(state.weights, name)) for name in VARIABLES}
        if not groups or groups[-1]["settings"] != settings:
            groups.append({"settings": settings, "states": []})
        groups[-1]["states"].append(state._asdict() | {"weights": None, "again": again})
    return ask(ROUTER, "dynamo_select.py", groups)


class Verdict(NamedTuple):
    """How a state compares: whether costs and choice agree, whether the choice was a tie, and what differs."""

    same: bool
    tie: bool
    difference: str


def compare(state: State, real: dict) -> Verdict:
    """Costs must be the same number to the last bit; in a tie Dynamo may take any of the cheapest."""
    ours = costs(state.prompt_tokens, state.loads(), state.block_size, state.weights)
    cheapest = [worker for worker, share in enumerate(probabilities(ours)) if share]
    # One worker by itself has the least active prefill, so with a decay only the chosen one's cost can be asked for.
    alone = state.weights.overlap_score_credit_decay > 0
    same_costs = alone or ours == real["costs"]
    same = same_costs and ours[real["worker"]] == real["cost"] and real["worker"] in cheapest
    if len(cheapest) == 1:
        same = same and choose(ours) == real["worker"]
    return Verdict(same, len(cheapest) > 1, "" if same else f"Dynamo {real}, the course {ours}")


def unlikely(state: State, choices: list[int]) -> str:
    """A worker whose share of the choices is 5 standard errors from what the course gives it, in words, or ""."""
    ours = costs(state.prompt_tokens, state.loads(), state.block_size, state.weights)
    for worker, share in enumerate(probabilities(ours, state.weights.temperature)):
        seen, error = choices.count(worker) / len(choices), (share * (1 - share) / len(choices)) ** 0.5
        if abs(seen - share) > 5 * error + 1e-9:
            return f"worker {worker}: taken in {seen:.3f} of the choices, expected {share:.3f}"
    return ""


def random_case(seed: int) -> dict:
    """A load, what engines keep up, the workers there are, and limits; by seed."""
    draw = random.Random(seed)
    least, gpus = [draw.choice([0, 1, 1, 2, 3]) for _ in range(2)], [draw.choice([1, 1, 2, 4, 8]) for _ in range(2)]
    budget = sum(n * g for n, g in zip(least, gpus, strict=True)) + draw.randrange(40)
    return {
        "rate": round(draw.uniform(0, 120), draw.randrange(4)),
        "engine_rates": [round(draw.uniform(0.5, 12), draw.randrange(1, 4)) for _ in range(2)],
        "current": [draw.randrange(20) for _ in range(2)],
        "least": least,
        "worker_gpus": gpus,
        "most_change": draw.choice([1, 2, 4, 8, 8, 64]),
        "gpus": draw.choice([None, budget, budget]),
    }


def decision(case: dict) -> list[int]:
    """The workers that the course's planner would have next."""
    limits = Limits(*case["least"], case["most_change"], case["gpus"], *case["worker_gpus"])
    target = wanted(case["rate"] * 60.0 / 60.0, *case["engine_rates"], limits)  # Dynamo counts by the minute
    return list(scale(Replicas(*case["current"]), target, limits))


def main(count: int = FULL) -> int:
    states = [random_state(seed) for seed in range(count)]
    router, answers = real_choices(states)
    verdicts = [compare(*pair) for pair in zip(states, answers, strict=True)]
    hot = [state._replace(weights=Weights(temperature=(0.2, 1.0, 5.0)[i % 3])) for i, state in enumerate(states[:60])]
    hot.sort(key=lambda state: state.weights.temperature)
    _, drawn = real_choices(hot, again=400)
    odd = [unlikely(state, answer["again"]) for state, answer in zip(hot, drawn, strict=True)]
    cases = [random_case(seed) for seed in range(count)]
    planning, decisions = ask(PLANNER, "dynamo_plan.py", cases)
    ours = [decision(case) for case in cases]
    same = [a == b for a, b in zip(ours, decisions, strict=True)]
    rows = [
        ("router, all", [verdict.same for verdict in verdicts]),
        ("router, default weights", [v.same for v, s in zip(verdicts, states, strict=True) if s.weights == Weights()]),
        ("router, ties", [verdict.same for verdict in verdicts if verdict.tie]),
        ("router, 400 draws each", [not text for text in odd]),
        ("planner, all", same),
        ("planner, within a budget", [s for s, case in zip(same, cases, strict=True) if case["gpus"] is not None]),
        ("planner, workers change", [s for s, c, d in zip(same, cases, decisions, strict=True) if d != c["current"]]),
    ]
    print(f"enginelab.kvrouter against dynamo._core.SelectionService {router}, costs to the last bit")
    print(f"enginelab.scaling against dynamo.planner {planning}")
    print(f"{'cases':<26}{'tried':>8}{'identical':>11}")
    for name, results in rows:
        print(f"{name:<26}{len(results):>8}{sum(results):>11}")
    first = next((f"state {i}: {v.difference}" for i, v in enumerate(verdicts) if not v.same), None)
    first = first or next((f"draws of state {i}: {text}" for i, text in enumerate(odd) if text), None)
    if first is None and not all(same):
        wrong = same.index(False)
        first = f"load {wrong}: Dynamo {decisions[wrong]}, the course {ours[wrong]}"
    print(f"first difference: {first or 'none'}")
    if count >= FULL:
        routed = sum(verdict.same for verdict in verdicts)
        fidelity.keep("dynamo router", fidelity.Agreement(router, count, routed, date.today()))
        fidelity.keep("dynamo planner", fidelity.Agreement(planning, count, sum(same), date.today()))
    return int(first is not None)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
