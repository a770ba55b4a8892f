"""One program under a supervisor, seen from whoever asked for it: start, has it ended and how, stop.

`supervisor.py` is the other side: a process of its own, which cleans up even when this one has been killed.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from . import supervisor


class ServerError(RuntimeError):
    """An engine that did not start, was never healthy, or died: one sentence, then the last lines of its log."""


class Supervised:
    """One program and its supervisor. grace: seconds between TERM and KILL; name: for messages.

    log: where its output goes; pid: of the program, once started; exit: its exit status, negative for a signal;
    error: why it could not start.
    """

    def __init__(self, grace: float, name: str):
        self.name, self.log = name, None
        self.pid = self.exit = self.error = self._process = None
        self._gone, self._text, self._grace, self._until = False, b"", grace, None

    def start(self, argv: Sequence[str], log: Path, environment: Mapping[str, str], cwd: str | Path | None) -> None:
        """Start the supervisor, and wait until it has started the program or could not."""
        self.log = log
        private = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(private, "wb") as output, _interrupted_later():
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

    def spoke(self) -> float:
        """When it last wrote to its log, seconds since the epoch."""
        return self.log.stat().st_mtime

    def fileno(self) -> int:
        """What to wait on for news of it, with `select`."""
        return self._process.stdout.fileno()

    @property
    def over(self) -> bool:
        """Whether the supervisor has said that the program ended, or has gone itself."""
        return self._gone or self.exit is not None or self.error is not None

    def ended(self, seconds: float) -> bool:
        """Return whether the program has ended, waiting up to `seconds` for that."""
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

    @property
    def started(self) -> bool:
        """Whether there is a supervisor, running or ended."""
        return self._process is not None

    def tell(self, word: bytes) -> None:
        """Begin to stop it: any byte means TERM now and KILL after its grace; a later b"k" means KILL now."""
        self._until = self._until or time.monotonic() + self._grace + supervisor.UNKILLABLE_AFTER + 5
        try:
            self._process.stdin.write(word)
        except BrokenPipeError:
            pass  # it has ended by itself

    def gone(self) -> bool:
        """Wait, after `tell`, until all that it started has ended; False if some of it could not be stopped."""
        try:
            status = self._process.wait(max(0.0, self._until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = supervisor.GAVE_UP
        return status != supervisor.GAVE_UP

    def close(self) -> None:
        """Let go of the supervisor, which has ended."""
        self._process.stdin.close()
        self._process.stdout.close()


def stop(members: Sequence[Supervised]) -> None:
    """Stop all that `members` started, all at once; a Ctrl-C meanwhile kills instead of waiting for a tidy end.

    Raises `ServerError` if something could not be stopped, else the Ctrl-C.
    """
    waiting = [member for member in members if member.started]
    word, interrupt, stuck = b"s", None, []
    while waiting:
        try:
            for member in waiting:
                member.tell(word)
            while waiting:
                if not waiting[-1].gone():
                    stuck.append(waiting[-1])
                waiting.pop().close()
        except KeyboardInterrupt as error:
            word, interrupt = b"k", error
    if stuck:
        raise ServerError(
            f"A process that {stuck[0].name} (process {stuck[0].pid}) started could not be stopped."
        ) from interrupt
    if interrupt:
        raise interrupt


@contextmanager
def _interrupted_later() -> Iterator[None]:
    """Put Ctrl-C off until the block is done: a process that is started but not yet known could not be stopped."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Ctrl-C strikes the main thread alone
        return
    came = []
    usual = signal.signal(signal.SIGINT, lambda *call: came.append(call))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual or signal.SIG_DFL)
        if came:
            signal.raise_signal(signal.SIGINT)
