"""Recorded runs: what goes into a file, what may not, and files from anybody."""

from __future__ import annotations

import dataclasses
import json
import math
import platform
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab import batching, results
from enginelab.machines import described
from enginelab.trace import mape

SIX = [2, 8, 3, 5, 3, 4]
FAST = batching.continuous(SIX, 4).to_trace(0.02)
SLOW = batching.static(SIX, 4).to_trace(0.025)
CPU = described("CPU")


def test_a_run_of_two_traces_comes_back_as_it_went_in(tmp_path):
    path = results.keep("01_vllm", "vLLM 0.32.0", FAST, SLOW, described("L4"), tmp_path)
    run = results.read(path)
    assert path.name == "01_vllm--nvidia-l4--vllm-0.32.0.json"
    assert (run.lab, run.engines, run.hardware, run.driver) == ("01_vllm", {"vLLM": "0.32.0"}, "NVIDIA L4", "580.95.05")
    assert run.predicted["duration, s"] == pytest.approx(FAST.duration)
    assert run.measured["TTFT p90, s"] == pytest.approx(SLOW.summary().ttft.p90)
    assert run.error["e2e"] == pytest.approx(mape(SLOW, FAST, "e2e"))
    assert results.of_lab("01_vllm", tmp_path) == (run,) and results.of_lab("02_sglang", tmp_path) == ()


def test_a_file_holds_these_fields_and_no_other(tmp_path):
    """The list of what leaves a learner's machine, by hand: whoever lengthens it has to do so here too."""
    path = results.keep("01_vllm", "vLLM 0.32.0", FAST, SLOW, CPU, tmp_path)
    held = json.loads(path.read_text())
    assert sorted(held) == sorted(
        "lab engines machine hardware driver python day predicted measured error".split()
    )  # fmt: skip
    assert str(tmp_path) not in path.read_text() and "/" not in path.read_text()


def test_numbers_by_name_of_several_engines(tmp_path):
    source = "vLLM 0.32.0+cpu, SGLang 0.5.14 and Dynamo 1.6.1"
    path = results.keep("07_compare", source, {"vLLM TTFT p50, s": 0.2}, {"vLLM TTFT p50, s": 1}, CPU, tmp_path)
    run = results.read(path)
    assert run.engines == {"vLLM": "0.32.0+cpu", "SGLang": "0.5.14", "Dynamo": "1.6.1"} and run.error == {}
    assert path.name == "07_compare--a-server-cpu-2-cores--vllm-0.32.0-cpu-sglang-0.5.14-dynamo-1.6.1.json"


def test_names_that_begin_alike_are_told_apart(tmp_path):
    for engine in ("vLLM Omni", "SGLang Diffusion"):
        run = results.record("05_vllm_omni", f"{engine} 0.32.0rc1", {"s": 1}, {"s": 1}, CPU)
        assert run.engines == {engine: "0.32.0rc1"}


def test_a_second_run_replaces_the_first_and_another_machine_stands_beside_it(tmp_path):
    for machine in (CPU, CPU, described("T4")):
        results.keep("01_vllm", "vLLM 0.32.0", FAST, SLOW, machine, tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_the_table_sets_predicted_beside_measured(tmp_path):
    run = results.record("01_vllm", "vLLM 0.32.0", FAST, SLOW, CPU)
    table = results.table([run])
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert row["duration, s"] == f"{FAST.duration:.3g} / {SLOW.duration:.3g}"
    assert row["mean error of E2E"] == f"{mape(SLOW, FAST, 'e2e'):.0%}"
    images = results.record("05_vllm_omni", "vLLM Omni 0.30.0", {"8 steps, s": 2}, {"8 steps, s": 2.1, "more": 3}, CPU)
    assert results.table([images]).columns == ("Machine", "Engine", "Day", "8 steps, s", "more")
    assert results.table([images]).rows[0][-2:] == ("2 / 2.1", "– / 3")


SECRETS = [
    "hf_AbCdEfGhIjKlMnOpQrStUvWx",
    "sk-abcdefghijkl",
    "ghp_abcdefghijkl",
    "nvapi-abcdefgh",
    "/home/alice/models",
    "..\\alice",
    "~/models",
    "alice@example.org",
    "gpu7.cluster.example.org",
    "10.20.30.40",
    "https://example.org",
    "a" * 25,
    "0123456789abcdef0123456789abcdef",
    "<script>alert(1)</script>",
    "[x](javascript:1)",
    "`rm`",
    "| a |",
    "a\nb",
    "a\x1b[31m",
    "",
]


@pytest.mark.parametrize("hostile", SECRETS)
def test_nothing_private_goes_in_by_any_door(hostile, tmp_path):
    with pytest.raises(ValueError, match="source must be engines"):
        results.keep("01_vllm", f"vLLM 0.32.0 {hostile or '!'}", FAST, SLOW, CPU, tmp_path)
    for numbers in (({hostile: 1.0}, {"s": 1.0}), ({"s": 1.0}, {hostile: 1.0})):
        with pytest.raises(ValueError) as error:
            results.keep("05_vllm_omni", "vLLM Omni 0.30.0", *numbers, CPU, tmp_path)
        assert not hostile or hostile not in str(error.value)
    with pytest.raises(ValueError, match="lab must be"):
        results.keep(hostile, "vLLM 0.32.0", FAST, SLOW, CPU, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("hostile", [secret for secret in SECRETS if secret])
def test_a_machine_with_a_strange_name_gives_nothing_away(hostile, tmp_path):
    """What the machine calls its parts is cleaned where that is enough, and refused where it is not."""
    machine = dataclasses.replace(CPU, cpu=f"A CPU {hostile}")
    try:
        path = results.keep("01_vllm", "vLLM 0.32.0", FAST, SLOW, machine, tmp_path)
    except ValueError as error:
        assert hostile not in str(error)
    else:
        assert hostile not in path.read_text() and results.read(path)


def test_the_names_of_machine_and_user_stay_at_home(monkeypatch, tmp_path):
    monkeypatch.setattr(platform, "node", lambda: "alice-laptop.home")
    monkeypatch.setenv("USER", "Alice")
    for name in ("alice seconds", "seconds on alice-laptop", "Alice, s"):
        with pytest.raises(ValueError, match="name of this machine or of its user"):
            results.keep("05_vllm_omni", "vLLM Omni 0.30.0", {name: 1}, {"s": 1}, CPU, tmp_path)
    results.keep("05_vllm_omni", "vLLM Omni 0.30.0", {"malice, s": 1}, {"s": 1}, CPU, tmp_path)


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e13, True, "1", None, [1]])
def test_only_finite_numbers(value, tmp_path):
    run = results.record("05_vllm_omni", "vLLM Omni 0.30.0", {"s": 1}, {"s": 1}, CPU)
    with pytest.raises(ValueError, match="finite numbers"):
        dataclasses.replace(run, measured={"s": value})


@pytest.mark.parametrize("numbers", [None, 3, "fast", [("s", 1)]])
def test_something_that_is_no_run(numbers, tmp_path):
    with pytest.raises(ValueError, match="must each be a Trace, or numbers by name"):
        results.keep("01_vllm", "vLLM 0.32.0", FAST, numbers, CPU, tmp_path)


@pytest.mark.parametrize("value", [Fraction(1, 2), Decimal(1), "hf_secret", None])
def test_values_that_are_numbers_become_plain_ones_and_others_are_refused(value, tmp_path):
    if isinstance(value, Fraction):
        assert results.record("01_vllm", "vLLM 0.32.0", {"s": value}, {"s": 1}, CPU).predicted == {"s": 0.5}
        return
    with pytest.raises(ValueError, match="predicted must hold finite numbers$"):
        results.keep("01_vllm", "vLLM 0.32.0", {"s": value}, {"s": 1}, CPU, tmp_path)


# --- files from anybody -------------------------------------------------------------------------------------------


@pytest.fixture
def good(tmp_path):
    """A valid file, as the dictionary that it holds and its path."""
    path = results.keep("01_vllm", "vLLM 0.32.0", FAST, SLOW, CPU, tmp_path)
    return json.loads(path.read_text()), path


@pytest.mark.parametrize(
    "change, words",
    [
        ({"token": "x"}, "and nothing else"),
        ({"lab": "../../etc/passwd"}, "lab must be plain words"),
        ({"lab": "02_sglang"}, "its name must be 02_sglang--"),
        ({"engines": {}}, "at least one engine"),
        ({"engines": ["vLLM"]}, "at least one engine"),
        ({"engines": {"llama.cpp": "1"}}, "names of the course's engines"),
        ({"engines": {"vLLM": "0.32.0<b>"}}, "engines must be plain"),
        ({"machine": "x" * 401}, "machine must be plain"),
        ({"machine": 5}, "machine must be plain"),
        ({"hardware": "<img src=x>"}, "hardware must be plain"),
        ({"day": "yesterday"}, "day must be a date"),
        ({"day": 20261201}, "day must be a date"),
        ({"day": "20261201"}, "day must be a date"),
        ({"day": "2026-W49-2"}, "day must be a date"),
        ({"measured": [1, 2]}, "measured must be at most 40 numbers"),
        ({"measured": {str(n): 1 for n in range(41)}}, "measured must be at most 40 numbers"),
        ({"measured": {"s": "fast"}}, "measured must hold finite numbers"),
        ({"error": {"e2e | x": 1}}, "a name in error must be plain"),
        ({"python": "3.11; rm"}, "python must be plain"),
    ],
)
def test_a_file_that_was_changed_is_refused_by_name(change, words, good):
    held, path = good
    path.write_text(json.dumps(held | change))
    with pytest.raises(ValueError) as error:
        results.read(path)
    assert str(error.value).startswith(f"labs/results/{path.name} is no record of a run: ") and words in str(
        error.value
    )
    with pytest.raises(ValueError):
        results.of_lab("01_vllm", path.parent)


@pytest.mark.parametrize(
    "text, words",
    [
        (b"", "it is not JSON"),
        (b"\xff\xfe", "it is not JSON"),
        (b"[]", "and nothing else"),
        (b"[" * 15_000, "nested too deeply"),
        (b" " * 20_001, "larger than 20000 bytes"),
        (b'{"lab": NaN}', "not finite"),
        (b'{"measured": {"s": 1e999}}', "and nothing else"),
    ],
)
def test_a_file_that_is_no_record_is_refused_by_name(text, words, tmp_path):
    path = tmp_path / "01_vllm--x--vllm-1.json"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=words):
        results.read(path)


def test_a_file_that_is_gone(tmp_path):
    with pytest.raises(ValueError, match="01_vllm--gone.json is no record of a run"):
        results.read(tmp_path / "01_vllm--gone.json")


@given(st.text(max_size=300))
def test_text_of_any_kind_is_let_in_or_refused(text):
    """Whatever is let in can stand in a table of a page as it is."""
    run = results.record("01_vllm", "vLLM 0.32.0", FAST, SLOW, CPU)
    try:
        kept = dataclasses.replace(run, hardware=text)
    except ValueError:
        return
    assert not set(kept.hardware) & set("<>|`[]&\\\"'/{}\n\r\t$#!")
