"""Build the book into `_build/html`: `python site/build.py`, as `make book` does.

Warnings count as errors, a failing cell stops the build, and every page of `_toc.yml` must be there at the end.
Everything that the build writes lies under `_build/`; the full record of what happened is `_build/book.log`.
"""

import io
import json
import logging
import os
import re
import shutil
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

try:
    from jupyter_book.sphinx import build_sphinx
    from myst_nb.core.execute.base import ExecutionError
    from nbclient.exceptions import CellExecutionError
    from sphinx.util.console import nocolor
    from sphinx_external_toc.parsing import parse_toc_yaml

    import content_policy
    import icons
    import mended_theme
    import page_weight
    import publishing
    import vendored
except ImportError as error:
    sys.exit(f"This Python lacks {error.name}, which the book is built with: type `make book`, which installs it.")

BUDGET = 5.0
"""Seconds that running one chapter may take, on a plain two-core machine."""

BUILD_BUDGET = 240.0
"""Seconds that the whole build may take from a clone, on the same machine."""

KERNEL = Path(__file__).with_name("kernel")
"""The settings of the kernels that run the chapters."""


class Listener(io.TextIOBase):
    """What Sphinx says: all of it into the log, its progress to the terminal, its complaints kept for the end."""

    step = re.compile(r"reading sources\.\.\. \[ *(\d+)%\] (\S+)")

    def __init__(self, log, terminal, root: Path):
        self.log, self.terminal, self.root = log, terminal, root
        self.read: set[str] = set()
        self.complaints: list[str] = []
        self.line = ""

    def write(self, text: str) -> int:
        self.log.write(text)
        self.log.flush()
        *lines, self.line = (self.line + text).split("\n")
        for line in lines:
            self._hear(line)
        return len(text)

    def _hear(self, line: str) -> None:
        if found := self.step.search(line):
            self.read.add(found[2])
            self.tell(f"  [{found[1]:>3}%] {found[2]}")
        elif line.startswith("preparing documents"):
            self.tell("  writing the pages ...")
        elif "WARNING: " in line or "ERROR: " in line:
            self.complaints.append(line.replace(f"{self.root}/", ""))

    def tell(self, sentence: str) -> None:
        print(sentence, file=self.terminal, flush=True)


def prepare(build: Path) -> None:
    """Point Jupyter and matplotlib at settings under `build`, so that the reader's own neither help nor hurt."""
    # Both IPython and matplotlib write into the folder of their settings, so they get a copy.
    shutil.copytree(KERNEL, build / "kernel", dirs_exist_ok=True)
    for variable, folder in (("IPYTHONDIR", "kernel"), ("MPLCONFIGDIR", "kernel"), ("JUPYTER_RUNTIME_DIR", "run")):
        (build / folder).mkdir(parents=True, exist_ok=True)
        os.environ[variable] = str(build / folder)
    # Kernels otherwise warn, on standard error, that a debugger could miss breakpoints.
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
    # A set is printed in the order of its hashes, which Python else draws anew for each kernel.
    os.environ["PYTHONHASHSEED"] = "0"
    # What dates its output dates it by the commit, so that a commit has one set of bytes.
    if moment := publishing.commit_time(build.parent):
        os.environ.setdefault("SOURCE_DATE_EPOCH", moment)
    # The first import lists the machine's fonts, which may be slow and says so: not in a chapter's time.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    import matplotlib.font_manager  # noqa: F401


def why(failure: BaseException, root: Path) -> str:
    """What ended the build: a failing cell by page and message, anything else by its own words."""
    if isinstance(failure, KeyboardInterrupt):
        return "It was interrupted."
    words = str(failure).replace(f"{root}/", "")
    cell = failure.__cause__
    if not isinstance(failure, ExecutionError) or cell is None:
        return f"{type(failure).__name__}: {words}"
    headline = f"{cell.ename}: {cell.evalue}" if isinstance(cell, CellExecutionError) else type(cell).__name__
    details = re.sub(r"\x1b\[[0-9;]*m", "", str(cell)).strip()
    return f"{words}: a cell failed with {headline}\n\n{details}\n"


def missing_and_extra(html: Path, expected: set[str]) -> list[str]:
    """Pages that `_toc.yml` names and the site lacks, and the other way round, as sentences."""
    own = {"search", "genindex", "404"}
    found = {
        str(p.relative_to(html).with_suffix(""))
        for p in html.rglob("*.html")
        if not {"_static", "_vendored"} & set(p.parts)
    } - own
    return [f"{page} is in _toc.yml, but no page was built" for page in sorted(expected - found)] + [
        f"{page} was built, but _toc.yml does not name it" for page in sorted(found - expected)
    ]


def timings(seconds: dict[str, float], read: set[str]) -> list[str]:
    """One line per page that has been run."""
    lines = [f"Seconds to run each chapter (budget {BUDGET:g}):"]
    for page, taken in seconds.items():
        note = "  OVER BUDGET" if taken > BUDGET else ""
        lines.append(f"  {taken:5.1f}  {page}{'' if page in read else '  (unchanged, run earlier)'}{note}")
    if late := sum(taken > BUDGET for taken in seconds.values()):
        lines.append(f"{late} of {len(seconds)} over budget: make the work smaller, or do it in lib/.")
        if (load := os.getloadavg()[0]) > (cores := os.cpu_count()):
            lines.append(f"But this machine is busy (load {load:.1f} on {cores} cores), which slows every chapter.")
    return lines


def finish(html: Path) -> tuple[list[page_weight.Weight], list[str]]:
    """Do to the written pages what concerns all of them; what each weighs then, and complaints as sentences."""
    # Sphinx's note to itself, for a build that keeps its pages; it depends on the folder that it was made in.
    (html / ".buildinfo").unlink(missing_ok=True)
    icons.reduce(html)
    complaints = mended_theme.mend(html) + content_policy.hold(html)
    try:
        return page_weight.of_site(html), complaints
    except ValueError as error:
        return [], [*complaints, f"{error}."]


def took(seconds: float) -> str:
    """How long the build took, beside its budget."""
    sentence = f"The book is built, in {seconds:.0f} s (budget {BUILD_BUDGET:.0f})."
    if seconds > BUILD_BUDGET:
        sentence += f" OVER BUDGET, with load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores."
    return sentence


def main(root: Path) -> int:
    """Build, and report on standard output. Returns the exit code: 0 if the book is whole."""
    build, began = root / "_build", time.monotonic()
    html, doctrees = build / "html", build / "doctrees"
    print("Building the book: the chapters are run, then the pages written. Labs are shown as last run.", flush=True)
    prepare(build)
    nocolor()
    # Start from no pages, so that one whose source is gone is gone too.
    shutil.rmtree(html, ignore_errors=True)
    try:
        vendored.place(html / "_vendored")
    except vendored.NotVendored as error:
        print(f"\nThe book is NOT built: {error}")
        return 1
    toc = root / "_toc.yml"
    with open(build / "book.log", "w", encoding="utf-8") as log:
        listener = Listener(log, sys.stdout, root)
        with redirect_stdout(listener), redirect_stderr(listener):
            outcome = build_sphinx(
                root,
                html,
                noconfig=True,
                path_config=root / "_config.yml",
                confoverrides={"external_toc_path": str(toc), "latex_individualpages": False},
                doctreedir=doctrees,
                warningiserror=True,
                keep_going=True,
            )
    complaints = list(dict.fromkeys(listener.complaints))
    if isinstance(outcome, BaseException):
        complaints.append(why(outcome, root))
    else:
        complaints += missing_and_extra(html, set(parse_toc_yaml(toc)))
    weights: list[page_weight.Weight] = []
    if not (outcome or complaints):
        weights, complaints = finish(html)
    if outcome or complaints:
        # A page that is not read again does not warn again: the next build must see these once more.
        shutil.rmtree(doctrees, ignore_errors=True)
        print("\nThe book is NOT built:", *complaints, "The full record is _build/book.log.", sep="\n")
        return 130 if isinstance(outcome, KeyboardInterrupt) else 1
    print(*timings(json.loads((build / "execution.json").read_text()), listener.read), sep="\n")
    print(*page_weight.report(weights), sep="\n")
    print(took(time.monotonic() - began), f"Open {html.relative_to(root) / 'index.html'}")
    if any(weight.total > page_weight.BUDGET for weight in weights):
        print("But a page is too heavy, which counts as a failure: make it load less, or load it at a touch.")
        return 1
    return 0


if __name__ == "__main__":
    # not resolved: a folder of a few pages may hold this one as a link
    sys.exit(main(Path(__file__).absolute().parents[1]))
