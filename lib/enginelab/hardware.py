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
    hidden, intermediate, vocabulary   widths of a layer's input and of its feed-forward part, and tokens known
    tied               whether the first and the last layer, of vocabulary x hidden weights each, share them
    experts_per_token, moe_layers   routed experts that a token visits in each of so many layers; 0 without experts
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
    hidden: int = 0
    intermediate: int = 0
    vocabulary: int = 0
    tied: bool = False
    experts_per_token: int = 0
    moe_layers: int = 0

    def __post_init__(self):
        for name in ("parameters", "active_parameters", "bytes_per_weight", "bytes_per_kv"):
            number(name, getattr(self, name), above=0)
        for name in ("layers", "kv_heads", "head_dim"):
            whole(name, getattr(self, name), least=1)
        for name in ("hidden", "intermediate", "vocabulary", "experts_per_token", "moe_layers"):
            whole(name, getattr(self, name))

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

# The data sheets give the system's sums: these are an eighth and a 72nd of them, FLOPS halved again for sparsity.
B200 = Gpu("B200", 180 * GB, 8 * TB, 2250 * TFLOPS, "Blackwell", 10.0, "NVIDIA DGX B200 data sheet, 2024")
GB200 = Gpu("GB200", 186 * GB, 8 * TB, 2500 * TFLOPS, "Blackwell", 10.0, "NVIDIA GB200 NVL72 specification, 2025")

QWEN3_0_6B = Model("Qwen3-0.6B", 0.596e9, 0.596e9, 28, 8, 128, "Qwen/Qwen3-0.6B, config.json and model card, 2025",
                   hidden=1024, intermediate=3072, vocabulary=151_936, tied=True)  # fmt: skip
LLAMA_3_1_8B = Model("Llama 3.1 8B", 8.03e9, 8.03e9, 32, 8, 128, "meta-llama/Llama-3.1-8B, config.json and card, 2024",
                     hidden=4096, intermediate=14_336, vocabulary=128_256)  # fmt: skip
LLAMA_3_1_70B = Model("Llama 3.1 70B", 70.6e9, 70.6e9, 80, 8, 128, "meta-llama/Llama-3.1-70B, config.json, 2024",
                      hidden=8192, intermediate=28_672, vocabulary=128_256)  # fmt: skip
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
    hidden=7168,
    intermediate=18_432,  # of its first three layers; an expert has 2,048, and a token passes through nine
    vocabulary=129_280,
    experts_per_token=8,
    moe_layers=58,
)

GPUS = (T4, L4, A100, H100, H200, B200)
MODELS = (QWEN3_0_6B, LLAMA_3_1_8B, LLAMA_3_1_70B, DEEPSEEK_V3)


@dataclass(frozen=True)
class Level:
    """One place where an NVIDIA H100 SXM finds bytes.

    room       bytes that it holds, over the whole chip; 0 for a wire
    bandwidth  bytes/s, all of its parts together, in one direction where there are two; 0 if the maker does not say
    source     where the numbers were read, or what they follow from
    """

    name: str
    room: float
    bandwidth: float
    source: str


KIB, MIB = 1024, 1024**2
H100_SMS = 132  # streaming multiprocessors (NVIDIA H100 white paper, 2022)
H100_CLOCK = 1.83e9  # Hz, the boost clock of the tensor cores (the same)
H100_TENSOR_OPERATIONS = (
    4096  # dense 16-bit operations a clock and SM: 4 tensor cores, 512 multiply-adds each (the same)
)

H100_LEVELS = (
    Level("Registers", H100_SMS * 256 * KIB, 0, "64 Ki registers of 4 bytes an SM: NVIDIA Hopper tuning guide, 2022"),
    # 32 banks of 4 bytes a clock (CUDA C++ programming guide, section on shared memory).
    Level(
        "Shared memory and L1",
        H100_SMS * 256 * KIB,
        H100_SMS * 128 * H100_CLOCK,
        "256 KB an SM: Hopper tuning guide, 2022; 128 bytes a clock: CUDA programming guide",
    ),
    Level("L2 cache", 50 * MIB, 0, "NVIDIA Hopper tuning guide, 2022"),
    Level("GPU memory (HBM)", 80 * GB, 3.35 * TB, "NVIDIA H100 data sheet, 2023"),
    Level("Another GPU, by NVLink", 0, 450 * GB, "half of 900 GB/s both ways: NVIDIA H100 data sheet, 2023"),
    Level("The host, by PCIe 5", 0, 64 * GB, "half of 128 GB/s both ways: NVIDIA H100 data sheet, 2023"),
    Level("Another machine, by network", 0, 50 * GB, "400 Gb/s a GPU: NVIDIA DGX H100 data sheet, 2023"),
)
"""From the nearest to the farthest."""
