"""One model on several GPUs: what each way of splitting sends between them, and how long that takes. (Primer 6.)

tensor    every layer is cut across the GPUs; twice a layer they add up what each has (all-reduce), after attention
          and after the MLP (Shoeybi and others, "Megatron-LM", 2019)
pipeline  each GPU has a stretch of layers, and hands the tokens' vectors to the next one
expert    each GPU has some experts; in each layer with experts a token's vector goes to those that it needs and comes
          back (all-to-all)
data      each GPU has the whole model and requests of its own: nothing is sent

Counted are the bytes that one GPU sends for `tokens` tokens passing through the whole model, vectors in 16 bits. Times
are lower bounds, as in `roofline`, plus a fixed `latency` for each exchange, which decides where messages are small.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from . import roofline
from .hardware import Gpu, Model
from .workload import number, whole

VECTOR_BYTES = 2  # of each number in a token's vector: 16 bits


class Exchange(NamedTuple):
    """What one pass through the model sends.

    messages  exchanges, one after the other, that the GPUs wait for
    bytes     what one GPU sends in all of them together
    """

    messages: int
    bytes: float

    def seconds(self, bandwidth: float, latency: float) -> float:
        """How long they take at `bandwidth` bytes/s in one direction, each beginning with `latency` seconds."""
        number("bandwidth", bandwidth, above=0)
        return self.messages * number("latency", latency, least=0) + self.bytes / bandwidth


def tensor(model: Model, gpus: int, tokens: int) -> Exchange:
    """Tensor parallelism: two all-reduces a layer.

    In a ring, a GPU sends (n − 1)/n of the vectors to sum the parts, and as much again to spread the sums.
    """
    gpus, vectors = whole("gpus", gpus, least=1), _vectors(model, tokens)
    if gpus == 1:
        return Exchange(0, 0.0)
    return Exchange(2 * model.layers, 2 * model.layers * vectors * 2 * (gpus - 1) / gpus)


def pipeline(model: Model, stages: int, tokens: int) -> Exchange:
    """Pipeline parallelism: the vectors pass once from each stage to the next; `bytes` are those of all the passes."""
    passes = whole("stages", stages, least=1) - 1
    return Exchange(passes, passes * _vectors(model, tokens))


def expert(model: Model, gpus: int, tokens: int) -> Exchange:
    """Expert parallelism: in each layer with experts, every token goes out to its experts and back.

    `tokens` over all GPUs together, each GPU having an equal share; experts are equally busy, so that (n − 1)/n of the
    visits are to other GPUs. Two experts of a token on one GPU count twice: real systems send once to each GPU.
    """
    gpus, vectors = whole("gpus", gpus, least=1), _vectors(model, tokens)
    if not model.moe_layers:
        raise ValueError(f"{model.name} has no experts")
    if gpus == 1:
        return Exchange(0, 0.0)
    visits = vectors / gpus * model.experts_per_token * (gpus - 1) / gpus
    return Exchange(2 * model.moe_layers, 2 * model.moe_layers * visits)


def _vectors(model: Model, tokens: int) -> float:
    """Bytes of the vectors of `tokens` tokens between two layers."""
    if not model.hidden:
        raise ValueError(f"{model.name} needs a hidden")
    return whole("tokens", tokens, least=1) * model.hidden * VECTOR_BYTES


class SplitStep(NamedTuple):
    """A step on several GPUs: seconds of reading and computing on each, and of waiting for the others."""

    work: float
    exchange: float

    @property
    def time(self) -> float:
        """Seconds the step takes at least: nothing overlaps."""
        return self.work + self.exchange


def tensor_decode(
    model: Model, gpu: Gpu, gpus: int, batch: int, context: int, bandwidth: float, latency: float
) -> SplitStep:
    """A decode step under tensor parallelism: weights and arithmetic divided, and the KV cache as far as its heads go.

    `bandwidth` in bytes/s and `latency` in seconds are those of `Exchange.seconds`.
    """
    exchange = tensor(model, gpus, batch).seconds(bandwidth, latency)
    step = roofline.decode_step(model, gpu, batch, context)
    read = model.weight_bytes / gpus + batch * context * kv_bytes_per_gpu(model, gpus)
    return SplitStep(max(read / gpu.bandwidth, step.compute_time / gpus), exchange)


def tensor_prefill(model: Model, gpu: Gpu, gpus: int, prompt: int, bandwidth: float, latency: float) -> SplitStep:
    """A prompt of `prompt` tokens prefilled in one step under tensor parallelism."""
    exchange = tensor(model, gpus, prompt).seconds(bandwidth, latency)
    return SplitStep(roofline.prefill_step(model, gpu, prompt).time / gpus, exchange)


def pipeline_busy(stages: int, microbatches: int) -> float:
    """Share of the time that each stage works when `microbatches` follow each other through `stages`, then no more.

    m / (m + p − 1): the rest is the bubble of filling and emptying (Huang and others, "GPipe", 2019).
    """
    stages, microbatches = whole("stages", stages, least=1), whole("microbatches", microbatches, least=1)
    return microbatches / (microbatches + stages - 1)


def kv_bytes_per_gpu(model: Model, gpus: int) -> float:
    """Bytes a token of KV cache on each GPU under tensor parallelism.

    A KV head is whole on one GPU: with more GPUs than heads, several hold the same.
    """
    heads = -(-model.kv_heads // whole("gpus", gpus, least=1))
    return replace(model, kv_heads=heads).kv_bytes_per_token


def tokens_that_fit(model: Model, gpu: Gpu, gpus: int, share: float = 0.9) -> int:
    """Tokens of KV cache beside the weights on `gpus` GPUs under tensor parallelism, in `share` of their memory."""
    left = gpu.memory_bytes * share - model.weight_bytes / whole("gpus", gpus, least=1)
    return max(0, int(left // kv_bytes_per_gpu(model, gpus)))
