"""Cells that a reader changes and runs: what they need of those before, how they end, and that the book's own do."""

import ast
import io
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import jupytext
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runnable_cells
from enginelab import rerun
from enginelab.needed import needed

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "lib" / "enginelab"


def texts(cells, cell):
    return [statement.text for statement in needed(cells, cell)]


# --- which earlier statements a cell needs --------------------------------------------------------------------------


def test_a_cell_needs_what_its_names_come_from_and_no_more():
    cells = ["from a import b, c\nimport d.e as f, random", "x = b + 1\ny = c(x)\nz = [y]", "glue('x', x)"]
    assert texts(cells, "print(x)") == ["from a import b", "x = b + 1"]
    assert texts(cells, "z[0]") == ["from a import b", "from a import c", "x = b + 1", "y = c(x)", "z = [y]"]
    assert texts(cells, "print(1)") == []
    assert [line.modules for line in needed(cells, "x, f")] == [("a.b",), ("d.e",), ()]


@pytest.mark.parametrize(
    "cells, cell, count",
    [
        (["a = 1", "a = 2"], "a", 1),  # only the last counts
        (["a = 1", "a += 1"], "a", 2),
        (["a = {}", "a['k'] = 1"], "a", 2),
        (["a = []", "a.append(1)"], "a", 2),
        (["a = []", "a.x[0].y(1)"], "a", 2),
        (["a = 1", "if b:\n    a = 2"], "a", 2),
        (["a = 1", "if b:\n    a = 2\nelse:\n    a = 3"], "a", 1),
        (["a = 1", "for a in ():\n    pass"], "a", 2),  # perhaps no round
        (["a = 1", "with open('f') as f:\n    a = 2"], "a", 1),
        (["import a", "a.show(1)"], "a", 1),  # a module holds no state of the page
        (["a = 1"], "for a in range(3):\n    print(a)", 0),
        (["a = 1"], "for b in range(3):\n    a = b\n    print(a)", 0),
        (["a = 1"], "for b in range(3):\n    print(a)\n    a = b", 1),
        (["a = 1"], "[a for a in range(3)]", 0),
        (["a = 1"], "[a for b in range(3)]", 1),
        (["a = 1", "def f():\n    return a"], "f()", 2),
        (["a = 1", "def f(a):\n    return a"], "f(2)", 1),
        (["a = 1", "def f():\n    a = 2\n    return a"], "f()", 1),
        (["import c", "@c.cache\ndef f():\n    pass"], "f", 2),
        (["a = 1", "try:\n    b = a\nexcept E as e:\n    b = e"], "b", 2),
        (["_ = draw(1)"], "for _ in range(2):\n    print(_)", 0),
    ],
)
def test_each_kind_of_statement_counts_as_it_should(cells, cell, count):
    assert len(needed(cells, cell)) == count


def test_a_statement_is_shown_as_it_was_written():
    cells = ["f = print; h = 2", "@f\ndef g():  # why\n    return (1,\n            2)\n"]
    assert texts(cells, "g") == ["f = print", "@f\ndef g():  # why\n    return (1,\n            2)"]


NAMES = st.sampled_from("abcd")
LINES = st.one_of(
    st.builds("{} = {} + 1".format, NAMES, NAMES),
    st.builds("{} = [*{}, 3] if isinstance({}, list) else 5".format, NAMES, NAMES, NAMES),
    st.builds("{} += {}".format, NAMES, NAMES),
    st.builds("{}, {} = {}, {}".format, NAMES, NAMES, NAMES, NAMES),
    st.builds("if {} % 2:\n    {} = {}\nelif {} > 3:\n    {} = 7".format, NAMES, NAMES, NAMES, NAMES, NAMES),
    st.builds("if {} % 2:\n    {} = {}\nelse:\n    {} = 9".format, NAMES, NAMES, NAMES, NAMES),
    st.builds("for {} in range(abs({}) % 3):\n    {} = {} - 1\n    {} = {}".format, *[NAMES] * 6),
    st.builds("while {} > 9:\n    {} -= 3\n    {} = {}\n    break".format, *[NAMES] * 4),
    st.builds("try:\n    {} = {} // ({} % 3)\nexcept ZeroDivisionError:\n    {} = 1".format, *[NAMES] * 4),
    st.builds("log.append({})".format, NAMES),
    st.builds("log[0] = {}\n{} = log[-1]".format, NAMES, NAMES),
    st.builds("def f({}):\n    {} = 2\n    return {} + {}".format, *[NAMES] * 4),
    st.builds("{} = f({})".format, NAMES, NAMES),
    st.builds("{} = sum({} + {} for {} in range(3))".format, *[NAMES] * 4),
)
START = ["a, b, c, d = 1, 2, 3, 4", "log = [0]", "def f(x):\n    return x + a"]


@settings(max_examples=200)
@given(st.lists(LINES, min_size=1, max_size=12), NAMES)
def test_running_the_needed_lines_is_as_good_as_running_all(lines, wanted):
    cells, cell, whole, part = [*START, *lines], f"result = {wanted}, log[:]", {}, {}
    try:
        exec("\n".join([*cells, cell]), whole)
    except (TypeError, UnboundLocalError, ArithmeticError, RecursionError):
        return
    exec("\n".join([*texts(cells, cell), cell]), part)
    assert part["result"] == whole["result"]


# --- running --------------------------------------------------------------------------------------------------------


def run(cell, earlier=()):
    screen = io.StringIO()
    ending = rerun.run(list(earlier), cell, screen)
    return screen.getvalue(), ending


def test_a_cell_prints_and_shows_the_value_of_its_last_line():
    earlier = ["import math\nfrom myst_nb import nothing", "print('not shown')\nx = math.floor(2.5)"]
    printed, ending = run("print('x is', x)\nx * 2", earlier)
    assert (printed, ending.value, ending.error) == ("x is 2\n", "4", "")
    assert ending.before == "import math\nx = math.floor(2.5)"
    assert run("1;")[1].value == "" and run("None")[1].value == ""


def test_a_cell_that_shows_nothing_says_what_it_has_set():
    _, ending = run(
        "import math\ny, _z = 2, 3\nlong = list(range(10_000))\nfor n in range(3):\n    w = n\nf = lambda: 1"
    )
    assert dict(ending.names).keys() == {"y", "long"}
    assert len(dict(ending.names)["long"]) <= rerun.MOST_OF_ONE + 2
    assert run("print(1)\ny = 2")[1].names == ()


def test_a_table_is_shown_as_text():
    _, ending = run("from enginelab.table import Table\nTable(('a', 'b'), ((1, 22),))")
    assert ending.value == "a  b\n1  22"


@pytest.mark.parametrize(
    "cell, line, words",
    [
        ("x = 1\nx.y", 2, "AttributeError: 'int' object has no attribute 'y'"),
        ("x = (\n", 1, "SyntaxError: '(' was never closed"),
        ("1\nif True:\nx", 3, "IndentationError: expected an indented block after 'if' statement on line 2"),
        ("import batchings", 1, "batchings is not to be had in this page"),
        ("raise SystemExit", 1, "SystemExit"),
        ("def f():\n    return f()\nf()", 2, "RecursionError"),
        ("len('a' * 10 ** 30)", 1, "OverflowError"),
        ("10 ** 5_000", None, "ValueError"),
        ("class A:\n    def __repr__(self): return 1 / 0\nA()", 2, "ZeroDivisionError"),
        ("class A(BaseException): pass\nraise A", 2, "A"),
        ("class A(Exception):\n    def __str__(self): return 1 / 0\nraise A", 3, "A"),
    ],
)
def test_what_goes_wrong_is_said_in_a_line(cell, line, words):
    _, ending = run(cell)
    assert ending.line == line and ending.error.startswith(words) and "\n" not in ending.error


def test_a_fault_in_an_earlier_cell_names_that_cell():
    _, ending = run("b", ["c = 1", "b = 1 / 0"])
    assert (ending.earlier, ending.line, ending.error) == (1, None, "ZeroDivisionError: division by zero")
    _, ending = run("b", ["b = 1", "b = ("])
    assert ending.error == "", "a cell that cannot be read is passed over"


def test_an_endless_print_is_cut_and_what_follows_still_arrives():
    printed, ending = run("for _ in range(20_000):\n    print('again and again')\n7")
    assert len(printed) < rerun.MOST_PRINTED + 100 and printed.endswith("not shown.\n")
    assert ending.value == "7"


def test_what_cannot_be_shown_is_said_and_the_rest_still_is():
    _, ending = run("x = 10 ** 5_000\ny = 2")
    assert dict(ending.names)["x"].startswith("(ValueError: ") and dict(ending.names)["y"] == "2"
    assert run("import sys\nprint('oh', file=sys.stderr)")[0] == "oh\n"


# --- what a browser has ---------------------------------------------------------------------------------------------


def modules_of_the_library():
    for path in sorted(LIBRARY.rglob("*.py")):
        parts = path.relative_to(LIBRARY.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


IMPORTS = """\
import importlib, json, sys
names, absent = json.load(sys.stdin)
sys.modules |= dict.fromkeys(absent)  # None there makes an import fail
told = {}
for name in names:
    try:
        importlib.import_module(name)
        told[name] = ""
    except ImportError as error:
        told[name] = error.name
print(json.dumps(told))
"""


def test_what_a_browser_lacks_is_what_an_import_without_packages_lacks(tmp_path):
    found = {name: runnable_cells.lacking(name, LIBRARY) for name in modules_of_the_library()}
    absent = sorted(runnable_cells.NOT_IN_A_BROWSER - {"threading"})  # without which Python cannot even end
    command = [sys.executable, "-S", "-c", IMPORTS]
    asked = json.dumps([list(found), absent])
    run = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(LIBRARY.parent)}, input=asked, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    for name, missing in json.loads(run.stdout).items():
        if missing:
            assert missing.split(".")[0] in found[name], name
        else:
            assert found[name] <= {"threading"}, name


def test_plots_and_engines_are_named_by_what_they_lack():
    assert runnable_cells.lacking("enginelab.plot", LIBRARY) == {"matplotlib", "numpy"}
    assert runnable_cells.lacking("enginelab.batching", LIBRARY) == frozenset()
    assert runnable_cells.lacking("enginelab.table.Table", LIBRARY) == frozenset()
    assert runnable_cells.lacking("enginelab.server", LIBRARY) >= {"socket"}
    assert runnable_cells.lacking("myst_nb.glue", LIBRARY) == {"myst_nb"}
    words = runnable_cells.sentence(("matplotlib", "numpy"), "../_sources/a.ipynb")
    assert "<code>matplotlib</code> and <code>numpy</code>" in words and 'href="../_sources/a.ipynb" download' in words


# --- the book's own cells -------------------------------------------------------------------------------------------

PAGES = {
    str(path.relative_to(ROOT).with_suffix("")): jupytext.read(path)
    for path in [ROOT / "index.md", *sorted(ROOT.glob("chapters/*.md"))]
    if "{code-cell}" in path.read_text(encoding="utf-8")
}
WHOLE = """\
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from enginelab import rerun
shell, told = InteractiveShell.instance(), []
for cell in json.load(sys.stdin):
    with capture_output() as out:
        result = shell.run_cell(cell)
    result.raise_error()
    printed = out.stdout.split("Out[")[0]
    names = [] if out.stdout else list(rerun._set_by(cell, shell.user_ns))
    told.append([printed, "" if result.result is None else rerun._as_text(result.result), names])
print(json.dumps(told))
"""
ALONE = """\
import io, json, sys
from enginelab import rerun
cells, numbers = json.load(sys.stdin)
for n in numbers:
    screen = io.StringIO()
    ending = rerun.run(cells[:n], cells[n], screen)
    print(json.dumps([screen.getvalue(), ending.value, ending.names, ending.error]))
"""


def code_cells(page):
    return [cell for cell in PAGES[page].cells if cell.cell_type == "code"]


@cache
def runnable(page):
    """Places of the visible cells of a page that its reader can run."""
    cells = [cell.source for cell in code_cells(page)]
    hidden = [bool(runnable_cells.HIDDEN & set(cell.metadata.get("tags", ()))) for cell in code_cells(page)]
    return [n for n in range(len(cells)) if not hidden[n] and not runnable_cells.wanting(cells, n, LIBRARY)]


def python(options, code, given, **environment):
    command = [sys.executable, *options, "-c", code]
    environment |= {"PYTHONPATH": str(LIBRARY.parent), "PYTHONHASHSEED": "0"}
    run = subprocess.run(command, input=json.dumps(given), env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]
    return run.stdout


def comparable(names):
    """Without ids of blocks: a chapter begins them with the hash of None, which before Python 3.12 differs by run."""
    return [[name, text] for name, text in names if "block_ids=(" not in text]


@pytest.mark.parametrize("page", [page for page in PAGES if runnable(page)])
def test_a_runnable_cell_gives_alone_what_it_gave_in_its_chapter(page, tmp_path):
    cells, numbers = [cell.source for cell in code_cells(page)], runnable(page)
    kept = {"HOME": str(tmp_path), "IPYTHONDIR": str(tmp_path), "MPLBACKEND": "agg", "PATH": os.environ["PATH"]}
    whole = json.loads(python([], WHOLE, cells[: numbers[-1] + 1], **kept).splitlines()[-1])
    for n, line in zip(numbers, python(["-S"], ALONE, [cells, numbers]).splitlines(), strict=True):
        printed, value, names, error = json.loads(line)
        assert error == "", cells[n]
        assert [printed, value] == whole[n][:2], cells[n]
        assert comparable(names) == comparable(whole[n][2]), cells[n]


def test_only_pictures_imports_and_what_needs_them_cannot_be_run():
    """Every other visible cell can, so a new import at the wrong place is noticed."""
    for page in PAGES:
        for n, cell in enumerate(code_cells(page)):
            if n in runnable(page) or runnable_cells.HIDDEN & set(cell.metadata.get("tags", ())):
                continue
            imports_only = all(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.parse(cell.source).body)
            assert imports_only or "plot." in cell.source, f"{page}: this cell should run in a browser:\n{cell.source}"
