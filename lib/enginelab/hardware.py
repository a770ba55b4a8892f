"""GPUs and models as numbers, each with its source. (Chapter 2; every estimate of time or memory.)"""

from __future__ import annotations

from dataclasses import dataclass

from .workload import number, whole


@dataclass(frozen=True)
class Gpu:
    """What a GPU can do at best, from its maker's data sheet.

    memory_bytes       capacity of its memory
    bandwidth          bytes/s between that memory and the chip
    flops              dense 16-bit tensor-core operations/s (data sheets that quote sparsity are halved)
    generation         NVIDIA's architecture name
    compute_capability NVIDIA's version number of the chip's features
    source             where the numbers were read
    """

    name: str
    memory_bytes: float
    bandwidth: float
    flops: float
    generation: str
    compute_capability: float
    source: str

    def __post_init__(self):
        for name in ("memory_bytes", "bandwidth", "flops"):
            number(name, getattr(self, name), above=0)


@dataclass(frozen=True)
class Model:
    """The shape of a decoder-only transformer, as far as time and memory depend on it.

    parameters         all weights
    active_parameters  weights that one token passes through; fewer than `parameters` in a mixture of experts
    layers, kv_heads, head_dim   what the KV cache of one token is made of
    bytes_per_weight   2 for 16-bit, 1 for FP8, 0.5 for 4-bit formats
    bytes_per_kv       bytes of one number in the KV cache
    source             where the numbers were read
    """

    name: str
    parameters: float
    active_parameters: float
    layers: int
    kv_heads: int
    head_dim: int
    source: str
    bytes_per_weight: float = 2.0
    bytes_per_kv: float = 2.0

    def __post_init__(self):
        for name in ("parameters", "active_parameters", "bytes_per_weight", "bytes_per_kv"):
            number(name, getattr(self, name), above=0)
        for name in ("layers", "kv_heads", "head_dim"):
            whole(name, getattr(self, name), least=1)

    @property
    def weight_bytes(self) -> float:
        """Bytes of all weights."""
        return self.parameters * self.bytes_per_weight

    @property
    def kv_bytes_per_token(self) -> float:
        """Bytes that one token of context takes in the KV cache: a key and a value per layer and KV head."""
        return 2 * self.layers * self.kv_heads * self.head_dim * self.bytes_per_kv


GB, TB, TFLOPS = 1e9, 1e12, 1e12

T4 = Gpu("T4", 16 * GB, 0.32 * TB, 65 * TFLOPS, "Turing", 7.5, "NVIDIA T4 data sheet, 2019")
L4 = Gpu("L4", 24 * GB, 0.3 * TB, 121 * TFLOPS, "Ada", 8.9, "NVIDIA L4 data sheet, 2023 (half of the sparse figure)")
A100 = Gpu("A100 80GB SXM", 80 * GB, 2.039 * TB, 312 * TFLOPS, "Ampere", 8.0, "NVIDIA A100 data sheet, 2021")
H100 = Gpu("H100 SXM", 80 * GB, 3.35 * TB, 989 * TFLOPS, "Hopper", 9.0, "NVIDIA H100 data sheet, 2023 (half of sparse)")
H200 = Gpu("H200 SXM", 141 * GB, 4.8 * TB, 989 * TFLOPS, "Hopper", 9.0, "NVIDIA H200 data sheet, 2024 (half of sparse)")

QWEN3_0_6B = Model("Qwen3-0.6B", 0.596e9, 0.596e9, 28, 8, 128, "Qwen/Qwen3-0.6B, config.json and model card, 2025")
LLAMA_3_1_8B = Model("Llama 3.1 8B", 8.03e9, 8.03e9, 32, 8, 128, "meta-llama/Llama-3.1-8B, config.json and card, 2024")
LLAMA_3_1_70B = Model("Llama 3.1 70B", 70.6e9, 70.6e9, 80, 8, 128, "meta-llama/Llama-3.1-70B, config.json, 2024")
# Multi-Latent Attention caches one vector of 512 + 64 numbers a token and layer, not a key and a value per head:
# as two halves of 288 it fits the formula of `kv_bytes_per_token`. Weights are FP8.
DEEPSEEK_V3 = Model(
    "DeepSeek-V3",
    671e9,
    37e9,
    61,
    1,
    288,
    "deepseek-ai/DeepSeek-V3, config.json and model card, 2024",
    bytes_per_weight=1,
)
