"""Offering a workload: the records of `vllm bench serve` as a Trace, and the generator as a stand-in program."""

import json
import os
import stat
import sys
import time
from pathlib import Path

import pytest

from enginelab import load
from enginelab.client import ClientError
from enginelab.server import Server
from enginelab.workload import Request

ASKED = (Request(0.0, 32, 3), Request(0.002, 32, 1), Request(0.004, 40, 2))

# The shape of what vLLM 0.32.0 wrote with --save-detailed, cut to three requests; totals left out.
RECORD = {
    "backend": "vllm",
    "num_prompts": 3,
    "request_rate": "inf",
    "duration": 0.5,
    "completed": 3,
    "failed": 0,
    "input_lens": [32, 32, 40],
    "output_lens": [3, 1, 2],
    "ttfts": [0.05, 0.06, 0.07],
    "itls": [[0.01, 0.02], [], [0.03]],
    "latencies": [0.08, 0.06, 0.10],
    "start_times": [753.5, 753.502, 753.505],
    "queue_times": [0.0, 0.0, 0.0],
    "generated_texts": ["a b c", "a", "a b"],
    "errors": ["", "", ""],
}


def measured(**changed):
    return load.measured(json.dumps(RECORD | changed), ASKED, "test")


def test_a_record_becomes_a_trace_on_the_clock_of_the_first_request():
    trace = measured()
    assert [r.arrival for r in trace.requests] == pytest.approx([0, 0.002, 0.005])
    assert [(r.prompt_tokens, r.output_tokens) for r in trace.requests] == [(32, 3), (32, 1), (40, 2)]
    assert trace.ttft == pytest.approx(RECORD["ttfts"])
    assert trace.e2e == pytest.approx(RECORD["latencies"])
    assert trace.token_times[0] == pytest.approx([0.05, 0.06, 0.08])
    assert trace.source == "test"


def test_tokens_that_came_together_leave_no_token_times():
    trace = measured(itls=[[0.03], [], [0.03]])
    assert trace.token_times is None
    assert trace.e2e == pytest.approx(RECORD["latencies"])


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"errors": ["", "Traceback\n…\nConnectionResetError: gone", ""]}, "1 of 3 requests failed.*Reset.*gone"),
        ({"errors": ["", "bad key hf_abcdefghijkl", ""]}, "key …"),
        ({"output_lens": [3, 1, 1]}, "Request 3 got 1 tokens, not the 2"),
        ({"ttfts": [0.05, 0.06]}, "not what this course knows"),
        ({"ttfts": None}, "not what this course knows"),
        ({"itls": [["a"], [], [0.03]]}, "not what this course knows"),
        ({"ttfts": [float("nan"), 0.06, 0.07]}, "not what this course knows"),
        ({"ttfts": [-1, 0.06, 0.07]}, "not what this course knows"),
        ({"start_times": [1e308, -1e308, 0.0]}, "not what this course knows"),
    ],
)
def test_a_failed_or_strange_record_is_a_sentence(changed, sentence):
    with pytest.raises(ClientError, match=sentence) as caught:
        measured(**changed)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{}", "nonsense", "7"])
def test_a_result_that_is_no_record(text):
    with pytest.raises(ClientError, match="not what this course knows"):
        load.measured(text, ASKED, "test")


def test_blocks_cover_every_prompt_and_share_only_what_is_shared():
    requests = [Request(0.0, 32, 1, (7, 8)), Request(0.0, 40, 1, (7,)), Request(0.0, 17, 1)]
    first, second, third = load._block_ids(requests)
    assert first == [7, 8] and second[0] == 7
    assert [len(ids) for ids in (first, second, third)] == [2, 3, 2]
    rest = second[1:] + third
    assert len(set(rest)) == len(rest) and not set(rest) & {7, 8}


@pytest.fixture
def generator(tmp_path):
    """Puts a program named `vllm` on a PATH of its own; returns the environment that leads to it."""

    def make(code: str) -> dict[str, str]:
        program = tmp_path / "vllm"
        program.write_text(f"#!{sys.executable}\nimport json, os, sys, time\n{code}")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return {"PATH": f"{tmp_path}:{os.environ['PATH']}"}

    return make


def offer(env, engine="http://127.0.0.1:9", **more):
    return load.offer(engine, ASKED, model="m", tokenizer="t", source="test", env=env, **more)


def test_offer_hands_over_the_requests_and_reads_the_result(generator, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-learners-own-key")
    env = generator(
        f"""
rows = [json.loads(line) for line in open("requests.jsonl")]
print("\\r 50%|#####     | 2/3 [00:00<00:00, 9.0it/s]", end="", file=sys.stderr)
open("result.json", "w").write({json.dumps(RECORD)!r})
json.dump([sys.argv[1:], rows, os.getcwd(), "OPENAI_API_KEY" in os.environ], open({str(tmp_path / "seen")!r}, "w"))
"""
    )
    said = []
    trace = offer(env, on_progress=lambda seconds, line: said.append(line))
    assert trace.e2e == pytest.approx(RECORD["latencies"])
    argv, rows, folder, key = json.loads((tmp_path / "seen").read_text())
    assert ["vllm", *argv] == load.command("http://127.0.0.1:9", "m", "t", 3)
    assert [(r["timestamp"], r["input_length"], r["output_length"]) for r in rows] == [
        (r.arrival, r.prompt_tokens, r.output_tokens) for r in ASKED
    ]
    assert not key
    assert not Path(folder).exists()
    assert "2/3 requests answered" in said


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("print('ValueError: no such model'); sys.exit(3)", r"failed \(status 3\): ValueError: no such model"),
        ("sys.exit(1)", r"failed \(status 1\)"),
        ("pass", "left no readable result"),
        ("open('result.json', 'w').write('{')", "not what this course knows"),
    ],
)
def test_a_generator_that_fails_is_a_sentence(generator, code, sentence):
    with pytest.raises(ClientError, match=sentence) as caught:
        offer(generator(code))
    assert "\n" not in str(caught.value)


def test_no_generator(tmp_path):
    with pytest.raises(ClientError, match="'vllm' was not found"):
        offer({"PATH": str(tmp_path)})


def test_a_generator_that_hangs_is_stopped_with_its_children(generator, tmp_path):
    env = generator(f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.fork() or os.getpid()))\ntime.sleep(60)")
    with pytest.raises(ClientError, match="within 0.7 s"):
        offer(env, deadline=0.7)
    child = Path("/proc", (tmp_path / "pid").read_text(), "stat")
    deadline = time.monotonic() + 10
    while child.exists() and ") Z " not in child.read_text():
        assert time.monotonic() < deadline, "the generator's child still runs"


def test_a_dead_engine_is_named_instead_of_the_failed_load(generator):
    class Death(RuntimeError):
        pass

    def check():
        raise Death("vllm died")

    with pytest.raises(Death):
        offer(generator("sys.exit(1)"), Server("http://127.0.0.1:9", 9, 1, None, 0.0, (), check))


def test_requests_out_of_order_are_refused():
    with pytest.raises(ValueError, match="order of arrival"):
        load.offer("http://127.0.0.1:9", ASKED[::-1], model="m", tokenizer="t", source="test")
