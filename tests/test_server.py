"""Starting and stopping engines: every fault, with real processes. No process and no port may be left, ever."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from enginelab import server, supervised

# A stand-in engine: its last argument holds Python that runs before it listens; `linger` starts a child that leaves
# the session and ignores TERM, as an engine's scheduler may.
ENGINE = textwrap.dedent(
    """
    import argparse, os, signal, subprocess, sys, threading, time
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    def linger():
        code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('here', flush=True); signal.pause()"
        child = subprocess.Popen([sys.executable, "-c", code, __file__], start_new_session=True, stdout=subprocess.PIPE)
        child.stdout.readline()

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/die":
                print("RuntimeError: the engine core gave up", flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            self.send_response(200 if self.path == "/health" else 404)
            self.end_headers()
        def log_message(self, *words):
            pass

    parser = argparse.ArgumentParser()
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("--api-key")
    parser.add_argument("first", nargs="?", default="")
    args = parser.parse_args()
    print("engine begins", flush=True)
    exec(args.first)
    ThreadingHTTPServer((args.host, args.port), Page).serve_forever()
    """
)
NEVER = "print('INFO 12-01 10:00:00 [core.py:7] loading weights', flush=True); signal.pause()"


class Place:
    """One test's folder, its stand-in engine, and what is alive of it."""

    def __init__(self, folder: Path):
        self.folder, self.port, self.log = folder, server.free_port(), folder / "engine.log"
        self.program = folder / "engine.py"
        self.program.write_text(ENGINE)

    def command(self, first: str = "", *more: str) -> list[str]:
        return [sys.executable, str(self.program), "--host", "127.0.0.1", "--port", str(self.port), *more, first]

    def running(self, first: str = "", *more: str, **options):
        return server.running(self.command(first, *more), **{"log": self.log, "deadline": 20, "grace": 5, **options})

    def processes(self) -> list[int]:
        """Every living process with the stand-in's path on its command line: engine, children and supervisor."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                zombie = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
            except OSError:
                continue
            if os.fsencode(self.program) in words and not zombie:
                found.append(int(entry.name))
        return found

    def assert_clean(self, within: float = 0.0) -> None:
        wait_for(lambda: not self.processes(), within)
        assert not self.processes()
        with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
            probe.connect(("127.0.0.1", self.port))

    def kernel(self, code: str) -> subprocess.Popen:
        """Another Python that runs `code` with this place's stand-in, as a notebook's kernel would."""
        header = f"""
            import subprocess, sys
            from enginelab import server
            def run(first, **options):
                command = {self.command()!r}[:-1] + [first]
                return server.running(command, log={str(self.log)!r}, deadline=20, **options)
        """
        script = textwrap.dedent(header) + textwrap.dedent(code)
        lib = str(Path(server.__file__).parents[1])
        return subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": lib},
        )


def wait_for(condition, within: float) -> None:
    until = time.monotonic() + within
    while not condition() and time.monotonic() < until:
        time.sleep(0.02)


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    yield place
    left = place.processes()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, "the test left processes behind"


def test_yields_a_healthy_server_and_leaves_nothing(place):
    with place.running("linger()", grace=0.5) as engine:
        assert engine.url == f"http://127.0.0.1:{place.port}" and engine.port == place.port
        assert urllib.request.urlopen(engine.url + "/health").status == 200
        assert engine.pid in place.processes() and len(place.processes()) == 3  # supervisor, engine, its child
        assert 0 < engine.seconds_to_healthy < 20
        assert engine.log.read_text().startswith("engine begins")
        engine.check()
    place.assert_clean()


def test_listens_on_loopback_only(place):
    with place.running():
        listening = [
            line.split()[1]
            for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
            if line.split()[3] == "0A" and line.split()[1].endswith(f":{place.port:04X}")
        ]
        assert listening == [f"0100007F:{place.port:04X}"]


def test_stops_after_an_error_in_the_body_and_passes_it_on(place):
    with pytest.raises(ZeroDivisionError), place.running():
        raise ZeroDivisionError
    place.assert_clean()


def test_kills_an_engine_that_ignores_term(place):
    started = time.monotonic()
    with place.running("signal.signal(signal.SIGTERM, signal.SIG_IGN)", grace=0.3):
        pass
    place.assert_clean()
    assert time.monotonic() - started < 10


def test_lets_an_engine_end_tidily(place):
    tidy = "signal.signal(signal.SIGTERM, lambda *_: (print('tidied up', flush=True), os._exit(0)))"
    with place.running(tidy):
        pass
    assert "tidied up" in place.log.read_text()


def test_runs_again_on_the_same_port(place):
    for _ in range(2):
        with place.running() as engine:
            urllib.request.urlopen(engine.url + "/health")
    place.assert_clean()


def test_program_missing(place):
    with pytest.raises(server.ServerError, match="no-such-engine was not found"):
        with server.running(["no-such-engine", "--host", "127.0.0.1", "--port", "8000"], log=place.log):
            pass


def test_program_that_cannot_be_executed(place):
    broken = place.folder / "broken"
    broken.write_bytes(b"\x7fELF not really")
    broken.chmod(0o755)
    with pytest.raises(server.ServerError, match="before it was healthy .Exec format error"):
        with server.running([str(broken), "--host", "127.0.0.1", f"--port={place.port}"], log=place.log):
            pass


@pytest.mark.parametrize("model", ["./models/tiny", "/no/such/model", "models/tiny", "a/b/c"])
def test_model_folder_missing(place, model):
    (place.folder / "models").mkdir()
    with pytest.raises(server.ServerError, match=f"model folder {model} does not exist"):
        with server.running([*place.command()[:-1], "--model", model], log=place.log, cwd=place.folder):
            pass
    assert not place.log.exists()


def test_a_name_on_the_hub_is_no_missing_folder(place):
    with pytest.raises(server.ServerError, match="exit status 2"):  # the stand-in knows no --model: it did start
        with place.running("", "--model", "Qwen/Qwen3-0.6B"):
            pass


def test_a_flag_behind_serve_is_no_model(place):
    (place.folder / "a" / "b" / "c").mkdir(parents=True)
    with pytest.raises(server.ServerError, match="exit status 2"):  # the stand-in knows no --model-path: it did start
        with place.running("", "serve", "--model-path=a/b/c", cwd=place.folder):
            pass


def test_port_taken(place):
    with socket.socket() as other:
        other.bind(("0.0.0.0", place.port))
        other.listen()
        with pytest.raises(server.ServerError, match=f"Port {place.port} is taken"), place.running():
            pass
    place.assert_clean()


def test_death_at_the_start_shows_the_end_of_the_log(place):
    first = "print('ValueError: no such dtype'); [print('line', i) for i in range(40)]; linger(); sys.exit(3)"
    with pytest.raises(server.ServerError) as error, place.running(first, grace=0.3):
        pass
    text = str(error.value)
    assert "before it was healthy (exit status 3)" in text.splitlines()[0]
    assert "ValueError: no such dtype" in text and "line 39" in text and "line 20" not in text
    place.assert_clean()


def test_never_healthy(place):
    with pytest.raises(server.ServerError, match="not healthy within 1 s"), place.running(NEVER, deadline=1):
        pass
    place.assert_clean()


def test_progress_shows_the_stage_and_may_give_up(place):
    class Enough(Exception):
        pass

    def watch(seconds, line):
        assert 0 < seconds < 20
        if line == "loading weights":
            raise Enough

    with pytest.raises(Enough), place.running(NEVER, on_progress=watch):
        pass
    place.assert_clean()


def test_unhealthy_pages_do_not_count(place):
    with pytest.raises(server.ServerError, match="not healthy"), place.running(deadline=1, health="/other"):
        pass
    place.assert_clean()


def test_death_in_the_body_is_what_the_learner_sees(place):
    with pytest.raises(server.ServerError) as error, place.running("linger()", grace=0.3) as engine:
        urllib.request.urlopen(engine.url + "/die")
    assert "killed by SIGKILL; out of memory?" in str(error.value).splitlines()[0]
    assert "the engine core gave up" in str(error.value)
    assert isinstance(error.value.__cause__, OSError)
    place.assert_clean()


def test_check_tells_a_death_from_a_refused_page(place):
    with pytest.raises(server.ServerError, match="SIGKILL"), place.running() as engine:
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(engine.url + "/nothing")
        engine.check()
        with pytest.raises(OSError):
            urllib.request.urlopen(engine.url + "/die")
        engine.check()
        pytest.fail("the death went unnoticed")


def test_a_death_that_the_body_hides_is_raised(place):
    with pytest.raises(server.ServerError, match="SIGKILL"), place.running() as engine:
        os.kill(engine.pid, signal.SIGKILL)
        wait_for(lambda: engine.pid not in place.processes(), 5)
    place.assert_clean()


def test_kernel_killed_outright(place):
    kernel = place.kernel("with run('linger()', grace=0.3):\n    print('up', flush=True)\n    sys.stdin.read()")
    assert kernel.stdout.readline() == "up\n"
    assert len(place.processes()) == 3
    kernel.kill()
    kernel.communicate()
    place.assert_clean(within=5)


def test_kernel_killed_while_a_fork_of_it_lives_on(place):
    code = """
        import os, signal
        with run('linger()', grace=0.3):
            fork = os.fork()
            if fork == 0:
                signal.pause()
            print(fork, flush=True)
            signal.pause()
    """
    kernel = place.kernel(code)
    fork = int(kernel.stdout.readline())
    kernel.kill()
    kernel.wait()
    try:
        wait_for(lambda: not place.processes(), 5)
        assert not place.processes()
    finally:
        os.kill(fork, signal.SIGKILL)
        kernel.communicate()


@pytest.mark.parametrize(
    "when", ["with run(NEVER, on_progress=said): pass", "with run(''):\n    said()\n    signal.pause()"]
)
def test_ctrl_c(place, when):
    code = f"import signal\nNEVER = {NEVER!r}\nsaid = lambda *_: print('up', flush=True)\n{when}"
    kernel = place.kernel(code)
    assert kernel.stdout.readline() == "up\n"
    kernel.send_signal(signal.SIGINT)
    _, errors = kernel.communicate(timeout=10)
    assert kernel.returncode == -signal.SIGINT and errors.rstrip().endswith("KeyboardInterrupt")
    place.assert_clean()


def test_ctrl_c_at_the_very_moment_of_the_start(place):
    code = """
        import os, signal
        class Popen(subprocess.Popen):
            def __init__(self, *words, **more):
                super().__init__(*words, **more)
                os.kill(os.getpid(), signal.SIGINT)
        subprocess.Popen = Popen
        try:
            with run('linger()', grace=0.3): pass
        except KeyboardInterrupt:
            print('interrupted', flush=True)
            sys.stdin.read()
    """
    kernel = place.kernel(code)
    assert kernel.stdout.readline() == "interrupted\n"
    left = place.processes()
    kernel.communicate()
    assert left == []


def test_a_second_ctrl_c_kills_without_waiting(place):
    stubborn = "signal.signal(signal.SIGTERM, lambda *_: print('not yet', flush=True))"
    kernel = place.kernel(f"with run({stubborn!r}, grace=60):\n    print('up', flush=True)\n    sys.stdin.read()")
    assert kernel.stdout.readline() == "up\n"
    kernel.send_signal(signal.SIGINT)
    wait_for(lambda: "not yet" in place.log.read_text(), 5)
    kernel.send_signal(signal.SIGINT)
    kernel.communicate(timeout=10)
    place.assert_clean()


def test_a_second_ctrl_c_that_comes_while_programs_are_told_to_end_kills_too(place, monkeypatch):
    told, tell = [], supervised.Supervised.tell

    def interrupted(member, word):
        tell(member, word)
        told.append(word)
        if len(told) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(supervised.Supervised, "tell", interrupted)
    stubborn = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    with pytest.raises(KeyboardInterrupt), place.running(stubborn, grace=60):
        pass
    assert told == [b"s", b"k"]
    place.assert_clean()


def test_supervisor_killed(place):
    with pytest.raises(server.ServerError, match="supervisor was killed"), place.running() as engine:
        (supervisor,) = set(place.processes()) - {engine.pid}
        os.kill(supervisor, signal.SIGKILL)
        wait_for(lambda: not place.processes(), 5)
        raise RuntimeError
    place.assert_clean()


@pytest.mark.parametrize(
    "words",
    [
        ["--host", "0.0.0.0", "--port", "8000"],
        ["--host=0.0.0.0", "--port", "8000"],
        ["--host", "127.0.0.1", "--host", "::", "--port", "8000"],
        ["--port", "8000"],
        ["--host", "127.0.0.1"],
        ["--host", "127.0.0.1", "--port", "eighty"],
        ["--host", "127.0.0.1", "--port", "70000"],
    ],
)
def test_refuses_to_listen_beyond_this_machine_or_nowhere(words):
    with pytest.raises(ValueError, match="--host 127.0.0.1|--port"), server.running(["true", *words]):
        pass


@pytest.mark.parametrize("command", ["vllm serve --host 127.0.0.1 --port 8000", [], ["vllm", 8000]])
def test_a_command_is_a_list_of_words(command):
    with pytest.raises(ValueError, match="list of words"), server.running(command):
        pass


def test_secrets_stay_in_the_log(place, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "not-shaped-like-one")
    leak = "print(os.environ['HF_TOKEN'], 'hf_AbCdEfGhIjKlMnOpQrStUvWx', 'sk-abcdefghijk', args.api_key, flush=True)"
    with place.running(leak, "--api-key", "local secret") as engine:
        shown = repr(engine)
    with pytest.raises(server.ServerError) as error:
        with place.running(leak + "; sys.exit(1)", "--api-key", "local secret"):
            pass
    shown += str(error.value)
    for secret in ("not-shaped-like-one", "hf_AbCdEfGhIjKlMnOpQrStUvWx", "sk-abcdefghijk", "local secret"):
        assert secret in place.log.read_text() and secret not in shown
    assert place.log.stat().st_mode & 0o077 == 0


def test_progress_is_sparing():
    said = []
    progress = server.sparingly(every=10, say=said.append)
    for seconds in range(0, 60):
        progress(seconds, "loading" if seconds < 35 else "compiling")
    assert said == ["  10 s  loading", "  35 s  compiling"]


def test_an_empty_model_is_a_mistake_of_the_command():
    argv = [sys.executable, "--model", "", "--host", "127.0.0.1", "--port", str(server.free_port())]
    with pytest.raises(ValueError, match="empty model"), server.running(argv):
        pass


def test_free_port_leaves_room_for_the_port_that_sglang_derives_from_it():
    assert max(server.free_port() for _ in range(200)) + 10_000 <= 65_535


def test_free_port_is_free():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", server.free_port()))


# A program of a service that has no port: it says that it is there, and runs until told to stop.
PART = "print('part begins', flush=True); import signal; signal.pause()"


def part(place, code: str = PART) -> list[str]:
    return [sys.executable, "-c", code, str(place.program)]


def test_all_parts_of_a_service_run_and_stop_together(place):
    with place.running(parts={"one": part(place), "two": part(place)}) as engine:
        assert len(place.processes()) == 6  # three programs, each with its supervisor
        assert set(engine.parts) == {"one", "two"} and {*engine.parts.values(), engine.pid} < set(place.processes())
        for name in ("one", "two"):
            log = place.log.with_name(f"engine-{name}.log")
            wait_for(log.read_text, 10)
            assert log.read_text() == "part begins\n"
        engine.check()
    place.assert_clean()


def test_parts_are_stopped_at_once_not_in_turn(place):
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('here', flush=True); signal.pause()"
    parts = {name: part(place, stubborn) for name in ("one", "two", "three")}
    with place.running(parts=parts, grace=1.5):
        for name in parts:
            wait_for(place.log.with_name(f"engine-{name}.log").read_text, 10)
        began = time.monotonic()
    assert time.monotonic() - began < 2 * 1.5
    place.assert_clean()


def test_the_death_of_a_part_is_told_with_its_log(place):
    dying = "print('ValueError: the worker gave up', flush=True); import os; os._exit(3)"
    with pytest.raises(server.ServerError) as caught, place.running(NEVER, parts={"worker": part(place, dying)}):
        pass
    message = str(caught.value)
    assert message.startswith("worker died") and "exit status 3" in message and "the worker gave up" in message
    place.assert_clean()


def test_a_part_that_dies_later_explains_the_failure_of_the_body(place):
    parts = {"worker": part(place)}
    with pytest.raises(server.ServerError, match=r"worker died .* \(killed by SIGKILL") as caught:
        with place.running(parts=parts, ready=lambda url: len(place.processes()) == 4) as engine:
            worker = engine.parts["worker"]
            os.kill(worker, signal.SIGKILL)
            wait_for(lambda: worker not in place.processes(), 10)
            raise ConnectionError(f"no answer from {engine.url}")
    assert isinstance(caught.value.__cause__, ConnectionError)
    place.assert_clean()


def test_a_service_is_ready_when_it_says_so(place):
    asked = []
    with place.running(ready=lambda url: asked.append(url) or len(asked) == 3) as engine:
        assert asked == [engine.url] * 3


def test_a_service_that_is_never_ready_fails_at_its_deadline(place):
    with pytest.raises(server.ServerError, match="was not healthy within 1 s"):
        with place.running(ready=lambda url: False, deadline=1.0):
            pass
    place.assert_clean()


def test_a_part_must_not_listen_beyond_this_machine(place):
    with pytest.raises(ValueError, match="--host 0.0.0.0"):
        with place.running(parts={"worker": [*part(place), "--host", "0.0.0.0"]}):
            pass
    assert not place.log.exists()


def test_a_part_that_is_missing_is_named_before_anything_starts(place):
    with pytest.raises(server.ServerError, match="no-such-program was not found"):
        with place.running(parts={"worker": ["no-such-program"]}):
            pass
    assert not place.log.exists()
