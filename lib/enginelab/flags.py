"""Flags: what each launch flag of each engine does. (Chapters 3 to 5.) Which technique they turn on, `atlas` says.

Checked on 1 December 2026 against vLLM 0.33.0's documentation and the parser of its 0.32.0 CPU build, the flag
declarations of SGLang 0.5.23, and the command-line reference that TensorRT-LLM keeps in its repository
(`tests/unittest/api_stability/references/trtllm_serve_cli.yaml`, 1.4 development line).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

CHECKED = "1 December 2026"


class Fact(NamedTuple):
    """One flag of one engine.

    name         as it is written: "--max-num-seqs"
    says         what it does, in a sentence
    takes_value  False for a switch
    aliases      other spellings that the engine takes for the same flag
    changed      what is different today from the lesson, or ""
    """

    name: str
    says: str
    takes_value: bool = True
    aliases: tuple[str, ...] = ()
    changed: str = ""


@dataclass(frozen=True)
class Dialect:
    """How one engine is launched: the words before the flags, where the model goes (if it has one), and the flags.

    mark: the flag that tells its commands from another engine's with the same program, "" where there is none.
    """

    engine: str
    version: str
    programs: tuple[tuple[str, ...], ...]
    model_is_positional: bool
    facts: tuple[Fact, ...]
    names_model: bool = True
    mark: str = ""

    def fact(self, name: str) -> Fact:
        """The flag called `name`, by any of its spellings; `ValueError` if the course knows no such flag."""
        for fact in self.facts:
            if name == fact.name or name in fact.aliases:
                return fact
        raise ValueError(f"{self.engine} has no flag {name!r} that this course knows; the glossary lists those it does")


VLLM = Dialect(
    "vLLM",
    "0.33.0",
    (("vllm", "serve"),),
    True,
    (
        Fact("--host", "Address to listen on. Labs use 127.0.0.1: this machine only."),
        Fact("--port", "TCP port to listen on, 8000 by default."),
        Fact("--served-model-name", "The name that clients use in requests, instead of the path of the model."),
        Fact("--dtype", "Number format of weights and activations: auto, bfloat16, half, float32."),
        Fact("--max-model-len", "Longest sequence, prompt and output together, in tokens."),
        Fact("--max-num-seqs", "Most sequences in one step: the slots of continuous batching."),
        Fact("--max-num-batched-tokens", "Most tokens in one step, prefill and decode together: the token budget."),
        Fact("--gpu-memory-utilization", "Share of the GPU's memory that vLLM may use for weights, work and KV cache."),
        Fact("--block-size", "Tokens in one KV block."),
        Fact("--kv-offloading-size", "GiB of the machine's memory that take KV blocks evicted from the GPU."),
        Fact("--kv-cache-dtype", "Number format of the KV cache: auto, or fp8 to halve its size."),
        Fact("--quantization", "How the weights are quantized, where the checkpoint does not say so itself."),
        Fact("--speculative-config", "Speculative decoding as JSON: method, draft model, number of draft tokens."),
        Fact("--attention-backend", "Which kernels compute attention; chosen to fit the GPU when not given."),
        Fact("--max-cudagraph-capture-size", "Largest batch, in tokens, for which a CUDA graph is captured."),
        Fact("--enable-lora", "Serve LoRA adapters beside the model that they belong to.", False),
        Fact("--structured-outputs-config", "How answers are held to a grammar or JSON schema, as JSON: the back end."),
        Fact("--disable-log-stats", "Keep no statistics: nothing in the log, and little in /metrics.", False),
        Fact(
            "--enable-prefix-caching",
            "Reuse the KV blocks of equal prompt beginnings. On by default.",
            False,
        ),
        Fact("--no-enable-prefix-caching", "Switch prefix caching off, to measure without it.", False),
        Fact(
            "--enable-chunked-prefill",
            "Split long prompts over several steps. On by default.",
            False,
        ),
        Fact("--no-enable-chunked-prefill", "Prefill each prompt in one piece.", False),
        Fact("--tensor-parallel-size", "Split each layer over this many GPUs.", aliases=("-tp",)),
        Fact("--pipeline-parallel-size", "Split the stack of layers over this many stages.", aliases=("-pp",)),
        Fact("--data-parallel-size", "Run this many copies of the model behind one server.", aliases=("-dp",)),
        Fact(
            "--enable-expert-parallel",
            "Place different experts of an MoE model on different GPUs.",
            False,
            ("-ep",),
        ),
        Fact(
            "--kv-transfer-config",
            "Hand the KV cache to another server, for disaggregation: connector and role as JSON.",
        ),
        Fact(
            "--enable-prompt-tokens-details",
            "Say in each answer how many prompt tokens were found in the cache.",
            False,
        ),
        Fact("--enforce-eager", "Run without capturing graphs: starts sooner, runs slower.", False),
        Fact("--trust-remote-code", "Allow Python code from the model's repository to run.", False),
        Fact("--seed", "Seed of the engine's random numbers."),
    ),
)

SGLANG = Dialect(
    "SGLang",
    "0.5.23",
    (("python3", "-m", "sglang.launch_server"), ("python", "-m", "sglang.launch_server"), ("sglang", "serve")),
    False,
    (
        Fact("--model-path", "The model: a name on the hub or a local folder.", aliases=("--model",)),
        Fact("--host", "Address to listen on, 127.0.0.1 by default."),
        Fact("--port", "TCP port to listen on, 30000 by default."),
        Fact("--served-model-name", "The name that clients use in requests."),
        Fact("--dtype", "Number format of weights and activations: auto, bfloat16, half, float32."),
        Fact("--device", "cuda, cpu, …; found out by itself when not given."),
        Fact("--context-length", "Longest sequence, prompt and output together, in tokens."),
        Fact("--max-running-requests", "Most requests in one step: the slots of continuous batching."),
        Fact("--max-prefill-tokens", "Most prompt tokens in one prefill batch."),
        Fact("--chunked-prefill-size", "Most tokens in one chunk of a long prompt; -1 switches chunking off."),
        Fact("--enable-mixed-chunk", "Let a step hold a prompt's chunk and decoding requests together.", False),
        Fact("--mem-fraction-static", "Share of the GPU's memory for weights and KV cache together."),
        Fact("--max-total-tokens", "Most tokens in the KV cache, where its share of the memory would hold more."),
        Fact("--page-size", "Tokens in one KV page; the radix cache shares whole pages. 1 by default."),
        Fact("--enable-hierarchical-cache", "Keep evicted KV pages in the machine's memory.", False),
        Fact("--hicache-ratio", "Size of that memory, as a multiple of the KV cache on the GPU."),
        Fact("--kv-cache-dtype", "Number format of the KV cache."),
        Fact("--quantization", "How the weights are quantized, where the checkpoint does not say so itself."),
        Fact(
            "--speculative-algorithm", "Speculative decoding by this algorithm: EAGLE, EAGLE3, NEXTN, NGRAM and others."
        ),
        Fact("--speculative-num-steps", "How many steps the draft runs ahead."),
        Fact("--speculative-eagle-topk", "How many candidates the draft keeps at each step."),
        Fact("--speculative-num-draft-tokens", "How many draft tokens the large model checks at once."),
        Fact(
            "--speculative-draft-model-path",
            "The draft model, where the served model does not bring one along.",
            aliases=("--speculative-draft-model",),
        ),
        Fact("--attention-backend", "Which kernels compute attention; found out by itself when not given."),
        Fact("--disable-overlap-schedule", "Plan a step only when the one before is done, not while it runs.", False),
        Fact("--disable-radix-cache", "Switch prefix caching off. The radix cache is on by default.", False),
        Fact("--cuda-graph-max-bs-decode", "Largest decode batch for which a CUDA graph is captured."),
        Fact("--enable-lora", "Serve LoRA adapters beside the model that they belong to.", False),
        Fact("--lora-paths", "The LoRA adapters to load, as NAME=PATH."),
        Fact("--grammar-backend", "What holds answers to a grammar or JSON schema: xgrammar, llguidance and others."),
        Fact(
            "--tp-size",
            "Split each layer over this many GPUs.",
            aliases=("--tensor-parallel-size", "--tp"),
            changed="Not declared as `--tp` any more: the parser takes it as an abbreviation. Write `--tp-size`.",
        ),
        Fact("--pp-size", "Split the stack of layers over this many stages.", aliases=("--pipeline-parallel-size",)),
        Fact("--dp-size", "Run this many copies of the model behind one server.", aliases=("--data-parallel-size",)),
        Fact("--ep-size", "Spread the experts over this many GPUs.", aliases=("--expert-parallel-size", "--ep")),
        Fact("--disaggregation-mode", "Serve only prefill or only decode."),
        Fact("--trust-remote-code", "Allow Python code from the model's repository to run.", False),
        Fact("--enable-metrics", "Offer /metrics for Prometheus.", False),
        Fact("--enable-cache-report", "Say in each answer how many prompt tokens were found in the cache.", False),
        Fact("--decode-log-interval", "Decode steps between two lines of the log, 40 by default."),
    ),
)

TENSORRT_LLM = Dialect(
    "TensorRT-LLM",
    "1.4 development line",
    (("trtllm-serve",),),
    True,
    (
        Fact("--host", "Address to listen on, localhost by default. 0.0.0.0 opens the server to the network."),
        Fact("--port", "TCP port to listen on, 8000 by default."),
        Fact(
            "--backend",
            "Which engine runs the model; `pytorch` is the standalone one of V1.",
            changed="Deprecated: `pytorch` is the default, and the TensorRT back end left after 1.3.0rc20 (June 2026).",
        ),
        Fact("--max_batch_size", "Most requests in one step: the slots of in-flight batching."),
        Fact("--max_num_tokens", "Most tokens in one step, prefill and decode together: the token budget."),
        Fact("--max_seq_len", "Longest sequence, prompt and output together, in tokens."),
        Fact(
            "--free_gpu_memory_fraction",
            "Share of the memory left after loading the weights that the KV cache may take.",
            aliases=("--kv_cache_free_gpu_memory_fraction",),
            changed="The lesson's longer name is an alias. Older versions drop it when the YAML has any "
            "`kv_cache_config`: put it there, which is right on all versions.",
        ),
        Fact(
            "--tensor_parallel_size",
            "Split each layer over this many GPUs.",
            aliases=("--tp_size",),
            changed="`--tp_size` is another name, and the only one up to autumn 2025.",
        ),
        Fact("--pipeline_parallel_size", "Split the stack of layers over this many stages.", aliases=("--pp_size",)),
        Fact(
            "--moe_expert_parallel_size",
            "Spread the experts over this many GPUs.",
            aliases=("--ep_size",),
            changed="`--ep_size` is another name, and the only one up to autumn 2025.",
        ),
        Fact(
            "--kv_cache_dtype",
            "Number format of the KV cache: auto, fp8, nvfp4.",
            changed="Since 1.3.0rc7 (March 2026); before, write `dtype` below `kv_cache_config` in the YAML.",
        ),
        Fact("--enable_attention_dp", "Compute attention on each GPU for requests of its own: for MoE models.", False),
        Fact("--enable_chunked_prefill", "Split long prompts over several steps so that decode goes on.", False),
        Fact("--trust_remote_code", "Allow Python code from the model's repository to run.", False),
        Fact(
            "--served_model_name",
            "The name that clients use in requests.",
            changed="Since 1.3.0rc7 (March 2026); before, they use the model's own name.",
        ),
        Fact(
            "--config",
            "A YAML file with every further option.",
            aliases=("--extra_llm_api_options",),
            changed="`--config` is the preferred name. Up to 1.2 the YAML silently overrode the command line; since "
            "June 2026 an explicit flag wins.",
        ),
    ),
)

DIALECTS = (VLLM, SGLANG, TENSORRT_LLM)
