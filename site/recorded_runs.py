"""What each lab gave on the machines where it was run, on the lab's page.

The files in labs/results are read when the book is built, and their table is put behind the notebook's last cell. The
notebook itself holds the one run that its stamp names, and nothing of this.
"""

import hashlib
import json
from pathlib import Path

from sphinx.errors import ExtensionError

from enginelab import needs, results

HEADING = "## Recorded runs"
WORDS = """\
This lab on different machines. Each number is what the lab predicted, then what it measured, in one run, with whatever
else the machine had to do. To add yours, run this at the end of the lab, and send the file that it writes as a pull
request; there is nothing private in it.

```python
from enginelab import results
results.keep("{lab}", source, predicted, measured, machine)
```
"""


def with_runs(notebook: str, lab: str, runs: tuple[results.Record, ...]) -> str:
    """The notebook's text with a last cell that shows `runs`, or says that there are none."""
    held = json.loads(notebook)
    shown = results.table(runs)._repr_markdown_() if runs else "No run of it has been recorded yet."
    source = f"{HEADING}\n\n{WORDS.format(lab=lab)}\n{shown}"
    held["cells"].append({"cell_type": "markdown", "id": "recorded-runs", "metadata": {}, "source": source})
    return json.dumps(held)


def _folder(app) -> Path:
    return Path(app.srcdir, "labs", "results")


def _lab(page: str) -> str:
    folder, _, name = page.rpartition("/")
    return name if folder == "labs" and name in needs.LABS else ""


def _add_runs(app, page, content):
    if lab := _lab(page):
        try:
            content[0] = with_runs(content[0], lab, results.of_lab(lab, _folder(app)))
        except ValueError as error:
            raise ExtensionError(str(error)) from None


def _changed(app, env, added, changed, removed):
    """Labs whose page has to be read again, because the files of `_folder` are not those of the last build."""
    files = sorted(path for path in _folder(app).glob("*") if path.is_file())
    state = hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in files)).hexdigest()
    if getattr(env, "recorded_runs", state) == state:
        env.recorded_runs = state
        return []
    env.recorded_runs = state
    return [page for page in env.found_docs if _lab(page)]


def setup(app):
    app.connect("source-read", _add_runs)
    app.connect("env-get-outdated", _changed)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
