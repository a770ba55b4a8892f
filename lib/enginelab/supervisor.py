"""Run one engine and let nothing of it outlive whoever asked for it.

A program, not a module to call: `enginelab.server` starts this file in a process and a session of its own, so that
it can still clean up when the notebook's kernel has been killed outright.

    supervisor.py GRACE PROGRAM [ARGUMENT ...]

stdin   a pipe held by whoever asked. When it closes (on purpose, or because that process died) everything is
        stopped: TERM, at most GRACE seconds, then KILL. Any byte means stop as well, and a later "k" means KILL now.
stdout  one JSON object a line: {"pid": 4711}, then {"exit": -9}; or {"error": "…"} if nothing could be started.
stderr  the engine's log.

Standard library only, and no import of `enginelab`: it has to start within milliseconds from any environment.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
LINUX = sys.platform == "linux"
GAVE_UP = 3  # exit status: something could not be stopped
UNKILLABLE_AFTER = 10.0  # seconds after KILL: what is still there hangs in the kernel, and no signal will end it


def tell(**message: object) -> None:
    """Write one message to whoever asked; they may be gone, and the work goes on."""
    try:
        os.write(1, json.dumps(message).encode() + b"\n")
    except OSError:
        pass


def descendants() -> list[int]:
    """The living processes that this one has started, at any depth and in any session (Linux: from /proc)."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_bytes().rpartition(b")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        if state != b"Z":
            children.setdefault(int(parent), []).append(int(stat.parent.name))
    found, todo = [], [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def signal_all(engine: int, number: int) -> None:
    """Signal everything that came from the engine; without /proc, its process group."""
    for pid in descendants() if LINUX else [-engine]:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # it ended meanwhile; the caller looks again


def start(argv: list[str]) -> subprocess.Popen:
    """Start the engine in a session of its own, its output going to the log."""
    libc = ctypes.CDLL(None) if LINUX else None
    if libc:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans of the engine become children of this process
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        stderr=sys.stderr,
        start_new_session=True,
        preexec_fn=(lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)) if libc else None,
    )


def supervise(argv: list[str], grace: float) -> int:
    """Run `argv` until it ends or stdin closes, then stop what is left of it.

    grace: seconds between TERM and KILL. Returns the exit status: 0, 1 if nothing could be started, or GAVE_UP.
    """
    asker = os.getppid()
    wake_read, wake_write = os.pipe()
    for end in (wake_read, wake_write):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    asked_to_stop: list[int] = []
    signal.signal(signal.SIGCHLD, lambda number, frame: None)  # it only has to wake the select below
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: asked_to_stop.append(number))
    try:
        engine = start(argv).pid
    except OSError as error:
        tell(error=f"{error.strerror}: {argv[0]}")
        return 1
    tell(pid=engine)

    inputs, ended, kill_at = [0, wake_read], False, None
    while True:
        pid = -1
        while pid:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return 0
            if pid == engine:
                ended = True
                tell(exit=os.waitstatus_to_exitcode(status))

        now = time.monotonic()
        if kill_at is None and (ended or asked_to_stop or os.getppid() != asker):
            kill_at = now + grace
            signal_all(engine, signal.SIGTERM)
        if kill_at is not None and now >= kill_at:
            signal_all(engine, signal.SIGKILL)
            if now >= kill_at + UNKILLABLE_AFTER:
                return GAVE_UP

        # The pipe and SIGCHLD wake this at once; the second is for a fork of the asker that still holds the pipe.
        ready, _, _ = select.select(inputs, [], [], 1.0 if kill_at is None else 0.05)
        if wake_read in ready:
            os.read(wake_read, 4096)
        if 0 in ready:
            said = os.read(0, 1)
            asked_to_stop.append(0)
            if not said:
                inputs.remove(0)
            elif said == b"k" and kill_at is not None:
                kill_at = min(kill_at, now)


if __name__ == "__main__":
    sys.exit(supervise(sys.argv[2:], float(sys.argv[1])))
