"""Make a folder once: what the programs that make the labs' tiny models have in common.

A folder is made beside its place and moved there whole, so that an interrupted run leaves no half model. It is made
again when the program that made it has changed since.
"""

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

MADE_BY = "made_by.txt"


def make(folder: Path, program: Path, fill: Callable[[Path], None]) -> None:
    """Make `folder` by `fill`, which writes into the folder that it is given, unless this `program` has made it."""
    version = hashlib.sha256(program.read_bytes()).hexdigest()
    made_by = folder / MADE_BY
    if made_by.is_file() and made_by.read_text() == version:
        return
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_HUB_DISABLE_PROGRESS_BARS="1")
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=folder.name, dir=folder.parent))
    try:
        fill(unfinished)
        (unfinished / MADE_BY).write_text(version)
        shutil.rmtree(folder, ignore_errors=True)
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def main(program: str, what: str, fill: Callable[[Path], None]) -> None:
    """The command line of `program`: make the folder that it names, and say `what` it is and how large."""
    if len(sys.argv) != 2:
        sys.exit(f"usage: python {Path(program).name} FOLDER")
    folder = Path(sys.argv[1])
    make(folder, Path(program), fill)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{folder.name}: {what.format(f'{size / 1e6:.0f} MB')}")
