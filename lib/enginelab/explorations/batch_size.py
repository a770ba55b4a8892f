"""The roofline of a decode step against the batch: where it turns from memory- to compute-bound. (Chapter 2.)"""

from __future__ import annotations

import math
from dataclasses import replace

from ..exploring import Exploration, Line, Lines, Mark, Number, Picture
from ..roofline import critical_batch, decode_step
from .offers import BITS_OF, GPU, GPU_OF, MODEL, MODEL_OF, WEIGHTS

LARGEST = 1024
BATCHES = tuple(2**power for power in range(11))


def explore(model: str, gpu: str, weights: str, context: int, batch: int) -> Picture:
    """The bound of a decode step of `batch` sequences with `context` tokens each, and of every other batch."""
    card = GPU_OF[gpu]
    shape = replace(MODEL_OF[model], bytes_per_weight=BITS_OF[weights] / 8)
    here = decode_step(shape, card, batch, context)
    steps = [decode_step(shape, card, size, context) for size in BATCHES]
    turn = critical_batch(shape, card, context)
    words = (
        f"A decode step of {batch} {'sequence' if batch == 1 else 'sequences'} takes at least {1e3 * here.time:.3g} ms "
        f"and is {here.bound}-bound: at most {here.tokens_per_second:,.0f} tokens/s, {1 / here.time:,.0f} for each "
        f"reader. {_turning(turn)}"
    )
    needed = shape.weight_bytes + batch * context * shape.kv_bytes_per_token
    if needed > card.memory_bytes:
        words += (
            f" Weights and KV cache are {needed / 1e9:,.0f} GB, more than the GPU's {card.memory_bytes / 1e9:g} GB: "
            "it takes several GPUs, or a smaller batch."
        )
    marks = (Mark(turn, "compute-bound from here"),) if 1 < turn < LARGEST else ()
    above = Lines(
        f"Decode step: {shape.name} on {card.name}",
        (
            Line("reading memory", BATCHES, tuple(1e3 * step.memory_time for step in steps)),
            Line("computing", BATCHES, tuple(1e3 * step.compute_time for step in steps)),
        ),
        "sequences in the batch",
        "ms",
        log_x=True,
        log_y=True,
        marks=marks,
        here=(batch, 1e3 * here.time),
    )
    below = Lines(
        "Tokens per second, at most",
        (Line("all sequences together", BATCHES, tuple(step.tokens_per_second for step in steps)),),
        "sequences in the batch",
        "tokens/s",
        log_x=True,
        log_y=True,
        here=(batch, here.tokens_per_second),
    )
    return Picture(words, (above, below))


def _turning(turn: float) -> str:
    if math.isinf(turn):
        return "No batch is compute-bound: a sequence's KV cache takes longer to read than its next token to compute."
    if turn <= 1:
        return "Every batch is compute-bound."
    return f"It turns compute-bound at a batch of {math.ceil(turn):,}."


EXPLORATION = Exploration(
    "Batch size and the roofline",
    (
        MODEL,
        GPU,
        WEIGHTS,
        Number("context", "Context length", 0, 0, 131_072, unit="tokens"),
        Number("batch", "Batch", 32, 1, LARGEST, unit="sequences"),
    ),
    explore,
)
