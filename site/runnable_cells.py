"""Below each code cell of a page: controls to change and run it in the browser, or what it needs that a browser lacks.

A cell can be run in the page if it, and the earlier statements that it needs, import only what Python in a browser
has: the standard library, and those modules of `enginelab` that need nothing more. Both are found by reading code,
never by running it. The page carries the texts of its cells; `cells/runnable_cells.js` makes the controls, and
`enginelab.rerun` does the rest.
"""

import ast
import functools
import json
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.transforms.post_transforms import SphinxPostTransform

from enginelab.needed import needed, statements

PACKAGE = "enginelab"
NOT_IN_A_BROWSER = frozenset(
    "ctypes curses fcntl multiprocessing pty readline resource select selectors signal socket socketserver ssl "
    "subprocess syslog termios threading tkinter venv".split()
)
"""Modules of the standard library that need what a web page has not: processes, threads, sockets, a terminal."""
HIDDEN = {"remove-input", "remove_input", "remove-cell", "remove_cell"}


# --- what a browser has -----------------------------------------------------------------------------------------------


def lacking(module: str, library: Path) -> frozenset[str]:
    """Top-level modules that importing `module` needs and a browser lacks; `library` is the folder of `enginelab`.

    `module` may go on with the name of what it holds, as in `enginelab.table.Table`.
    """
    top = module.split(".")[0]
    if top != PACKAGE:
        return frozenset() if top in sys.stdlib_module_names - NOT_IN_A_BROWSER else frozenset({top})
    return frozenset(
        missing
        for name in _closure(module, library)
        if not name.startswith(PACKAGE)
        for missing in lacking(name, library)
    )


@functools.cache
def _closure(module: str, library: Path) -> frozenset[str]:
    """Names of all modules that are imported when `module` is."""
    found, open_ = set(), {module}
    while open_:
        name = open_.pop()
        found.add(name)
        if name.split(".")[0] == PACKAGE:
            open_ |= {each for path in _files(name, library) for each in _imports(path, library)} - found
    return frozenset(found)


def _files(module: str, library: Path) -> Iterator[Path]:
    """Files of the library that are run when `module` is imported: of its packages, and its own."""
    place = library
    for part in [*module.split(".")[1:], None]:
        if (file := place / "__init__.py").is_file():
            yield file
        if part is None:
            return
        if (file := place / f"{part}.py").is_file():
            yield file
            return
        place = place / part


def _imports(path: Path, library: Path) -> Iterator[str]:
    """What a file imports when it is itself imported."""
    package = [PACKAGE, *path.relative_to(library).parts[:-1]]
    for node in _at_import(ast.parse(path.read_text(encoding="utf-8")).body):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def _at_import(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Imports that happen at once: not in functions, not for type checkers only, none that may fail."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and ast.unparse(node.test) not in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            yield from _at_import(node.body + node.orelse)
        elif isinstance(node, ast.With | ast.ClassDef):
            yield from _at_import(node.body)


# --- pages ------------------------------------------------------------------------------------------------------------


def wanting(cells: list[str], number: int, library: Path) -> tuple[str, ...]:
    """What a browser lacks for cell `number` of `cells`: names of modules, sorted; empty if it can run there."""
    lines = (*needed(cells[:number], cells[number]), *statements(cells[number]))
    return tuple(sorted({missing for line in lines for name in line.modules for missing in lacking(name, library)}))


def sentence(missing: tuple[str, ...], notebook: str) -> str:
    """Why a cell cannot be run in the page, and where its notebook is; HTML."""
    names = [f"<code>{escape(name)}</code>" for name in missing]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return (
        f'<p class="cell-note">To run this, <a href="{escape(notebook)}" download>download the notebook</a>: '
        f"it needs {listed}, which a browser lacks.</p>"
    )


class RunnableCells(SphinxPostTransform):
    """Put a line below each visible code cell of a page that was run to build it."""

    default_priority = 30
    builders = ("html", "dirhtml")

    def run(self, **kwargs):
        page = self.env.docname
        executed = Path(self.env.mystnb_config.output_folder, f"{page}.ipynb")
        if Path(self.env.doc2path(page)).suffix != ".md" or not executed.is_file():
            return
        notebook = json.loads(executed.read_text(encoding="utf-8"))["cells"]
        places = [place for place, cell in enumerate(notebook) if cell["cell_type"] == "code"]
        cells = ["".join(notebook[place]["source"]) for place in places]
        library, runnable = Path(self.env.srcdir, "lib", PACKAGE).resolve(), []
        for container in list(self.document.findall(_is_cell)):
            number = places.index(container["cell_index"])
            try:
                missing = wanting(cells, number, library)
            except SyntaxError as error:
                raise ExtensionError(f"{page}: a cell is not plain Python: {error}") from None
            if missing:
                line = sentence(missing, f"{'../' * page.count('/')}_sources/{page}.ipynb")
            else:
                line = f'<div class="runnable-cell" data-cell="{number}"></div>'
                runnable.append(number)
            container.insert(1, nodes.raw("", line, format="html"))
        if runnable:
            before = {n: "\n".join(each.text for each in needed(cells[:n], cells[n])) for n in runnable}
            held = json.dumps({"cells": cells[: runnable[-1] + 1], "before": before}, ensure_ascii=False)
            held = held.replace("<", "\\u003c")  # so that no text of a cell can end the element
            data = f'<script type="application/json" id="page-cells">{held}</script>'
            self.document += nodes.raw("", data, format="html")


def _is_cell(node) -> bool:
    return (
        isinstance(node, nodes.container)
        and node.get("nb_element") == "cell_code"
        and not HIDDEN & set(node["cell_metadata"].get("tags", ()))
        and bool(node.children)
        and node.children[0].get("nb_element") == "cell_code_source"
    )


def _load_script(app, page, template, context, doctree):
    if 'id="page-cells"' in context.get("body", ""):
        app.add_js_file("runnable_cells.js", type="module")
    if 'class="runnable-cell"' in context.get("body", "") or 'class="cell-note"' in context.get("body", ""):
        app.add_css_file("runnable_cells.css")


def _serve_files(app, config):
    config.html_static_path.append(str(Path(__file__).with_name("cells")))


def setup(app):
    app.add_post_transform(RunnableCells)
    app.connect("config-inited", _serve_files)
    app.connect("html-page-context", _load_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
