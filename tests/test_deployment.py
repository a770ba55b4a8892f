"""Manifests for a cluster: what they say, that nothing typed into them becomes YAML, and what the check finds."""

import copy
import random
import string

import pytest
import yaml

from enginelab import commands, deployment
from enginelab.deployment_schema import problems

NAMES = dict(name="lab", namespace="dynamo")
POOLS = ({"workers": 2}, {"prefill": 1, "decode": 2})
GRAPHS = [(engine, pools) for engine in deployment.ENGINES for pools in POOLS]


def graph(engine="vLLM", model="Qwen/Qwen3-0.6B", **more):
    return deployment.graph(engine, model, **{**NAMES, "workers": 2, **more})


def mains(made):
    return {
        component["name"]: component["podTemplate"]["spec"]["containers"][0] for component in made["spec"]["components"]
    }


@pytest.mark.parametrize("engine, pools", GRAPHS)
def test_yaml_reads_back_as_the_graph_and_holds_nothing_against_the_api(engine, pools):
    made = deployment.graph(engine, "Qwen/Qwen3-0.6B", **NAMES, **pools, gpus=2)
    assert yaml.safe_load(deployment.to_yaml(made)) == made
    assert problems(made) == []


@pytest.mark.parametrize("engine, pools", GRAPHS)
def test_every_container_runs_a_command_of_the_course(engine, pools):
    made = deployment.graph(engine, "Qwen/Qwen3-0.6B", **NAMES, **pools)
    for name, container in mains(made).items():
        parsed = commands.parse(container["command"] + container["args"])
        assert parsed.engine == "Dynamo"
        assert (parsed.value("--disaggregation-mode") or "worker") == (
            name if name in ("prefill", "decode") else "worker"
        )
        assert "--trust-remote-code" not in container["args"]
        assert container["image"].endswith(":1.6.1")
    assert {c["name"]: c["replicas"] for c in made["spec"]["components"][1:]} == {
        {"workers": "worker"}.get(kind, kind): count for kind, count in pools.items()
    }


def test_gpus_are_asked_for_and_used():
    for engine, flag in (("vLLM", "--tensor-parallel-size"), ("SGLang", "--tp-size")):
        container = mains(graph(engine, gpus=4))["worker"]
        assert container["resources"]["limits"] == {"nvidia.com/gpu": "4"}
        assert container["args"][container["args"].index(flag) + 1] == "4"
    assert "resources" not in mains(graph())["frontend"]


@pytest.mark.parametrize(
    "change, complaint",
    [
        ({"engine": "llama.cpp"}, "engine must be one of"),
        ({"model": "Qwen/Qwen3\n  evil: yes"}, "model must be a name on the hub"),
        ({"model": "--trust-remote-code"}, "model must be a name on the hub"),
        ({"model": "../../secrets"}, "model must be a name on the hub"),
        ({"name": "Lab_1"}, "name must be lower-case"),
        ({"name": "lab\n"}, "name must be lower-case"),
        ({"namespace": "a" * 64}, "namespace must be"),
        ({"secret": "hf_aBcDeFgHiJkLmN"}, "secret must be"),
        ({"workers": 0}, "give either workers"),
        ({"prefill": 1}, "give either workers"),
        ({"workers": -1}, "whole number"),
        ({"gpus": 0}, "gpus must be a whole number of at least 1"),
    ],
)
def test_what_is_typed_wrong_is_named(change, complaint):
    with pytest.raises(ValueError, match=complaint):
        graph(**change)


def test_any_text_reads_back_as_itself():
    draw = random.Random(1)
    texts = [
        "true",
        "No",
        "~",
        "null",
        "1e3",
        "0x1F",
        "12:30",
        "- a",
        "a: b",
        "a #b",
        "",
        "'",
        "--x",
        "-",
        "?",
        "&a",
        "!!b",
    ]
    texts += ["".join(draw.choices(string.printable[:95], k=draw.randrange(1, 12))) for _ in range(2000)]
    assert yaml.safe_load(deployment.to_yaml(texts)) == texts
    keyed = {"k" + text: text for text in texts}
    assert yaml.safe_load(deployment.to_yaml(keyed)) == keyed


def test_any_nesting_reads_back_as_itself():
    draw = random.Random(2)

    def grow(depth):
        if depth == 0 or draw.random() < 0.2:
            return draw.choice(["text", "a: b", 7, True])
        many = range(draw.randrange(1, 4))
        return [grow(depth - 1) for _ in many] if draw.random() < 0.5 else {f"k{i}": grow(depth - 1) for i in many}

    for _ in range(300):
        value = grow(4)
        assert yaml.safe_load(deployment.to_yaml(value)) == value


@pytest.mark.parametrize("text", ["a\nb", "a\x00", "naïve", "\u2028"])
def test_text_that_could_break_a_line_is_refused(text):
    with pytest.raises(ValueError, match="printable ASCII"):
        deployment.to_yaml([text])


def changed(path, value):
    made = copy.deepcopy(graph())
    *way, last = path
    place = made
    for step in way:
        place = place[step]
    place[last] = value
    return made


WORKER = ("spec", "components", 1)


@pytest.mark.parametrize(
    "path, value, complaint",
    [
        (("apiVersion",), "nvidia.com/v1alpha1", "apiVersion must be one of"),
        (("spec", "services"), {}, "no field 'services'"),
        (("spec", "backendFramework"), "tgi", "backendFramework must be one of"),
        ((*WORKER, "type"), "main", "type must be one of"),
        ((*WORKER, "replicas"), "2", "replicas must be a whole number"),
        ((*WORKER, "name"), "Frontend", "different names"),
        ((*WORKER, "podTemplate", "spec", "containers", 0, "name"), "engine", "one container named main"),
        ((*WORKER, "podTemplate", "spec", "containers", 0, "image"), "mine:latest", "must end in a version"),
        ((*WORKER, "podTemplate", "spec", "containers", 0, "args", 0), 7, "must be text"),
        ((*WORKER, "podTemplate", "spec", "containers"), {}, "must be a list"),
        ((*WORKER, "multinode"), {"nodeCount": 1}, "at least 2"),
    ],
)
def test_the_check_finds_what_the_cluster_would_refuse(path, value, complaint):
    assert any(complaint in problem for problem in problems(changed(path, value)))


def test_the_check_finds_what_is_missing_or_too_much():
    made = graph()
    del made["metadata"]["name"]
    assert problems(made) == ["the manifest.metadata must have name"]
    made = graph()
    made["spec"]["components"] += [{**made["spec"]["components"][1], "name": f"w{i}"} for i in range(30)]
    assert problems(made) == ["there must be at most 25 components, not 32"]
    assert problems([]) == ["the manifest must be an object, not []"]
