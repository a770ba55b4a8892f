"""Run a lab from top to bottom in a fresh kernel, and keep its outputs in it: python labs/execute.py labs/01_vllm.ipynb

The outputs that the book shows come from here. They carry a stamp in the notebook's metadata, under `enginelab`: which
machine, driver and engine made them, when, and the SHA-256 of the code that was run, so that a test can tell when code
and outputs have parted. A lab leaves the engine's name and version in a variable `source`. A run that fails changes
nothing.
"""

import hashlib
import os
import shutil
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from enginelab import environments, preflight

# The settings of the kernels that run the book's chapters, so that a lab's figures follow the page's theme as theirs.
KERNEL = Path(__file__).resolve().parents[1] / "site" / "kernel"
SECONDS_PER_CELL = 1800


def execute(path: Path) -> None:
    """Run the lab at `path` and write it back with outputs and stamp; raises CellExecutionError if a cell fails."""
    lab = nbformat.read(path, as_version=4)
    client = NotebookClient(
        lab,
        kernel_name="python3",
        timeout=SECONDS_PER_CELL,
        coalesce_streams=True,
        record_timing=False,
        resources={"metadata": {"path": str(path.parent)}},
    )
    with client.setup_kernel():
        for index, cell in enumerate(lab.cells):
            if cell.cell_type == "markdown" and cell.source.startswith("#"):
                print(f"  {cell.source.splitlines()[0].lstrip('# ')}", flush=True)
            client.execute_cell(cell, index)
        lab.cells.append(nbformat.v4.new_code_cell("print(source)"))
        client.execute_cell(lab.cells[-1], len(lab.cells) - 1)
        engine = lab.cells.pop().outputs[0].text.strip()
    machine = preflight.machine()
    lab.metadata["enginelab"] = {
        "machine": machine.describe(),
        "driver": machine.gpus[0].driver if machine.gpus else "none: no GPU",
        "engine": engine,
        "date": date.today().isoformat(),
        "code_sha256": code_sha256(lab),
    }
    for cell in lab.cells:
        for output in cell.get("outputs", []):
            if "text" in output:
                output.text = without_folders(output.text, path.parent)
    nbformat.write(lab, path)


def code_sha256(lab: nbformat.NotebookNode) -> str:
    """SHA-256 over the sources of all code cells, in order, each followed by a zero byte."""
    sources = (cell.source + "\0" for cell in lab.cells if cell.cell_type == "code")
    return hashlib.sha256("".join(sources).encode()).hexdigest()


def without_folders(text: str, labs: Path) -> str:
    """`text` with this machine's folders shortened to `…`."""
    for folder in (environments.cache(), labs.parent, Path.home()):
        text = text.replace(str(folder), "…")
    return text


def main(paths: list[str]) -> None:
    if not paths:
        sys.exit("usage: python labs/execute.py LAB.ipynb …")
    with tempfile.TemporaryDirectory() as settings:
        shutil.copytree(KERNEL, settings, dirs_exist_ok=True)
        os.environ |= {"IPYTHONDIR": settings, "MPLCONFIGDIR": settings, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        for path in map(Path, paths):
            started = time.monotonic()
            print(f"Running {path}", flush=True)
            try:
                execute(path.resolve())
            except CellExecutionError as error:
                sys.exit(f"{error}\n{path} failed and is unchanged.")
            print(f"{path}: {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
