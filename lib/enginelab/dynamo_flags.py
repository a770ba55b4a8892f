"""Dynamo's flags: what each program of a Dynamo service is told on its command line. (Chapter 7; the Dynamo lab.)

Checked on 1 December 2026 against the parsers of ai-dynamo 1.6.1. A worker takes the flags of its engine too: those of
vLLM come from vLLM's parser (0.31.0, which 1.6.1 asks for), those of SGLang from SGLang's; TensorRT-LLM's worker has a
parser of its own.
"""

from __future__ import annotations

from .flags import SGLANG, VLLM, Dialect, Fact

VERSION = "1.6.1"

_PLANES = (
    Fact(
        "--discovery-backend",
        "Where programs find each other: etcd, kubernetes, or file, a folder on this machine (DYN_FILE_KV).",
    ),
    Fact("--request-plane", "How requests get from router to worker: tcp, or nats."),
    Fact("--event-plane", "How workers tell the router what their caches hold: zmq, or nats."),
)
_DISAGGREGATION = Fact("--disaggregation-mode", "What the worker does: agg for both phases, or only prefill or decode.")
# A worker has no HTTP port, and puts no answers together: the frontend does both.
_NOT_SERVED = ("--host", "--port", "--enable-prompt-tokens-details")


def _dialect(module: str, facts: tuple[Fact, ...], names_model: bool = True) -> Dialect:
    programs = tuple((python, "-m", f"dynamo.{module}") for python in ("python3", "python"))
    return Dialect("Dynamo", VERSION, programs, False, facts + _PLANES, names_model)


def _worker_of(engine: Dialect) -> tuple[Fact, ...]:
    return tuple(fact for fact in engine.facts if fact.name not in (*_NOT_SERVED, _DISAGGREGATION.name))


FRONTEND = _dialect(
    "frontend",
    (
        Fact("--http-host", "Address to listen on; 0.0.0.0, every network, by default. Labs use 127.0.0.1."),
        Fact("--http-port", "TCP port of the OpenAI-style endpoint, 8000 by default."),
        Fact("--router-mode", "How a worker is chosen: kv, round-robin (the default), random, least-loaded, …"),
        Fact("--router-min-initial-workers", "How many workers must be there before the router begins."),
        Fact("--router-kv-events", "Follow the workers' KV events. On by default.", False),
        Fact("--no-router-kv-events", "Guess what the caches hold from where requests were sent.", False),
        Fact("--namespace", "Look for workers in this namespace only."),
    ),
    names_model=False,
)

MOCKER = _dialect(
    "mocker",
    (
        Fact("--model-path", "Where the tokenizer is: a folder or a name on the hub. There are no weights to read."),
        Fact("--model-name", "The name that clients use in requests."),
        Fact("--num-workers", "How many simulated engines this one process holds."),
        Fact("--num-gpu-blocks-override", "KV blocks of each simulated engine, 16,384 by default."),
        Fact("--block-size", "Tokens in one KV block; 64 by default for the simulated vLLM."),
        Fact("--max-num-seqs", "Most sequences in one step: the slots of continuous batching."),
        Fact("--max-num-batched-tokens", "Most tokens in one step, prefill and decode together: the token budget."),
        Fact("--speedup-ratio", "How much faster than the clock the simulated engine runs."),
        Fact("--bootstrap-ports", "A port for each prefill worker, on which decode workers ask for its KV cache."),
        Fact("--kv-transfer-bandwidth", "GB/s at which KV cache moves from prefill to decode."),
        _DISAGGREGATION,
    ),
)

VLLM_WORKER = _dialect(
    "vllm",
    (
        Fact("--model", "The model: a name on the hub or a local folder."),
        Fact("--kv-events-config", "Where vLLM publishes what its prefix cache stores and drops, as JSON."),
        _DISAGGREGATION,
        *_worker_of(VLLM),
    ),
)

SGLANG_WORKER = _dialect(
    "sglang",
    (
        Fact("--kv-events-config", "Where SGLang publishes what its radix cache stores and drops, as JSON."),
        Fact("--disaggregation-transfer-backend", "What moves the KV cache between GPUs: nixl, mooncake."),
        Fact("--host", "Address of the port below. A pod's own network is all that 0.0.0.0 opens it to in a cluster."),
        Fact("--disaggregation-bootstrap-port", "Port on which decode workers ask a prefill worker for its KV cache."),
        _DISAGGREGATION,
        *_worker_of(SGLANG),
    ),
)

TENSORRT_LLM_WORKER = _dialect(
    "trtllm",
    (
        Fact("--model-path", "The model: a name on the hub or a local folder.", aliases=("--model",)),
        Fact("--served-model-name", "The name that clients use in requests."),
        Fact("--tensor-parallel-size", "Split each layer over this many GPUs."),
        Fact("--max-num-tokens", "Most tokens in one step, prefill and decode together: the token budget."),
        Fact("--max-batch-size", "Most requests in one step: the slots of in-flight batching."),
        Fact("--max-seq-len", "Longest sequence, prompt and output together, in tokens."),
        Fact("--kv-block-size", "Tokens in one KV block."),
        Fact("--free-gpu-memory-fraction", "Share of the memory left after loading that the KV cache may take."),
        Fact("--extra-engine-args", "A YAML file with more settings of TensorRT-LLM."),
        Fact("--override-engine-args", "More settings of TensorRT-LLM as JSON; they win over the file's."),
        Fact(
            "--publish-kv-events",
            "Tell the router what the KV cache stores and drops.",
            False,
            changed="The older `--publish-events-and-metrics`, which did this and the next, is deprecated.",
        ),
        Fact("--publish-metrics", "Tell the router how busy the worker is.", False),
        _DISAGGREGATION,
    ),
)

DIALECTS = (FRONTEND, MOCKER, VLLM_WORKER, SGLANG_WORKER, TENSORRT_LLM_WORKER)
