"""The book: its chapters run and keep the house rules, its build fails when it should, and no number goes stale."""

import ast
import os
import re
import shutil
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
    "chapters/glossary",
}
TEACHING = [page for page in NOTEBOOKS if page.startswith("chapters/") and page not in COLLECTIONS]
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
    files = [*ROOT.glob("chapters/*.md"), *ROOT.glob("labs/*.ipynb")]
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
    assert MACHINE_PATH.findall(SOURCES[page].read_text(encoding="utf-8")) == []


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


# --- building -----------------------------------------------------------------------------------------------------

HEADER = """\
---
jupytext:
  text_representation: {extension: .md, format_name: myst, format_version: 0.13, jupytext_version: 1.19.6}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
# A page
"""
CELL = "\n```{{code-cell}} ipython3\n{}\n```\n"
FIGURE_OPTIONS = "---\nmystnb:\n  image:\n    alt: Two bars, one for each worker\n---\n"


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """A book of one page on a copy of the library, built by the real build program."""
    root = tmp_path_factory.mktemp("book")
    for folder in ("site", "lib"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(ROOT / "_config.yml", root)
    answer, page = root / "lib" / "enginelab" / "answer.py", root / "index.md"

    def build(value, *cells, extra="", toc=""):
        (root / "_toc.yml").write_text(f"format: jb-book\nroot: index\n{toc}")
        answer.write_text(f"ANSWER = {value}\n")
        cells = ("from enginelab import answer, plot\nfrom myst_nb import glue", *cells)
        source = HEADER + "".join(CELL.format(cell) for cell in cells) + extra
        if not page.exists() or page.read_text() != source:
            page.write_text(source)
        command = [sys.executable, "site/build.py"]
        environment = os.environ | {"PYTHONPATH": str(root / "lib")}
        run = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=120)
        html = root / "_build" / "html" / "index.html"
        return run, html.read_text(encoding="utf-8") if html.exists() else ""

    return build


GOOD = (
    'glue("answer", answer.ANSWER, display=False)',
    FIGURE_OPTIONS + 'plot.routing(12, {"A": 10, "B": 0});',
)
SENTENCE = "\nThe answer is {glue:text}`answer`.\n"


def answer_on(html):
    return re.search(r"The answer is <span[^>]*>(\d+)</span>", html)[1]


def test_a_change_in_the_library_changes_the_page(book):
    run, html = book(206, *GOOD, extra=SENTENCE)
    assert run.returncode == 0, run.stdout + run.stderr
    assert answer_on(html) == "206" and "_build/html/index.html" in run.stdout
    run, html = book(4121, *GOOD, extra=SENTENCE)
    assert run.returncode == 0 and answer_on(html) == "4121"
    run, html = book(4121, *GOOD, extra=SENTENCE)
    assert run.returncode == 0 and answer_on(html) == "4121" and "unchanged, run earlier" in run.stdout


def test_a_page_holds_its_figure_offers_its_notebook_and_asks_nobody_outside(book):
    run, html = book(206, *GOOD, extra=SENTENCE)
    assert run.returncode == 0, run.stdout + run.stderr
    figure = re.search(r"<svg[^>]*computed-figure.*?</svg>", html, flags=re.DOTALL)[0]
    assert 'role="img"' in figure and 'aria-label="Two bars, one for each worker"' in figure
    assert "var(--figure-ink)" in figure and not re.search(r"#[0-9a-f]{6}\b", figure)
    assert 'href="_sources/index.ipynb"' in html
    loads = re.findall(r'<(?:script|link|img|iframe)\b[^>]*?(?:src|href)="([^"]+)"', html)
    assert loads and [url for url in loads if re.match(r"(?:https?:)?//", url)] == []
    assert "mathjax" not in html.lower() and "require.js" not in html


def test_a_filterable_table_is_whole_in_its_page_and_only_there_the_script_is_loaded(book):
    rows = "Table(('Engine', 'Flag'), (('A', '`-x`'), ('B', '`-y`')))"
    cell = f":tags: [filterable]\nfrom enginelab.table import Table\n{rows}"
    run, html = book(206, *GOOD, cell, extra=SENTENCE)
    assert run.returncode == 0, run.stdout + run.stderr
    table = re.search(r"tag_filterable.*?<table.*?</table>", html, flags=re.DOTALL)[0]
    assert "-x" in table and "-y" in table and "hidden" not in table
    assert re.search(r'<script[^>]* src="_static/filterable_tables\.js', html)
    run, html = book(206, *GOOD, extra=SENTENCE)
    assert run.returncode == 0 and "filterable_tables.js" not in html


BAD_CELLS = {
    "failing": ("1 / 0", "index.md: a cell failed with ZeroDivisionError: division by zero"),
    "warning": ("import sys\nprint('careful', file=sys.stderr)", "stderr was found in the cell outputs"),
    "figure without alt": ('plot.routing(12, {"A": 10});', "a computed figure has no alt text"),
    "figure in other colours": (
        FIGURE_OPTIONS + "import pylab\npylab.plot([1, 2]);",
        "colours that plot.PALETTE does not name",
    ),
}


@pytest.mark.parametrize("kind", BAD_CELLS)
def test_a_bad_cell_fails_the_build_with_a_sentence(book, kind):
    cell, sentence = BAD_CELLS[kind]
    run, _ = book(1, cell)
    assert run.returncode == 1 and sentence in run.stdout and "NOT built" in run.stdout
    # Not empty: ZeroMQ may say a word of its own when a kernel is stopped.
    assert "Traceback" not in run.stderr


def test_a_fault_outside_the_cells_fails_the_build_as_often_as_it_is_built(book):
    faults = {"extra": "\n[there](nowhere.md)\n", "toc": "chapters:\n- file: gone\n"}
    for _ in range(2):
        run, _ = book(1, **faults)
        assert run.returncode == 1 and "nowhere.md" in run.stdout
        assert "gone is in _toc.yml, but no page was built" in run.stdout


# --- the library's order ------------------------------------------------------------------------------------------

LAYERS = {
    "facts": {
        *"workload trace hardware engines commands flags atlas table fidelity machines needs results".split(),
        *"dynamo_flags image_flags deployment deployment_schema trtllm_reference trtllm printed drift".split(),
    },
    "models": {
        *"batching diffusion roofline speculation kvcache step_time engine scheduler calibration mocker".split(),
        *"routing router kvrouter prefix_tree disaggregation".split(),
        *"planner scaling engine_profile forecast autoscaling traffic break_even choosing verdicts compiled".split(),
        "cost",
        "tuning",
    },
    "runs": {
        *"environments inspection preflight logs supervisor supervised server client images native".split(),
        *"generators load trtllm_server dynamo_service listening sweep kept progress".split(),
    },
    "pictures": {"plot"},
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
