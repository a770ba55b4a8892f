"""Environments from lock files: built once, never half, and every failure a sentence. No package index is asked."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections import namedtuple
from pathlib import Path

import pytest

from enginelab import environments
from enginelab.environments import EnvironmentFailed

LIB = Path(environments.__file__).parents[1]


def wheel(folder: Path, name: str, version: str = "1.0") -> Path:
    """Write the smallest wheel that pip installs."""
    file = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{name}.py", f"version = {version!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return file


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder like the course's checkout, with a lock that names a local wheel, and a cache of its own."""
    monkeypatch.setenv("ENGINELAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    root = tmp_path / "checkout"
    (root / "envs").mkdir(parents=True)
    (tmp_path / "wheels").mkdir()
    (root / "pyproject.toml").write_text("[project]\nname = 'here'\nversion = '1'\n")
    (root / "envs" / "tiny.txt").write_text("# one package\n./tiny-1.0-py3-none-any.whl\n")
    wheel(root, "tiny")
    return root


def lock(checkout: Path) -> Path:
    return checkout / "envs" / "tiny.txt"


def test_an_interrupted_build_is_made_again_once_and_then_nothing_is(checkout, capsys):
    code = f"from enginelab import environments; environments.make({str(lock(checkout))!r})"
    killed = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(LIB)})
    folder = environments.path(lock(checkout))
    until = time.monotonic() + 20
    while not (folder / "bin" / "python").exists() and time.monotonic() < until:
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert (folder / environments.MARKER).read_text() == "unfinished\n"
    (folder / "left over").write_text("")

    python = environments.python(lock(checkout))
    assert python == folder / "bin" / "python" and not (folder / "left over").exists()
    done = subprocess.run([python, "-c", "import tiny; print(tiny.version)"], capture_output=True, text=True)
    assert done.stdout == "1.0\n"
    said = capsys.readouterr().out
    assert said.startswith("Another process is making this environment")  # what the killed one left still held the lock
    assert "Making the environment for tiny.txt." in said and said.rstrip().endswith("done")

    before = (folder / environments.MARKER).stat().st_mtime_ns
    started = time.monotonic()
    assert environments.python(lock(checkout)) == python
    assert time.monotonic() - started < 0.5 and capsys.readouterr().out == ""
    assert (folder / environments.MARKER).stat().st_mtime_ns == before


def test_the_name_follows_what_the_lock_says(checkout, monkeypatch):
    file = lock(checkout)
    named = checkout / "envs" / "name"
    named.mkdir()
    (named / "pyproject.toml").write_text("a")
    file.write_text("./envs/name\n-e .\nother==1\n")
    seen = [environments.path(file)]
    assert seen[0].name.startswith("tiny-") and len(seen[0].name) == len("tiny-") + 12

    def changed() -> bool:
        seen.append(environments.path(file))
        return seen[-1] not in seen[:-1]

    (named / "build").mkdir()
    (named / "build" / "left.txt").write_text("by pip")
    (named / "vllm.egg-info").mkdir()
    (named / "vllm.egg-info" / "PKG-INFO").write_text("by pip")
    (checkout / "code.py").write_text("an editable install reads this anew")
    assert not changed()
    (named / "pyproject.toml").write_text("b")
    assert changed()
    (checkout / "pyproject.toml").write_text("b")
    assert changed()
    file.write_text(file.read_text() + "more==1\n")
    assert changed()
    monkeypatch.setattr(sys, "version_info", (3, 99, 0, "final", 0))
    assert changed()


def test_a_strangers_folder_is_left_alone(checkout):
    mine = checkout / "mine"
    mine.mkdir()
    (mine / "precious").write_text("")
    with pytest.raises(EnvironmentFailed, match="mine exists and was not made by this course"):
        environments.make(lock(checkout), into=mine)
    assert (mine / "precious").exists()


def test_two_processes_make_it_once(checkout):
    command = [sys.executable, "-m", "enginelab.environments", str(lock(checkout)), "--into", "env", "--with-deps"]
    both = [
        subprocess.Popen(
            command, cwd=checkout, env={**os.environ, "PYTHONPATH": str(LIB)}, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    said = sorted(process.communicate()[0] for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert sum("done" in text for text in said) == 1 and "Another process" in said[0]

    wheel(checkout, "tiny", "2.0")
    lock(checkout).write_text("./tiny-2.0-py3-none-any.whl\n")
    assert subprocess.run(command, cwd=checkout, env={**os.environ, "PYTHONPATH": str(LIB)}).returncode == 0
    version = subprocess.run(
        [checkout / "env/bin/python", "-c", "import tiny; print(tiny.version)"], capture_output=True
    )
    assert version.stdout == b"2.0\n"


def test_pip_failing_is_a_sentence_with_its_last_lines(checkout):
    lock(checkout).write_text("no-such-package==1.0\n")
    command = [sys.executable, "-m", "enginelab.environments", str(lock(checkout))]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(LIB)}, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("Could not install tiny.txt; the whole log is ")
    assert "no-such-package==1.0" in done.stderr and "Traceback" not in done.stderr
    assert not environments._finished(environments.path(lock(checkout)), "")


def test_too_old_a_python():
    environments.complain_about_python((3, 11, 0))
    with pytest.raises(EnvironmentFailed, match="needs Python 3.11 or newer; this is 3.9.2: "):
        environments.complain_about_python((3, 9, 2))


@pytest.mark.parametrize("module", ["environments.py", "__init__.py"])
def test_an_old_python_gets_as_far_as_that_sentence(module):
    ast.parse((LIB / "enginelab" / module).read_text(), feature_version=(3, 8))


def test_no_venv(monkeypatch):
    found = environments.importlib.util.find_spec
    monkeypatch.setattr(
        environments.importlib.util, "find_spec", lambda name: name != "ensurepip" and found(name) or None
    )
    with pytest.raises(EnvironmentFailed, match="apt-get install python3-venv"):
        environments.complain_about_python()


@pytest.mark.parametrize("line, need", [("torch==2.13.0", "5 GB"), ("tiny==1.0", "1 GB")])
def test_disk_full(checkout, monkeypatch, line, need):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage(10**12, 0, 5 * 10**8))
    lock(checkout).write_text(line + "\n")
    with pytest.raises(EnvironmentFailed, match=f"needs {need} of disk, and 0.5 GB are free"):
        environments.make(lock(checkout))
    assert not environments.path(lock(checkout)).exists()


def test_cache_that_cannot_be_written(checkout, monkeypatch):
    (checkout / "file").write_text("")
    monkeypatch.setenv("ENGINELAB_CACHE", str(checkout / "file" / "cache"))
    with pytest.raises(EnvironmentFailed, match="Cannot write to .*file/cache .*set ENGINELAB_CACHE"):
        environments.make(lock(checkout))


def test_no_lock(checkout):
    with pytest.raises(EnvironmentFailed, match="lock file none.txt does not exist"):
        environments.make(checkout / "none.txt")


@pytest.mark.parametrize(
    "cache, xdg, where", [("/a", "/b", "/a"), ("", "/b", "/b/enginelab"), ("", "", "~/.cache/enginelab")]
)
def test_cache_folder(monkeypatch, cache, xdg, where):
    monkeypatch.setenv("ENGINELAB_CACHE", cache)
    monkeypatch.setenv("XDG_CACHE_HOME", xdg)
    assert environments.cache() == Path(where).expanduser()


@pytest.mark.parametrize("here", [True, False])
def test_torch_is_a_cpu_build_or_uv_is_asked_for_one(checkout, here):
    """A stand-in interpreter answers as pip does where the CPU build can be had, and where it cannot."""
    folder = checkout / "env"
    (folder / "bin").mkdir(parents=True)
    calls = folder / "calls"
    for program in ("python", "uv"):
        script = folder / "bin" / program
        refuses = "any('+cpu' in word for word in sys.argv)" if not here else "False"
        script.write_text(
            f"#!{sys.executable}\nimport json, sys\nopen({str(calls)!r}, 'a').write(json.dumps(sys.argv) + '\\n')\n"
            f"sys.exit({refuses})\n"
        )
        script.chmod(0o755)
    with open(checkout / "held", "w") as held:
        build = environments._Build(lock(checkout), folder, checkout / "log", held.fileno())
        build.install_cpu_torch("torch==2.13.0")
    made = [[Path(words[0]).name, *words[1:]] for words in map(json.loads, calls.read_text().splitlines())]
    assert "torch==2.13.0+cpu" in made[0] and "--no-deps" in made[0]
    assert len(made) == (1 if here else 3)
    if not here:
        assert "uv>=0.9" in made[1]
        assert made[2][:3] == ["uv", "pip", "install"] and "torch==2.13.0" in made[2]
        assert made[2][made[2].index("--torch-backend") + 1] == "cpu"


def test_progress_counts_packages(checkout):
    lock(checkout).write_text("a==1\nb==2\nc==3\n")
    build = environments._Build(lock(checkout), checkout / "env", checkout / "log", 0)
    build.log.write_text("old\n")
    assert build.stage(4) == "preparing"
    build.log.write_text("old\nCollecting a==1 (from -r lock (line 1))\n  Using cached a\nCollecting b==2\n")
    assert build.stage(4) == "[  2/3] b 2"
    build.log.write_text(build.log.read_text() + "Installing collected packages: a, b\n")
    assert build.stage(4) == "installing, 0 packages are in place"
