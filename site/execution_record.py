"""What the pages were computed with, and how long it took.

Sphinx reads a page again when the page changes, and does not know that its numbers come from the library. So the
library's content counts as a setting: when it changes, every page is read and run again.
"""

import hashlib
import json
from pathlib import Path

from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.errors import ExtensionError


def content_hash(root: Path) -> str:
    """SHA-256 over everything under `root` that page numbers and figures come from: library, site, pinned packages."""
    files = [path for folder in ("lib", "site") for path in (root / folder).rglob("*")]
    files += [root / "requirements.txt", root / "pyproject.toml"]
    digest = hashlib.sha256()
    for path in sorted(files):
        if path.is_file() and not any(part.endswith(("__pycache__", ".egg-info")) for part in path.parts):
            digest.update(f"{path.relative_to(root)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _note_content(app, config):
    if not Path(app.srcdir, "lib").is_dir():
        raise ExtensionError("the book must be built from the checkout, where lib/ is: its numbers are computed there")
    config.computed_with = content_hash(Path(app.srcdir))


def settled(notebook: str) -> str:
    """An executed notebook without what differs from run to run: the names that its cells were given, and times."""
    held = json.loads(notebook)
    for number, cell in enumerate(held["cells"], start=1):
        cell["id"] = f"cell-{number}"
        cell["metadata"].pop("execution", None)
    return json.dumps(held, indent=1, ensure_ascii=False) + "\n"


def _offer_notebook(app, page, template, context, doctree):
    """Let the theme's download button offer the executed notebook beside the page's source."""
    notebook = Path(app.env.mystnb_config.output_folder, f"{page}.ipynb")
    if doctree is None or "kernelspec" not in app.env.metadata[page] or not notebook.is_file():
        return
    if Path(app.env.doc2path(page)).suffix != ".ipynb":
        target = Path(app.outdir, "_sources", f"{page}.ipynb")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(settled(notebook.read_text(encoding="utf-8")), encoding="utf-8")
        context["ipynb_source"] = f"{page}.ipynb"


def _write_record(app, failure):
    """Leave the seconds of each page's execution in `execution.json`, beside the built pages' folder."""
    if failure is not None:
        return
    runs = {page: NbMetadataCollector.get_exec_data(app.env, page) for page in sorted(app.env.found_docs)}
    seconds = {page: run["runtime"] for page, run in runs.items() if run}
    Path(app.outdir).parent.joinpath("execution.json").write_text(json.dumps(seconds, indent=1), encoding="utf-8")


def setup(app):
    app.add_config_value("computed_with", "", "env", types=(str,))
    app.connect("config-inited", _note_content)
    # Before the theme draws its buttons, at the default priority.
    app.connect("html-page-context", _offer_notebook, priority=100)
    app.connect("build-finished", _write_record)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
