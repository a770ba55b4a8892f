"""The standard library that Python in a browser starts with, compiled beforehand: it starts in a third of the time.

Pyodide brings it as source, and compiling that is most of what a reader waits for. Bytecode has to come from the very
same Python, so Pyodide itself makes it, once for each of its versions, in the Node that playwright brings along; the
result lies in the course's cache folder.
"""

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

from enginelab import environments

PROGRAM = Path(__file__).with_suffix(".mjs")
SECONDS = 300.0


def standard_library(pyodide: dict[str, bytes]) -> bytes:
    """What takes the place of `python_stdlib.zip`: the same modules, those that Python loads when it starts compiled.

    pyodide: the files of the package by name. Where playwright and so Node is missing, that file as it is.
    """
    digest = hashlib.sha256(PROGRAM.read_bytes())
    for name in sorted(pyodide):
        digest.update(pyodide[name])
    kept = environments.cache() / "vendored" / f"stdlib-{digest.hexdigest()[:16]}.zip"
    if kept.is_file():
        return kept.read_bytes()
    node = _node()
    if node is None:
        return pyodide["python_stdlib.zip"]
    with tempfile.TemporaryDirectory() as folder:
        for name, content in pyodide.items():
            Path(folder, name).write_bytes(content)
        made = Path(folder, "compiled.zip")
        command = [node, PROGRAM, Path(folder, "pyodide.mjs").as_uri(), made]
        subprocess.run(command, check=True, timeout=SECONDS, stdin=subprocess.DEVNULL, capture_output=True)
        content = made.read_bytes()
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=kept.parent, delete=False) as part:
        part.write(content)
    os.replace(part.name, kept)
    return content


def _node() -> str | None:
    try:
        # The one place that says where playwright keeps it.
        from playwright._impl._driver import compute_driver_executable
    except ImportError:
        return None
    return compute_driver_executable()[0]
