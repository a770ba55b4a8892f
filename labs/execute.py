"""Run a lab from top to bottom in a fresh kernel, and keep its outputs in it: python labs/execute.py labs/01_vllm.ipynb

The outputs that the book shows come from here. They carry a stamp in the notebook's metadata, under `enginelab`: which
machine, driver and engine made them, when, and the SHA-256 of the code that was run, so that a test can tell when code
and outputs have parted. A lab leaves its engine's name and version in a variable `source`, and what it predicted and
measured in `predicted` and `measured`: these go into labs/results. A run that fails changes nothing.

    python labs/execute.py --result-only labs/01_vllm.ipynb     add this machine's run, and leave the notebook alone

A lab that stops itself (`raise SystemExit` with a sentence) is kept up to there if its engine has no CPU build.
"""

import argparse
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

from enginelab import environments, needs, preflight

# The settings of the kernels that run the book's chapters, so that a lab's figures follow the page's theme as theirs.
KERNEL = Path(__file__).resolve().parents[1] / "site" / "kernel"
SECONDS_PER_CELL = 1800
KEEP = "from enginelab import results\nprint(results.keep({lab!r}, source, predicted, measured, machine).name)"


class NotKept(RuntimeError):
    """A run that must not be kept: why, in one sentence."""


def execute(path: Path, result_only: bool = False) -> None:
    """Run the lab at `path`; write it back with outputs and stamp, and what it measured into the folder `results`.

    result_only: leave the notebook as it is. Raises CellExecutionError if a cell fails, NotKept if the run is a
    rehearsal, or stopped where it should not have.
    """
    if os.environ.get("ENGINELAB_REHEARSE"):
        raise NotKept("A rehearsal is never kept: unset ENGINELAB_REHEARSE.")
    lab = nbformat.read(path, as_version=4)
    before = lab.metadata.get("enginelab", {})
    client = NotebookClient(
        lab,
        kernel_name="python3",
        timeout=SECONDS_PER_CELL,
        coalesce_streams=True,
        record_timing=False,
        # A widget's state is of use to the kernel that made it, and to nobody who opens the notebook later.
        store_widget_state=False,
        resources={"metadata": {"path": str(path.parent)}},
    )
    with client.setup_kernel():
        stopped = run(client, lab)
        if any("REHEARSAL" in str(cell.get("outputs")) for cell in lab.cells):
            raise NotKept("A rehearsal is never kept, and this run's outputs say that it was one.")
        if stopped:
            complain_about_stop(path.stem, stopped, before, result_only, lab)
        else:
            engine = ask(client, lab, "print(source)")
            print(f"  kept results/{ask(client, lab, KEEP.format(lab=path.stem))}", flush=True)
    if result_only:
        return
    machine = preflight.machine()
    lab.metadata["enginelab"] = {
        "machine": machine.describe(),
        "driver": machine.gpus[0].driver if machine.gpus else "none: no GPU",
        "engine": f"none: {stopped}" if stopped else engine,
        "date": date.today().isoformat(),
        "code_sha256": code_sha256(lab),
    }
    for cell in lab.cells:
        for output in cell.get("outputs", []):
            if "text" in output:
                output.text = without_folders(output.text, path.parent)
    nbformat.write(lab, path)


def run(client: NotebookClient, lab: nbformat.NotebookNode) -> str:
    """Run every cell; the sentence with which the lab stopped itself before its end, "" if it did not.

    What stood before the stop is kept, with the sentence as ordinary output; the cells behind it are emptied.
    """
    stopped = ""
    for index, cell in enumerate(lab.cells):
        if cell.cell_type != "code":
            if cell.source.startswith("#") and not stopped:
                print(f"  {cell.source.splitlines()[0].lstrip('# ')}", flush=True)
        elif stopped:
            cell.outputs, cell.execution_count = [], None
        else:
            try:
                client.execute_cell(cell, index)
            except CellExecutionError as error:
                # A program that gives up exits with a number; a lab that stops says why.
                if error.ename != "SystemExit" or not error.evalue or error.evalue.lstrip("-").isdecimal():
                    raise
                stopped = error.evalue
                said = [output for output in cell.outputs if output.get("name") == "stdout"]
                text = "".join(output.text for output in said) + f"{stopped}\n"
                cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)]
    return stopped


def complain_about_stop(name: str, sentence: str, before: dict, result_only: bool, lab: nbformat.NotebookNode) -> None:
    """Raise NotKept if the lab should not have stopped, or if what it leaves would replace a run to its end."""
    print(f"  stopped: {sentence}", flush=True)
    rows = [needs.needs(engine) for engine in needs.LABS.get(name, ())]
    if result_only or any(row.cpu_build for row in rows) or not rows:
        raise NotKept(f"The lab stopped itself, so there is nothing to keep: {sentence}")
    full = before.get("engine", "none:")
    if not full.startswith("none:") and before.get("code_sha256") == code_sha256(lab):
        raise NotKept(f"The lab stopped itself, and what is there is a whole run with {full}, which stays.")


def ask(client: NotebookClient, lab: nbformat.NotebookNode, code: str) -> str:
    """What `code` prints in the lab's kernel; the lab itself stays as it was."""
    lab.cells.append(nbformat.v4.new_code_cell(code))
    try:
        client.execute_cell(lab.cells[-1], len(lab.cells) - 1)
        return "".join(output.get("text", "") for output in lab.cells[-1].outputs).strip()
    finally:
        lab.cells.pop()


def code_sha256(lab: nbformat.NotebookNode) -> str:
    """SHA-256 over the sources of all code cells, in order, each followed by a zero byte."""
    sources = (cell.source + "\0" for cell in lab.cells if cell.cell_type == "code")
    return hashlib.sha256("".join(sources).encode()).hexdigest()


def without_folders(text: str, labs: Path) -> str:
    """`text` with this machine's folders shortened to `…`."""
    for folder in (environments.cache(), labs.parent, Path.home()):
        text = text.replace(str(folder), "…")
    return text


def main(words: list[str]) -> int:
    """Run the labs that the command line names, one after the other; 1 if one of them was not kept, else 0."""
    parser = argparse.ArgumentParser(prog="labs/execute.py", description="Run labs and keep what came of it.")
    parser.add_argument("labs", nargs="+", type=Path, metavar="LAB.ipynb")
    parser.add_argument("--result-only", action="store_true", help="write the result, and leave the notebook alone")
    given = parser.parse_args(words)
    status = 0
    with tempfile.TemporaryDirectory() as settings:
        shutil.copytree(KERNEL, settings, dirs_exist_ok=True)
        os.environ |= {"IPYTHONDIR": settings, "MPLCONFIGDIR": settings, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        for path in given.labs:
            started = time.monotonic()
            print(f"Running {path}", flush=True)
            try:
                execute(path.resolve(), given.result_only)
            except CellExecutionError as error:
                sys.exit(f"{error}\n{path} failed and is unchanged.")
            except NotKept as error:
                print(f"{error}\n{path} is unchanged.", flush=True)
                status = 1
            print(f"{path}: {time.monotonic() - started:.0f} s", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
