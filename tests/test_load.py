"""Offering a workload: the generators' records as a Trace, and each generator as a stand-in program."""

import json
import os
import stat
import sys
import time
from pathlib import Path

import pytest

from enginelab import generators, load
from enginelab.client import ClientError
from enginelab.server import Server
from enginelab.workload import Request

ASKED = (Request(0.0, 32, 3), Request(0.002, 32, 1), Request(0.004, 40, 2))


def job(requests=ASKED, **more):
    return generators.Job("http://127.0.0.1:9", "m", "t", requests, **more)


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
    return generators.vllm_measured(json.dumps(RECORD | changed), ASKED, "test")


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
        ({"errors": ["", "bad key hf_AbCdEfGhIjKlMnOpQrStUvWx", ""]}, "key …"),
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
        generators.vllm_measured(text, ASKED, "test")


def test_more_block_ids_than_blocks_are_cut():
    """A Mooncake trace, at another block size, may have them."""
    [ids] = generators.block_ids(job([Request(0.0, 33, 1, (1, 2, 3, 4, 5))], block_size=32))
    assert ids == [1, 2]


def test_blocks_cover_every_prompt_and_share_only_what_is_shared():
    requests = [Request(0.0, 32, 1, (7, 8)), Request(0.0, 40, 1, (7,)), Request(0.0, 17, 1)]
    first, second, third = generators.block_ids(job(requests))
    assert first == [7, 8] and second[0] == 7
    assert [len(ids) for ids in (first, second, third)] == [2, 3, 2]
    rest = second[1:] + third
    assert len(set(rest)) == len(rest) and not set(rest) & {7, 8}


@pytest.fixture
def generator(tmp_path):
    """Puts a stand-in for a generator on a PATH of its own; returns the environment that leads to it."""

    def make(code: str, name: str = "vllm") -> dict[str, str]:
        program = tmp_path / name
        program.write_text(f"#!{sys.executable}\nimport json, os, sys, time\n{code}")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return {"PATH": f"{tmp_path}:{os.environ['PATH']}"}

    return make


def offer(env, engine="http://127.0.0.1:9", **more):
    return load.offer(engine, ASKED, model="m", tokenizer="t", source="test", env=env, **more)


def test_offer_hands_over_the_requests_and_reads_the_result(generator, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-learners-own-key")
    monkeypatch.setenv("no_proxy", "example.org")
    env = generator(
        f"""
import urllib.request
rows = [json.loads(line) for line in open("requests.jsonl")]
print("\\r 50%|#####     | 2/3 [00:00<00:00, 9.0it/s]", end="", file=sys.stderr, flush=True)
time.sleep(0.6)
open("result.json", "w").write({json.dumps(RECORD)!r})
json.dump([sys.argv[1:], rows, os.getcwd(), "OPENAI_API_KEY" in os.environ,
           bool(urllib.request.proxy_bypass("127.0.0.1:80"))], open({str(tmp_path / "seen")!r}, "w"))
"""
    )
    said = []
    trace = offer(env, on_progress=lambda seconds, line: said.append(line))
    assert trace.e2e == pytest.approx(RECORD["latencies"])
    argv, rows, folder, key, direct = json.loads((tmp_path / "seen").read_text())
    assert ["vllm", *argv] == generators.vllm_argv(job())
    assert [(r["timestamp"], r["input_length"], r["output_length"]) for r in rows] == [
        (r.arrival, r.prompt_tokens, r.output_tokens) for r in ASKED
    ]
    assert direct and not key
    assert not Path(folder).exists()
    assert "2/3 requests answered" in said


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("print('ValueError: no such model'); sys.exit(3)", r"failed \(exit status 3\): ValueError: no such model"),
        ("sys.exit(1)", r"failed \(exit status 1\)"),
        ("pass", "left no readable result"),
        ("os.kill(os.getpid(), 9)", "failed .killed by SIGKILL"),
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


# What aiperf 0.13.0 wrote with --export-level raw for `ASKED`, cut to what is read; one answer comes back out of order.
def aiperf_row(number, start, times, tokens, prompt, cached=16, **more):
    chunks = [{"choices": [{"index": 0, "text": "a", "finish_reason": None}]} for _ in times]
    details = {"cached_tokens": cached}
    usage = {"prompt_tokens": prompt, "completion_tokens": tokens, "prompt_tokens_details": details}
    end = [json.dumps({"choices": [], "usage": usage}), "[DONE]"]
    said = [*zip(times, map(json.dumps, chunks), strict=True), *((times[-1], text) for text in end)]
    row = {"metadata": {"conversation_id": str(number)}, "start_perf_ns": start, "status": 200}
    packets = [{"perf_ns": at, "packets": [{"name": "data", "value": text}]} for at, text in said]
    return row | {"responses": packets} | more


MS = 1_000_000
ROWS = (
    aiperf_row(1, 102 * MS, [162 * MS], 1, 32),
    aiperf_row(0, 100 * MS, [150 * MS, 160 * MS, 180 * MS], 3, 32),
    aiperf_row(2, 105 * MS, [175 * MS, 205 * MS], 2, 40),
)


def by_aiperf(*rows):
    return generators.aiperf_measured("".join(json.dumps(row) + "\n" for row in rows), ASKED, "test")


def test_records_of_aiperf_become_a_trace_in_the_order_of_the_requests():
    trace = by_aiperf(*ROWS)
    assert [r.arrival for r in trace.requests] == pytest.approx([0, 0.002, 0.005])
    assert [(r.prompt_tokens, r.output_tokens) for r in trace.requests] == [(32, 3), (32, 1), (40, 2)]
    assert trace.ttft == pytest.approx([0.05, 0.06, 0.07])
    assert trace.e2e == pytest.approx([0.08, 0.06, 0.10])
    assert trace.token_times[0] == pytest.approx([0.05, 0.06, 0.08])
    assert trace.cached_tokens == (16, 16, 16)


def test_a_last_piece_without_a_token_is_no_token_and_an_empty_one_within_is():
    row = aiperf_row(0, 100 * MS, [150 * MS, 160 * MS, 180 * MS, 181 * MS], 3, 32)
    for index in (0, 3):
        packet = row["responses"][index]["packets"][0]
        packet["value"] = packet["value"].replace('"a"', '""')
    assert by_aiperf(row, ROWS[0], ROWS[2]).token_times[0] == pytest.approx([0.05, 0.06, 0.08])


def test_tokens_that_came_together_leave_no_token_times_by_aiperf():
    assert by_aiperf(ROWS[0], ROWS[1], aiperf_row(2, 105 * MS, [205 * MS], 2, 40)).token_times is None


def test_a_server_that_says_nothing_where_nothing_was_cached():
    silent = aiperf_row(2, 105 * MS, [175 * MS, 205 * MS], 2, 40, None)
    assert by_aiperf(ROWS[0], ROWS[1], silent).cached_tokens == (16, 16, 0)
    rows = [aiperf_row(0, 0, [1, 2, 3], 3, 32, None), aiperf_row(1, 0, [1], 1, 32, None), silent]
    assert by_aiperf(*rows).cached_tokens is None


GONE = {"code": 404, "type": "Not Found", "message": '{"error": {"message": "The model `m` does not exist."}}'}
NO_END = ROWS[2]["responses"][:2]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (
            {"metadata": {"conversation_id": "2"}, "responses": [], "start_perf_ns": 0, "error": GONE},
            "1 of 3.*not exist",
        ),
        (ROWS[2] | {"error": {"message": "bad key hf_AbCdEfGhIjKlMnOpQrStUvWx"}}, "1 of 3 requests failed.*bad key …"),
        (ROWS[2] | {"responses": NO_END}, "1 of 3.*broke off after 2 pieces"),
        (ROWS[2] | {"responses": [{"packets": [{"name": "data", "value": '{"error": "no room"}'}]}]}, "no room"),
        (aiperf_row(2, 105 * MS, [175 * MS], 1, 40), "Request 3 got 1 tokens, not the 2"),
        (ROWS[0], "no record of 1 of 3"),
        (ROWS[2] | {"responses": [{"packets": [{"name": "data", "value": "<html>"}]}]}, "not what this course knows"),
        (ROWS[2] | {"responses": [{"packets": [{"name": "data", "value": "[7]"}]}]}, "not what this course knows"),
        (ROWS[2] | {"responses": None}, "not what this course knows"),
        (ROWS[2] | {"start_perf_ns": 10**400}, "not what this course knows"),
        (ROWS[2] | {"start_perf_ns": 900 * MS}, "not what this course knows"),
        (aiperf_row(2, 105 * MS, [175 * MS, 205 * MS], 2, "many"), "not what this course knows"),
        ([], "not what this course knows"),
    ],
)
def test_a_failed_or_strange_record_of_aiperf_is_a_sentence(row, sentence):
    with pytest.raises(ClientError, match=sentence) as caught:
        by_aiperf(ROWS[0], ROWS[1], row)
    assert "\n" not in str(caught.value)


def sent_by_aiperf(requests, **more):
    rows = generators.aiperf_files(job(requests, **more))["requests.jsonl"].splitlines()
    return [json.loads(row) for row in rows]


def test_aiperf_sends_prompts_of_exact_length_that_share_exactly_what_is_shared():
    requests = [Request(0.0, 40, 3, (7, 8)), Request(0.25, 40, 1, (7,)), Request(0.5, 17, 2)]
    rows = sent_by_aiperf(requests)
    assert [row["timestamp"] for row in rows] == [0, 250, 500]
    assert [row["session_id"] for row in rows] == ["0", "1", "2"]
    prompts = [row["payload"]["prompt"] for row in rows]
    assert [len(prompt) for prompt in prompts] == [40, 40, 17]
    assert [row["payload"]["max_tokens"] for row in rows] == [3, 1, 2]
    assert all(row["payload"]["ignore_eos"] and row["payload"]["stream"] for row in rows)
    first, second, third = prompts
    assert first[:16] == second[:16] and first[16:32] != second[16:32]
    assert not {tuple(third[i : i + 8]) for i in range(9)} & {tuple(first[i : i + 8]) for i in range(32)}
    assert rows == sent_by_aiperf(requests)
    assert sent_by_aiperf(requests, seed=1)[0]["payload"]["prompt"][:16] != first[:16]
    assert sent_by_aiperf(requests, block_size=8)[0]["payload"]["prompt"][:8] == first[:8]


def test_offer_by_aiperf_reads_the_records_and_needs_no_tokenizer(generator, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-learners-own-key")
    env = generator(
        f"""
assert os.path.isfile("tokenizer/tokenizer.json") and os.environ["TMPDIR"] == os.getcwd()
print("Profiling: 2/3 |\x1b[32m####      \x1b[0m|  67% [00:01<00:00]", file=sys.stderr, flush=True)
time.sleep(0.6)
os.makedirs("records")
open("records/profile_export_raw.jsonl", "w").write({"".join(json.dumps(row) + chr(10) for row in ROWS)!r})
kept = [name for name in ("OPENAI_API_KEY", "HF_HUB_OFFLINE") if name in os.environ]
json.dump([sys.argv[1:], kept], open({str(tmp_path / "seen")!r}, "w"))
""",
        "aiperf",
    )
    said = []
    trace = load.offer(
        "http://127.0.0.1:9",
        ASKED,
        model="m",
        source="test",
        env=env | {"HF_HUB_OFFLINE": "1"},
        generator="aiperf",
        on_progress=lambda seconds, line: said.append(line),
    )
    assert trace.ttft == pytest.approx([0.05, 0.06, 0.07])
    argv, kept = json.loads((tmp_path / "seen").read_text())
    assert ["aiperf", *argv] == generators.aiperf_argv(job())
    assert kept == []
    assert "2/3 requests answered" in said


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (
            "print('12:00:00.000 ERROR    No such thing (a.py:1)\\nTraceback\\nLog File: x'); sys.exit(1)",
            r"aiperf failed \(exit status 1\): No such thing",
        ),
        ("print('╭─ Error ─╮\\n│ Unknown option │\\n╰─────────╯'); sys.exit(1)", "Unknown option"),
        (
            "os.makedirs('records/raw_records')\n"
            f"open('records/raw_records/a.jsonl', 'w').write({json.dumps(ROWS[0] | {'error': GONE})!r})\nsys.exit(1)",
            "no record of 2 of 3",
        ),
    ],
)
def test_an_aiperf_that_fails_is_a_sentence(generator, code, sentence):
    with pytest.raises(ClientError, match=sentence):
        offer(generator(code, "aiperf"), generator="aiperf")


def test_vllm_needs_a_tokenizer():
    with pytest.raises(ValueError, match="tokenizer"):
        load.offer("http://127.0.0.1:9", ASKED, model="m", source="test")


def test_an_unknown_generator():
    with pytest.raises(ValueError, match="vllm, aiperf"):
        offer({}, generator="wrk")


def test_requests_out_of_order_are_refused():
    with pytest.raises(ValueError, match="order of arrival"):
        load.offer("http://127.0.0.1:9", ASKED[::-1], model="m", tokenizer="t", source="test")
