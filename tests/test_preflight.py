"""What this machine is and what can run on it: from recorded texts, garbage included, and from nvidia-smi stand-ins."""

from __future__ import annotations

import dataclasses
import os
import platform
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab import preflight
from enginelab.preflight import GB, Gpu, Machine

MIB = 2**20
T4 = Gpu("Tesla T4", 15360 * MIB, (7, 5), "580.82.07")
L4 = Gpu("NVIDIA L4", 23034 * MIB, (8, 9), "580.82.07")
A100 = Gpu("NVIDIA A100-SXM4-40GB", 40960 * MIB, (8, 0), "580.82.07")
P100 = Gpu("Tesla P100-PCIE-16GB", 16384 * MIB, (6, 0), "580.82.07")
CPU = Machine("Linux", "x86_64", "A CPU", 2, 24 * GB, frozenset({"avx2", "avx512f", "amx_tile"}), True, no_gpu="none")


def with_gpus(*gpus: Gpu) -> Machine:
    return dataclasses.replace(CPU, gpus=gpus, cuda=(13, 0), no_gpu="")


@pytest.mark.parametrize(
    "text, gpus",
    [
        ("Tesla T4, 15360 MiB, 7.5, 580.82.07\n", (T4,)),
        ("Tesla T4, 15360 MiB, 7.5, 580.82.07\nNVIDIA L4, 23034 MiB, 8.9, 580.82.07\n", (T4, L4)),
        (
            "NVIDIA A100-SXM4-40GB MIG 1g.5gb, [N/A], 8.0, 580.82.07\n",
            (Gpu("NVIDIA A100-SXM4-40GB MIG 1g.5gb", None, (8, 0), "580.82.07"),),
        ),
        (
            "NVIDIA A100-SXM4-40GB, [Insufficient Permissions], 8.0, 580.82.07",
            (Gpu(A100.name, None, (8, 0), "580.82.07"),),
        ),
        ("NVIDIA GB10, [N/A], 12.1, [N/A]", (Gpu("NVIDIA GB10", None, (12, 1), "unknown"),)),
        ("A name, with a comma, 15360 MiB, 7.5, 580.1", (Gpu("A name, with a comma", 15360 * MIB, (7, 5), "580.1"),)),
        ("Tesla\x1b[31m T4, 15360 MiB, 7.5, 580.82.07", (Gpu("Tesla[31m T4", 15360 * MIB, (7, 5), "580.82.07"),)),
    ],
)
def test_reads_the_list_of_gpus(text, gpus):
    assert preflight.parse_gpus(text) == (gpus, "")


@pytest.mark.parametrize(
    "text, said",
    [
        ("", ""),
        ("No devices were found\n", "nvidia-smi says: No devices were found"),
        (
            "\nNVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
            "nvidia-smi says: NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        ),
        (
            'Field "compute_cap" is not a valid field to query.',
            'nvidia-smi says: Field "compute_cap" is not a valid field to query.',
        ),
        ("Hello, this, is, prose", "nvidia-smi says: Hello, this, is, prose"),
    ],
)
def test_no_list_of_gpus(text, said):
    assert preflight.parse_gpus(text) == ((), said)


@given(st.text())
def test_no_text_breaks_the_parsers(text):
    gpus, said = preflight.parse_gpus(text)
    for gpu in gpus:
        assert preflight.check("vLLM", with_gpus(gpu)).sentence.isprintable()
    assert said.isprintable()
    preflight.parse_cuda(text)
    preflight.parse_cpuinfo(text)


@pytest.mark.parametrize(
    "text, version",
    [
        ("| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4     |", (12, 4)),
        ("| NVIDIA-SMI 590.10   Driver Version: 590.10   CUDA UMD Version: 13.1 |", (13, 1)),
        ("CUDA Version: N/A", None),
        ("", None),
    ],
)
def test_reads_the_cuda_version(text, version):
    assert preflight.parse_cuda(text) == version


def test_reads_the_cpu():
    x86 = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R)\nflags\t\t: fpu avx2 avx512f\n\nprocessor\t: 1\n"
    assert preflight.parse_cpuinfo(x86) == ("Intel(R) Xeon(R)", frozenset({"fpu", "avx2", "avx512f"}))
    assert preflight.parse_cpuinfo("processor : 0\nFeatures : fp asimd\n") == ("", frozenset({"fp", "asimd"}))
    assert preflight.parse_cpuinfo("") == ("", frozenset())


def test_a_container_may_have_less_memory_than_its_host():
    assert preflight.least_limit(24 * GB, ("max\n", "")) == 24 * GB
    assert preflight.least_limit(24 * GB, ("", "8000000000\n")) == 8 * GB
    assert preflight.least_limit(24 * GB, ("9223372036854771712", "0")) == 24 * GB


@pytest.mark.parametrize(
    "engine, gpus, mode, dtype, version, words",
    [
        (
            "vLLM",
            (T4,),
            "gpu",
            "half",
            "0.33.0",
            "can run on this GPU (Tesla T4, 16 GB, compute capability 7.5), in half.",
        ),
        ("vllm", (L4,), "gpu", "bfloat16", "0.33.0", "in bfloat16"),
        ("vLLM", (A100,), "gpu", "bfloat16", "0.33.0", "in bfloat16"),
        ("vLLM", (T4, L4), "gpu", "bfloat16", "0.33.0", "NVIDIA L4"),
        ("vLLM", (P100,), "cpu", "float32", "0.32.0", "needs one NVIDIA GPU with 8 GB and compute capability 7.5"),
        ("vLLM", (), "cpu", "float32", "0.32.0", "found none (none)"),
        ("vLLM", (dataclasses.replace(L4, memory_bytes=6 * GB),), "cpu", "float32", "0.32.0", "found NVIDIA L4, 6 GB"),
        ("vLLM", (dataclasses.replace(L4, memory_bytes=None),), "gpu", "bfloat16", "0.33.0", "(NVIDIA L4, compute"),
        ("vLLM", (dataclasses.replace(T4, driver="550.54.15"),), "gpu", "half", "0.25.1", "550.54.15, has no CUDA 13"),
        ("vLLM", (dataclasses.replace(T4, driver="470.1"),), "cpu", "float32", "0.32.0", "driver of 525 or newer"),
        ("vLLM", (dataclasses.replace(T4, driver="unknown"),), "gpu", "half", "0.33.0", "can run"),
        ("SGLang", (T4,), "cpu", "float32", "0.5.14", "a T4 (7.5) fails"),
        ("SGLang", (L4,), "gpu", "bfloat16", "0.5.23", "can run"),
        ("TensorRT-LLM", (L4,), "", "", "", "needs one NVIDIA GPU with 40 GB"),
        ("TensorRT-LLM", (A100,), "gpu", "bfloat16", "1.2.1", "can run"),
        ("TensorRT-LLM", (), "", "", "", "found none (none). It has no CPU build."),
    ],
)
def test_verdicts(engine, gpus, mode, dtype, version, words):
    verdict = preflight.check(engine, with_gpus(*gpus) if gpus else CPU)
    assert (verdict.ok, verdict.mode, verdict.dtype, verdict.version) == (bool(mode), mode, dtype, version)
    assert words in verdict.sentence


@pytest.mark.parametrize(
    "lacking, words",
    [
        ({"libnuma": False}, "install libnuma1"),
        ({"system": "Darwin", "architecture": "arm64"}, "needs Linux on x86-64, and this is Darwin on arm64"),
        ({"cpu_flags": frozenset({"sse2"})}, "needs a CPU with AVX2"),
        ({"memory_bytes": 2 * GB}, "needs 5 GB of memory, and there are 2.0"),
    ],
)
def test_a_machine_on_which_nothing_runs(lacking, words):
    verdict = preflight.check("vLLM", dataclasses.replace(CPU, **lacking))
    assert not verdict.ok and words in verdict.sentence and "found none" in verdict.sentence


def test_says_what_was_not_tried():
    old = preflight.check("vLLM", dataclasses.replace(CPU, cpu_flags=frozenset({"avx2"})))
    assert old.ok and "tried on CPUs with AVX512F only" in old.sentence
    assert "tried" not in preflight.check("vLLM", CPU).sentence


def test_unknown_engine():
    with pytest.raises(ValueError, match="engine must be one of vLLM, SGLang, TensorRT-LLM, Dynamo, .* got 'llama'"):
        preflight.check("llama", CPU)


def nvidia_smi(folder, monkeypatch, script: str) -> None:
    program = folder / "nvidia-smi"
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_asks_nvidia_smi(tmp_path, monkeypatch):
    script = "case $# in 0) echo CUDA Version: 13.0;; *) echo Tesla T4, 15360 MiB, 7.5, 580.82.07;; esac\n"
    nvidia_smi(tmp_path, monkeypatch, script)
    found = preflight.machine()
    assert (found.gpus, found.cuda, found.no_gpu) == ((T4,), (13, 0), "")
    assert "Tesla T4, 16 GB, compute capability 7.5, driver 580.82.07, CUDA 13.0" in found.describe()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert preflight.machine().no_gpu == "CUDA_VISIBLE_DEVICES hides them"


def test_a_failing_nvidia_smi(tmp_path, monkeypatch):
    nvidia_smi(tmp_path, monkeypatch, "echo No devices were found; exit 6\n")
    assert preflight.machine().no_gpu == "nvidia-smi says: No devices were found"


def test_a_hanging_nvidia_smi(tmp_path, monkeypatch):
    nvidia_smi(tmp_path, monkeypatch, "exec sleep 100\n")
    monkeypatch.setattr(preflight, "PATIENCE", 0.2)
    started = time.monotonic()
    assert preflight.machine().no_gpu == "nvidia-smi gave no answer within 0.2 s"
    assert time.monotonic() - started < 5


def test_no_nvidia_smi(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert preflight.machine().no_gpu == "there is no nvidia-smi"


def test_this_machine_and_its_stamp():
    found = preflight.machine()
    assert found.cores == int(subprocess.run(["nproc"], capture_output=True, text=True).stdout)
    assert 0 < found.memory_bytes <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    stamp = found.describe()
    assert f"{found.cores} cores" in stamp and stamp.isprintable()
    assert platform.node() not in stamp and "/" not in stamp
