"""The book: its chapters run and keep the house rules, and the library keeps its order."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import jupytext
import nbformat
import pytest
from sphinx_external_toc.parsing import parse_toc_yaml

ROOT = Path(__file__).parents[1]
PAGES = sorted(parse_toc_yaml(ROOT / "_toc.yml"))
SOURCES = {page: path for page in PAGES for suffix in (".md", ".ipynb") if (path := ROOT / f"{page}{suffix}").is_file()}
NOTEBOOKS = {
    page: jupytext.read(path)
    for page, path in SOURCES.items()
    if path.suffix == ".md" and "{code-cell}" in path.read_text(encoding="utf-8")
}
# These open or collect what other chapters teach, so they have no example or exercise of their own.
COLLECTIONS = {
    "chapters/07_dynamo",
    "chapters/08_interview",
    "chapters/09_summary",
    "chapters/atlas",
    "chapters/cards",
    "chapters/glossary",
    "chapters/quiz",
}
TEACHING = [page for page in NOTEBOOKS if page.startswith(("chapters/", "techniques/")) and page not in COLLECTIONS]
SHAPE = ["The idea", "Worked example", "Try it: predict first", "Exercise", "Check yourself",
         "Where this lives in the real engines"]  # fmt: skip
MACHINE_PATH = re.compile(r"(?<![\w.~<])/(?:home|root|tmp|work|opt|Users)/\w|site-packages")

every_page = pytest.mark.parametrize("page", SOURCES)
every_notebook = pytest.mark.parametrize("page", NOTEBOOKS)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def prose(source: str) -> str:
    """A page's words: no front matter, code cells, literal blocks, directive lines, code spans or roles."""
    source = re.sub(r"\A---\n.*?\n---\n", "", source, flags=re.DOTALL)
    source = re.sub(r"^(`{3,})(?:\{code-cell\}|\w+).*?^\1\s*$", "", source, flags=re.DOTALL | re.MULTILINE)
    source = re.sub(r"^(?:`{3,}|:{3,}).*$", "", source, flags=re.MULTILINE)
    return re.sub(r"(?:\{[\w:-]+\})?(`+)[^`]+\1", "", source)


# --- pages --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_the_table_of_contents_exists(page):
    assert page in SOURCES, f"_toc.yml names {page}, which is neither {page}.md nor {page}.ipynb"


def test_every_chapter_and_lab_is_in_the_table_of_contents():
    files = [*ROOT.glob("chapters/*.md"), *ROOT.glob("techniques/*.md"), *ROOT.glob("labs/*.ipynb")]
    assert sorted(str(path.relative_to(ROOT).with_suffix("")) for path in files) == sorted(set(PAGES) - {"index"})


@every_notebook
def test_a_chapter_is_a_notebook_for_everyones_kernel(page):
    header = NOTEBOOKS[page].metadata
    representation = header["jupytext"]["text_representation"]
    assert {"extension", "format_name", "format_version", "jupytext_version"} <= representation.keys()
    assert (representation["extension"], representation["format_name"]) == (".md", "myst")
    assert header["kernelspec"]["name"] == "python3"


@every_notebook
def test_the_first_cell_imports_and_no_cell_is_long(page):
    cells = code_cells(NOTEBOOKS[page])
    statements = ast.parse(cells[0].source).body
    assert statements and all(isinstance(each, (ast.Import, ast.ImportFrom)) for each in statements)
    for cell in cells:
        assert len(cell.source.splitlines()) <= 25, f"a cell of {page} is longer than 25 lines:\n{cell.source}"
        assert not re.search(r"import \*|sys\.path", cell.source), cell.source


@pytest.mark.parametrize("page", TEACHING)
def test_a_chapter_has_the_shape_of_a_chapter(page):
    words = prose(SOURCES[page].read_text(encoding="utf-8"))
    headings = re.findall(r"^## (.+)$", words, flags=re.MULTILINE)
    assert [heading for heading in headings if heading in SHAPE] == SHAPE
    opening = words.split("\n## ")[0].split("\n\n", 2)[1]
    assert "?" in opening, f"{page} should open with its question, not with {opening!r}"


@every_page
def test_results_of_the_lesson_are_computed_not_typed(page):
    words = prose(SOURCES[page].read_text(encoding="utf-8")) if SOURCES[page].suffix == ".md" else ""
    results = (
        r"\b(?:52|78|83) ?(?:%|per ?cent)|\b1\.5[ -]times|\b(?:60,000|15,000)\b|\b(?:25|48|32) (?:useful )?slot-steps"
    )
    assert re.findall(results, words) == []


@every_page
def test_no_page_names_a_place_on_somebodys_machine(page):
    # A picture in a notebook is letters at random.
    words = re.sub(r"[A-Za-z0-9+/]{200,}", "", SOURCES[page].read_text(encoding="utf-8"))
    assert MACHINE_PATH.findall(words) == []


# --- running ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """Every chapter as an ordinary notebook, run by nbmake in a folder of its own: the run, and the notebooks."""
    folder = tmp_path_factory.mktemp("chapters")
    for page, notebook in NOTEBOOKS.items():
        nbformat.write(nbformat.from_dict(notebook), folder / f"{page.replace('/', '-')}.ipynb")
    command = [sys.executable, "-m", "pytest", "--nbmake", "--overwrite", "--nbmake-timeout=60", "-q"]
    environment = os.environ | {"IPYTHONDIR": str(folder / "ipython")}
    run = subprocess.run(
        [*command, "-p", "no:cacheprovider", "."], cwd=folder, env=environment, capture_output=True, text=True
    )
    return run, {page: nbformat.read(folder / f"{page.replace('/', '-')}.ipynb", 4) for page in NOTEBOOKS}


def test_every_chapter_runs_from_top_to_bottom(executed):
    run, _ = executed
    assert run.returncode == 0, run.stdout[-6000:]
    assert f"{len(NOTEBOOKS)} passed" in run.stdout


@every_notebook
def test_what_a_chapter_shows_can_be_read_by_everyone(page, executed):
    for cell in code_cells(executed[1][page]):
        assert cell.execution_count, f"this cell of {page} was not run:\n{cell.source}"
        for output in cell.outputs:
            if any(kind.startswith("image/") for kind in output.get("data", {})):
                alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
                assert len(alt.split()) >= 5, (
                    f"a figure of {page} needs an alt text that says something:\n{cell.source}"
                )
                continue
            shown = str(output.get("text", "")) + str(output.get("data", {}).get("text/plain", ""))
            assert output.get("name") != "stderr", f"this cell of {page} warns:\n{cell.source}\n{shown}"
            assert not re.search(r"<Axes|object at 0x|<[\w.]+ at 0x", shown), (
                f"end this with a semicolon:\n{cell.source}"
            )
            assert not MACHINE_PATH.search(shown), shown


# --- the library's order ------------------------------------------------------------------------------------------

LAYERS = {
    "facts": {
        *"workload trace hardware instances engines commands flags atlas table fidelity machines needs".split(),
        *"dynamo_flags image_flags deployment deployment_schema trtllm_reference trtllm printed drift results".split(),
        *"needed rerun".split(),
    },
    "models": {
        *"batching diffusion roofline footprint kernels quantization parallelism speculation cost measuring".split(),
        *"kvcache step_time engine scheduler calibration mocker tuning compiled".split(),
        *"routing router kvrouter prefix_tree disaggregation choosing verdicts".split(),
        *"planner scaling engine_profile forecast autoscaling traffic break_even".split(),
        *"questions exploring explorations".split(),
    },
    "runs": {
        *"environments inspection preflight logs supervisor supervised server client images native".split(),
        *"generators load trtllm_server dynamo_service listening sweep kept progress".split(),
    },
    "pictures": {"plot", "widgets"},
}
ENGINES = {"torch", "vllm", "sglang", "tensorrt_llm", "IPython"}
LAYER_OF = {module: number for number, modules in enumerate(LAYERS.values()) for module in modules}
PACKAGE = ROOT / "lib" / "enginelab"
MODULES = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in PACKAGE.rglob("*.py")} - {"__init__"}


def imports(path: Path):
    """(absolute module name, names) of every import in a file, wherever it stands."""
    package = ["enginelab", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            yield ".".join([*base, *([node.module] if node.module else [])]), [alias.name for alias in node.names]


def test_every_module_has_a_layer():
    assert set(LAYER_OF) >= MODULES, "give the new module its layer in this file"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_point_one_way_and_never_at_an_engine(module):
    files = [PACKAGE / f"{module}.py"] if (PACKAGE / f"{module}.py").is_file() else (PACKAGE / module).rglob("*.py")
    for path in files:
        for name, members in imports(path):
            assert name.split(".")[0] not in {"torch", "vllm", "sglang", "tensorrt_llm", "IPython"}, (
                f"{path.name}: {name}"
            )
            used = name.split(".")[1:2] if name.startswith("enginelab.") else members if name == "enginelab" else []
            for other in set(used) & MODULES:
                assert LAYER_OF[other] <= LAYER_OF[module], f"{path.name} imports {other}, from a later layer"


def test_facts_and_models_need_the_standard_library_alone(tmp_path):
    names = sorted((LAYERS["facts"] | LAYERS["models"]) & MODULES)
    code = "import importlib.util as u, importlib\nassert not u.find_spec('matplotlib')\n"
    code += "".join(f"import enginelab.{name}\n" for name in names)
    # -S leaves out the environment's packages.
    command = [sys.executable, "-S", "-c", code]
    run = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT / "lib")}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
