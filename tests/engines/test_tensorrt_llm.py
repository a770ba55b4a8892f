"""Lab 3 rehearsed: its client side on a real engine that stands in for TensorRT-LLM, every output saying so."""

import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from enginelab import preflight, trtllm_server

ROOT = Path(__file__).parents[2]
LAB = ROOT / "labs" / "03_tensorrt_llm.ipynb"


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory):
    """The lab as it is after a rehearsal, from top to bottom; the file itself stays as it was."""
    if preflight.check("TensorRT-LLM", preflight.machine()).ok and trtllm_server.installation():
        pytest.fail("This machine can run the real thing: run the lab, not its rehearsal.")
    settings = tmp_path_factory.mktemp("ipython")
    shutil.copytree(ROOT / "site" / "kernel", settings, dirs_exist_ok=True)
    lab = nbformat.read(LAB, as_version=4)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("ENGINELAB_REHEARSE", "1")
        environment.setenv("IPYTHONDIR", str(settings))
        environment.setenv("MPLCONFIGDIR", str(settings))
        client = NotebookClient(lab, timeout=600, coalesce_streams=True, resources={"metadata": {"path": LAB.parent}})
        return client.execute()


def test_every_output_of_a_rehearsal_says_so(rehearsed):
    said = 0
    for cell in rehearsed.cells:
        for output in cell.get("outputs", []):
            shown = output.text if "text" in output else "".join(map(str, output.data.values()))
            assert "REHEARSAL" in shown, cell.source
            said += 1
    assert said > 15


def test_a_rehearsal_reaches_the_end_and_names_its_stand_in(rehearsed):
    last = rehearsed.cells[-2].outputs[-1].text
    assert last.startswith("Checked. REHEARSAL: vLLM ") and "no GPU" in last


def test_no_rehearsal_is_kept():
    lab = nbformat.read(LAB, as_version=4)
    assert "REHEARSAL" not in str([cell.get("outputs") for cell in lab.cells])
