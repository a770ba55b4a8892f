"""Machines as data: what a lab may find itself on, and the ones that a dry run knows. (`enginelab.preflight`.)"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

GB = 10**9
MIB = 2**20
WHERE = {
    "": "",
    "Colab": " on Colab",
    "Kaggle": " on Kaggle",
    "Kubernetes": " in a Kubernetes pod",
    "container": " in a container",
}


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
    """One machine, seen or described.

    memory_bytes: of the container, where it has less; free_disk_bytes: where the cache folder lies, None if unknown.
    no_gpu: why `gpus` is empty, in a few words; other_gpu: a GPU that is not NVIDIA's, "" if none was seen.
    cuda: the newest CUDA that the driver speaks, None if unknown.
    host: a key of `WHERE`; "" for a machine of one's own, a virtual one included.
    installed: of the engines' programs those on the PATH, and of the course's environments those in the cache.
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
    other_gpu: str = ""
    host: str = ""
    free_disk_bytes: int | None = None
    installed: frozenset[str] = frozenset()

    @property
    def best_gpu(self) -> Gpu | None:
        """The GPU of the highest compute capability, and of those the largest; None if there is none."""
        return max(self.gpus, key=lambda g: (g.compute_capability or (0, 0), g.memory_bytes or 0), default=None)

    def describe(self) -> str:
        """One line for a stamp: the hardware and the driver, nothing that tells whose machine it is."""
        vectors = [name for flag, name in (("avx512f", "AVX-512"), ("amx_tile", "AMX")) if flag in self.cpu_flags]
        parts = [self.cpu, f"{self.cores} cores", *vectors, f"{self.memory_bytes / GB:.0f} GB of memory"]
        if self.gpus:
            cuda = ", CUDA {}.{}".format(*self.cuda) if self.cuda else ""
            parts += [*map(str, self.gpus), f"driver {self.gpus[0].driver}{cuda}"]
        parts.append(f"{self.system} {self.architecture}{WHERE[self.host]}")
        return ", ".join(parts + ([] if self.gpus else [self.other_gpu or "no GPU"]))


class Described(NamedTuple):
    """A machine that a dry run knows by name, and where its numbers were read."""

    name: str
    machine: Machine
    source: str


def _vm(gpu: Gpu | None, cuda: tuple[int, int] | None = (13, 0), **differences) -> Machine:
    """A rented virtual machine: eight cores, 64 GB, 100 GB of disk, and a driver of the branch that brought CUDA 13."""
    usual = dict(
        system="Linux",
        architecture="x86_64",
        cpu="A server CPU",
        cores=8,
        memory_bytes=64 * GB,
        cpu_flags=frozenset({"avx2", "avx512f"}),
        libnuma=True,
        gpus=(gpu,) if gpu else (),
        cuda=cuda if gpu else None,
        no_gpu="" if gpu else "there is no nvidia-smi",
        free_disk_bytes=100 * GB,
    )
    return Machine(**(usual | differences))


def _gpu(name: str, mib: int, capability: tuple[int, int], driver: str = "580.95.05") -> Gpu:
    return Gpu(name, mib * MIB, capability, driver)


# Colab and Kaggle bring their own driver, which nobody who runs a notebook there can change.
_CUDA_12 = "550.54.15"
_COLAB = dict(host="Colab", cuda=(12, 4), cpu_flags=frozenset({"avx2"}))
_SMI = "name and memory as nvidia-smi prints them; compute capability from NVIDIA's CUDA GPUs page, 2026"
_ON_COLAB = f"{_SMI}; driver from googlecolab/colabtools issue 5081 (2025), still CUDA 12 in July 2026"

DESCRIBED = (
    Described("T4", _vm(_gpu("Tesla T4", 15360, (7, 5))), _SMI),
    Described("L4", _vm(_gpu("NVIDIA L4", 23034, (8, 9))), _SMI),
    Described("A100", _vm(_gpu("NVIDIA A100-SXM4-40GB", 40960, (8, 0))), _SMI),
    Described("L40S", _vm(_gpu("NVIDIA L40S", 46068, (8, 9))), _SMI),
    Described("H100", _vm(_gpu("NVIDIA H100 80GB HBM3", 81559, (9, 0))), _SMI),
    Described("H200", _vm(_gpu("NVIDIA H200", 143771, (9, 0))), _SMI),
    Described("B200", _vm(_gpu("NVIDIA B200", 183359, (10, 0))), _SMI),
    Described(
        "MI300X",
        _vm(None, other_gpu="AMD Instinct MI300X"),
        "AMD's data sheet, 2023; it has no nvidia-smi, so Linux's device files tell of it",
    ),
    Described(
        "CPU",
        _vm(None, cores=2, memory_bytes=16 * GB, free_disk_bytes=30 * GB),
        "the least that the labs were run on, and a small virtual machine's disk",
    ),
    Described(
        "COLAB-T4",
        _vm(_gpu("Tesla T4", 15360, (7, 5), _CUDA_12), **_COLAB, cores=2, memory_bytes=13 * GB),
        _ON_COLAB,
    ),
    Described("COLAB-L4", _vm(_gpu("NVIDIA L4", 23034, (8, 9), _CUDA_12), **_COLAB, cores=12), _ON_COLAB),
    Described("COLAB-A100", _vm(_gpu("NVIDIA A100-SXM4-40GB", 40960, (8, 0), _CUDA_12), **_COLAB, cores=12), _ON_COLAB),
    Described(
        "COLAB-CPU",
        _vm(None, host="Colab", cpu_flags=frozenset({"avx2"}), cores=2, memory_bytes=13 * GB),
        "Colab's free runtime without an accelerator, 2026",
    ),
)


def described(name: str) -> Machine:
    """The machine that a dry run knows as `name`, whatever its capitals; ValueError if there is none."""
    for each in DESCRIBED:
        if each.name.lower() == name.lower():
            return each.machine
    raise ValueError(f"machine must be one of {', '.join(each.name for each in DESCRIBED)}; got {name!r}")
