"""Run by the Python of Dynamo's environment: loads and limits on stdin, what Dynamo's planner decides on stdout.

The planner is the real one; the engine model that it asks is two numbers, the requests/s that a worker keeps up.
"""

import json
import os
import sys
from importlib.metadata import version
from types import SimpleNamespace

os.environ["DYN_LOG"] = "off"

from dynamo.planner.config.planner_config import PlannerConfig
from dynamo.planner.core.state_machine import PlannerScalingState
from dynamo.planner.core.types import EngineCapabilities, TrafficObservation, WorkerCapabilities, WorkerCounts

SECONDS = 60.0
LATENCY = 10.0  # ms, within every SLA here


class Engine:
    """Keeps up so many requests/s, whatever they are."""

    def __init__(self, rate: float):
        self.rate = rate

    def find_engine_capacity_rps(self, **asked):
        return SimpleNamespace(rps=self.rate, ttft_ms=LATENCY, itl_ms=LATENCY, eligible=True)


def decide(case: dict) -> list[int]:
    config = PlannerConfig.model_construct(
        mode="disagg",
        optimization_target="sla",
        enable_load_scaling=False,
        enable_throughput_scaling=True,
        max_throughput_scaling_replicas=case["most_change"],
        min_gpu_budget=-1,
        max_gpu_budget=-1 if case["gpus"] is None else case["gpus"],
        min_endpoint=1,
        prefill_min_endpoint=case["least"][0],
        decode_min_endpoint=case["least"][1],
        ttft_ms=500.0,
        itl_ms=50.0,
    )
    state = PlannerScalingState(
        config,
        WorkerCapabilities(
            prefill=EngineCapabilities(gpu_cost_per_replica=case["worker_gpus"][0]),
            decode=EngineCapabilities(gpu_cost_per_replica=case["worker_gpus"][1]),
        ),
    )
    state.install_regressions(prefill=Engine(case["engine_rates"][0]), decode=Engine(case["engine_rates"][1]))
    state.begin_tick()
    prefill, decode = case["current"]
    state.observe_worker_counts(
        WorkerCounts(
            ready_num_prefill=prefill,
            ready_num_decode=decode,
            expected_num_prefill=prefill,
            expected_num_decode=decode,
        )
    )
    requests = case["rate"] * SECONDS
    decision = state.advance_throughput_from_prediction(
        TrafficObservation(duration_s=SECONDS, num_req=requests, isl=2000, osl=500),
        predicted_num_req=requests,
        predicted_isl=2000,
        predicted_osl=500,
        predicted_kv_hit_rate=None,
    )
    return case["current"] if decision is None else [decision.num_prefill, decision.num_decode]


print(json.dumps({"dynamo": version("ai-dynamo"), "answers": [decide(case) for case in json.load(sys.stdin)]}))
