"""The roofline bound: why decode is memory-bound, and what a batch costs. (Chapter 2.)

A step has to move bytes and to do arithmetic. The GPU does both at the same time, so the step takes at least as long
as the slower of the two:

    time >= max(bytes / bandwidth, operations / peak)

(Williams, Waterman and Patterson, "Roofline", CACM 2009.) A decode step reads every weight once, *whatever the batch*,
and the KV cache of each sequence; it does two operations per active weight and token. Attention's own arithmetic is
left out: it grows with the context, like the KV bytes that are counted, and stays below them. Real steps are slower
than the bound: kernels miss the peak, and launching them takes time.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .hardware import Gpu, Model
from .workload import number, whole


class Step(NamedTuple):
    """The lower bound of one engine step.

    tokens        tokens that the step computes: the batch in decode, the prompt in prefill
    bytes_moved   bytes read from GPU memory
    operations    floating-point operations
    memory_time   seconds that moving the bytes takes at full bandwidth
    compute_time  seconds that the operations take at peak
    """

    tokens: int
    bytes_moved: float
    operations: float
    memory_time: float
    compute_time: float

    @property
    def time(self) -> float:
        """Seconds the step takes at least."""
        return max(self.memory_time, self.compute_time)

    @property
    def intensity(self) -> float:
        """Operations for each byte moved."""
        return self.operations / self.bytes_moved

    @property
    def bound(self) -> str:
        """ "memory" or "compute": which of the two sets the time."""
        return "memory" if self.memory_time >= self.compute_time else "compute"

    @property
    def tokens_per_second(self) -> float:
        """Tokens that the step computes, per second of `time`."""
        return self.tokens / self.time


def decode_step(model: Model, gpu: Gpu, batch: int, context: int = 0, new_tokens: int = 1) -> Step:
    """One decode step of `batch` sequences, each with `context` tokens in its KV cache: one new token each.

    With `new_tokens` above 1 each sequence computes several, as where a draft is checked: more arithmetic, while the
    weights and the KV caches are still read once.

    For a mixture of experts all weights are counted as read, which holds for batches large enough to touch every
    expert and overstates small ones.
    """
    batch, context = whole("batch", batch, least=1), whole("context", context)
    return _step(model, gpu, batch * whole("new_tokens", new_tokens, least=1), batch * context)


def prefill_step(model: Model, gpu: Gpu, prompt: int) -> Step:
    """One step that prefills a prompt of `prompt` tokens: all of them at once, so the weights are read once."""
    return _step(model, gpu, whole("prompt", prompt, least=1), 0)


def product(gpu: Gpu, tokens: int, inputs: int, outputs: int, bytes_per_number: float = 2.0) -> Step:
    """One matrix product: the vectors of `tokens` tokens, `inputs` long each, with weights of `inputs` x `outputs`.

    Weights and vectors are read once and the results written once, `bytes_per_number` each; a multiplication and an
    addition for each weight and token.
    """
    tokens, inputs, outputs = (
        whole(name, value, least=1) for name, value in (("tokens", tokens), ("inputs", inputs), ("outputs", outputs))
    )
    bytes_moved = bytes_per_number * (inputs * outputs + tokens * (inputs + outputs))
    operations = 2.0 * tokens * inputs * outputs
    return Step(tokens, bytes_moved, operations, bytes_moved / gpu.bandwidth, operations / gpu.flops)


def balance(gpu: Gpu) -> float:
    """Operations that `gpu` can do while a byte comes from its memory: the corner of its roofline."""
    return gpu.flops / gpu.bandwidth


def attainable(gpu: Gpu, intensity: float) -> float:
    """Operations/s that `gpu` reaches at most with work of `intensity` operations a byte: the roofline itself."""
    return min(gpu.flops, number("intensity", intensity, least=0) * gpu.bandwidth)


def _step(model: Model, gpu: Gpu, tokens: int, cached_tokens: int) -> Step:
    bytes_moved = model.weight_bytes + cached_tokens * model.kv_bytes_per_token
    operations = 2 * model.active_parameters * tokens
    return Step(tokens, bytes_moved, operations, bytes_moved / gpu.bandwidth, operations / gpu.flops)


def critical_batch(model: Model, gpu: Gpu, context: int = 0) -> float:
    """Batch size, as a real number, at which a decode step turns from memory- to compute-bound; infinity if never.

    Reading the weights, and for each sequence the KV cache of its `context` tokens, then takes as long as computing:
    (weight_bytes + batch · context · kv_bytes_per_token) / bandwidth = 2 · active · batch / peak. With a context so
    long that a sequence's KV cache takes longer to read than its token takes to compute, that never happens.
    """
    a_sequence = 2 * model.active_parameters / gpu.flops - context * model.kv_bytes_per_token / gpu.bandwidth
    return model.weight_bytes / gpu.bandwidth / a_sequence if a_sequence > 0 else math.inf
