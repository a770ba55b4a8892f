"""The build of the book: it fails when it should, with a sentence, and no number goes stale."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
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
    for name in ("_config.yml", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
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
