"""Does it fit: weights, work and KV cache of a model on some GPUs, and how many sequences. (Chapter 2.)"""

from __future__ import annotations

from ..exploring import Bars, Choice, Exploration, Line, Lines, Mark, Number, Picture, Series
from ..footprint import SHARE, Footprint, defaults, footprint
from ..hardware import Model
from .offers import BITS_OF, GPU, GPU_OF, MODEL, MODEL_OF, WEIGHTS

LONGEST = 131_072
CONTEXTS = tuple(2**power for power in range(9, 18))
GB, KIB = 1e9, 1024


def explore(model: str, weights: str, gpu: str, gpus: str, kv: str, context: int) -> Picture:
    """The memory of each GPU, and how many sequences of `context` tokens their KV cache holds."""
    shape, card, count = MODEL_OF[model], GPU_OF[gpu], int(gpus)
    memory = footprint(shape, card, count, BITS_OF[weights], BITS_OF[kv])
    parts = (
        Series("weights", (memory.weights / GB,), "blue"),
        Series("work of a step (estimate)", (memory.work / GB,), "green"),
        Series("CUDA (estimate)", (memory.runtime / GB,), "paper"),
        Series("left for the KV cache", (max(0.0, memory.kv) / GB,), "orange"),
    )
    each = "the GPU" if count == 1 else f"each of {count} GPUs"
    charts = [
        Bars(
            f"Memory: {shape.name} on {count} × {card.name}",
            ("each GPU",),
            parts,
            "GB",
            Mark(memory.budget / GB, f"{SHARE:.0%} of {card.memory_bytes / GB:g} GB"),
        )
    ]
    if fitting := [(length, memory.sequences(length)) for length in CONTEXTS if memory.sequences(length)]:
        here = memory.sequences(context)
        charts.append(
            Lines(
                "Sequences that fit at once",
                (Line("sequences", *zip(*fitting, strict=True)),),
                "context length, tokens",
                "sequences",
                log_x=True,
                log_y=True,
                here=(context, here) if here else None,
            )
        )
    return Picture(
        _words(shape, memory, context, defaults(card)[0], each),
        tuple(charts),
        header=("Each GPU", ""),
        rows=(
            ("weights", f"{memory.weights / GB:,.2f} GB"),
            ("work of a step, estimate", f"{memory.work / GB:,.2f} GB"),
            ("CUDA, estimate", f"{memory.runtime / GB:,.2f} GB"),
            ("left for the KV cache", f"{memory.kv / GB:,.2f} GB"),
            ("KV cache of a token", f"{memory.kv_token / KIB:,.1f} KiB"),
            ("tokens in the KV cache", f"{memory.kv_tokens:,}"),
        ),
    )


def _words(model: Model, memory: Footprint, context: int, seats: int, each: str) -> str:
    what = f"{model.name} takes {memory.weights / GB:,.1f} GB of {each} for weights"
    if memory.kv <= 0:
        return (
            f"It does not fit: {what}, and with {(memory.work + memory.runtime) / GB:.1f} GB for the work, estimated, "
            f"that is {-memory.kv / GB:,.1f} GB more than the engine may use. "
            "Take more or larger GPUs, or weights of fewer bits."
        )
    words = (
        f"{what}, and {memory.kv / GB:,.1f} GB are left for the KV cache: {memory.kv_tokens:,} tokens of "
        f"{memory.kv_token / KIB:,.0f} KiB."
    )
    if not (sequences := memory.sequences(context)):
        return f"A sequence of {context:,} tokens does not fit: {words}"
    words = (
        f"It fits. {words} That is {sequences:,} {'sequence' if sequences == 1 else 'sequences'} of {context:,} tokens"
    )
    return f"{words}; vLLM runs {seats:,} of them at once unless told otherwise." if sequences > seats else f"{words}."


EXPLORATION = Exploration(
    "Does it fit?",
    (
        MODEL,
        WEIGHTS,
        GPU,
        Choice("gpus", "GPUs (tensor parallel)", "1", tuple((str(n), str(n)) for n in (1, 2, 4, 8))),
        Choice("kv", "KV cache", "16", (("16", "16 bits (BF16)"), ("8", "8 bits (FP8)"))),
        Number("context", "Context length", 8192, 1, LONGEST, unit="tokens"),
    ),
    explore,
)
