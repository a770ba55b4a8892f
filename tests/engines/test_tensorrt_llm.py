"""Lab 3 where there is no GPU: its client side rehearsed on a real engine, and its GPU path on a double."""

import os
import shutil
import stat
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from enginelab import preflight, trtllm_server

ROOT = Path(__file__).parents[2]
LAB = ROOT / "labs" / "03_tensorrt_llm.ipynb"
# How the programs of a GPU machine with TensorRT-LLM answer.
PROGRAMS = {
    "nvidia-smi": """
case "$*" in
  *query*) echo "NVIDIA A100-SXM4-80GB, 81920 MiB, 8.0, 580.65.06" ;;
  *) echo "Driver Version: 580.65.06  CUDA Version: 13.0" ;;
esac""",
    "python3": "echo 1.2.1",
    "trtllm-build": "",
    "trtllm-serve": f"""
case "$*" in
  *--help*) echo "  --backend [pytorch|tensorrt|_autodeploy]" ;;
  *) exec {sys.executable} {Path(__file__).with_name("trtllm_double.py")} "$@" ;;
esac""",
}


def run_lab(folder, **environment):
    """The lab as it is after a run from top to bottom; the file itself stays as it was."""
    shutil.copytree(ROOT / "site" / "kernel", folder, dirs_exist_ok=True)
    lab = nbformat.read(LAB, as_version=4)
    with pytest.MonkeyPatch.context() as here:
        for name, value in {"IPYTHONDIR": str(folder), "MPLCONFIGDIR": str(folder), **environment}.items():
            here.setenv(name, value)
        client = NotebookClient(lab, timeout=600, coalesce_streams=True, resources={"metadata": {"path": LAB.parent}})
        return client.execute()


def outputs(lab):
    for cell in lab.cells:
        for output in cell.get("outputs", []):
            yield output.text if "text" in output else "".join(map(str, output.data.values()))


def test_a_rehearsal_reaches_the_end_and_every_output_says_what_it_is(tmp_path):
    assert not trtllm_server.installation(), "This machine can run the real thing: run the lab, not its rehearsal."
    shown = list(outputs(run_lab(tmp_path, ENGINELAB_REHEARSE="1")))
    assert len(shown) > 15
    assert [text for text in shown if "REHEARSAL" not in text] == []
    assert shown[-1].startswith("Checked. REHEARSAL: vLLM ") and "no GPU" in shown[-1]


def test_the_gpu_path_runs_from_top_to_bottom(tmp_path):
    """Nothing is learnt here about TensorRT-LLM: the double speaks as its server does, and serves nonsense."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(stat.S_IRWXU)
    shown = list(outputs(run_lab(tmp_path, PATH=f"{programs}:{os.environ['PATH']}")))
    everything = "\n".join(shown)
    assert "REHEARSAL" not in everything
    assert "TensorRT-LLM 1.2.1 is installed, generation V0 and V1" in everything
    assert "| 4 |" in everything  # steps with all slots in use
    assert shown[-1].startswith("Checked. TensorRT-LLM 1.2.1 on ") and "A100" in shown[-1]


def test_no_rehearsal_is_kept():
    assert "REHEARSAL" not in "".join(outputs(nbformat.read(LAB, as_version=4)))
    assert not preflight.needs("TensorRT-LLM").cpu_build
