"""Run by the engine's Python: loads on stdin, which requests vLLM's own scheduler runs in each step on stdout.

There is no model and no worker: each step, every request whose prompt is computed is handed one token.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

# vLLM reads these when it is imported.
os.environ.update(HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1", VLLM_LOGGING_LEVEL="ERROR")

import torch
from vllm.config import CacheConfig, ModelConfig, SchedulerConfig, VllmConfig
from vllm.sampling_params import SamplingParams
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager

PROMPT, BLOCK, BLOCKS, LONGEST = 8, 32, 1000, 1024
# A model's description is all that the configuration wants; its weights are never asked for.
MODEL = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": LONGEST,
}


def scheduler(slots: int, model: str) -> Scheduler:
    """vLLM's scheduler with `slots` places, and with more cache and token budget than any load here needs."""
    cache = CacheConfig(block_size=BLOCK, enable_prefix_caching=False)
    cache.num_gpu_blocks = BLOCKS
    config = VllmConfig(
        model_config=ModelConfig(model=model, dtype="float32", max_model_len=LONGEST, skip_tokenizer_init=True),
        cache_config=cache,
        scheduler_config=SchedulerConfig(
            max_num_seqs=slots,
            max_num_batched_tokens=8192,
            max_model_len=LONGEST,
            is_encoder_decoder=False,
            async_scheduling=False,
        ),
    )
    layout = FullAttentionSpec(block_size=BLOCK, num_kv_heads=2, head_size=32, dtype=torch.float32)
    return Scheduler(
        vllm_config=config,
        kv_cache_config=KVCacheConfig(BLOCKS, [], [KVCacheGroupSpec(["layer"], layout)]),
        structured_output_manager=StructuredOutputManager(config),
        block_size=BLOCK,
        log_stats=False,
    )


def steps(lengths: list[int], slots: int, model: str) -> list[list[int]]:
    """The numbers of the requests in each step, all of them waiting from the start."""
    engine = scheduler(slots, model)
    for number, length in enumerate(lengths):
        wanted = SamplingParams(max_tokens=length, ignore_eos=True)
        prompt = list(range(number, number + PROMPT))
        engine.add_request(Request(str(number), prompt, wanted, None))
    taken = []
    while engine.has_unfinished_requests():
        planned = engine.schedule()
        running = list(planned.num_scheduled_tokens)
        assert running, "the scheduler planned an empty step"
        taken.append(sorted(map(int, running)))
        requests = [engine.requests[name] for name in running]
        tokens = [[7] if r.num_computed_tokens >= r.num_tokens else [] for r in requests]
        places = {name: place for place, name in enumerate(running)}
        engine.update_from_output(
            planned, ModelRunnerOutput(req_ids=running, req_id_to_index=places, sampled_token_ids=tokens)
        )
    return taken


with tempfile.TemporaryDirectory() as folder:
    Path(folder, "config.json").write_text(json.dumps(MODEL))
    print(json.dumps([steps(load["lengths"], load["slots"], folder) for load in json.load(sys.stdin)]))
