"""Kernels: what a chain of them moves, what fusing saves, and what launching them costs. (Primer 2.)

A kernel reads its inputs from GPU memory and writes its outputs back, because nothing on the chip outlives it. Two
kernels in one keep what passes between them on the chip. Where kernels are short, the CPU that launches them one by one
is slower than the GPU; a CUDA graph is launched as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from .workload import number, whole


class Kernel(NamedTuple):
    """One function on the GPU, and the tensors that it reads and writes, by name."""

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]

    def bytes_moved(self, sizes: Mapping[str, float]) -> float:
        """Bytes between GPU memory and chip; `sizes` are bytes by tensor."""
        return sum(sizes[tensor] for tensor in (*self.reads, *self.writes))


def fuse(name: str, kernels: Sequence[Kernel], needed: Collection[str]) -> Kernel:
    """All of `kernels` in one. What they pass to each other stays on the chip, unless it is `needed` afterwards.

    Raises `ValueError` if a kernel reads what a later one writes: the order would be wrong.
    """
    reads: list[str] = []
    made: list[str] = []
    for kernel in kernels:
        for tensor in kernel.reads:
            if tensor not in made and tensor not in reads:
                reads.append(tensor)
        for tensor in kernel.writes:
            if tensor in reads:
                raise ValueError(f"{kernel.name} writes {tensor}, which an earlier kernel reads")
            made.append(tensor)
    return Kernel(name, tuple(reads), tuple(tensor for tensor in made if tensor in needed))


class Ran(NamedTuple):
    """When one kernel was on the GPU, in seconds since the first launch began."""

    start: float
    end: float


def launched(durations: Sequence[float], launch: float) -> list[Ran]:
    """Kernels launched one by one, each taking the CPU `launch` seconds; the CPU runs ahead of the GPU if it can.

    A kernel starts when it has been launched and the one before it is done.
    """
    number("launch", launch, least=0)
    ran: list[Ran] = []
    for index, duration in enumerate(durations, start=1):
        start = max(index * launch, ran[-1].end if ran else 0.0)
        ran.append(Ran(start, start + number("durations", duration, least=0)))
    return ran


def replayed(durations: Sequence[float], launch: float) -> list[Ran]:
    """The same kernels as one CUDA graph: a single launch, then one after the other."""
    return [Ran(start + launch, end + launch) for start, end in launched(durations, 0.0)]


def captured(largest: int) -> tuple[int, ...]:
    """Batch sizes for which vLLM 0.32 captures a CUDA graph by default, up to `largest`.

    1, 2, 4, multiples of 8 below 256, then multiples of 16 (docstring in its `config/vllm.py`, read in December 2026).
    """
    largest = whole("largest", largest, least=1)
    return tuple(size for size in (1, 2, 4, *range(8, 256, 8), *range(256, largest + 1, 16)) if size <= largest)


def padded(batch: int, sizes: Sequence[int]) -> int | None:
    """The smallest graph that a batch fits into, padded; None if it is larger than all of them and runs without."""
    return min((size for size in sizes if size >= whole("batch", batch, least=1)), default=None)
