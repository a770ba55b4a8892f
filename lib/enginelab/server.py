"""Start an engine's server, wait until it is healthy, and always stop it: Launch, Wait and Stop of every lab.

    with server.running(command) as engine:
        ...                                  # engine.url, engine.port, engine.log

The engine runs under a supervisor of its own (`supervisor.py`), so nothing of it is left behind after an error,
Ctrl-C, or the death of the notebook's kernel. It is reached over HTTP, on this machine only.
"""

from __future__ import annotations

import http.client
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from . import logs, supervisor
from .commands import Command

HOST = "127.0.0.1"
HOST_FLAGS, PORT_FLAGS = ("--host", "--http-host"), ("--port", "--http-port")  # the second of each is Dynamo's
MODEL_FLAGS = ("--model", "--model-path", "serve")  # `vllm serve MODEL`
GOING_DOWN = 5.0  # seconds for an engine that has stopped answering to be gone, before it counts as alive


class ServerError(RuntimeError):
    """An engine that did not start, was never healthy, or died: one sentence, then the last lines of its log."""


@dataclass(frozen=True)
class Server:
    """A running engine.

    url: where it listens, with no slash at the end; port: on 127.0.0.1; pid: of the engine's main process;
    log: the file that holds all it prints; seconds_to_healthy: from launch until its health page answered;
    command: the argv that was run, secrets blanked.
    """

    url: str
    port: int
    pid: int
    log: Path
    seconds_to_healthy: float
    command: tuple[str, ...]
    _check: Callable[[], None] = field(repr=False, compare=False)

    def check(self) -> None:
        """Return if the engine is alive; raise `ServerError` with the end of its log if it has died.

        Ask this after a failed request: it takes up to 5 s to tell an engine that is going down from a busy one.
        """
        self._check()


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nothing listens now (another program may still be quicker to take it)."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def sparingly(every: float = 10.0, say: Callable[[str], None] = print) -> Callable[[float, str], None]:
    """Return a progress function that says at most one line in `every` seconds, and no line twice running."""
    last = [0.0, ""]

    def progress(seconds: float, line: str) -> None:
        if seconds - last[0] >= every and line != last[1]:
            last[:] = seconds, line
            say(f"{seconds:4.0f} s  {line}")

    return progress


@contextmanager
def running(
    command: Command | Sequence[str],
    *,
    health: str = "/health",
    deadline: float = 300.0,
    log: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    on_progress: Callable[[float, str], None] | None = None,
    grace: float = 20.0,
) -> Iterator[Server]:
    """Start `command`, wait until GET `health` succeeds, yield a `Server`, and stop it whatever happens.

    command: a `Command` or an argv; it has to say `--host 127.0.0.1` and `--port` itself: nothing is added to it.
    deadline: seconds until it must be healthy; grace: seconds between TERM and KILL when it is stopped.
    log: file for all it prints (default logs/PROGRAM-PORT.log); env: added to this process's environment;
    cwd: folder to run in. on_progress: called about four times a second with the seconds so far and the stage that
    the log shows (default: `sparingly()`).

    Raises ValueError for a command that would listen beyond this machine or names no port, and `ServerError` for a
    program or model folder that does not exist, a port already taken, a death, or a deadline passed. If the body
    fails because the engine died, the death is what is raised, and the body's error is its cause.
    """
    argv = _words(command)
    port = _port(argv)
    environment = {**os.environ, **(env or {})}
    program = _present(argv, environment, Path(cwd or "."))
    if _taken(port):
        raise ServerError(f"Port {port} is taken by another program: stop that one, or take server.free_port().")
    name = Path(argv[0]).name
    log = Path(log or Path("logs") / f"{name}-{port}.log")
    log.parent.mkdir(parents=True, exist_ok=True)

    hide = logs.redactor(argv, environment)
    progress = on_progress or sparingly()
    engine = Supervised(grace)
    started = time.monotonic()

    def failure(what: str, advice: str = "") -> ServerError:
        return ServerError(logs.explain(f"{name} {what}{advice}.", log, hide))

    def check() -> None:
        if engine.ended(0.0 if _healthy(port, health) else GOING_DOWN):
            raise failure(f"died {time.monotonic() - started:.0f} s after its start ({engine.how})")

    try:
        engine.start([program, *argv[1:]], log, environment, cwd)
        while not _healthy(port, health):
            if engine.ended(0.25):
                break
            seconds = time.monotonic() - started
            if seconds > deadline:
                raise failure(f"was not healthy within {deadline:g} s", ": see its log, or give it a longer deadline")
            progress(seconds, logs.stage(log, hide))
        seconds = time.monotonic() - started
        if engine.ended(0.0):
            raise failure(f"died {seconds:.0f} s after its start, before it was healthy ({engine.how})")
        try:
            yield Server(f"http://{HOST}:{port}", port, engine.pid, log, seconds, tuple(map(hide, argv)), check)
        except ServerError:
            raise
        except Exception as error:
            try:
                check()
            except ServerError as death:
                raise death from error
            raise
        check()
    finally:
        engine.stop()


class Supervised:
    """The engine and its supervisor, seen from here. grace: seconds between TERM and KILL."""

    def __init__(self, grace: float):
        self.pid = self.exit = self.error = self._process = None
        self._gone, self._text, self._grace = False, b"", grace

    def start(self, argv: list[str], log: Path, environment: Mapping[str, str], cwd: str | Path | None) -> None:
        """Start the supervisor, and wait until it has started the engine or could not."""
        with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
            self._process = subprocess.Popen(
                # -I -S: what the engine's environment does to Python concerns the engine alone
                [sys.executable, "-I", "-S", supervisor.__file__, str(self._grace), *argv],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                bufsize=0,
                start_new_session=True,
                env=environment,
                cwd=cwd,
            )
        while self.pid is None and not self.over:
            self._listen(1.0)

    @property
    def over(self) -> bool:
        """Whether the supervisor has said that the engine ended, or has gone itself."""
        return self._gone or self.exit is not None or self.error is not None

    def ended(self, seconds: float) -> bool:
        """Return whether the engine has ended, waiting up to `seconds` for that."""
        until = time.monotonic() + seconds
        while not self.over and self._listen(max(0.0, until - time.monotonic())):
            pass
        return self.over

    def _listen(self, seconds: float) -> bool:
        if self._process is None or not select.select([self._process.stdout], [], [], seconds)[0]:
            return False
        text = self._process.stdout.read(4096)
        self._gone = not text
        *messages, self._text = (self._text + text).split(b"\n")
        for message in messages:
            vars(self).update(json.loads(message))  # pid, exit or error
        return True

    @property
    def how(self) -> str:
        """How it ended, in words."""
        if self.error or self.exit is None:
            return self.error or "its supervisor was killed"
        if self.exit >= 0:
            return f"exit status {self.exit}"
        name = signal.Signals(-self.exit).name
        hint = {"SIGKILL": "; out of memory?", "SIGILL": "; this CPU lacks an instruction that it uses"}
        return f"killed by {name}{hint.get(name, '')}"

    def stop(self) -> None:
        """Stop all that the engine started; a further Ctrl-C kills at once instead of waiting for a tidy end."""
        if self._process is None:
            return
        until = time.monotonic() + self._grace + supervisor.UNKILLABLE_AFTER + 5
        word, interrupt, status = b"s", None, None
        while status is None:
            try:
                self._tell(word)
                status = self._process.wait(max(0.0, until - time.monotonic()))
            except KeyboardInterrupt as error:
                word, interrupt = b"k", error
            except subprocess.TimeoutExpired:
                self._process.kill()
                status = supervisor.GAVE_UP
        self._process.stdin.close()
        self._process.stdout.close()
        if interrupt:
            raise interrupt
        if status == supervisor.GAVE_UP:
            raise ServerError(f"A process that the engine (process {self.pid}) started could not be stopped.")

    def _tell(self, word: bytes) -> None:
        try:
            self._process.stdin.write(word)
        except BrokenPipeError:
            pass  # it has ended by itself


def _words(command: Command | Sequence[str]) -> list[str]:
    words = command.argv if isinstance(command, Command) else command
    if isinstance(words, str) or not words or not all(isinstance(word, str) for word in words):
        raise ValueError(f"command must be a list of words, since no shell reads it; got {words!r}")
    return list(words)


def _port(argv: Sequence[str]) -> int:
    hosts, ports = logs.values(argv, HOST_FLAGS), logs.values(argv, PORT_FLAGS)
    if not hosts or not {HOST, "localhost"}.issuperset(hosts):
        said = f"says --host {hosts[-1]}" if hosts else "says no --host, and many engines then listen on all networks"
        raise ValueError(f"command must say --host {HOST}, so that only this machine can reach it; it {said}")
    if not ports or not all(port.isdecimal() and 0 < int(port) < 65536 for port in ports):
        raise ValueError(f"command must say --port and a number, such as server.free_port(); it says {ports or 'none'}")
    return int(ports[-1])


def _present(argv: Sequence[str], environment: Mapping[str, str], folder: Path) -> str:
    program = shutil.which(argv[0], path=environment.get("PATH"))
    if program is None:
        raise ServerError(f"The program {argv[0]} was not found: install the engine first (`make engines`).")
    for model in logs.values(argv, MODEL_FLAGS):
        path = Path(model).expanduser()
        # a hub's name is "model" or "owner/model"; with a folder of the owner's name here, a folder is meant
        local = model[0] in "/.~" or model.count("/") > 1 or ("/" in model and (folder / path.parts[0]).is_dir())
        if local and not (folder / path).exists():
            raise ServerError(f"The model folder {model} does not exist: make or download the model first.")
    return os.path.abspath(program)


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port just closed is not taken
        try:
            probe.bind((HOST, port))
        except OSError:
            return True
    return False


def _healthy(port: int, page: str) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=2)
    try:
        connection.request("GET", page)
        return 200 <= connection.getresponse().status < 300
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
