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

from typing import NamedTuple

from .hardware import Gpu, Model
from .workload import whole


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


def _step(model: Model, gpu: Gpu, tokens: int, cached_tokens: int) -> Step:
    bytes_moved = model.weight_bytes + cached_tokens * model.kv_bytes_per_token
    operations = 2 * model.active_parameters * tokens
    return Step(tokens, bytes_moved, operations, bytes_moved / gpu.bandwidth, operations / gpu.flops)


def critical_batch(model: Model, gpu: Gpu) -> float:
    """Batch size, as a real number, at which a decode step without context turns from memory- to compute-bound.

    Reading the weights then takes as long as computing with them: weight_bytes / bandwidth = 2 · active · batch / peak.
    """
    return model.weight_bytes / gpu.bandwidth * gpu.flops / (2 * model.active_parameters)
