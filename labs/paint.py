"""Paint pictures with plain diffusers, the reference for the image labs: python paint.py MODEL < tasks.json

MODEL is a folder or a name on the hub. Standard input holds a list of tasks, each {"prompt", "size", "steps", "seed",
"file"} and "options", further arguments that this model's pipeline takes. Every picture is written to its file, as PNG.
The noise is drawn on the CPU, so that a seed means the same picture on every machine. Run it with the engine
environment's Python.
"""

import json
import os
import sys
from importlib.util import find_spec

os.environ.setdefault("DIFFUSERS_VERBOSITY", "error")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")


def pipeline(model: str):
    """The model as diffusers runs it: in float32 on a CPU; on a GPU in bfloat16.

    There only the part that works is in the GPU's memory, if the package is there with which diffusers does that.
    """
    import torch
    from diffusers import DiffusionPipeline

    gpu = torch.cuda.is_available()
    made = DiffusionPipeline.from_pretrained(model, torch_dtype=torch.bfloat16 if gpu else torch.float32)
    if gpu and find_spec("accelerate"):
        made.enable_model_cpu_offload()
    elif gpu:
        made.to("cuda")
    made.set_progress_bar_config(disable=True)
    return made


def main(model: str, tasks: list[dict]) -> None:
    """Paint every task."""
    import torch

    made = pipeline(model)
    for task in tasks:
        width, height = map(int, task["size"].split("x"))
        painted = made(
            task["prompt"],
            width=width,
            height=height,
            num_inference_steps=task["steps"],
            generator=torch.Generator().manual_seed(task["seed"]),
            **task.get("options", {}),
        )
        painted.images[0].save(task["file"], format="PNG")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python paint.py MODEL < tasks.json")
    main(sys.argv[1], json.load(sys.stdin))
