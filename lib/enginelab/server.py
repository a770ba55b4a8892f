"""Start an engine's server, wait until it is healthy, and always stop it: Launch, Wait and Stop of every lab.

    with server.running(command) as engine:
        ...                                  # engine.url, engine.port, engine.log

The engine runs under a supervisor of its own (`supervisor.py`), so nothing of it is left behind after an error,
Ctrl-C, or the death of the notebook's kernel. It is reached over HTTP, on this machine only. Where one service is
several programs, as with Dynamo, the others are named as `parts`: each gets a supervisor and a log, and all live and
die together.
"""

from __future__ import annotations

import http.client
import os
import select
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from . import logs, supervised
from .commands import Command
from .supervised import ServerError, Supervised

HOST = "127.0.0.1"
HOST_FLAGS, PORT_FLAGS = ("--host", "--http-host"), ("--port", "--http-port")  # the second of each is Dynamo's
MODEL_FLAGS = ("--model", "--model-path", "serve")  # `vllm serve MODEL`
HIGHEST_PORT = 65535 - 10_000  # SGLang 0.5.14 takes the port 10,000 above its own for gRPC, or dies
# Seconds for an engine that has stopped answering to be gone, before it counts as alive. On two busy cores vLLM 0.32.0
# took 4.8 s from the death of its core until it ended itself (1 December 2026).
GOING_DOWN = 10.0


@dataclass(frozen=True)
class Server:
    """A running engine.

    url: where it listens, with no slash at the end; port: on 127.0.0.1; pid: of the engine's main process;
    log: the file that holds all it prints; seconds_to_healthy: from launch until its health page answered;
    command: the argv that was run, secrets blanked; parts: the process of each other program of the service, by name.
    """

    url: str
    port: int
    pid: int
    log: Path
    seconds_to_healthy: float
    command: tuple[str, ...]
    _check: Callable[[], None] = field(repr=False, compare=False)
    parts: Mapping[str, int] = field(default_factory=dict)

    def check(self) -> None:
        """Return if the engine is alive; raise `ServerError` with the end of its log if it has died.

        Ask this after a failed request: it takes up to 10 s to tell an engine that is going down from a busy one.
        """
        self._check()


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nothing listens now (another program may still be quicker to take it).

    It is `HIGHEST_PORT` at most, since SGLang derives a second port from the one that it is given.
    """
    port = HIGHEST_PORT + 1
    while port > HIGHEST_PORT:
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            port = probe.getsockname()[1]
    return port


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
    parts: Mapping[str, Command | Sequence[str]] | None = None,
    health: str = "/health",
    ready: Callable[[str], bool] | None = None,
    deadline: float = 300.0,
    log: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    on_progress: Callable[[float, str], None] | None = None,
    grace: float = 20.0,
) -> Iterator[Server]:
    """Start `command`, wait until GET `health` succeeds, yield a `Server`, and stop it whatever happens.

    command: a `Command` or an argv; it has to say `--host 127.0.0.1` and `--port` itself: nothing is added to it.
    parts: by name, what else has to run for the service; each is started before `command`, and logs to a file of its
    name beside `log`. ready: called with the URL once `health` succeeds, for a service that is healthy before it is
    complete.
    deadline: seconds until it must be healthy; grace: seconds between TERM and KILL when it is stopped.
    log: file for all it prints (default logs/PROGRAM-PORT.log); env: added to this process's environment;
    cwd: folder to run in. on_progress: called about four times a second with the seconds so far and the stage that
    the newest log shows (default: `sparingly()`).

    Raises ValueError for a command that would listen beyond this machine or names no port, and `ServerError` for a
    program or model folder that does not exist, a port already taken, a death, or a deadline passed. If the body
    fails because the engine died, the death is what is raised, and the body's error is its cause.
    """
    argv = _words(command)
    port = _port(argv)
    others = {name: _words(part) for name, part in (parts or {}).items()}
    for words in others.values():
        _loopback(words)
    environment = {**os.environ, **(env or {})}
    programs = [_present(words, environment, Path(cwd or ".")) for words in (*others.values(), argv)]
    if _taken(port):
        raise ServerError(f"Port {port} is taken by another program: stop that one, or take server.free_port().")
    name = Path(argv[0]).name
    log = Path(log or Path("logs") / f"{name}-{port}.log")
    log.parent.mkdir(parents=True, exist_ok=True)

    hide = logs.redactor([word for words in (argv, *others.values()) for word in words], environment)
    progress = on_progress or sparingly()
    engine = Supervised(grace, name)
    members = [*(Supervised(grace, part) for part in others), engine]
    files = [*(log.with_name(f"{log.stem}-{part}.log") for part in others), log]
    started = time.monotonic()

    def failure(member: Supervised, what: str, advice: str = "") -> ServerError:
        return ServerError(logs.explain(f"{member.name} {what}{advice}.", member.log, hide))

    def complete() -> bool:
        return _healthy(port, health) and (ready is None or ready(f"http://{HOST}:{port}"))

    def dead(seconds: float) -> Supervised | None:
        """The first member that has ended, waiting up to `seconds` for one."""
        until = time.monotonic() + seconds
        while True:
            if gone := next((member for member in members if member.ended(0.0)), None):
                return gone
            if not select.select(members, [], [], max(0.0, until - time.monotonic()))[0]:
                return None

    def check() -> None:
        if gone := dead(0.0 if complete() else GOING_DOWN):
            raise failure(gone, f"died {time.monotonic() - started:.0f} s after its start ({gone.how})")

    try:
        for member, file, program, words in zip(members, files, programs, (*others.values(), argv), strict=True):
            member.start([program, *words[1:]], file, environment, cwd)
        while not complete():
            if dead(0.25):
                break
            seconds = time.monotonic() - started
            if seconds > deadline:
                advice = ": see its log, or give it a longer deadline"
                raise failure(engine, f"was not healthy within {deadline:g} s", advice)
            progress(seconds, logs.stage(max(members, key=Supervised.spoke).log, hide))
        seconds = time.monotonic() - started
        if gone := dead(0.0):
            raise failure(gone, f"died {seconds:.0f} s after its start, before it was healthy ({gone.how})")
        try:
            pids = {member.name: member.pid for member in members[:-1]}
            yield Server(f"http://{HOST}:{port}", port, engine.pid, log, seconds, tuple(map(hide, argv)), check, pids)
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
        supervised.stop(members)


def _words(command: Command | Sequence[str]) -> list[str]:
    words = command.argv if isinstance(command, Command) else command
    if isinstance(words, str) or not words or not all(isinstance(word, str) for word in words):
        raise ValueError(f"command must be a list of words, since no shell reads it; got {words!r}")
    return list(words)


def _port(argv: Sequence[str]) -> int:
    hosts, ports = _loopback(argv), logs.values(argv, PORT_FLAGS)
    if not hosts:
        raise ValueError(
            f"command must say --host {HOST}, so that only this machine can reach it; "
            "it says no --host, and many engines then listen on all networks"
        )
    if not ports or not all(port.isdecimal() and 0 < int(port) < 65536 for port in ports):
        raise ValueError(f"command must say --port and a number, such as server.free_port(); it says {ports or 'none'}")
    return int(ports[-1])


def _loopback(argv: Sequence[str]) -> list[str]:
    """The hosts that `argv` says to listen on; `ValueError` for one beyond this machine."""
    hosts = logs.values(argv, HOST_FLAGS)
    if not {HOST, "localhost"}.issuperset(hosts):
        raise ValueError(
            f"command must say --host {HOST}, so that only this machine can reach it; it says --host {hosts[-1]}"
        )
    return hosts


def _present(argv: Sequence[str], environment: Mapping[str, str], folder: Path) -> str:
    program = shutil.which(argv[0], path=environment.get("PATH"))
    if program is None:
        raise ServerError(f"The program {argv[0]} was not found: install the engine first (`make engines`).")
    for model in logs.values(argv, MODEL_FLAGS):
        if not model:
            raise ValueError("command names an empty model: is the variable set that it comes from?")
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
