"""Serve a load with Vidur 0.0.26 and print its CPU seconds. Run by bench/scheduler.py, in Vidur's own environment.

Reads from standard input a JSON object: `requests` as [arrival, prompt, output], `step_time` as the coefficients of an
affine step in seconds, and the engine's `max_num_seqs`, `max_num_batched_tokens`, `num_blocks` and `block_size`.
Vidur's measured kernel times would have to be downloaded; in their place stands the same affine step as ours, which
costs little to compute. Its metrics and traces are off. What is timed is `Simulator.run`.
"""

import json
import sys
import tempfile
import time

from vidur._native.entities import ExecutionTime
from vidur.config import (
    CacheConfig,
    ClusterConfig,
    MetricsConfig,
    MnemosyneFCFSFixedChunkSchedulerConfig,
    ReplicaConfig,
    SimulationConfig,
)
from vidur.entities import Request
from vidur.execution_time_predictor import ExecutionTimePredictorRegistry
from vidur.request_generator import RequestGeneratorRegistry
from vidur.simulator import Simulator
from vidur.types import ExecutionTimePredictorType, RequestGeneratorType


class AffineStep:
    """In the place of Vidur's predictor: the time of a step from its prompt tokens, sequences and context."""

    def __init__(self, coefficients):
        self.coefficients = coefficients

    def get_execution_time(self, batch, stage):
        fixed, per_prefill_token, per_sequence, per_kv_token = self.coefficients
        seconds = fixed
        for part in batch.batch_mapping.values():
            prefill = part.num_prefill_tokens
            seconds += per_prefill_token * prefill + per_sequence * (sum(part.num_q_tokens) - prefill)
            seconds += per_kv_token * sum(part.num_kv_tokens)
        return ExecutionTime(1, seconds * 1000, *[0.0] * 13)


class Load:
    """In the place of Vidur's generators: the requests as they are."""

    def __init__(self, requests):
        self.requests = requests

    def generate(self):
        return [Request(*request) for request in self.requests]


def main():
    load = json.load(sys.stdin)
    ExecutionTimePredictorRegistry.unregister(ExecutionTimePredictorType.RANDOM_FORREST)
    ExecutionTimePredictorRegistry.register(
        ExecutionTimePredictorType.RANDOM_FORREST, lambda **_: AffineStep(load["step_time"])
    )
    RequestGeneratorRegistry.unregister(RequestGeneratorType.SYNTHETIC)
    RequestGeneratorRegistry.register(RequestGeneratorType.SYNTHETIC, lambda _: Load(load["requests"]))
    off = ("write_metrics", "store_plots", "store_request_metrics", "store_batch_metrics", "store_utilization_metrics")
    with tempfile.TemporaryDirectory() as folder:
        config = SimulationConfig(
            log_level="error",
            cluster_config=ClusterConfig(
                replica_config=ReplicaConfig(num_pipeline_stages=1, tensor_parallel_size=1),
                cache_config=CacheConfig(block_size=load["block_size"], num_blocks=load["num_blocks"]),
                replica_scheduler_config=MnemosyneFCFSFixedChunkSchedulerConfig(
                    batch_size_cap=load["max_num_seqs"], chunk_size=load["max_num_batched_tokens"]
                ),
            ),
            metrics_config=MetricsConfig(output_dir=folder, enable_chrome_trace=False, **dict.fromkeys(off, False)),
        )
        simulator = Simulator(config)
        begin = time.process_time()
        simulator.run()
        seconds = time.process_time() - begin
    print(json.dumps({"seconds": seconds, "end": simulator._time}))


if __name__ == "__main__":
    main()
