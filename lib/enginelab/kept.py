"""Results of one function that outlive the process: a JSON-lines file that only grows. (For `sweep`.)"""

from __future__ import annotations

import fcntl
import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BEGINNING = b'{"function": '


@contextmanager
def kept(
    path: str | Path | None, function: Callable, points: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[dict[int, Any], Callable[[int, Any], Any]]]:
    """Yield what is known already, index of the point -> value, and a function that writes one more value.

    path: the file, made if it is not there; None keeps nothing. function: found in a module by its name.
    points: the parameters of each point. `write(index, value)` returns the value as JSON gives it back.

    A row counts for the same function, the same parameters and the same code: that of the function's module and of this
    package. A last line without its end, from a process that was killed, is taken away.
    Raises `ValueError` if the file holds something else or another sweep has it open, if the function cannot be found
    by its name, or if JSON cannot hold a parameter or a value.
    """
    if path is None:
        yield {}, lambda index, value: value
        return
    head = {"function": _name(function), "code": _code(function)}
    points = [_plain(f"the parameters of point {index}", point) for index, point in enumerate(points)]
    with open(path, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"keep: another sweep is writing to {Path(path).name}; wait for it, or name another file"
            ) from None
        whole, half = _split(Path(path))
        if half:
            file.truncate(len(whole))
        rows = _rows(Path(path).name, whole, head)
        keys = (_key(point) for point in points)

        def write(index: int, value: Any) -> Any:
            value = _plain(f"the value at {_key(points[index]):.80}", value)
            file.write(json.dumps(head | {"parameters": points[index], "value": value}).encode() + b"\n")
            file.flush()
            return value

        yield {index: rows[key] for index, key in enumerate(keys) if key in rows}, write


def _split(path: Path) -> tuple[bytes, bytes]:
    """The file's whole lines, and what follows them if a sweep could have begun it."""
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    half = content[end:]
    if half[: len(BEGINNING)] != BEGINNING[: len(half)]:
        raise ValueError(f"keep: {path.name} does not end in a row of a sweep: name another file")
    return content[:end], half


def _rows(name: str, content: bytes, head: Mapping[str, str]) -> dict[str, Any]:
    """Parameters as text -> value, of the rows with this head."""
    rows = {}
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            row = json.loads(line)
            if {key: row[key] for key in head} == head:
                rows[_key(row["parameters"])] = row["value"]
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"keep: {name}, line {number}, is not a row of a sweep: name another file") from None
    return rows


def _plain(what: str, value: Any) -> Any:
    """`value` as JSON gives it back."""
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"keep cannot hold {what}, a {type(value).__name__} that is not plain JSON ({error})"
        ) from None


def _key(parameters: Mapping[str, Any]) -> str:
    return json.dumps(parameters, sort_keys=True)


def _name(function: Callable) -> str:
    """module.name, if that leads back to this very function: what else is called so could be anything."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    found: Any = sys.modules.get(module or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not function:
        raise ValueError(f"keep needs a function defined at the top of a module, not {function!r:.80}")
    return f"{module}.{name}"


def _code(function: Callable) -> str:
    """Sixteen hex digits over the source of the function's module and of this package."""
    try:
        own = Path(sys.modules[function.__module__].__file__).read_bytes()
    except (AttributeError, TypeError, OSError):
        try:
            own = inspect.getsource(function).encode()
        except (TypeError, OSError):
            raise ValueError(f"keep cannot see the source of {function!r:.80}: define it in a file") from None
    digest = hashlib.sha256(own)
    package = Path(__file__).parent
    for source in sorted(package.rglob("*.py")):
        digest.update(f"\n{source.relative_to(package).as_posix()}\n".encode() + source.read_bytes())
    return digest.hexdigest()[:16]
