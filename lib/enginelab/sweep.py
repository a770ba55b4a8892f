"""Run one function at every point of a parameter grid: here, or on a cluster. (For studies of your own.)

How many slots does the lesson's load need?

>>> from enginelab import batching
>>> from enginelab.sweep import sweep
>>> grid = {"lengths": [[2, 8, 3, 5, 3, 4]], "slots": [1, 2, 4]}
>>> rows = sweep(batching.continuous, grid)
>>> [(row.parameters["slots"], row.value.steps) for row in rows]
[(1, 25), (2, 14), (4, 8)]

That ran in one process for each core. In a script, call it under `if __name__ == "__main__":`, because a worker process
imports the script. In a notebook, write the function into a module: a worker cannot see the notebook's cells.

When one machine is too small, pass any other `concurrent.futures.Executor`. Dask has one: `Client()` starts workers on
this machine, `Client("tcp://address:8786")` joins a cluster, where this package must be installed too. (Ray had none of
its own in March 2026: its issue 29456 was open.)

>>> from distributed import Client
>>> with Client(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
...     there = sweep(batching.continuous, grid, client.get_executor())
>>> [row.value.steps for row in there]
[25, 14, 8]

With `keep`, a sweep that was interrupted goes on where it was. What is kept is JSON, so the function returns numbers,
text, lists or dicts:

    sweep(study.steps, grid, keep="steps.jsonl")
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice, product
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from .kept import kept
from .progress import bar

REFRESH = 1.0  # seconds between two looks at the clock while no point is done
FRUITLESS = 3  # so many pools in a row may break before they have computed anything


class Row(NamedTuple):
    """One point of the grid, and what the function returned there."""

    parameters: dict[str, Any]
    value: Any


class Failure(NamedTuple):
    """One point of the grid that failed: the error in a line, and the worker's traceback if there is one."""

    parameters: dict[str, Any]
    error: str
    traceback: str


class SweepError(RuntimeError):
    """Some points failed: `failures` has them, `rows` has all the others, both in grid order."""

    def __init__(self, rows: Sequence[Row], failures: Sequence[Failure]):
        self.rows, self.failures = tuple(rows), tuple(failures)
        super().__init__(
            f"{len(failures)} of {len(rows) + len(failures)} points failed, and the rows of the others are in .rows; "
            f"the first is {_named(failures[0].parameters)}: {failures[0].error}"
        )


def sweep(
    function: Callable[..., Any],
    grid: Mapping[str, Iterable] | Iterable[Mapping[str, Any]],
    executor: Executor | None = None,
    *,
    keep: str | Path | None = None,
    progress: bool = True,
) -> list[Row]:
    """Return a `Row` for each point of `grid`, in its order: the parameters, and `function(**parameters)`.

    grid: name -> values, for every combination, the last name varying fastest; or the points themselves, as dicts.
    executor: where to run; it is left open. Default: one new process for each core (start method spawn).
    keep: a JSON-lines file that gets each row as soon as it is there; the next call takes from it what it has. Then
        values are as JSON gives them back: a tuple becomes a list. A row counts for the same function, parameters and
        code, that is the function's module and this package; whatever else the function calls is not watched, so after
        a change there begin a new file. Failed points are not kept.
    progress: a bar on standard error, or a line every few seconds where that is no screen; nothing for a short sweep.

    A point that fails does not stop the others; one that kills its process takes along only what runs at that moment.
    Ctrl-C drops the points that have not begun, waits for those that run, keeps their rows and raises
    `KeyboardInterrupt`; a second Ctrl-C drops those too.

    Raises `SweepError` at the end if points failed, and `ValueError`, naming the argument, for a grid without points, a
    function that the workers cannot find, or parameters and values that `keep` cannot hold.
    """
    if not callable(function):
        raise ValueError(f"function must be something to call, not {function!r:.80}")
    if not isinstance(executor, Executor | None):
        raise ValueError(f"executor must be a concurrent.futures.Executor, not {executor!r:.80}")
    points = _points(grid)
    if executor is None:
        _complain_about_reach(function)
    failures: dict[int, Failure] = {}
    with (
        kept(keep, function, points) as (values, write),
        bar(getattr(function, "__name__", "sweep"), len(points), len(values), progress) as shown,
    ):

        def take(index: int, future: Future) -> None:
            good, result = _outcome(future)
            if good:
                values[index] = write(index, result)
            else:
                failures[index] = Failure(points[index], *result)
                shown.set_postfix(failed=len(failures), refresh=False)
            shown.update()

        fruitless = 0
        while todo := [index for index in range(len(points)) if index not in values and index not in failures]:
            before = len(values)
            with _workers(executor, len(todo)) as (pool, at_once):
                _drive(pool, at_once, todo, lambda index: (_call, function, points[index]), take, shown)
            # A point that kills its process breaks the whole pool: the points that had not begun get a new one.
            fruitless = 0 if len(values) > before else fruitless + 1
            if executor is not None or fruitless == FRUITLESS:
                break
    for index in todo:
        if index not in values and index not in failures:
            failures[index] = Failure(points[index], "not run, because the worker processes had died", "")
    rows = [Row(point, values[index]) for index, point in enumerate(points) if index in values]
    if failures:
        raise SweepError(rows, [failures[index] for index in sorted(failures)])
    return rows


def _drive(pool, at_once, todo, work, take, shown) -> None:
    """Submit all of `todo`, `at_once` at a time, and `take` each when it is done; a pool that breaks gets no more."""
    done: SimpleQueue[Future] = SimpleQueue()
    running: dict[Future, int] = {}
    coming = iter(todo)

    def submit(count: int) -> None:
        for index in islice(coming, count):
            try:
                future = pool.submit(*work(index))
            except BrokenExecutor:
                return
            running[future] = index
            future.add_done_callback(done.put)

    try:
        submit(at_once)
        while running:
            try:
                future = done.get(timeout=REFRESH)
            except Empty:
                shown.update(0)
                continue
            take(running[future], future)
            del running[future]
            submit(1)
    except BaseException as error:
        begun = [future for future in running if not future.cancel()]
        if isinstance(error, KeyboardInterrupt):
            shown.set_description_str(f"interrupted: {len(begun)} points still run, Ctrl-C again to drop them")
            for future in wait(begun).done:
                take(running[future], future)
        raise


def _call(function: Callable, parameters: dict) -> tuple[bool, Any]:
    """In the worker: (True, value) or (False, (error, traceback)), since not every exception survives the way back."""
    try:
        return True, function(**parameters)
    except (Exception, SystemExit) as error:
        return False, (_line(error), traceback.format_exc())


def _outcome(future: Future) -> tuple[bool, Any]:
    """What `_call` returned, or in the same form what went wrong on the way."""
    try:
        return future.result()
    except BrokenExecutor:
        what = "its worker process, or one beside it, died: killed, out of memory, or a script without a __main__ guard"
        return False, (what, "")
    except (Exception, SystemExit) as error:
        return False, (_line(error), "".join(traceback.format_exception(error)))


def _points(grid) -> list[dict[str, Any]]:
    """The points of a grid, or a `ValueError` that names what is wrong with it."""
    if isinstance(grid, Mapping):
        axes = {name: _axis(name, values) for name, values in grid.items()}
        points = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())] if axes else []
    elif isinstance(grid, str | bytes) or not isinstance(grid, Iterable):
        raise ValueError(f"grid must map names to lists of values, or list points as dicts, not {grid!r:.80}")
    else:
        points = list(grid)
        for index, point in enumerate(points):
            if not isinstance(point, Mapping):
                raise ValueError(f"grid[{index}] must be a dict of parameters, not {point!r:.80}")
        points = [dict(point) for point in points]
    for name in (name for point in points for name in point):
        if not isinstance(name, str):
            raise ValueError(f"grid must name its parameters with text, not {name!r:.80}")
    if not points:
        raise ValueError("grid must have at least one point: it is empty")
    return points


def _axis(name, values) -> list:
    if isinstance(values, str | bytes | Mapping | set | frozenset) or not isinstance(values, Iterable):
        raise ValueError(f"grid[{name!r}] must be a list of values, not {values!r:.80}: write [{values!r:.80}] for one")
    if not (values := list(values)):
        raise ValueError(f"grid[{name!r}] must have at least one value: it is empty")
    return values


def _complain_about_reach(function: Callable) -> None:
    """Raise `ValueError` if a new process could not find `function`."""
    try:
        pickle.dumps(function)
        here = getattr(function, "__module__", "") == "__main__" and not hasattr(sys.modules["__main__"], "__file__")
    except Exception:
        here = True
    if here:
        raise ValueError(
            f"function must be one that another process can import, not {function!r:.80}: "
            "define it at the top of a module, or pass an executor of threads."
        )


@contextmanager
def _workers(executor: Executor | None, points: int) -> Iterator[tuple[Executor, int]]:
    """An executor, and how many points to give it at once."""
    if executor is not None:
        yield executor, points
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = min(cores, points)
    context = multiprocessing.get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    # A pool takes up more calls than it has workers, and those can no longer be cancelled: give it what it can run.
    with theirs, ours, ProcessPoolExecutor(workers, context, _live_with_parent, (theirs,)) as pool:
        try:
            yield pool, workers
        except BaseException:
            ours.close()
            raise


def _live_with_parent(lifeline: Connection) -> None:
    """In the worker: leave interrupts, which reach it too, to the parent, and end at once when that lets go or dies."""
    signal.signal(signal.SIGINT, lambda *_: None)
    threading.Thread(target=_die_with, args=(lifeline,), daemon=True).start()


def _die_with(lifeline: Connection) -> None:
    lifeline.poll(None)
    os._exit(1)


def _line(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip()


def _named(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r:.40}" for name, value in parameters.items())
