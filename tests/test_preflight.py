"""Verdicts: which lab runs on which machine, and what is said where one does not."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from enginelab import machines, needs, preflight
from enginelab.machines import GB, MIB, Gpu, Machine, described

T4 = Gpu("Tesla T4", 15360 * MIB, (7, 5), "580.82.07")
L4 = Gpu("NVIDIA L4", 23034 * MIB, (8, 9), "580.82.07")
A100 = Gpu("NVIDIA A100-SXM4-40GB", 40960 * MIB, (8, 0), "580.82.07")
P100 = Gpu("Tesla P100-PCIE-16GB", 16384 * MIB, (6, 0), "580.82.07")
CPU = Machine("Linux", "x86_64", "A CPU", 2, 24 * GB, frozenset({"avx2", "avx512f", "amx_tile"}), True, no_gpu="none")
LABS = Path(__file__).parents[1] / "labs"

# Typed by hand from the engines' documented floors as read on 1 December 2026, not from the table that is tested: vLLM
# 7.5; SGLang 7.5 on paper, but no T4; TensorRT-LLM names its GPUs, no T4 and no L4 among them, and has no CPU build;
# Dynamo Ampere or newer; both image engines with a model in bfloat16 (8.0). The newest releases all want CUDA 13, which
# Colab's driver lacks: the last ones for CUDA 12 are vLLM 0.25.1, SGLang 0.5.19 and TensorRT-LLM 1.0.0, and Dynamo 1.6
# and vLLM Omni 0.30 have none. No lab was written for AMD. A comparison stays on one side, where more engines can run.
MACHINES = "T4 L4 A100 L40S H100 H200 B200 MI300X CPU COLAB-T4 COLAB-L4 COLAB-A100 COLAB-CPU".split()
EXPECTED = """
01_vllm              half bf16 bf16 bf16 bf16 bf16 bf16 cpu cpu half,0.25.1 bf16,0.25.1 bf16,0.25.1 cpu
02_sglang            cpu  bf16 bf16 bf16 bf16 bf16 bf16 cpu cpu cpu         bf16,0.5.19 bf16,0.5.19 cpu
03_tensorrt_llm      no   no   bf16 bf16 bf16 bf16 bf16 no  no  no          no          bf16,1.0.0  no
04_dynamo            cpu  bf16 bf16 bf16 bf16 bf16 bf16 cpu cpu cpu         cpu         cpu         cpu
05_vllm_omni         cpu  bf16 bf16 bf16 bf16 bf16 bf16 cpu cpu cpu         cpu         cpu         cpu
06_sglang_diffusion  cpu  bf16 bf16 bf16 bf16 bf16 bf16 cpu cpu cpu         bf16,0.5.19 bf16,0.5.19 cpu
07_compare           c2   g2   g3   g3   g3   g3   g3   c2  c2  c2          g2          g3          c2
08_tune              c2   g2   g3   g3   g3   g3   g3   c2  c2  c2          g2          g3          c2
"""
CELLS = [
    (words[0], machine, cell)
    for words in map(str.split, EXPECTED.strip().splitlines())
    for machine, cell in zip(MACHINES, words[1:], strict=True)
]
NEWEST = {
    "01_vllm": "0.33.0",
    "02_sglang": "0.5.23",
    "03_tensorrt_llm": "1.2.1",
    "04_dynamo": "1.6.1",
    "05_vllm_omni": "0.30.0",
    "06_sglang_diffusion": "0.5.23",
}


def test_every_lab_and_every_described_machine_is_in_the_table():
    assert [each.name for each in machines.DESCRIBED] == MACHINES
    assert [line.split()[0] for line in EXPECTED.strip().splitlines()] == list(needs.LABS)
    assert {path.stem for path in LABS.glob("*.ipynb")} <= set(needs.LABS)


@pytest.mark.parametrize("lab, machine, expected", CELLS)
def test_each_lab_on_each_machine(lab, machine, expected):
    verdict = preflight.lab(lab, described(machine))
    if expected[0] in "cg" and expected[1:].isdecimal():
        seen = f"{verdict.mode[0]}{len(verdict.engine.split(', '))}"
        assert (verdict.ok, seen) == (True, expected)
    elif expected in ("cpu", "no"):
        assert (verdict.ok, verdict.mode) == (expected == "cpu", "cpu" if expected == "cpu" else "")
        assert verdict.model == "" and verdict.dtype == ("float32" if expected == "cpu" else "")
    else:
        dtype, _, version = expected.partition(",")
        assert (verdict.mode, verdict.dtype) == ("gpu", {"half": "half", "bf16": "bfloat16"}[dtype])
        assert verdict.version == (version or NEWEST[lab])
        assert ("has no CUDA 13" in verdict.sentence) == bool(version)
        assert verdict.version in verdict.install and verdict.install in verdict.sentence
        assert verdict.model in verdict.sentence
    assert verdict.sentence.endswith(".") and verdict.sentence.isprintable()


@pytest.mark.parametrize(
    "engine, machine, words",
    [
        ("SGLang", "T4", "Its code asks for compute capability 7.5, but a T4 (7.5) fails."),
        ("TensorRT-LLM", "T4", "T4 was dropped at 0.14. It has no CPU build."),
        ("TensorRT-LLM", "L4", "one NVIDIA GPU of those that its documentation lists (A100, L20, L40, L40S,"),
        ("TensorRT-LLM", "CPU", "found none (there is no nvidia-smi). It has no CPU build."),
        ("TensorRT-LLM", "COLAB-A100", 'pip install "tensorrt_llm==1.0.0"`.'),
        ("TensorRT-LLM", "A100", "docker pull nvcr.io/nvidia/tensorrt-llm/release:1.2.1`."),
        ("vLLM", "MI300X", "found AMD Instinct MI300X. vLLM has a build for ROCm, but the labs were written"),
        ("SGLang", "MI300X", "found AMD Instinct MI300X. SGLang has a build for ROCm, but"),
        ("TensorRT-LLM", "MI300X", "runs on NVIDIA GPUs only"),
        ("vLLM", "COLAB-T4", "use vLLM 0.25.1, not 0.33.0: `pip install \"vllm==0.25.1+cu129\" --extra-index-url"),
        ("SGLang", "COLAB-L4", "&& pip install --force-reinstall --no-deps sglang-kernel"),
        ("vLLM", "COLAB-CPU", "On Colab, ask for another GPU under Runtime, Change runtime type."),
        ("Dynamo", "COLAB-A100", "needs a driver of 580 or newer, for CUDA 13; found 550.54.15: Colab gives no other."),
        ("Dynamo", "CPU", "workers that simulate an engine's timing, which need no GPU anywhere"),
        ("vLLM Omni", "L4", "so the lab adds --enable-cpu-offload."),
    ],
)  # fmt: skip
def test_what_is_said(engine, machine, words):
    assert words in preflight.check(engine, described(machine)).sentence


@pytest.mark.parametrize(
    "machine, model",
    [("T4", "Qwen/Qwen3-0.6B"), ("L4", "Qwen/Qwen3-4B"), ("A100", "Qwen/Qwen3-4B"), ("H100", "Qwen/Qwen3-8B")],
)
def test_the_model_goes_by_the_memory_of_the_gpu(machine, model):
    assert preflight.check("vLLM", described(machine)).model == model


def with_gpus(*gpus: Gpu, **differences) -> Machine:
    return dataclasses.replace(CPU, gpus=gpus, cuda=(13, 0), no_gpu="", **differences)


@pytest.mark.parametrize(
    "engine, machine, mode, dtype, version, words",
    [
        ("vllm", with_gpus(T4, L4), "gpu", "bfloat16", "0.33.0", "(NVIDIA L4, 24 GB"),
        ("vLLM", with_gpus(P100), "cpu", "float32", "0.32.0", "needs one NVIDIA GPU with 8 GB and compute"),
        ("vLLM", CPU, "cpu", "float32", "0.32.0", "found none (none)"),
        ("vLLM", with_gpus(dataclasses.replace(L4, memory_bytes=6 * GB)), "cpu", "float32", "0.32.0", "L4, 6 GB"),
        ("vLLM", with_gpus(dataclasses.replace(L4, memory_bytes=None)), "gpu", "bfloat16", "0.33.0", "Qwen3-0.6B"),
        ("vLLM", with_gpus(dataclasses.replace(T4, driver="470.1")), "cpu", "float32", "0.32.0", "driver of 525"),
        ("vLLM", with_gpus(dataclasses.replace(T4, driver="unknown")), "gpu", "half", "0.33.0", "can run"),
        ("vLLM", with_gpus(T4, installed=frozenset({"vllm"})), "gpu", "half", "0.33.0", "serve Qwen/Qwen3-0.6B."),
        ("vLLM", with_gpus(L4, system="Windows"), "", "", "", "vLLM needs Linux, and this is Windows."),
        ("vLLM", with_gpus(L4, free_disk_bytes=9 * GB), "cpu", "float32", "0.32.0", "need 21 GB of free disk"),
        ("vLLM Omni", with_gpus(L4), "cpu", "float32", "0.32.0rc1", "needs 32 GB of memory beside this GPU"),
        ("TensorRT-LLM", with_gpus(A100), "gpu", "bfloat16", "1.2.1", "can run"),
        ("TensorRT-LLM", with_gpus(dataclasses.replace(A100, name="NVIDIA A10G")), "", "", "", "documentation lists"),
    ],
)  # fmt: skip
def test_verdicts(engine, machine, mode, dtype, version, words):
    verdict = preflight.check(engine, machine)
    assert (verdict.ok, verdict.mode, verdict.dtype, verdict.version) == (bool(mode), mode, dtype, version)
    assert words in verdict.sentence


def test_an_engine_that_is_there_need_not_be_installed_unless_the_driver_is_old():
    there = frozenset({"vllm"})
    assert preflight.check("vLLM", with_gpus(T4, installed=there)).install == ""
    old = with_gpus(dataclasses.replace(T4, driver="550.54.15"), installed=there)
    assert "vllm==0.25.1+cu129" in preflight.check("vLLM", old).install


@pytest.mark.parametrize(
    "lacking, words",
    [
        ({"libnuma": False}, "install libnuma1"),
        ({"system": "Darwin", "architecture": "arm64"}, "needs Linux on x86-64, and this is Darwin on arm64"),
        ({"cpu_flags": frozenset({"sse2"})}, "needs a CPU with AVX2"),
        ({"memory_bytes": 2 * GB}, "needs 5 GB of memory, and there are 2.0"),
        ({"free_disk_bytes": 3 * GB}, "needs 5 GB of free disk, and there are 3.0"),
    ],
)
def test_a_machine_on_which_nothing_runs(lacking, words):
    verdict = preflight.check("vLLM", dataclasses.replace(CPU, **lacking))
    assert not verdict.ok and words in verdict.sentence and "found none" in verdict.sentence


def test_an_environment_that_is_made_needs_no_more_disk():
    made = dataclasses.replace(CPU, free_disk_bytes=0, installed=frozenset({"vllm-cpu"}))
    assert preflight.check("vLLM", made).ok


def test_says_what_was_not_tried():
    old = preflight.check("vLLM", dataclasses.replace(CPU, cpu_flags=frozenset({"avx2"})))
    assert old.ok and "tried on CPUs with AVX512F only" in old.sentence
    assert "tried" not in preflight.check("vLLM", CPU).sentence


def test_a_comparison_stays_on_one_side():
    assert [(v.engine, v.mode) for v in preflight.engines(with_gpus(T4))] == [("vLLM", "cpu"), ("SGLang", "cpu")]
    assert [(v.engine, v.mode) for v in preflight.engines(with_gpus(L4))] == [("vLLM", "gpu"), ("SGLang", "gpu")]
    assert preflight.engines(dataclasses.replace(CPU, system="Darwin")) == ()
    alone = with_gpus(T4, libnuma=False)
    assert [v.engine for v in preflight.engines(alone)] == ["vLLM"]
    assert "One engine is no comparison" in preflight.lab("07_compare", alone).sentence


def test_names_that_nothing_has():
    with pytest.raises(ValueError, match="engine must be one of vLLM, SGLang, .* got 'llama'"):
        preflight.check("llama", CPU)
    with pytest.raises(ValueError, match="lab must be one of 01_vllm, .* got '09'"):
        preflight.lab("09", CPU)
    with pytest.raises(ValueError, match="machine must be one of T4, .* got 'K80'"):
        described("K80")


def test_the_cpu_builds_are_those_that_the_locks_pin():
    """Preflight names the version that a lab's lock installs."""
    locked = [row for row in needs.NEEDS if row.lock]
    assert {row.engine for row in locked} == {row.engine for row in needs.NEEDS} - {"TensorRT-LLM"}
    for row in locked:
        package, version = row.cpu_build.split()
        text = (LABS / "envs" / f"{row.lock}.txt").read_text()
        assert re.search(rf"^{re.escape(package)}=={re.escape(version)}\b", text, re.M), row.lock


# --- the dry run --------------------------------------------------------------------------------------------------


def dry_run(*words: str) -> tuple[int, str, str]:
    done = subprocess.run([sys.executable, "-m", "enginelab.preflight", *words], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_a_dry_run_prints_what_the_labs_would():
    status, out, err = dry_run("--machine", "colab-t4")
    machine = described("COLAB-T4")
    expected = [f"{name}: {preflight.lab(name, machine).sentence}" for name in needs.LABS]
    assert (status, err) == (1, "")
    assert out.splitlines() == [machine.describe(), "", *expected]


def test_a_dry_run_of_one_lab_on_this_machine():
    status, out, _ = dry_run("--lab", "04")
    verdict = preflight.check("Dynamo", preflight.machine())
    assert (status, out.splitlines()[-1]) == (0 if verdict.ok else 1, f"04_dynamo: {verdict.sentence}")


def test_the_table_of_all():
    status, out, _ = dry_run("--all")
    rows = [re.split(r" {2,}", line) for line in out.splitlines()]
    assert status == 0 and rows[0] == ["lab", *MACHINES] and [row[0] for row in rows[1:]] == list(needs.LABS)
    assert dict(zip(rows[0], rows[3], strict=True))["COLAB-A100"] == "GPU 1.0.0"


@pytest.mark.parametrize("words, told", [(("--machine", "K80"), "invalid choice"), (("--lab", "9"), "must be one of")])
def test_a_dry_run_of_what_is_not_there(words, told):
    status, _, err = dry_run(*words)
    assert status == 2 and told in err and "Traceback" not in err
