"""The command atlas: for each technique, what turns it on or sizes it in each engine, and since when. (Every chapter.)

What a flag does stands in `flags`, what it is for stands here. A setting that has no entry there, such as a key of
TensorRT-LLM's YAML file or a flag of one of Dynamo's programs, says itself what it does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .flags import DIALECTS
from .table import Table

ENGINES = ("vLLM", "SGLang", "TensorRT-LLM", "Dynamo")

SOURCES = {
    "vLLM": "the argument files of the vllm packages on PyPI, from 0.2.0 on: both the release in which a flag is first "
    "there and the one before it were read",
    "SGLang": "the argument files of the sglang packages on PyPI, every release from 0.1.3 on except post releases",
    "TensorRT-LLM": "the documentation of 0.18.2; the reference lists in NVIDIA's repository, on the 1.2 and 1.4 "
    "development lines; the notes of release 1.3.0rc7",
    "Dynamo": "the ai-dynamo packages on PyPI, from 0.3.0 on: both the release in which a flag is first there and the "
    "one before it were read",
}
"""Engine -> where `Setting.since` and `Setting.until` were read, December 2026."""


class Setting(NamedTuple):
    """One flag, or key of a YAML file, that turns a technique on or sizes it.

    engine  one of `ENGINES`
    name    "--max-num-seqs"; without dashes a key of TensorRT-LLM's YAML, a dot for each level down
    since   the first version that has it, as far as the sources tell; "" where they do not
    until   the last version that has it, "" if the newest still does
    does    what it does, where `flags` has no entry
    """

    engine: str
    name: str
    since: str = ""
    until: str = ""
    does: str = ""

    @property
    def says(self) -> str:
        """What it does, in a sentence."""
        if self.does:
            return self.does
        return next(dialect for dialect in DIALECTS if dialect.engine == self.engine).fact(self.name).says

    @property
    def versions(self) -> str:
        """Since and until, in words."""
        since = f"since {self.since}" if self.since and " " not in self.since else self.since or "not known"
        return f"{since}, until {self.until}" if self.until else since


@dataclass(frozen=True)
class Technique:
    """One technique: its name, and its settings in the order of `ENGINES`."""

    name: str
    settings: tuple[Setting, ...]

    def of(self, engine: str) -> tuple[Setting, ...]:
        """What `engine` has for it today; empty if nothing."""
        return tuple(setting for setting in self.settings if setting.engine == engine and not setting.until)


def _technique(name: str, **engines: tuple[tuple[str, ...], ...]) -> Technique:
    names = dict(zip(("vllm", "sglang", "tensorrt_llm", "dynamo"), ENGINES, strict=True))
    return Technique(name, tuple(Setting(names[key], *row) for key, rows in engines.items() for row in rows))


TECHNIQUES = (
    _technique(
        "continuous batching",
        vllm=(("--max-num-seqs", "0.2.0 or earlier"),),
        sglang=(("--max-running-requests", "0.1.17"),),
        tensorrt_llm=(("--max_batch_size", "0.18.2 or earlier"),),
    ),
    _technique(
        "token budget",
        vllm=(("--max-num-batched-tokens", "0.2.0 or earlier"),),
        sglang=(("--max-prefill-tokens", "0.1.17"),),
        tensorrt_llm=(("--max_num_tokens", "0.18.2 or earlier"),),
    ),
    _technique(
        "chunked prefill",
        vllm=(("--enable-chunked-prefill", "0.4.0"),),
        sglang=(("--chunked-prefill-size", "0.2.7"), ("--enable-mixed-chunk", "0.2.14")),
        tensorrt_llm=(("--enable_chunked_prefill", "1.2.0rc0 or earlier"),),
    ),
    _technique(
        "sequence length",
        vllm=(("--max-model-len", "0.2.0 or earlier"),),
        sglang=(("--context-length", "0.1.13"),),
        tensorrt_llm=(("--max_seq_len", "0.18.2 or earlier"),),
    ),
    _technique(
        "KV cache memory",
        vllm=(("--gpu-memory-utilization", "0.2.0 or earlier"), ("--block-size", "0.2.0 or earlier")),
        sglang=(
            ("--mem-fraction-static", "0.1.3 or earlier"),
            ("--max-total-tokens", "0.2.8"),
            ("--page-size", "0.4.4"),
        ),
        tensorrt_llm=(("--free_gpu_memory_fraction", "after 1.2.0rc0, by 1.3.0rc7"),),
    ),
    _technique(
        "KV cache offload",
        vllm=(("--kv-offloading-size", "0.11.1"),),
        sglang=(("--enable-hierarchical-cache", "0.4.3"), ("--hicache-ratio", "0.4.5")),
        tensorrt_llm=(
            ("kv_cache_config.host_cache_size", "", "", "Bytes of the machine's memory that take evicted KV blocks."),
        ),
    ),
    _technique(
        "quantization of weights",
        vllm=(("--quantization", "0.2.0 or earlier"),),
        sglang=(("--quantization", "0.1.17"),),
        tensorrt_llm=(
            (
                "force_dynamic_quantization",
                "1.2.0rc2 or earlier",
                "",
                "Quantize while loading. Without it the checkpoint says how its weights are quantized.",
            ),
        ),
    ),
    _technique(
        "quantization of the KV cache",
        vllm=(("--kv-cache-dtype", "0.3.0"),),
        sglang=(("--kv-cache-dtype", "0.2.14"),),
        tensorrt_llm=(
            ("--kv_cache_dtype", "1.3.0rc7"),
            ("kv_cache_config.dtype", "", "", "The same in the YAML file: auto, fp8, nvfp4."),
        ),
    ),
    _technique(
        "speculative decoding",
        vllm=(("--speculative-config", "0.8.2"),),
        sglang=(("--speculative-algorithm", "0.4.2"),),
        tensorrt_llm=(
            ("speculative_config", "1.2.0rc2 or earlier", "", "The method, by its `decoding_type`, and its settings."),
        ),
    ),
    _technique(
        "prefix caching",
        vllm=(("--enable-prefix-caching", "0.4.0"),),
        sglang=(("--disable-radix-cache", "0.1.13"),),
        tensorrt_llm=(
            ("kv_cache_config.enable_block_reuse", "", "", "Reuse the KV blocks of equal prompt beginnings, or not."),
        ),
    ),
    _technique(
        "KV-aware routing",
        vllm=(("--kv-events-config", "0.9.0", "", "Publish which KV blocks come and go, as JSON: where to."),),
        sglang=(("--kv-events-config", "0.4.7", "", "Publish which KV pages come and go, as JSON: where to."),),
        tensorrt_llm=(
            (
                "kv_cache_config.event_buffer_max_size",
                "",
                "",
                "How many messages on KV blocks that come and go are kept for a router; 0 for none.",
            ),
        ),
        dynamo=(
            ("--router-mode", "0.4.0", "", "For the front end: `kv` sends a request where its prompt's KV blocks are."),
            ("--router-policy-config", "1.3.0", "", "For the front end: a file with the weights of that choice."),
        ),
    ),
    _technique(
        "tensor parallelism",
        vllm=(("--tensor-parallel-size", "0.2.0 or earlier"),),
        sglang=(("--tp-size", "0.1.3 or earlier"),),
        tensorrt_llm=(("--tensor_parallel_size", "after 1.2.0rc0, by 1.3.0rc7"),),
    ),
    _technique(
        "pipeline parallelism",
        vllm=(("--pipeline-parallel-size", "0.2.0 or earlier"),),
        sglang=(("--pp-size", "0.4.7"),),
        tensorrt_llm=(("--pipeline_parallel_size", "after 1.2.0rc0, by 1.3.0rc7"),),
    ),
    _technique(
        "expert parallelism",
        vllm=(("--enable-expert-parallel", "0.8.0"),),
        sglang=(("--ep-size", "0.4.1"),),
        tensorrt_llm=(("--moe_expert_parallel_size", "after 1.2.0rc0, by 1.3.0rc7"),),
    ),
    _technique(
        "data parallelism",
        vllm=(("--data-parallel-size", "0.8.3"),),
        sglang=(
            ("--dp-size", "0.1.17"),
            (
                "--attn-dp-size",
                "0.5.22",
                "",
                "Compute attention in this many groups of GPUs, each with requests of its own.",
            ),
        ),
        tensorrt_llm=(("--enable_attention_dp", "after 1.3.0rc7, by 1.4.0rc0"),),
        dynamo=(("--router-mode", "0.4.0", "", "For the front end: how requests are divided among equal workers."),),
    ),
    _technique(
        "disaggregation",
        vllm=(("--kv-transfer-config", "0.6.5"),),
        sglang=(("--disaggregation-mode", "0.4.5"),),
        tensorrt_llm=(
            (
                "cache_transceiver_config",
                "1.2.0rc2 or earlier",
                "",
                "How the KV cache travels between two servers.",
            ),
        ),
        dynamo=(
            (
                "--disaggregation-mode",
                "1.0.0",
                "",
                "For a worker such as `dynamo.vllm`: only prefill or only decode.",
            ),
            (
                "--router-conditional-disagg",
                "1.5.0",
                "",
                "For the front end, experimental: prefill where decode will be if sending away does not pay.",
            ),
        ),
    ),
    _technique(
        "attention kernels",
        vllm=(("--attention-backend", "0.13.0"),),
        sglang=(("--attention-backend", "0.3.1"),),
        tensorrt_llm=(("attn_backend", "1.2.0rc2 or earlier", "", "Which kernels compute attention."),),
    ),
    _technique(
        "CUDA graphs",
        vllm=(("--max-cudagraph-capture-size", "0.11.1"), ("--enforce-eager", "0.2.6")),
        sglang=(
            ("--cuda-graph-max-bs-decode", "0.5.14"),
            ("--cuda-graph-max-bs", "0.3.5", "0.5.19", "Became `--cuda-graph-max-bs-decode` and its like for prefill."),
        ),
        tensorrt_llm=(
            (
                "cuda_graph_config",
                "1.2.0rc2 or earlier",
                "",
                "For which batch sizes CUDA graphs are captured; null for none.",
            ),
        ),
    ),
    _technique(
        "LoRA",
        vllm=(("--enable-lora", "0.3.0"),),
        sglang=(("--enable-lora", "0.4.10"), ("--lora-paths", "0.3.1")),
        tensorrt_llm=(("lora_config", "1.2.0rc2 or earlier", "", "Which adapters are served, and how many at once."),),
    ),
    _technique(
        "structured output",
        vllm=(
            ("--structured-outputs-config", "0.11.0"),
            (
                "--guided-decoding-backend",
                "0.4.1",
                "0.11.2",
                "Became the key `backend` in the JSON of `--structured-outputs-config`.",
            ),
        ),
        sglang=(("--grammar-backend", "0.3.5"),),
        tensorrt_llm=(
            (
                "guided_decoding_backend",
                "1.2.0rc2 or earlier",
                "",
                "What holds answers to a grammar or JSON schema: xgrammar or llguidance.",
            ),
        ),
    ),
    _technique(
        "metrics",
        vllm=(("--disable-log-stats", "0.2.0 or earlier"),),
        sglang=(("--enable-metrics", "0.3.6"),),
        tensorrt_llm=(
            ("enable_iter_perf_stats", "1.2.0rc2 or earlier", "", "Count what each step did, for /metrics."),
            ("print_iter_log", "1.2.0rc2 or earlier", "", "Print what each step did."),
        ),
        dynamo=(("--metrics-prefix", "0.5.0", "", "For the front end: the first word of its metrics' names."),),
    ),
)


def technique(name: str) -> Technique:
    """The technique of that name; `ValueError` if the atlas has none."""
    for found in TECHNIQUES:
        if found.name == name:
            return found
    raise ValueError(f"the atlas has no technique {name!r}; it has {', '.join(each.name for each in TECHNIQUES)}")


def table() -> Table:
    """The whole atlas: a row for each technique and setting."""
    return Table(
        ("Technique", "Engine", "Flag or key", "What it does", "Version"),
        tuple(
            (each.name, setting.engine, _code(setting), setting.says, setting.versions)
            for each in TECHNIQUES
            for setting in each.settings
        ),
    )


def explained(*names: str) -> Table:
    """Flag and what it does, for the three engines and the techniques called `names`."""
    return Table(
        ("Engine and flag", "What it does"),
        tuple(
            (f"{setting.engine} `{setting.name}`", setting.says)
            for name in names
            for engine in ENGINES[:3]
            for setting in technique(name).of(engine)
        ),
    )


def column(engine: str) -> Table:
    """Every technique with what `engine` calls it."""
    rows = ((each.name, _spelled(each, engine)) for each in TECHNIQUES)
    return Table(("Technique", f"In {engine}"), tuple(rows))


def row(name: str) -> Table:
    """The technique called `name`: each of the three engines with its flags or keys."""
    rows = ((engine, _spelled(technique(name), engine)) for engine in ENGINES[:3])
    return Table(("Engine", "Flag or YAML key"), tuple(rows))


def spellings(*names: str) -> Table:
    """Techniques (all by default), a row for each of the three engines."""
    chosen = [technique(name) for name in names] or TECHNIQUES
    rows = (
        (each.name if engine == ENGINES[0] else "", f"{engine}: {_spelled(each, engine)}")
        for each in chosen
        for engine in ENGINES[:3]
    )
    return Table(("Technique", "Turned on or sized by"), tuple(rows))


def _code(setting: Setting) -> str:
    # The book strikes what is `refused` through, and the check of all its flags then expects that no engine takes it.
    return f"`{setting.name}`" + (f"{{.refused .by-{setting.engine.lower()}}}" if setting.until else "")


def _spelled(each: Technique, engine: str) -> str:
    return ", ".join(f"`{setting.name}`" for setting in each.of(engine))
