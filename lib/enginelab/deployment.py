"""A Dynamo service for a cluster: the DynamoGraphDeployment that describes it, as data and as YAML. (The Dynamo lab.)

    graph = deployment.graph("vLLM", "Qwen/Qwen3-0.6B", name="lab", namespace="dynamo", prefill=1, decode=2)
    print(deployment.to_yaml(graph))

The images, and what each kind of worker is told, follow the templates that ai-dynamo 1.6.1 carries in its wheel
(`dynamo/profiler/templates/dgd`), read on 1 December 2026. Two differences: the router is the KV-aware one, and
`--trust-remote-code` is left out. Every name is checked and quoted, so nothing that a learner types can become YAML.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from . import commands
from .commands import Command
from .deployment_schema import API_VERSION, KIND, MAIN, problems
from .workload import whole

VERSION = "1.6.1"
REGISTRY = "nvcr.io/nvidia/ai-dynamo"
MODEL_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?", re.ASCII)
RESOURCE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
GPU = "nvidia.com/gpu"
BOOTSTRAP_PORT, EVENTS_PORT = 12345, 20080
# vLLM opens this port only for an address with a *; for any other it connects, and nobody would be listening.
VLLM_EVENTS = {
    "publisher": "zmq",
    "topic": "kv-events",
    "endpoint": f"tcp://*:{EVENTS_PORT}",
    "enable_kv_cache_events": True,
}
SGLANG_EVENTS = {"publisher": "zmq", "topic": "kv-events", "endpoint": f"tcp://*:{EVENTS_PORT}"}
VLLM_TRANSFER = {
    kind: {"kv_connector": "NixlConnector", "kv_role": role}
    for kind, role in (("prefill", "kv_producer"), ("decode", "kv_consumer"))
}
# As in `examples/backends/trtllm/engine_configs/qwen3` of Dynamo's repository, December 2026: a worker that only
# prefills cannot run the overlap scheduler.
TENSORRT_LLM_POOLS = {
    "prefill": {"cache_transceiver_config": {"backend": "DEFAULT"}, "disable_overlap_scheduler": True},
    "decode": {"cache_transceiver_config": {"backend": "DEFAULT"}},
}
# Words that YAML would read as something else than text.
NOT_TEXT = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
PLAIN = re.compile(r"-{0,2}[A-Za-z][\w./-]*(:[\w.-]+)?", re.ASCII)


class Engine(NamedTuple):
    """How Dynamo names an engine: in `backendFramework`, in its module and in its image."""

    framework: str
    image: str


ENGINES = {
    "vLLM": Engine("vllm", f"{REGISTRY}/vllm-runtime:{VERSION}"),
    "SGLang": Engine("sglang", f"{REGISTRY}/sglang-runtime:{VERSION}"),
    "TensorRT-LLM": Engine("trtllm", f"{REGISTRY}/tensorrtllm-runtime:{VERSION}"),
}
FRONTEND = commands.parse("python3 -m dynamo.frontend --router-mode kv")


def worker(engine: str, model: str, kind: str = "worker", gpus: int = 1) -> Command:
    """The command of one worker, which a test has had parsed by Dynamo's own parser.

    engine: "vLLM", "SGLang" or "TensorRT-LLM"; model: its name on the hub; kind: "worker" (both phases), "prefill" or
    "decode"; gpus: over which the model is split. Raises `ValueError` for anything else.
    """
    if kind not in ("worker", "prefill", "decode"):
        raise ValueError(f"kind must be 'worker', 'prefill' or 'decode', not {kind!r}")
    named = _named("model", model, MODEL_NAME, "a name on the hub, such as Qwen/Qwen3-0.6B")
    words = ["python3", "-m", f"dynamo.{_engine(engine).framework}"]
    words += ["--model", named] if engine == "vLLM" else ["--model-path", named]
    words += ["--served-model-name", named]
    if whole("gpus", gpus, least=1) > 1:
        words += ["--tp-size" if engine == "SGLang" else "--tensor-parallel-size", str(gpus)]
    if kind != "worker":
        words += ["--disaggregation-mode", kind]
        words += {
            "vLLM": ["--kv-transfer-config", _json(VLLM_TRANSFER[kind])],
            "SGLang": [
                *("--disaggregation-transfer-backend", "nixl"),
                *("--disaggregation-bootstrap-port", str(BOOTSTRAP_PORT), "--host", "0.0.0.0"),
            ],
            "TensorRT-LLM": ["--override-engine-args", _json(TENSORRT_LLM_POOLS[kind])],
        }[engine]
    if kind != "decode":  # the router asks where a prompt's prefix is, and decode workers do not prefill
        words += {
            "vLLM": ["--kv-events-config", _json(VLLM_EVENTS)],
            "SGLang": ["--kv-events-config", _json(SGLANG_EVENTS)],
            "TensorRT-LLM": ["--publish-kv-events"],
        }[engine]
    return commands.parse(words)


def graph(
    engine: str,
    model: str,
    *,
    name: str,
    namespace: str,
    workers: int = 0,
    prefill: int = 0,
    decode: int = 0,
    gpus: int = 1,
    secret: str = "hf-token-secret",
) -> dict:
    """A frontend with the KV router, and workers: `workers` for both phases, or `prefill` and `decode` in two pools.

    name, namespace: of the deployment in the cluster; gpus: of each worker; secret: the name of the cluster's secret
    that holds HF_TOKEN, never the token. Raises `ValueError` naming what is no such name or number, or cannot be.
    """
    counts = {"worker": workers, "prefill": prefill, "decode": decode}
    kinds = {kind: whole(kind, count) for kind, count in counts.items() if count}
    if set(kinds) not in ({"worker"}, {"prefill", "decode"}):
        raise ValueError(f"give either workers, or both prefill and decode; got {counts}")
    for argument, value in (("name", name), ("namespace", namespace), ("secret", secret)):
        _named(argument, value, RESOURCE_NAME, "lower-case letters, digits and dashes, as Kubernetes wants")
    chosen = _engine(engine)
    made = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "backendFramework": chosen.framework,
            "components": [
                _component("frontend", 1, FRONTEND, chosen.image, secret),
                *(
                    _component(kind, count, worker(engine, model, kind, gpus), chosen.image, secret, gpus)
                    for kind, count in kinds.items()
                ),
            ],
        },
    }
    if wrong := problems(made):
        raise ValueError(wrong[0])
    return made


def _component(kind: str, replicas: int, command: Command, image: str, secret: str, gpus: int = 0) -> dict:
    container = {"name": MAIN, "image": image, "command": list(command.program)}
    container["args"] = command.argv[len(command.program) :]
    container["envFrom"] = [{"secretRef": {"name": secret}}]
    if gpus:
        container["resources"] = {"limits": {GPU: str(gpus)}}
    template = {"spec": {"containers": [container]}}
    return {"name": kind, "type": kind, "replicas": replicas, "podTemplate": template}


def to_yaml(value: object) -> str:
    """`value` (mappings, lists, texts, whole numbers, True and False, no empty ones) as YAML that reads back the same.

    A text is written bare only if YAML can take it for nothing but itself; else in quotes. Raises `ValueError` for one
    that is not printable ASCII, and `TypeError` for anything else.
    """
    return "\n".join(_lines(value)) + "\n"


def _lines(value) -> list[str]:
    if isinstance(value, dict) and value:
        out = []
        for key, item in value.items():
            nested = isinstance(item, (dict, list))
            out += [f"{_scalar(key)}:"] if nested else [f"{_scalar(key)}: {_scalar(item)}"]
            out += ["  " + line for line in _lines(item)] if nested else []
        return out
    if isinstance(value, list) and value:
        return [("  " if number else "- ") + line for item in value for number, line in enumerate(_lines(item))]
    return [_scalar(value)]


def _scalar(value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, str):
        raise TypeError(f"cannot be written as YAML here: {value!r}")
    if not value.isascii() or not value.isprintable():
        raise ValueError(f"text must be printable ASCII, not {value!r}")
    if PLAIN.fullmatch(value) and value.lower() not in NOT_TEXT:
        return value
    return "'" + value.replace("'", "''") + "'"


def _engine(name: str) -> Engine:
    if name not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, not {name!r}")
    return ENGINES[name]


def _named(argument: str, value: str, pattern: re.Pattern, wanted: str) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(f"{argument} must be {wanted}; not {value!r}")
    return value


def _json(value: dict) -> str:
    return json.dumps(value, separators=(",", ":"))
