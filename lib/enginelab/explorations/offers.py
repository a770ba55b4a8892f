"""The models, GPUs and precisions that several live figures offer, by the value that stands in an address."""

from __future__ import annotations

from ..exploring import Choice
from ..hardware import GPUS, MODELS, Gpu, Model


def _short(name: str) -> str:
    return name.lower().replace(" ", "-")


MODEL_OF: dict[str, Model] = {_short(model.name): model for model in MODELS}
GPU_OF: dict[str, Gpu] = {_short(gpu.name): gpu for gpu in GPUS}
# NVFP4 keeps a scale of 8 bits for every 16 weights of 4 bits.
BITS_OF = {"16": 16.0, "8": 8.0, "4": 4.5}

MODEL = Choice("model", "Model", "llama-3.1-8b", tuple((short, model.name) for short, model in MODEL_OF.items()))
GPU = Choice(
    "gpu",
    "GPU",
    "h100-sxm",
    tuple((short, f"{gpu.name}, {gpu.memory_bytes / 1e9:g} GB") for short, gpu in GPU_OF.items()),
)
WEIGHTS = Choice("weights", "Weights", "16", (("16", "16 bits (BF16)"), ("8", "8 bits (FP8)"), ("4", "4 bits (NVFP4)")))
