"""Drive the real vLLM scheduler without a model, in vLLM's own environment: loads in as JSON, schedules out as JSON.

stdin   one list of loads: {"config": {...}, "requests": [[arrival, prompt_tokens, output_tokens, block_ids], ...]};
        arrivals in order, counted in steps; when nothing is left to do the clock jumps to the next; ids may be null
stdout  {"vllm": version, "runs": [[{"tokens": [[request, tokens], ...], "preempted": [request, ...]}, ...], ...]}

The model's answer is faked: whoever has all of its tokens computed gets a token that no other request has.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

# vLLM reads these when it is imported.
os.environ.update(HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1", VLLM_LOGGING_LEVEL="ERROR")

import torch
import vllm
from vllm.config import CacheConfig, ModelConfig, SchedulerConfig, VllmConfig
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager

LONGEST = 131072
SHAPE = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "max_position_embeddings": LONGEST,
    "torch_dtype": "float32",
}


def make(model, config):
    """A scheduler of the given settings, and the function that hashes a request's blocks."""
    size, blocks = config["block_size"], config["num_blocks"] + 1  # vLLM keeps one to itself
    cache = CacheConfig(block_size=size, enable_prefix_caching=config["enable_prefix_caching"])
    cache.num_gpu_blocks = blocks
    scheduling = SchedulerConfig(max_model_len=LONGEST, is_encoder_decoder=False, async_scheduling=False)
    everything = VllmConfig(scheduler_config=scheduling, model_config=model, cache_config=cache)
    # Set afterwards: vLLM refuses small budgets, to which the longest context and the most requests might not fit.
    for name in ("max_num_seqs", "max_num_batched_tokens", "enable_chunked_prefill"):
        setattr(scheduling, name, config[name])
    scheduling.max_num_scheduled_tokens = config["max_num_batched_tokens"]
    spec = FullAttentionSpec(block_size=size, num_kv_heads=2, head_size=32, dtype=torch.float32)
    kv = KVCacheConfig(num_blocks=blocks, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)])
    scheduler = Scheduler(
        vllm_config=everything,
        kv_cache_config=kv,
        structured_output_manager=StructuredOutputManager(everything),
        block_size=size,
        log_stats=False,
    )
    return scheduler, get_request_block_hasher(size, sha256)


def prompt(index, tokens, block_ids, size):
    """Token ids that are equal in two prompts exactly where their block ids are."""
    ids = [1_000_000 + block for block in block_ids or () for _ in range(size)][: tokens // size * size]
    return ids + [-1 - index] * (tokens - len(ids))


def run(model, load):
    scheduler, hasher = make(model, load["config"])
    size, arrivals, steps, now = load["config"]["block_size"], list(enumerate(load["requests"])), [], 0
    while arrivals or scheduler.has_unfinished_requests():
        if not scheduler.has_unfinished_requests():
            now = max(now, arrivals[0][1][0])
        while arrivals and arrivals[0][1][0] <= now:
            index, (_, tokens, output, block_ids) = arrivals.pop(0)
            sampling = SamplingParams(max_tokens=output, ignore_eos=True)
            ids = prompt(index, tokens, block_ids, size)
            scheduler.add_request(Request(str(index), ids, sampling, None, block_hasher=hasher))
        plan = scheduler.schedule()
        names = list(plan.num_scheduled_tokens)
        now += bool(names)
        if names:
            tokens = [[int(name), plan.num_scheduled_tokens[name]] for name in names]
            steps.append({"tokens": tokens, "preempted": sorted(map(int, plan.preempted_req_ids or ()))})
        requests = [scheduler.requests[name] for name in names]
        sampled = [[-1 - int(r.request_id)] if r.num_computed_tokens >= r.num_tokens else [] for r in requests]
        answer = ModelRunnerOutput(
            req_ids=names,
            req_id_to_index={name: place for place, name in enumerate(names)},
            sampled_token_ids=sampled,
            logprobs=None,
            prompt_logprobs_dict={},
            pooler_output=[],
        )
        scheduler.update_from_output(plan, answer)
    return steps


def main():
    answers = os.fdopen(os.dup(1), "w")  # vLLM prints to standard output what is no answer
    os.dup2(2, 1)
    loads = json.load(sys.stdin)
    init_none_hash(sha256)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(SHAPE))
        model = ModelConfig(folder, skip_tokenizer_init=True, dtype="float32", max_model_len=LONGEST, seed=0)
        runs = [run(model, load) for load in loads]
    json.dump({"vllm": vllm.__version__, "runs": runs}, answers)
    answers.close()


if __name__ == "__main__":
    main()
