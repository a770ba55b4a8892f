"""Sweeps on real processes, threads and a Dask cluster, through failures, deaths, interrupts and half-written files."""

import doctest
import importlib
import inspect
import io
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import pytest
from distributed import Client, LocalCluster

from enginelab import batching, progress
from enginelab import sweep as module
from enginelab.sweep import Row, SweepError, sweep

pytestmark = pytest.mark.timeout(120)
LENGTHS = (2, 8, 3, 5, 3, 4)
GRID = {"slots": [1, 2, 4], "arrival": range(3)}


def steps(slots, arrival):
    return batching.continuous(LENGTHS, slots, [arrival] * len(LENGTHS)).steps


def picky(slots, arrival):
    if slots == 2 and arrival == 1:
        raise Stubborn(slots, arrival)
    return slots * 10 + arrival


def deadly(slots, arrival):
    if slots == 1 and arrival == 0:
        os._exit(9)
    return slots * 10 + arrival


def as_tuple(slots, arrival):
    return slots, {arrival: arrival / 7}


def where(slots, arrival):
    return os.getpid()


class Stubborn(Exception):
    """Cannot be unpickled, which by itself would break a pool of processes."""

    def __init__(self, slots, arrival):
        super().__init__(f"not with {slots}")


@pytest.fixture(scope="module")
def dask():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        yield client.get_executor()


@pytest.fixture(params=["default", "processes", "threads", "dask"])
def executor(request):
    if request.param == "default":
        yield None
    elif request.param == "dask":
        yield request.getfixturevalue("dask")
    else:
        pool = {
            "processes": partial(ProcessPoolExecutor, mp_context=get_context("spawn")),
            "threads": ThreadPoolExecutor,
        }
        with pool[request.param](2) as made:
            yield made


def points():
    return [{"slots": slots, "arrival": arrival} for slots in (1, 2, 4) for arrival in range(3)]


# --- what it computes ---------------------------------------------------------------------------------------------


def test_the_examples_of_the_documentation():
    results = doctest.testmod(module)
    assert results.failed == 0 and results.attempted >= 8


def test_rows_are_those_of_a_plain_loop_in_grid_order(executor):
    expected = [Row(point, steps(**point)) for point in points()]
    assert sweep(steps, GRID, executor) == expected
    assert sweep(steps, iter(points()), executor) == expected
    if executor is not None:
        assert executor.submit(int, 7).result() == 7, "the caller's executor must stay open"


def test_the_default_is_other_processes_and_as_many_as_there_are_cores():
    where_it_ran = {row.value for row in sweep(where, {"slots": range(40), "arrival": [0]})}
    assert os.getpid() not in where_it_ran and 1 <= len(where_it_ran) <= os.cpu_count()


def test_one_bad_point_loses_no_other(executor):
    with pytest.raises(SweepError) as caught:
        sweep(picky, GRID, executor)
    [failure] = caught.value.failures
    assert failure.parameters == {"slots": 2, "arrival": 1}
    assert failure.error.endswith("Stubborn: not with 2") and "in picky" in failure.traceback
    assert [row.value for row in caught.value.rows] == [10, 11, 12, 20, 22, 40, 41, 42]
    assert "1 of 9 points failed" in str(caught.value) and "slots=2, arrival=1: " in str(caught.value)


def test_a_point_that_kills_its_process_takes_only_its_neighbours_along():
    with pytest.raises(SweepError) as caught:
        sweep(deadly, GRID)
    lost = [failure.parameters for failure in caught.value.failures]
    assert {"slots": 1, "arrival": 0} in lost and len(lost) <= len(os.sched_getaffinity(0))
    assert all("died" in failure.error for failure in caught.value.failures)
    values = [row.value for row in caught.value.rows]
    assert len(values) + len(lost) == 9 and set(values) <= {10 * p["slots"] + p["arrival"] for p in points()}


def test_a_pool_that_can_do_nothing_is_given_up(tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text(
        "from enginelab import batching\nfrom enginelab.sweep import sweep\n"
        "sweep(batching.continuous, {'lengths': [[1]], 'slots': range(1, 500)})\n"
    )
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert run.returncode == 1
    assert "SweepError: 499 of 499 points failed" in run.stderr and "__main__ guard" in run.stderr


# --- what it refuses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "grid, names",
    [
        ({}, "grid must have at least one point"),
        ([], "grid must have at least one point"),
        (7, "grid must map names"),
        ("slots", "grid must map names"),
        ([{"slots": 1}, 2], r"grid\[1\]"),
        ([{3: 1}], "not 3"),
        ({3: [1]}, "not 3"),
        ({"slots": []}, r"grid\['slots'\] .* empty"),
        ({"slots": "123"}, r"grid\['slots'\] .* not '123'"),
        ({"slots": 4}, r"grid\['slots'\] .* not 4"),
        ({"slots": {4, 5}}, r"grid\['slots'\]"),
        ({"slots": {"a": 1}}, r"grid\['slots'\]"),
    ],
)
def test_a_wrong_grid_is_refused_by_name(grid, names):
    with pytest.raises(ValueError, match=names):
        sweep(steps, grid)


def test_a_wrong_function_or_executor_is_refused_by_name():
    with pytest.raises(ValueError, match="function must be something to call, not 'steps'"):
        sweep("steps", GRID)
    with pytest.raises(ValueError, match="another process can import"):
        sweep(lambda slots, arrival: 1, GRID)
    with pytest.raises(ValueError, match="executor must be"):
        sweep(steps, GRID, executor=2)
    assert [row.value for row in sweep(lambda a: -a, {"a": [1, 2]}, ThreadPoolExecutor(1))] == [-1, -2]


def test_a_function_of_a_notebook_is_refused_instead_of_breaking_the_pool():
    code = "from enginelab.sweep import sweep\ndef f(a): return a\nsweep(f, {'a': [1]})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stderr.strip().splitlines()[-1].startswith("ValueError: function must be one that another process")


# --- what it keeps ------------------------------------------------------------------------------------------------


class Counting(Executor):
    """Runs each call at once, and counts them."""

    def __init__(self):
        self.threads, self.calls = ThreadPoolExecutor(1), 0

    def submit(self, *call):
        self.calls += 1
        return self.threads.submit(*call)


def calls(function, grid, keep):
    executor = Counting()
    rows = sweep(function, grid, executor, keep=keep)
    return executor.calls, rows


def test_a_second_sweep_computes_only_what_is_not_kept(tmp_path):
    keep = tmp_path / "rows.jsonl"
    assert calls(steps, {"slots": [1, 2], "arrival": [0, 1]}, keep)[0] == 4
    assert calls(steps, GRID, keep) == (5, [Row(point, steps(**point)) for point in points()])
    assert calls(steps, reversed(points()), keep) == (0, [Row(p, steps(**p)) for p in reversed(points())])
    assert calls(steps, {"arrival": range(3), "slots": [1, 2, 4]}, keep)[0] == 0, "the order of names does not matter"
    assert calls(as_tuple, GRID, keep)[0] == 9, "another function has rows of its own"
    assert calls(steps, GRID, keep)[0] == 0
    for alike in ({"slots": 1, "arrival": 0}, {"slots": True, "arrival": 0}, {"slots": 1, "arrival": 0.0}):
        assert calls(picky, [alike], keep)[0] == 1
        assert calls(picky, [alike], keep)[0] == 0


def test_kept_rows_are_the_same_the_first_and_the_second_time(tmp_path):
    first = calls(as_tuple, GRID, tmp_path / "rows.jsonl")
    assert first[1][4] == Row({"slots": 2, "arrival": 1}, [2, {"1": 1 / 7}])
    assert calls(as_tuple, GRID, tmp_path / "rows.jsonl") == (0, first[1])


def count(config):
    return len(config)


def test_parameters_that_hold_more_than_numbers_are_found_again(tmp_path):
    grid = {"config": [{10: "a", 9: [1, (2, None)]}, {"rate": float("inf")}, {"rate": -0.0}]}
    assert [calls(count, grid, tmp_path / "rows.jsonl")[0] for _ in range(2)] == [3, 0]


@pytest.mark.parametrize("cut", [1, 5, 20, 60])
def test_a_half_written_last_line_is_computed_again(tmp_path, cut):
    keep = tmp_path / "rows.jsonl"
    _, rows = calls(steps, GRID, keep)
    whole = keep.read_bytes()
    keep.write_bytes(whole[:-cut])
    assert calls(steps, GRID, keep) == (1, rows)
    assert keep.read_bytes() == whole


def test_a_change_of_the_code_makes_kept_rows_stale(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    keep, done = tmp_path / "rows.jsonl", []
    for factor in (2, 3, 3):
        (tmp_path / "factors.py").write_text(f"def times(a):\n    return {factor} * a\n")
        sys.modules.pop("factors", None)
        done.append(calls(importlib.import_module("factors").times, {"a": [1, 2]}, keep))
    assert [count for count, _ in done] == [2, 2, 0]
    assert [[row.value for row in rows] for _, rows in done] == [[2, 4], [3, 6], [3, 6]]
    assert len(keep.read_text().splitlines()) == 4


def test_failed_points_are_tried_again(tmp_path):
    for _ in range(2):
        executor = Counting()
        with pytest.raises(SweepError) as caught:
            sweep(picky, GRID, executor, keep=tmp_path / "rows.jsonl")
        assert len(caught.value.rows) == 8
    assert executor.calls == 1


def test_a_file_that_is_not_ours_is_left_alone(tmp_path):
    keep = tmp_path / "notes.txt"
    for content in ("no newline", "a line\n", '{"value": 3}\n', '{"function": "f"}\n', "[]\n"):
        keep.write_text(content)
        with pytest.raises(ValueError, match=r"notes\.txt.* row of a sweep"):
            sweep(steps, GRID, keep=keep)
        assert keep.read_text() == content


def test_what_cannot_be_kept_is_refused_by_name(tmp_path):
    keep, threads = tmp_path / "rows.jsonl", ThreadPoolExecutor(1)
    with pytest.raises(ValueError, match="a Schedule that is not plain JSON"):
        sweep(batching.continuous, {"lengths": [[1]], "slots": [1]}, keep=keep)
    with pytest.raises(ValueError, match="the parameters of point 1, "):
        sweep(steps, [{"slots": 1}, {"slots": 1j}], threads, keep=keep)
    for nameless in (lambda slots, arrival: 1, partial(steps, slots=1), threads.submit):
        with pytest.raises(ValueError, match="keep needs a function defined at the top of a module"):
            sweep(nameless, GRID, threads, keep=keep)
    assert keep.read_text() == ""


def test_two_sweeps_never_write_to_one_file(tmp_path):
    keep, entered, leave = tmp_path / "rows.jsonl", threading.Event(), threading.Event()

    class Holding(Counting):
        def submit(self, *call):
            entered.set()
            assert leave.wait(60)
            return super().submit(*call)

    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(sweep, steps, GRID, Holding(), keep=keep)
        assert entered.wait(60)
        with pytest.raises(ValueError, match=r"another sweep is writing to rows\.jsonl"):
            sweep(steps, GRID, keep=keep)
        leave.set()
        assert len(first.result()) == 9


# --- interrupts ---------------------------------------------------------------------------------------------------

STUDY = """
import os, sys, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from enginelab.sweep import sweep

def point(number):
    # The first two are quick; the others say that they run, and end when the test lets them.
    if number >= 2:
        Path(f"running-{number}").touch()
        while not Path("go").exists():
            time.sleep(0.01)
    return number

if __name__ == "__main__":
    executor = ThreadPoolExecutor(2) if sys.argv[1:] == ["threads"] else None
    try:
        sweep(point, {"number": range(50)}, executor, keep="rows.jsonl")
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        os._exit(130) if executor else sys.exit(130)
"""


@pytest.fixture
def study(tmp_path):
    """A sweep in a process group of its own, started anew by each call."""
    (tmp_path / "study.py").write_text(STUDY)
    started = []

    def start(*words):
        command = [sys.executable, "study.py", *words]
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def until(condition, process):
    for _ in range(6000):
        if condition():
            return
        try:
            process.wait(0.01)
        except subprocess.TimeoutExpired:
            continue
        break
    raise AssertionError(f"never came: {inspect.getsource(condition)} {process.communicate()}")


def kept_numbers(folder):
    return sorted(json.loads(line)["value"] for line in (folder / "rows.jsonl").read_text().splitlines())


@pytest.mark.parametrize("words", [(), ("threads",)])
def test_an_interrupt_keeps_what_ran_and_the_next_call_goes_on(tmp_path, study, words):
    process = study(*words)
    workers = 2 if words else min(50, len(os.sched_getaffinity(0)))
    until(lambda: len(list(tmp_path.glob("running-*"))) == workers and len(kept_numbers(tmp_path)) == 2, process)
    os.killpg(process.pid, signal.SIGINT)
    errors = iter(process.stderr.readline, "")
    assert any(f"interrupted: {workers} points still run" in line for line in errors)
    (tmp_path / "go").touch()
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "interrupted\n")
    assert kept_numbers(tmp_path) == list(range(2 + workers))
    again = study(*words)
    assert (again.communicate(timeout=60)[0], again.returncode) == ("", 0)
    assert kept_numbers(tmp_path) == list(range(50))


@pytest.mark.parametrize("kill", [os.kill, os.killpg])
def test_a_second_interrupt_drops_what_runs(tmp_path, study, kill):
    process = study()
    workers = len(os.sched_getaffinity(0))
    until(lambda: len(list(tmp_path.glob("running-*"))) == workers and len(kept_numbers(tmp_path)) == 2, process)
    kill(process.pid, signal.SIGINT)
    assert any("interrupted: " in line for line in iter(process.stderr.readline, ""))
    kill(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "interrupted\n")
    assert kept_numbers(tmp_path) == [0, 1]


def test_a_sweep_that_is_killed_keeps_its_rows_and_leaves_no_process(tmp_path, study):
    process = study()
    until(lambda: list(tmp_path.glob("running-*")) and len(kept_numbers(tmp_path)) == 2, process)
    process.kill()
    # Its workers hold the other end of these pipes, and their points would run for ever.
    process.communicate(timeout=60)
    (tmp_path / "go").touch()
    assert study().wait(60) == 0
    assert kept_numbers(tmp_path) == list(range(50))


# --- progress -----------------------------------------------------------------------------------------------------


class Screen(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock of tqdm's own that gains one second at each look."""
    ticks = itertools.count()
    monkeypatch.setattr("tqdm.std.time", lambda: float(next(ticks)))


def test_a_log_gets_a_line_now_and_then(monkeypatch, clock):
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    with progress.bar("steps", 40, known=10) as bar:
        for _ in range(30):
            bar.update()
    lines = log.getvalue().splitlines()
    assert 3 <= len(lines) <= 12 and "\r" not in log.getvalue()
    assert all(line.startswith("steps: ") and " of 40 points, " in line for line in lines)
    assert lines[-1].startswith("steps: 40 of 40 points")


def test_a_log_shows_that_a_slow_point_still_runs(monkeypatch, clock):
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    with progress.bar("steps", 40) as bar:
        bar.update()
        for _ in range(30):
            bar.update(0)
        lines = log.getvalue().splitlines()
    assert 3 <= len(lines) <= 12 and all(line.startswith("steps: 1 of 40 points, ") for line in lines)


def test_a_screen_gets_one_line_that_is_redrawn(monkeypatch, clock):
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    with progress.bar("steps", 3) as bar:
        for _ in range(3):
            bar.update()
    assert screen.getvalue().count("\r") >= 3 and screen.getvalue().count("\n") == 1
    assert "100%" in screen.getvalue() and "3/3" in screen.getvalue()


@pytest.mark.parametrize("stream", [io.StringIO, Screen])
def test_a_short_sweep_and_one_without_progress_say_nothing(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", said := stream())
    with ThreadPoolExecutor(1) as threads:
        sweep(steps, GRID, threads)
        sweep(steps, GRID, threads, progress=False)
    assert said.getvalue() == ""
