"""A commit has one set of bytes: two builds, in two folders, make the same site."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
FORK = {"GITHUB_REPOSITORY": "some-one/a.fork", "GITHUB_SERVER_URL": "https://github.com", "GITHUB_REF_NAME": "main"}
PAGE = """\
---
jupytext:
  text_representation: {extension: .md, format_name: myst, format_version: 0.13, jupytext_version: 1.19.6}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

# A page

*What does it hold?* A figure, a table, a number and a formula: {math}`x^2`.

```{code-cell} python
from enginelab import batching, plot, table
from myst_nb import glue
```

```{code-cell} python
---
mystnb:
  image:
    alt: Two timelines
---
plot.slots(batching.continuous([2, 8, 3, 5, 3, 4], slots=4));
```

```{code-cell} python
glue("steps", batching.static([2, 8], slots=1).steps, display=False)
hash("different in each process unless it is told otherwise"), {"b", "a", "c"}
```

It takes {glue:text}`steps` steps.

```{live} slots
```
"""


def built(root: Path) -> dict[str, bytes]:
    """The files of a one-page book built in `root`, by their names on the site."""
    root.mkdir(parents=True)
    for folder in ("site", "lib"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("_config.yml", "pyproject.toml", "requirements.txt"):
        shutil.copy(ROOT / name, root)
    (root / "_toc.yml").write_text("format: jb-book\nroot: index\n")
    (root / "index.md").write_text(PAGE)
    surroundings = os.environ | FORK | {"PYTHONPATH": str(root / "lib"), "SITE_URL": "https://site.example/course"}
    surroundings["SOURCE_DATE_EPOCH"] = "1796083200"  # as of a commit; there is none here
    run = subprocess.run([sys.executable, "site/build.py"], cwd=root, env=surroundings, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    html = root / "_build" / "html"
    return {path.relative_to(html).as_posix(): path.read_bytes() for path in html.rglob("*") if path.is_file()}


def test_two_builds_of_the_same_sources_have_the_same_bytes(tmp_path):
    with ThreadPoolExecutor() as both:
        one, other = both.map(built, [tmp_path / "one", tmp_path / "in" / "another" / "place"])
    assert one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == []
    page = one["index.html"].decode()
    assert 'rel="canonical" href="https://site.example/course/index.html"' in page and "card.png" in page
    assert "_static/card.png" in one and str(tmp_path) not in page
