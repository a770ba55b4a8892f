"""What a model takes of a GPU's memory, and what that leaves for the KV cache. (Chapter 2; the quantization primer.)

vLLM divides a GPU's memory in the same way when it starts: its share of the memory (`gpu_memory_utilization`), less
the weights, less the peak of one step as large as its settings allow, less what CUDA takes; the rest is KV cache.
Weights and KV cache follow from the model's shape. The other two are estimates, held against what vLLM has logged.
"""

from __future__ import annotations

from dataclasses import dataclass

from .hardware import Gpu, Model
from .workload import number, whole

GIB = 2**30
SHARE = 0.92
"""vLLM 0.31's default for `gpu_memory_utilization`."""
SAMPLING_BYTES = 40
"""Bytes for each sequence and token of the vocabulary while the next tokens are chosen: an estimate. Logged peaks are
1.26 GiB for 256 sequences of Llama 3 8B (vLLM pull request 10511, December 2024), which is 41 bytes, and 9.96 GiB for
1,024 of Gemma 3 4B with 262,144 tokens (pull request 21489, July 2025), which is 40."""
RUNTIME_BYTES, RUNTIME_BYTES_WITH_OTHERS = 0.5e9, 1.0e9
"""CUDA's context, libraries and graphs, and with several GPUs the buffers between them: an estimate. vLLM 0.31 logged
0.26 GiB beside the weights and 0.23 GiB for graphs on one A100 (October 2026)."""


@dataclass(frozen=True)
class Footprint:
    """The memory of each of `gpus` GPUs that share a model, in bytes; all but `runtime` and `work` are exact.

    budget    what the engine may use
    weights   this GPU's part of them
    work      the peak of one step, above what stays
    runtime   CUDA and what it brings
    kv_token  this GPU's part of the KV cache of one token
    block_size  tokens in a KV block
    """

    gpus: int
    budget: float
    weights: float
    work: float
    runtime: float
    kv_token: float
    block_size: int = 16

    @property
    def kv(self) -> float:
        """Bytes left for the KV cache; below 0 if the rest does not fit."""
        return self.budget - self.weights - self.work - self.runtime

    @property
    def kv_blocks(self) -> int:
        """KV blocks that fit; each lies on all GPUs together."""
        return max(0, int(self.kv // (self.kv_token * self.block_size)))

    @property
    def kv_tokens(self) -> int:
        """Tokens that fit into the KV cache, of all sequences together."""
        return self.kv_blocks * self.block_size

    def sequences(self, context: int) -> int:
        """Sequences of `context` tokens, at least 1, that fit at the same time."""
        return self.kv_blocks // -(-whole("context", context, least=1) // self.block_size)


def weight_bytes(model: Model, bits: float = 16) -> float:
    """Bytes of all weights, `bits` each; the first and the last layer keep 16 bits, as quantized checkpoints do.

    With Llama 3.1 8B in 8 bits that is 9.1 GB and not 8, for an eighth of its weights stays as it was.
    """
    outer = model.vocabulary * model.hidden * (1 if model.tied else 2)
    return (model.parameters - outer) * number("bits", bits, above=0) / 8 + outer * 2


def kv_bytes_per_token(model: Model, gpus: int = 1, bits: float = 16) -> float:
    """Bytes of the KV cache of one token on each of `gpus` GPUs in tensor parallel.

    A key and a value for each layer and KV head. The heads are divided among the GPUs; where there are fewer heads than
    GPUs, some are kept twice. So is the one vector of Multi-Latent Attention, on every GPU.
    """
    heads = -(-model.kv_heads // whole("gpus", gpus, least=1))
    return 2 * model.layers * heads * model.head_dim * number("bits", bits, above=0) / 8


def work_bytes(model: Model, gpus: int = 1, max_num_seqs: int = 256, max_num_batched_tokens: int = 2048) -> float:
    """An estimate of what one full step needs for a moment, on each GPU: the larger of two peaks.

    In a layer, each token has its input four times over (as it came, normalised, attention's, the result) and three
    times the feed-forward width, in 16 bits. When the next tokens are chosen, each sequence has `SAMPLING_BYTES` for
    every token of the vocabulary; this happens on every GPU whole. The estimate
    lies up to 18 % below five logged peaks.
    """
    layer = max_num_batched_tokens * 2 * (4 * model.hidden + 3 * model.intermediate / gpus)
    return max(layer, max_num_seqs * model.vocabulary * SAMPLING_BYTES)


def defaults(gpu: Gpu) -> tuple[int, int]:
    """`max_num_seqs` and `max_num_batched_tokens` of `vllm serve` on a GPU, if nobody sets them.

    vLLM 0.31, `EngineArgs.get_batch_defaults`: larger for GPUs of 70 GiB and more, the A100 excepted.
    """
    return (1024, 8192) if gpu.memory_bytes >= 70 * GIB and "A100" not in gpu.name else (256, 2048)


def footprint(
    model: Model,
    gpu: Gpu,
    gpus: int = 1,
    weight_bits: float = 16,
    kv_bits: float = 16,
    share: float = SHARE,
    max_num_seqs: int | None = None,
    max_num_batched_tokens: int | None = None,
) -> Footprint:
    """The memory of `gpus` GPUs that serve `model` in tensor parallel; by default with vLLM's settings for them.

    A data sheet's 80 GB are what is counted here. The driver shows somewhat more, 79.25 GiB on an A100.
    """
    seats, budget = defaults(gpu)
    return Footprint(
        gpus=whole("gpus", gpus, least=1),
        budget=gpu.memory_bytes * number("share", share, above=0),
        weights=weight_bytes(model, weight_bits) / gpus,
        work=work_bytes(model, gpus, max_num_seqs or seats, max_num_batched_tokens or budget),
        runtime=RUNTIME_BYTES if gpus == 1 else RUNTIME_BYTES_WITH_OTHERS,
        kv_token=kv_bytes_per_token(model, gpus, kv_bits),
    )
