"""TensorRT-LLM: the book's commands and YAML against NVIDIA's published reference, and everything that can be wrong."""

import json
import stat
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import click
import nbformat
import pytest
import rehearse
import trtllm_reference as maker
from hypothesis import given
from hypothesis import strategies as st

from enginelab import commands, flags, server, trtllm, trtllm_server
from enginelab import trtllm_reference as facts
from enginelab.client import ClientError
from enginelab.verdicts import Verdict

ROOT = Path(__file__).parents[1]
VERSIONS = ("1.0.0", "1.1.0", "1.2.1", "1.3.0rc7", "1.3.0rc20", "1.3.0rc29", "1.4.0rc0")
TODAY, LESSON = commands.TODAY_TENSORRT_LLM, commands.LESSON_TENSORRT_LLM
YAML = commands.TODAY_TENSORRT_LLM_YAML
PLAIN = ("trtllm-serve", "model", "--host", "127.0.0.1", "--port", "8000")


def findings(*words, config=None, version="1.4.0rc0"):
    return {(found.level, found.about): found.says for found in trtllm.check((*PLAIN, *words), config, version)}


def with_file(**config):
    return findings("--config", "config.yaml", config=config)


# --- the book's own -----------------------------------------------------------------------------------------------


def test_the_lessons_command_starts_on_every_version_and_is_told_what_to_write_today():
    for version in VERSIONS:
        assert not [found for found in trtllm.check(LESSON, None, version) if found.level == "error"]
    said = {found.about: found.says for found in trtllm.check(LESSON, None, "1.4.0rc0")}
    assert "every machine" in said["--host"] and "127.0.0.1" in said["--host"]
    assert "deprecated" in said["--backend"]
    for old, new in {
        "--tp_size": "--tensor_parallel_size",
        "--ep_size": "--moe_expert_parallel_size",
        "--kv_cache_free_gpu_memory_fraction": "--free_gpu_memory_fraction",
        "--extra_llm_api_options": "--config",
    }.items():
        assert new in said[old]


def test_todays_command_and_yaml_are_right_today():
    found = trtllm_server.check(TODAY, YAML, "1.4.0rc0")
    assert [each.about for each in found] == ["--trust_remote_code"]  # the lesson's model needs it
    assert trtllm_server.read_yaml(YAML) == {"kv_cache_config": {"free_gpu_memory_fraction": 0.8}}


def test_every_flag_that_the_course_explains_is_in_the_reference():
    for fact in flags.TENSORRT_LLM.facts:
        option = facts.read().option(fact.name)
        assert option and fact.takes_value == (option.type != "switch"), fact.name
        assert set(fact.aliases) == set(option.names) - {fact.name}, fact.name


def test_the_labs_command_and_yaml_are_right_on_every_version():
    lab = nbformat.read(ROOT / "labs" / "03_tensorrt_llm.ipynb", as_version=4)
    [cell] = [cell.source for cell in lab.cells if "config = " in cell.source and "trtllm-serve" in cell.source]
    values = {"say": str, "commands": commands, "verdict": Verdict(False, "", ""), "server": server}
    exec(cell, values)
    for version in VERSIONS:
        found = trtllm_server.check(values["command"], values["config"], version)
        assert not [each for each in found if each.level != "note"], version


def test_the_stand_in_gets_the_same_limits(monkeypatch):
    command = commands.parse(
        "trtllm-serve some/model --host 127.0.0.1 --port 8123 --max_batch_size 4 --max_num_tokens 512 --max_seq_len 256"
    )
    stand_in = rehearse.translated(command, "models/tiny")
    assert (stand_in.engine, stand_in.model) == ("vLLM", "models/tiny")
    wanted = {"--served-model-name": "some/model", "--host": "127.0.0.1", "--port": "8123"}
    wanted |= {"--max-num-seqs": "4", "--max-num-batched-tokens": "512", "--max-model-len": "256"}
    assert {name: stand_in.value(name) for name in wanted} == wanted
    counted = iter([{rehearse.STEPS: 7.0}, {rehearse.STEPS: 9.0}])
    monkeypatch.setattr(rehearse.client, "metrics", lambda engine: next(counted))
    steps = rehearse.step_counter(None)
    assert (len(steps()), len(steps())) == (7, 2)


# --- every kind of finding ----------------------------------------------------------------------------------------


def test_a_plain_command_is_fine():
    assert findings() == {}
    assert findings("--max_batch_size", "4", "--enable_chunked_prefill", "--free_gpu_memory_fraction=0.8") == {}
    assert trtllm.check(("trtllm-serve", "serve", *PLAIN[1:])) == ()


@pytest.mark.parametrize(
    "words, about, part",
    [
        (["--max-batch-size", "4"], "--max-batch-size", "did you mean --max_batch_size?"),
        (["--qqq", "4"], "--qqq", "nor one like it"),
        (["--max_batch_size", "four"], "--max_batch_size", "must be a whole number; it is four"),
        (["--max_batch_size", "4.5"], "--max_batch_size", "must be a whole number"),
        (["--free_gpu_memory_fraction", "most"], "--free_gpu_memory_fraction", "must be a number"),
        (["--log_level", "loud"], "--log_level", "one of debug"),
        (["--trust_remote_code=yes"], "--trust_remote_code", "takes no value"),
        (["--max_num_tokens"], "--max_num_tokens", "needs a value"),
        (["--backend", "tensorrt"], "--backend", "left after 1.3.0rc20"),
        (["--extra_visual_gen_options", "f"], "--extra_visual_gen_options", "became --visual_gen_args"),
        (["another"], "MODEL", "names 2"),
    ],
)
def test_what_would_not_start(words, about, part):
    assert part in findings(*words)["error", about]


def test_a_command_without_a_model_or_of_another_program():
    assert [each.about for each in trtllm.check(["trtllm-serve"])] == ["MODEL"]
    for words in ([], ["vllm", "serve", "m"]):
        with pytest.raises(ValueError, match="must begin with trtllm-serve"):
            trtllm.check(words)


def test_a_flag_given_twice_unless_it_may_be():
    assert (
        "sets again" in findings("--tp_size", "2", "--tensor_parallel_size", "4")["warning", "--tensor_parallel_size"]
    )
    assert findings("--middleware", "a", "--middleware", "b") == {}


def test_versions_that_lack_a_flag():
    served = ("--served_model_name", "lab")
    assert "with 1.3.0rc7" in findings(*served, version="1.2.1")["error", "--served_model_name"]
    assert findings(*served, version="1.3.0rc7") == findings(*served) == {}
    both = ("--tensor_parallel_size", "2")
    assert "write --tp_size" in findings(*both, version="1.1.0")["error", "--tensor_parallel_size"]
    assert "write --tp_size" in findings(*both, version="1.2.1")["warning", "--tensor_parallel_size"]
    assert findings(*both, version="1.3.0rc7") == {}
    for version in VERSIONS:
        assert not [level for level, _ in findings("--tp_size", "2", version=version) if level != "note"]
    assert findings("--backend", "tensorrt", version="1.2.1") == {}


def test_unknown_keys_and_the_nearest_known():
    assert "did you mean kv_cache_config?" in with_file(kv_cache_confg={})["error", "kv_cache_confg"]
    inner = with_file(kv_cache_config={"free_gpu_memory_fracton": 0.8})
    about = "kv_cache_config.free_gpu_memory_fracton"
    assert "did you mean free_gpu_memory_fraction?" in inner["error", about]
    assert "nor one like it" in with_file(qqq=1)["error", "qqq"]
    for version, level in {"1.1.0": "warning", "1.2.1": "error"}.items():
        assert (level, "qqq") in findings("--extra_llm_api_options", "f", config={"qqq": 1}, version=version)
    words = ("--extra_llm_api_options", "f")
    assert ("warning", about) in findings(
        *words, config={"kv_cache_config": {"free_gpu_memory_fracton": 1}}, version="1.2.1"
    )
    assert ("error", "7") in findings("--config", "f", config={7: 1})


@pytest.mark.parametrize(
    "config, about, part",
    [
        ({"max_batch_size": "4"}, "max_batch_size", "a whole number, or null; it is the text '4'"),
        ({"max_batch_size": True}, "max_batch_size", "a whole number"),
        (
            {"kv_cache_config": {"free_gpu_memory_fraction": 1.5}},
            "kv_cache_config.free_gpu_memory_fraction",
            "at most 1",
        ),
        ({"kv_cache_config": [1]}, "kv_cache_config", "a mapping"),
        ({"cuda_graph_config": {"batch_sizes": [1, "2"]}}, "cuda_graph_config.batch_sizes", "each of its items"),
        ({"moe_config": {"backend": "FAST"}}, "moe_config.backend", "one of AUTO"),
        ({"speculative_config": {"max_draft_len": 3}}, "speculative_config.decoding_type", "one of AUTO"),
        (
            {"speculative_config": {"decoding_type": "MTP", "max_draft_len": -1}},
            "speculative_config.max_draft_len",
            "0",
        ),
        ({"batched_logits_processor": "mine"}, "batched_logits_processor", "only Python"),
        ("just text", "YAML", "must be a mapping"),
    ],
)
def test_wrong_types(config, about, part):
    assert part in findings("--config", "f", config=config)["error", about]


def test_right_types():
    assert (
        with_file(
            max_batch_size=None,
            stream_interval=10,
            kv_cache_config={
                "free_gpu_memory_fraction": 1,
                "enable_block_reuse": False,
                "use_kv_cache_manager_v2": "auto",
            },
            cuda_graph_config={"enable_padding": True, "batch_sizes": [1, 2, 4]},
            moe_config={"backend": "TRTLLM", "load_balancer": {"num_slots": 288}},
            speculative_config={"decoding_type": "MTP", "max_draft_len": 3},
            scheduler_config={"capacity_scheduler_policy": "MAX_UTILIZATION"},
            sleep_config={"restore_modes": {"model": "CPU"}},
            attention_dp_config={"enable_balance": True, "kv_cache_routing_load_balance_weight": 1},
        )
        == {}
    )


def test_deprecated_keys_and_keys_of_another_version():
    assert "deprecated" in with_file(perf_metrics_max_requests=1)["note", "perf_metrics_max_requests"]
    old = findings("--extra_llm_api_options", "f", config={"build_config": {}}, version="1.2.1")
    assert "1.2 line" in old["warning", "build_config"]
    assert ("error", "build_config") in with_file(build_config={})
    new = findings("--extra_llm_api_options", "f", config={"nvfp4_gemm_config": {}}, version="1.2.1")
    assert "may refuse" in new["warning", "nvfp4_gemm_config"]


@pytest.mark.parametrize(
    "version, part",
    [
        ("1.2.1", "the file wins"),
        ("1.3.0rc20", "depends on the build"),
        ("1.3.0rc29", "the flag wins"),
        ("1.4.0rc0", "the flag wins"),
    ],
)
def test_set_twice(version, part):
    words = ("--max_batch_size", "8", "--extra_llm_api_options", "f")
    assert part in findings(*words, config={"max_batch_size": 4}, version=version)["warning", "--max_batch_size"]
    name = "--kv_cache_free_gpu_memory_fraction"
    both = findings(
        *words[2:], name, "0.8", config={"kv_cache_config": {"free_gpu_memory_fraction": 0.7}}, version=version
    )
    assert part in both["warning", name] and "kv_cache_config.free_gpu_memory_fraction" in both["warning", name]


def test_the_memory_fraction_that_older_versions_drop():
    name = "--kv_cache_free_gpu_memory_fraction"
    words = (name, "0.8", "--extra_llm_api_options", "f")
    config = {"kv_cache_config": {"enable_block_reuse": False}}
    assert "is dropped" in findings(*words, config=config, version="1.2.1")["warning", name]
    assert ("warning", name) not in findings(*words, config=config, version="1.4.0rc0")
    assert ("warning", name) not in findings(*words, config={"max_seq_len": 9}, version="1.2.1")


def test_a_file_that_the_command_does_not_name():
    assert "does not name it" in findings(config={})["warning", "--extra_llm_api_options"]


def test_what_cannot_be_a_version():
    with pytest.raises(ValueError, match="looks like 1.2.1"):
        trtllm.check(PLAIN, None, "newest")
    ordered = sorted(VERSIONS, key=facts.Version.parse)
    assert ordered == list(VERSIONS) and facts.Version.parse("v1.3.0rc2") < facts.Version.parse("1.3")


# --- the reference, by other means --------------------------------------------------------------------------------


def click_command():
    """The same options, in the library that TensorRT-LLM parses its command with."""
    kinds = {"int": int, "float": float, "str": str, "[str]": str}
    options = []
    for option in facts.read().options:
        if option.type == "switch":
            names = ["/".join(option.names)] if option.key == "telemetry" else [*option.names, option.key]
            options.append(click.Option(names, is_flag=True))
        else:
            kind = kinds.get(option.type) or click.Choice(option.type[1:].split("|"))
            options.append(click.Option([*option.names, option.key], type=kind, multiple=option.type.startswith("[")))
    return click.Command("serve", params=[click.Argument(["model"]), *options])


CLICK = click_command()
SPELLINGS = sorted(name for option in facts.read().options for name in option.names)
word = st.one_of(
    st.sampled_from(SPELLINGS),
    st.sampled_from(["--max_batch_size=4", "4", "0.5", "model", "pytorch", "--tp", "auto", "="]),
)


@given(st.lists(word, max_size=6))
def test_real_click_agrees_on_what_parses(words):
    try:
        CLICK.make_context("serve", list(words))
        refused = False
    except click.exceptions.UsageError:
        refused = True
    found = trtllm.check(["trtllm-serve", "serve", *words])
    errors = [each for each in found if each.level == "error" and "left after" not in each.says]
    assert bool(errors) == refused, (words, errors)


def test_every_type_of_the_table_is_understood():
    for section, keys in facts.read().sections.items():
        for key in keys:
            written, status = facts.read().key(section, key)
            assert status in ("", "prototype", "beta", "stable", "deprecated"), key
            assert facts.fits(written, None) == (written.endswith("?") or written in ("none", "any")), (section, key)
            assert facts.described(written) and not facts.fits(written, object()) or written == "any"
            for part in facts.alternatives(written):
                for name in part.strip("[]").removeprefix("@").partition(":")[2].split("|") if ":" in part else []:
                    assert name.split("=")[1] in facts.read().sections
                if part.startswith("@") and ":" not in part:
                    assert part[1:] in facts.read().sections, part


# --- YAML from anywhere -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, part",
    [
        ("a: [1", "line 1"),
        ("a: 1\n\tb: 2", "line 2"),
        ("a: &x 1\nb: *x", "references"),
        ("a: !!python/object/apply:os.system ['true']", "tags"),
        ("a: 1\na: 2", "the key a is there twice"),
        ("k:\n  a: 1\n  a: 2", "line 3"),
        ("[" * 1000, "nested more than"),
        ("a: " + "x" * 20_000, "more than the 16384"),
        ("a: " + "9" * 10_000, "this is no YAML"),
        ("a: 2001-99-99", "month must be"),
        ("? [1, 2]\n: 3", "unhashable"),
        ("a: 1\n---\nb: 2", "another document"),
        ("\x00", "this is no YAML"),
    ],
)
def test_hostile_yaml_is_refused_in_a_sentence(text, part):
    with pytest.raises(ValueError, match=part) as refused:
        trtllm_server.read_yaml(text)
    assert len(str(refused.value)) < 200 and "\n" not in str(refused.value)
    [found] = trtllm_server.check([*PLAIN, "--config", "f"], text)
    assert (found.level, found.about) == ("error", "YAML") and found.says.startswith("The YAML cannot be read: ")


def test_references_cannot_blow_up():
    bomb = "a: &a [x]\n" + "".join(f"{n}: &{n} [*{p},*{p}]\n" for p, n in zip("abcdefg", "bcdefgh", strict=True))
    with pytest.raises(ValueError, match="references"):
        trtllm_server.read_yaml(bomb)


def test_names_from_outside_are_shown_short_and_plain():
    for config in ({"\x1b[2J" + "x" * 500: 1}, {"max_batch_size": "\x1b[2J" * 100}):
        [says] = findings("--config", "f", config=config).values()
        assert len(says) < 220 and says.isprintable()
    [(_, about)] = findings("--\x1b[2J" + "x" * 500)
    assert len(about) < 100 and about.isprintable()


def test_an_empty_file_is_no_mapping():
    assert ("error", "YAML") in {
        (each.level, each.about) for each in trtllm_server.check([*PLAIN, "--config", "f"], "[]")
    }


# --- which one is installed ---------------------------------------------------------------------------------------


def install(folder, version, choices, builds=False):
    """Programs that answer as an installed TensorRT-LLM would."""
    programs = {
        "python3": f"#!/bin/sh\necho {version}\n",
        "trtllm-serve": f"#!/bin/sh\necho '  --backend {choices}   The backend to use.'\n",
    }
    if builds:
        programs["trtllm-build"] = "#!/bin/sh\n"
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(stat.S_IRWXU)
    return f"{folder}:/usr/bin:/bin"


@pytest.mark.parametrize(
    "version, choices, builds, generation",
    [
        ("0.21.0", "[pytorch|trt]", True, "V0"),
        ("1.2.1", "[pytorch|tensorrt|_autodeploy]", True, "V0 and V1"),
        ("1.2.1", "", True, "V0 and V1"),
        ("1.3.0rc20", "[pytorch|tensorrt|\n                _autodeploy]", False, "V0 and V1"),
        ("1.4.0rc0", "[_autodeploy|pytorch]", False, "V1"),
    ],
)
def test_the_generation_that_is_installed(tmp_path, version, choices, builds, generation):
    found = trtllm_server.installation(install(tmp_path, version, choices, builds))
    assert (found.version, found.generation) == (version, generation)
    assert version in found.sentence and f"generation {generation}:" in found.sentence


def test_the_python_that_the_program_names_is_asked(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    path = install(tmp_path / "elsewhere", "1.2.1", "[pytorch]")
    named = (tmp_path / "elsewhere" / "python3").rename(tmp_path / "python-of-the-engine")
    (tmp_path / "elsewhere" / "trtllm-serve").write_text(f"#!{named}\n")
    assert trtllm_server.installation(path).version == "1.2.1"


def test_nothing_or_something_odd_is_installed(tmp_path):
    assert trtllm_server.installation(str(tmp_path)) is None
    with pytest.raises(ValueError, match="no package tensorrt_llm"):
        trtllm_server.installation(install(tmp_path, "", "[pytorch]"))
    path = install(tmp_path, "1.2.1", "")
    (tmp_path / "trtllm-serve").write_text("#!/bin/sh\nsleep 60\n")
    assert trtllm_server.installation(path, patience=0.2).backends == ()


# --- the steps that it took ---------------------------------------------------------------------------------------


@pytest.fixture
def metrics_page():
    """A server whose /metrics holds what the test puts into `body`."""

    class Page(BaseHTTPRequestHandler):
        body = b"[]"

        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(type(self).body)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as web:
        Thread(target=web.serve_forever, args=[0.02], daemon=True).start()
        yield Page, f"http://127.0.0.1:{web.server_port}"
        web.shutdown()


def record(number, prompts, answers):
    batch = {"numContextRequests": prompts, "numGenRequests": answers, "numPausedRequests": 0, "numCtxTokens": 9}
    return {"iter": number, "iterLatencyMS": 7.5, "numActiveRequests": 1, "inflightBatchingStats": batch}


def test_steps_of_the_engine(metrics_page):
    page, url = metrics_page
    page.body = json.dumps([record(1, 2, 0), record(2, 0, 0), record(3, 1, 2)]).encode()
    assert trtllm_server.steps(url) == ((1, 7.5, 2, 2, 0), (3, 7.5, 3, 1, 0))
    page.body = b"[]"
    assert trtllm_server.steps(url) == ()


@pytest.mark.parametrize("body", [b"vllm:requests 1", b"{}", b"[1]", b'[{"iter": 1}]', b"[null]", b"\xff"])
def test_a_page_that_is_something_else(metrics_page, body):
    page, url = metrics_page
    page.body = body
    with pytest.raises(ClientError, match="GET /metrics"):
        trtllm_server.steps(url)


# --- the table, made again ----------------------------------------------------------------------------------------

CLI = """
commands:
  serve:
    options:
      backend: {type: "Choice(['_autodeploy', 'pytorch'])", default: pytorch, status: deprecated, multiple: false,
                is_flag: false, flags: [--backend]}
      extra_llm_api_options: {type: str, default: null, status: prototype, multiple: false, is_flag: false,
                              flags: [--config, --extra_llm_api_options]}
      middleware: {type: str, default: null, status: prototype, multiple: true, is_flag: false, flags: [--middleware]}
      brand_new: {type: bool, default: false, status: prototype, multiple: false, is_flag: true, flags: [--brand_new]}
"""
SCHEMA = {
    "title": "TensorRT-LLM 1.4.0 trtllm-serve --config",
    "$defs": {
        "Policy": {"enum": ["fcfs", "priority"], "type": "string"},
        "One": {"properties": {"kind": {"const": "one", "type": "string"}}},
        "Two": {"properties": {"kind": {"const": "two", "type": "string"}, "policy": {"$ref": "#/$defs/Policy"}}},
    },
    "properties": {
        "max_batch_size": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 2048},
        "share": {"type": "number", "minimum": 0, "maximum": 1.0, "status": "beta"},
        "sizes": {"anyOf": [{"items": {"type": "integer", "exclusiveMinimum": 0}, "type": "array"}, {"type": "null"}]},
        "either": {
            "anyOf": [
                {"discriminator": {"mapping": {"one": "#/$defs/One", "two": "#/$defs/Two"}, "propertyName": "kind"}},
                {"type": "null"},
            ]
        },
        "here": {"anyOf": [{"title": "Here", "properties": {"a": {"type": "boolean"}}}, {"type": ["string", "null"]}]},
        "live": {"type": "null"},
        "old": {"type": "string", "deprecated": True},
        "version2": {"anyOf": [{"type": "boolean"}, {"const": "auto", "type": "string"}]},
        "free": {"additionalProperties": True, "type": "object"},
    },
}


@pytest.fixture
def made_again(tmp_path, monkeypatch):
    """The program that makes the table, and a checkout of the shape that it reads."""
    for name, text in ((maker.FLAGS, CLI), (maker.SCHEMA, json.dumps(SCHEMA))):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    table = tmp_path / "table.json"
    table.write_bytes(facts.TABLE.read_bytes())
    monkeypatch.setattr(maker, "TABLE", table)
    return maker, tmp_path


def test_the_table_is_made_from_a_checkout(made_again):
    maker, checkout = made_again
    version, sections = maker.keys(checkout)
    assert version == "1.4.0"
    assert sections == {
        "": {
            "either": "@kind:one=One|two=Two?",
            "free": "map",
            "here": "@Here or str?",
            "live": "none",
            "max_batch_size": "int?",
            "old": "str / deprecated",
            "share": "float>=0<=1 / beta",
            "sizes": "[int>0]?",
            "version2": "bool or =auto",
        },
        "Here": {"a": "bool"},
        "One": {"kind": "=one"},
        "Two": {"kind": "=two", "policy": "=fcfs|priority"},
    }
    options = maker.flags(checkout)
    assert options["extra_llm_api_options"]["names"] == ["--config", "--extra_llm_api_options"]
    assert [options[key]["type"] for key in ("backend", "brand_new", "middleware")] == [
        "=_autodeploy|pytorch", "switch", "[str]",
    ]  # fmt: skip


def test_changes_are_said_and_kept(made_again, monkeypatch, capsys):
    maker, checkout = made_again
    monkeypatch.setattr(sys, "argv", ["program", str(checkout), "--keep"])
    assert maker.main() == 1
    said = capsys.readouterr().out
    assert "flag --brand_new: new, switch" in said and "flag --tp_size: gone" in said
    assert "flag --backend" not in said and "key of the file share: new" in said
    kept = json.loads(maker.TABLE.read_text())
    assert kept["flags"]["brand_new"]["names"] == {"--brand_new": "1.4.0rc0..1.4.0"}
    assert kept["flags"]["extra_llm_api_options"]["names"]["--extra_llm_api_options"] == ""
    assert kept["keys_since"]["share"] == "1.4.0rc0..1.4.0" and "kv_cache_config" in kept["gone_keys"]
    assert maker.main() == 0
    assert "nothing has changed" in capsys.readouterr().out


def test_a_folder_that_is_no_checkout(made_again, monkeypatch, tmp_path):
    maker, _ = made_again
    monkeypatch.setattr(sys, "argv", ["program", str(tmp_path / "nowhere")])
    with pytest.raises(SystemExit, match=r"must be of TensorRT-LLM 1\.4\.0rc0 or newer"):
        maker.main()
