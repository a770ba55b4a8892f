"""Every fault of the spine with every engine that a CPU can run: one sentence, the end of the log, nothing left behind.

Each engine is started by the command that its lab shows, in the environment that `make engines` builds. Only one start
goes to its end; the faults of a start strike as soon as the engine has a process of its own. The process of the tests
takes in every orphan, so that nothing of an engine can hide, in whatever session it runs. `tests/test_server.py` has
the same faults, and more, with a stand-in that can be told what to do.
"""

import ctypes
import io
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import NamedTuple

import nbformat
import psutil
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from enginelab import client, dynamo_service, environments, images, logs, server, supervisor

ROOT = Path(__file__).parent.parent.parent
LABS = ROOT / "labs"


class Engine(NamedTuple):
    """Where an engine's command is shown and what it runs on.

    maker: the program that makes its model; forks: whether it starts processes of its own; paints: whether it answers
    with pictures.
    """

    lab: str
    lock: str
    maker: str
    forks: bool = True
    paints: bool = False


ENGINES = {
    "vLLM": Engine("01_vllm", "vllm-cpu", "tiny_model.py"),
    "SGLang": Engine("02_sglang", "sglang-cpu", "tiny_model.py"),
    "Dynamo": Engine("04_dynamo", "dynamo-vllm-cpu", "tiny_model.py", forks=False),
    "vLLM Omni": Engine("05_vllm_omni", "vllm-omni-cpu", "tiny_image_model.py", paints=True),
    "SGLang Diffusion": Engine("06_sglang_diffusion", "sglang-cpu", "tiny_image_model.py", paints=True),
}


def shown(lab: str) -> tuple[dict[str, str], list[list[str]]]:
    """The settings and the commands that the kept outputs of a lab show."""
    cells = nbformat.read(LABS / f"{lab}.ipynb", as_version=4).cells
    text = next(cell.outputs[0].text for cell in cells if cell.get("id") == "command-show").replace("\\\n", " ")
    settings, *commands = [shlex.split(line) for line in text.split("\n\n")]
    begin = next(index for index, word in enumerate(settings) if "=" not in word)
    return dict(word.split("=", 1) for word in settings[:begin]), [settings[begin:], *commands]


class Place:
    """One engine ready to start: its command, the other programs of its service, and how they are to run.

    Every start has a port and a log of its own. Its hub token is called like its model's folder, which every engine
    names, so that there is something to hide in what it says.
    """

    def __init__(self, name: str, folder: Path):
        self.engine, self.folder, self.ports = ENGINES[name], folder, []
        environment = environments.path(LABS / "envs" / f"{self.engine.lock}.txt")
        if not (environment / "bin" / "python").exists():
            pytest.fail(f"the environment for {self.engine.lock} is missing: run `make engines`")
        shown_settings, [self.words, *self.workers] = shown(self.engine.lab)
        [self.model] = logs.values([*self.words, *(self.workers or [[]])[0]], server.MODEL_FLAGS)
        self.token = Path(self.model).name
        self.settings = shown_settings | {"PATH": f"{environment / 'bin'}:{os.environ['PATH']}", "HF_TOKEN": self.token}
        maker = [environment / "bin" / "python", LABS / self.engine.maker, environments.cache() / self.model]
        subprocess.run(maker, check=True, capture_output=True, timeout=300)

    def plan(self, **options) -> dict:
        """The arguments of `server.running`, but for `ready`."""
        port, words = server.free_port(), [*self.words]
        words[max(words.index(flag) for flag in server.PORT_FLAGS if flag in words) + 1] = str(port)
        self.ports.append(port)
        parts, settings = {}, self.settings
        if self.workers:
            meet = [server.free_port(), server.free_port()]
            self.ports += meet
            offline = {"HF_HUB_OFFLINE": "1"}
            settings = settings | dynamo_service.settings(self.folder / f"meeting-{port}", *meet) | offline
            parts["events"] = ["python3", str(LABS / "event_broker.py"), *map(str, meet)]
            parts |= {f"worker-{n}": self.workers[0] for n in (1, 2)}
        log = self.folder / f"engine-{port}.log"
        where = {"env": settings, "cwd": str(environments.cache()), "log": str(log), "deadline": 600}
        return {"command": words, "parts": parts, **where, **options}

    def running(self, **plan):
        """`server.running` of a plan; a Dynamo is complete when its workers are."""
        ready = dynamo_service.ready("lab", workers=2) if self.workers else None
        return server.running(**plan, ready=ready, on_progress=lambda *_: None)

    def ask(self, engine: server.Server, began) -> None:
        """Ask for a long answer; `began` is called once it has begun."""
        if self.engine.paints:
            with ThreadPoolExecutor(1) as asker:
                before, extra = engine.log.stat().st_size, {"true_cfg_scale": 1.0, "generator_device": "cpu"}
                size, model = "256x256", "lab" if "lab" in self.words else self.model
                asked = {"model": model, "size": size, "steps": 200, "seed": 1, "extra": extra}
                picture = asker.submit(images.generate, engine, "a red cube", **asked)
                wait_for(lambda: picture.done() or engine.log.stat().st_size > before, 120)
                began()
                picture.result()
        else:
            with redirect_stdout(AtFirstWord(began)):
                client.ask(engine, "Once upon a time", model="lab", max_tokens=900, ignore_eos=True, show=True)

    def started(self, kernel: subprocess.Popen, plan: dict) -> bool:
        """Whether the engine under `kernel` has started a process of its own, or its programs have begun to meet."""
        if not self.engine.forks:
            return any(Path(plan["env"]["DYN_FILE_KV"]).rglob("*"))
        return any("multiprocessing" in words for words in family(kernel.pid).values())


class AtFirstWord(io.StringIO):
    """A stream that calls `began` before it takes its first words."""

    def __init__(self, began):
        super().__init__()
        self.began = began

    def write(self, text: str) -> int:
        if not self.tell():
            self.began()
        return super().write(text)


def family(pid: int | None = None) -> dict[int, str]:
    """Every living descendant of a process, of this one if none is named, in any session: id -> command line."""
    found = {}
    for process in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                found[process.pid] = shlex.join(process.cmdline())
    return found


def wait_for(condition, within: float) -> None:
    until = time.monotonic() + within
    while not condition():
        assert time.monotonic() < until, f"it took more than {within:g} s"
        time.sleep(0.02)


def listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module", autouse=True)
def orphans_come_here():
    """Whatever outlives its parent becomes a child of this process instead of the machine's first."""
    prctl = ctypes.CDLL(None).prctl
    assert prctl(supervisor.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    yield
    prctl(supervisor.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def made(name: str, folder: Path):
    """A place for engine `name`, and the assertion that nothing of it is left when its test ends."""
    before = family()
    place = Place(name, folder)
    yield place
    left = {pid: words for pid, words in family().items() if pid not in before}
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left
    assert not [port for port in place.ports if listening(port)]


@pytest.fixture(params=ENGINES)
def place(request, tmp_path):
    yield from made(request.param, tmp_path)


@pytest.fixture
def dynamo(tmp_path):
    yield from made("Dynamo", tmp_path)


def sentence(error, place: Place, *logged: Path) -> str:
    """The one sentence of a fault; behind it stands the end of one of the logs, and no secret anywhere."""
    text = str(error.value)
    first, *rest = text.splitlines()
    if logged:
        [log] = [log for log in logged if f"The last lines of its log, {log}:" in rest]
        whole = [line.replace(place.token, "[secret]")[:300] for line in logs.lines(log)]
        last = [line.removeprefix("  ") for line in rest[rest.index(f"The last lines of its log, {log}:") + 1 :]]
        # what it drew last it may have drawn again, and its processes may have said more while they were stopped
        assert last and not set(last[:-1]) - set(whole)
        assert place.token not in text
    else:
        assert not rest or rest[0].startswith("The last lines of its log, ")
    assert re.fullmatch(r"[^\n]+[.]( It logged nothing[.])?", first) and "Traceback" not in first
    return first


def all_logs(plan: dict) -> list[Path]:
    log = Path(plan["log"])
    return [log, *(log.with_name(f"{log.stem}-{part}.log") for part in plan["parts"])]


def test_program_missing(place):
    plan = place.plan()
    plan["env"] = plan["env"] | {"PATH": str(place.folder)}
    with pytest.raises(server.ServerError, match="was not found: install the engine first") as error:
        with place.running(**plan):
            pass
    assert sentence(error, place).startswith(f"The program {place.words[0]} ")
    assert list(place.folder.iterdir()) == []


def test_model_missing(place):
    (place.folder / place.model).parent.mkdir()
    with pytest.raises(server.ServerError, match=f"The model folder {place.model} does not exist") as error:
        with place.running(**place.plan(cwd=place.folder)):
            pass
    sentence(error, place)
    assert not list(place.folder.glob("*.log"))


def test_port_taken(place):
    plan = place.plan()
    with socket.socket() as other:
        other.bind(("127.0.0.1", place.ports[0]))
        other.listen()
        with pytest.raises(server.ServerError, match=f"Port {place.ports[0]} is taken") as error:
            with place.running(**plan):
                pass
        sentence(error, place)
    assert not list(place.folder.glob("*.log"))


def test_never_healthy(place):
    plan = place.plan(deadline=1)
    with pytest.raises(server.ServerError, match="was not healthy within 1 s: see its log") as error:
        with place.running(**plan):
            pass
    sentence(error, place)


def test_death_at_the_start(place):
    """Its model's folder is there, and empty. The engine itself has to find that out, and names the folder."""
    (place.folder / place.model).mkdir(parents=True)
    plan = place.plan(cwd=place.folder)
    with pytest.raises(server.ServerError, match="before it was healthy") as error, place.running(**plan):
        pytest.fail("it is healthy without a model")
    assert "(exit status " in sentence(error, place, *all_logs(plan))
    assert "[secret]" in str(error.value)


def test_death_while_it_answers(place):
    plan = place.plan()
    with pytest.raises(server.ServerError, match=r"died .*\(killed by SIGKILL; out of memory\?\)") as error:
        with place.running(**plan) as engine:
            assert len(family()) >= 2 + place.engine.forks
            place.ask(engine, lambda: os.kill(engine.pid, signal.SIGKILL))
    sentence(error, place, Path(plan["log"]))


# It is never ready, so that a quick engine is still starting when the fault comes.
KERNEL = """
import json, sys
from enginelab import server
with server.running(**json.load(open(sys.argv[1])), ready=lambda url: False):
    pass
"""


def kernel(plan: dict) -> subprocess.Popen:
    """Another Python that starts the engine, with a process group of its own, as a notebook's kernel has."""
    file = Path(plan["log"]).with_suffix(".json")
    file.write_text(json.dumps(plan))
    return subprocess.Popen(
        [sys.executable, "-u", "-c", KERNEL, file],
        env=os.environ | {"PYTHONPATH": str(ROOT / "lib")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def test_interrupt_and_killed_kernel_during_a_start(place):
    """Two kernels start the engine side by side. One is interrupted, which the other's engine must not notice; then the
    other is killed."""
    before, plans = family(), [place.plan(grace=15), place.plan(grace=15)]
    interrupted, killed = kernels = [kernel(plan) for plan in plans]
    try:
        for each, plan in zip(kernels, plans, strict=True):
            wait_for(lambda each=each, plan=plan: each.poll() is not None or place.started(each, plan), 300)
        assert [each.poll() for each in kernels] == [None, None]
        neighbour = {pid for pid, words in family(killed.pid).items() if "multiprocessing" in words}
        os.killpg(interrupted.pid, signal.SIGINT)
        printed, _ = interrupted.communicate(timeout=60)
        assert printed.rstrip().endswith("KeyboardInterrupt") and place.token not in printed
        left, its = family(), family(killed.pid)
        assert its.keys() >= neighbour
        assert {pid: words for pid, words in left.items() if pid not in {killed.pid, *before, *its}} == {}
        killed.kill()
        killed.communicate(timeout=60)
        wait_for(lambda: family().keys() <= before.keys(), 60)
    finally:
        for each in kernels:
            each.kill()
            each.wait()


def test_a_cell_that_fails_leaves_the_engine_stopped_when_the_kernel_ends(dynamo):
    plan = dynamo.plan()
    start = f"""
from contextlib import ExitStack
from enginelab import dynamo_service, server
stack = ExitStack()
engine = stack.enter_context(server.running(**{plan!r}, ready=dynamo_service.ready("lab", workers=2)))
print(engine.pid, *engine.parts.values())
"""
    cells = [nbformat.v4.new_code_cell(source) for source in (start, "1 / 0")]
    notebook = NotebookClient(nbformat.v4.new_notebook(cells=cells), kernel_name="python3", timeout=600)
    before = family()
    with notebook.setup_kernel(env=os.environ | {"PYTHONPATH": str(ROOT / "lib")}):
        for index, cell in enumerate(cells):
            try:
                notebook.execute_cell(cell, index)
            except CellExecutionError as error:
                assert index == 1 and error.ename == "ZeroDivisionError", str(error)
        pids = [int(word) for word in cells[0].outputs[-1].text.split()[-4:]]
        assert family().keys() >= {*pids}, "it was stopped too soon: the learner may correct the cell and go on"
        assert dynamo.token not in str([cell.outputs for cell in cells])
    wait_for(lambda: family().keys() <= before.keys(), 60)
