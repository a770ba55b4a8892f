"""How GPUs come: slices of one (MIG), several in a machine, a rack of 72; and how fast the wires between them are.

(Primer 9.) A *domain* is a group of GPUs of which each can reach every other at the full speed of NVLink.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .hardware import B200, GB, GB200, H100, H100_SMS, H200, Gpu


@dataclass(frozen=True)
class Domain:
    """GPUs that share one fast network.

    gpus     how many
    inside   bytes/s that one GPU sends to the others of the domain, in one direction
    outside  bytes/s that one GPU sends over the network to other domains, in one direction
    source   where the numbers were read
    """

    name: str
    gpu: Gpu
    gpus: int
    inside: float
    outside: float
    source: str

    @property
    def memory_bytes(self) -> float:
        """Bytes of all its GPUs."""
        return self.gpus * self.gpu.memory_bytes


DOMAINS = (
    Domain("Eight H100", H100, 8, 450 * GB, 50 * GB, "NVIDIA DGX H100 data sheet, 2023: NVLink 900 GB/s both ways"),
    Domain("Eight H200", H200, 8, 450 * GB, 50 * GB, "NVIDIA DGX H200 data sheet, 2024: NVLink 900 GB/s both ways"),
    Domain("Eight B200", B200, 8, 900 * GB, 50 * GB, "NVIDIA DGX B200 data sheet, 2024: 14.4 TB/s both ways for eight"),
    Domain(
        "GB200 NVL72", GB200, 72, 900 * GB, 50 * GB, "NVIDIA GB200 NVL72 specification, 2025: 130 TB/s both ways for 72"
    ),
)
"""400 Gb/s of network a GPU in all of them, as NVIDIA's own systems of these years have it."""


@dataclass(frozen=True)
class MigProfile:
    """One way to cut an H100: the slices that an instance gets, and how many such instances fit on the GPU.

    compute  of the seven compute slices
    sms      streaming multiprocessors: not sevenths of the GPU's, and some belong to no slice
    memory   of the eight memory slices, each an eighth of capacity and of bandwidth
    at_most  instances of this profile on one GPU
    """

    name: str
    compute: int
    sms: int
    memory: int
    at_most: int

    def of(self, gpu: Gpu) -> Gpu:
        """The instance as a GPU of its own; `gpu` an H100 SXM."""
        return replace(
            gpu,
            name=f"{self.name} of {gpu.name}",
            memory_bytes=gpu.memory_bytes * self.memory / 8,
            bandwidth=gpu.bandwidth * self.memory / 8,
            flops=gpu.flops * self.sms / H100_SMS,
        )


MIG_SOURCE = (
    "NVIDIA Multi-Instance GPU user guide, tables for H100 80GB, read in December 2026; "
    "SMs as `nvidia-smi mig -lgip` lists them (printed in jbarrow.ai, field notes on MIG, June 2026)"
)
MIG_PROFILES = (
    MigProfile("1g.10gb", 1, 16, 1, 7),
    MigProfile("1g.20gb", 1, 26, 2, 4),
    MigProfile("2g.20gb", 2, 32, 2, 3),
    MigProfile("3g.40gb", 3, 60, 4, 2),
    MigProfile("4g.40gb", 4, 64, 4, 1),
    MigProfile("7g.80gb", 7, 132, 8, 1),
)
