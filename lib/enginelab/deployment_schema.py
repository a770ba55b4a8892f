"""What a DynamoGraphDeployment may say: the fields of its v1beta1 API, as facts, and a check against them. (The lab.)

From the Go types that NVIDIA makes the cluster's own schema of: `deploy/operator/api/v1beta1` in ai-dynamo/dynamo
(`dynamographdeployment_types.go` at 0fddc01b, `dynamocomponentdeployment_types.go` at 006b6e10, `common.go` at
02911c80; read on 1 December 2026). Of a pod template, which is Kubernetes' own and has hundreds of fields, only those
that the course writes are known here. The cluster checks everything again: `kubectl apply --dry-run=server`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

API_VERSION, KIND = "nvidia.com/v1beta1", "DynamoGraphDeployment"
MOST_COMPONENTS = 25
MAIN = "main"  # the container that the operator completes with ports, probes and the rest
VERSION_TAG = re.compile(r":v?\d+\.\d+\.\d+([-+][\w.-]+)?$")  # without one the operator asks for runtimeVersionOverride


class Text(NamedTuple):
    """A string; `pattern` matches all of it."""

    pattern: str = r"[\s\S]+"


class Whole(NamedTuple):
    """A whole number of at least `least`."""

    least: int = 0


class OneOf(NamedTuple):
    """One of some words."""

    words: tuple[str, ...]


class Every(NamedTuple):
    """A list of such items, or a mapping to such values."""

    of: object
    mapping: bool = False


class Fields(NamedTuple):
    """An object: what each field holds, and which must be there."""

    holds: Mapping[str, object]
    needs: tuple[str, ...] = ()


_LABEL = Text(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")  # RFC 1123, as Kubernetes wants names
_TEXTS = Every(Text(), mapping=True)
_ENV = Every(Fields({"name": Text(r"[A-Za-z_]\w*"), "value": Text(r"[\s\S]*")}, ("name",)))
_CONTAINER = Fields(
    {
        "name": _LABEL,
        "image": Text(r"[\w./:@-]+"),
        "command": Every(Text()),
        "args": Every(Text()),
        "env": _ENV,
        "envFrom": Every(Fields({"secretRef": Fields({"name": Text()}, ("name",))})),
        "resources": Fields({"limits": _TEXTS, "requests": _TEXTS}),
        "workingDir": Text(),
    },
    ("name", "image"),
)
_COMPONENT = Fields(
    {
        "name": Text(r"[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?"),
        "type": OneOf(("frontend", "worker", "prefill", "decode", "planner", "epp")),
        "replicas": Whole(),
        "multinode": Fields({"nodeCount": Whole(2)}),
        "sharedMemorySize": Text(),
        "modelRef": Fields({"name": Text(), "revision": Text()}, ("name",)),
        "scalingAdapter": Fields({}),
        "podTemplate": Fields(
            {
                "metadata": Fields({"annotations": _TEXTS, "labels": _TEXTS}),
                "spec": Fields({"containers": Every(_CONTAINER)}, ("containers",)),
            },
            ("spec",),
        ),
    },
    ("name",),
)
GRAPH = Fields(
    {
        "apiVersion": OneOf((API_VERSION,)),
        "kind": OneOf((KIND,)),
        "metadata": Fields({"name": _LABEL, "namespace": _LABEL, "annotations": _TEXTS, "labels": _TEXTS}, ("name",)),
        "spec": Fields(
            {
                "backendFramework": OneOf(("sglang", "vllm", "trtllm")),
                "annotations": _TEXTS,
                "labels": _TEXTS,
                "priorityClassName": Text(),
                "env": _ENV,
                "components": Every(_COMPONENT),
            },
            ("components",),
        ),
    },
    ("apiVersion", "kind", "metadata", "spec"),
)


def problems(graph: Mapping) -> list[str]:
    """What is wrong with a DynamoGraphDeployment, a sentence each; [] if the course knows nothing against it.

    A field that is not known here counts as wrong, since the cluster drops or refuses what it does not know.
    """
    found = list(_against(GRAPH, graph, "the manifest"))
    return found or list(_rules(graph["spec"]["components"]))


def _against(schema, value, where: str) -> Iterator[str]:
    if isinstance(schema, Text):
        if not isinstance(value, str) or not re.fullmatch(schema.pattern, value):
            yield f"{where} must be text of the form {schema.pattern}, not {value!r}"
    elif isinstance(schema, Whole):
        if not isinstance(value, int) or isinstance(value, bool) or value < schema.least:
            yield f"{where} must be a whole number of at least {schema.least}, not {value!r}"
    elif isinstance(schema, OneOf):
        if value not in schema.words:
            yield f"{where} must be one of {', '.join(schema.words)}, not {value!r}"
    elif isinstance(schema, Every):
        if not isinstance(value, Mapping if schema.mapping else list):
            yield f"{where} must be a {'mapping' if schema.mapping else 'list'}, not {value!r}"
            return
        for key, item in value.items() if schema.mapping else enumerate(value):
            yield from _against(schema.of, item, f"{where}[{key}]")
    elif not isinstance(value, Mapping):
        yield f"{where} must be an object, not {value!r}"
    else:
        for name in schema.needs:
            if name not in value:
                yield f"{where} must have {name}"
        for name, item in value.items():
            if name not in schema.holds:
                yield f"{where} has no field {name!r} that this course knows"
            else:
                yield from _against(schema.holds[name], item, f"{where}.{name}")


def _rules(components: list[Mapping]) -> Iterator[str]:
    names = [component["name"].lower() for component in components]
    if len(names) > MOST_COMPONENTS:
        yield f"there must be at most {MOST_COMPONENTS} components, not {len(names)}"
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"components must have different names, whatever their capitals: {name} is there twice"
    if [component.get("type") for component in components].count("epp") > 1:
        yield "at most one component may be of type epp"
    for component in components:
        containers = component.get("podTemplate", {}).get("spec", {}).get("containers", [])
        main = [container for container in containers if container["name"] == MAIN]
        if len(main) != 1:
            yield f"component {component['name']} must have one container named {MAIN}, with an image"
        elif not VERSION_TAG.search(main[0]["image"]):
            yield f"the image of component {component['name']} must end in a version, as :1.6.1 does"
