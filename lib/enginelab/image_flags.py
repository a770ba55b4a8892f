"""The flags of the two engines that paint pictures, beside `flags`. (The image labs.)

Checked on 1 December 2026 against the parsers of vLLM Omni 0.32.0rc1 and SGLang 0.5.14.
"""

from __future__ import annotations

from .flags import Dialect, Fact

VLLM_OMNI = Dialect(
    "vLLM Omni",
    "0.32.0rc1",
    (("vllm", "serve"), ("vllm-omni", "serve")),
    True,
    (
        Fact("--omni", "Hand the model to vLLM Omni, which serves pictures, audio and video; not to vLLM.", False),
        Fact("--host", "Address to listen on. Labs use 127.0.0.1: this machine only."),
        Fact("--port", "TCP port to listen on, 8000 by default."),
        Fact("--served-model-name", "The name that clients use in requests, instead of the path of the model."),
        Fact("--dtype", "Number format of weights and activations: auto, bfloat16, half, float32."),
        Fact("--enable-cpu-offload", "Keep in the GPU's memory only the part of the model that works now.", False),
    ),
    mark="--omni",
)

SGLANG_DIFFUSION = Dialect(
    "SGLang Diffusion",
    "0.5.14",
    (("sglang", "serve"),),
    False,
    (
        Fact("--model-type", "`diffusion` for pictures and video; left out, SGLang looks at the model."),
        Fact("--model-path", "The model: a name on the hub or a local folder."),
        Fact("--backend", "`sglang` for its own code; with `auto` it may fall back to plain diffusers."),
        Fact("--output-path", "Folder for a copy of every picture; empty for none."),
        Fact("--dit-cpu-offload", "`true`: keep the transformer in the machine's memory while it does not work."),
        Fact("--host", "Address to listen on, 127.0.0.1 by default."),
        Fact("--port", "TCP port to listen on, 30000 by default. The next one is taken too, for jobs without HTTP."),
    ),
    mark="--model-type",
)

DIALECTS = (VLLM_OMNI, SGLANG_DIFFUSION)
