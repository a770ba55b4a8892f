"""What one run of a lab gave, as a small file that anyone can add. (`labs/results`, shown on each lab's page.)

    results.keep("01_vllm", source, predicted, measured, machine)      # at the end of a lab, in its own notebook

A file holds what `Record` names and nothing else. Every text in it has to match a pattern that leaves no room for a
path, a host, a user or a token, when it is written and when it is read: a file may come from anybody.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import date
from numbers import Real
from pathlib import Path

from .machines import Machine
from .needs import NEEDS
from .table import Table
from .trace import Summary, Trace, mape

LARGEST_FILE, MOST_NUMBERS, LARGEST_NUMBER = 20_000, 40, 1e12
LAB = re.compile(r"\d\d_[a-z0-9_]{1,40}")
# No slash, so no path; no long word and none of the usual beginnings, so no token; no dot between letters and no four
# numbers with dots, so no address; "@" only as in "@ 2.2GHz".
TEXT = re.compile(
    r"(?!.*[A-Za-z0-9]{25})(?!.*\b(?:(?:sk|nvapi|glpat)-|(?:hf|gh[a-z]|github_pat)_))(?!.*[A-Za-z]\.[A-Za-z])(?!.*\d\.\d+\.\d+\.\d)"
    r"(?:[A-Za-z0-9_ .,:+()%×=®™-]|@(?= ))+"
)
VERSION = re.compile(r"\d+(?:\.\d+){0,3}(?:(?:a|b|rc)\d+)?(?:\.post\d+)?(?:\.dev\d+)?(?:\+(?:cpu|cu\d{2,3}))?")
NAMES = sorted((row.engine for row in NEEDS), key=len, reverse=True)
ENGINE = re.compile(rf"({'|'.join(NAMES)}) v?({VERSION.pattern})")
BETWEEN = re.compile(r"(?:\s|,|and|with|over|behind)*")


@dataclass(frozen=True)
class Record:
    """One run of one lab.

    engines: version by engine; machine: as `Machine.describe` tells it; hardware: the same in few words; driver: of
    the GPU, "" without one; day: in the form 2026-12-01; predicted, measured: numbers by name, times in seconds;
    error: mean absolute percentage error by metric, as a fraction, where the lab compares request by request.

    Raises `ValueError` if anything is not of its form, naming it and never repeating it.
    """

    lab: str
    engines: Mapping[str, str]
    machine: str
    hardware: str
    driver: str
    python: str
    day: str
    predicted: Mapping[str, float]
    measured: Mapping[str, float]
    error: Mapping[str, float]

    def __post_init__(self):
        _matches("lab", self.lab, LAB)
        for name, most in (("machine", 400), ("hardware", 80)):
            _matches(name, getattr(self, name), TEXT, most)
        for name in ("driver", "python"):
            _matches(name, getattr(self, name) or "0", VERSION)
        try:
            if date.fromisoformat(self.day).isoformat() != self.day:
                raise ValueError
        except (TypeError, ValueError):
            raise ValueError("day must be a date like 2026-12-01") from None
        if not isinstance(self.engines, Mapping) or not 1 <= len(self.engines) <= len(NEEDS):
            raise ValueError("engines must give the version of at least one engine")
        for engine, version in self.engines.items():
            if engine not in NAMES:
                raise ValueError("engines must have names of the course's engines")
            _matches("engines", version, VERSION)
        for name in ("predicted", "measured", "error"):
            _numbers(name, getattr(self, name))

    @property
    def name(self) -> str:
        """The name of its file, made from lab, hardware and engines."""
        parts = (self.lab, self.hardware, " ".join(f"{engine} {version}" for engine, version in self.engines.items()))
        return "--".join(re.sub(r"[^a-z0-9._]+", "-", part.lower()).strip("-") for part in parts) + ".json"


def record(lab: str, source: str, predicted, measured, machine: Machine, day: date | None = None) -> Record:
    """One run of `lab` as a `Record`.

    source: the engine and its version, such as "vLLM 0.32.0", or several of them with commas.
    predicted, measured: each a `Trace`, or numbers by name. day: of the run, today if not given.

    Raises `ValueError` if something must not go into a file that others will read.
    """
    engines = dict(ENGINE.findall(source))
    if not engines or not BETWEEN.fullmatch(ENGINE.sub("", source)):
        raise ValueError('source must be engines with their versions and nothing else, such as "vLLM 0.32.0"')
    for name in (*_summary(predicted), *_summary(measured)):
        if _own_names() & set(re.split(r"[^a-z0-9-]+", name.lower())):
            raise ValueError("the names of the numbers must not hold the name of this machine or of its user")
    error = {}
    if isinstance(predicted, Trace) and isinstance(measured, Trace):
        for metric in ("ttft", "tpot", "e2e"):
            if any(value > 0 for value in getattr(measured, metric)):
                error[metric] = mape(measured, predicted, metric)
    return Record(
        lab=lab,
        engines=engines,
        machine=_plain(machine.describe()),
        hardware=_plain(_hardware(machine)),
        driver=machine.gpus[0].driver if machine.gpus and VERSION.fullmatch(machine.gpus[0].driver) else "",
        python=platform.python_version().rstrip("+"),
        day=(day or date.today()).isoformat(),
        predicted=_summary(predicted),
        measured=_summary(measured),
        error=error,
    )


def keep(lab: str, source: str, predicted, measured, machine: Machine, folder: str | Path = "results") -> Path:
    """Write one run of `lab`, as `record` takes it, into `folder`, and return its file.

    An earlier run on the same hardware with the same engines is replaced.
    """
    run = record(lab, source, predicted, measured, machine)
    path = Path(folder) / run.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(run), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def read(path: Path) -> Record:
    """The run in the file at `path`. Raises `ValueError` with a sentence that names the file if it holds no run."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ValueError(f"it is larger than {LARGEST_FILE} bytes")
        held = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_number)
        names = [field.name for field in fields(Record)]
        if not isinstance(held, dict) or sorted(held) != sorted(names):
            raise ValueError(f"it must hold {', '.join(names)} and nothing else")
        run = Record(**held)
        if run.name != path.name:
            raise ValueError(f"its name must be {run.name}")
    except RecursionError:
        raise ValueError(f"labs/results/{_plain(path.name)} is no record of a run: it is nested too deeply.") from None
    except (OSError, ValueError) as error:
        why = "it is not JSON" if isinstance(error, json.JSONDecodeError | UnicodeDecodeError) else error
        raise ValueError(f"labs/results/{_plain(path.name)} is no record of a run: {why}.") from None
    return run


def of_lab(lab: str, folder: Path) -> tuple[Record, ...]:
    """Every recorded run of `lab`, the newest first. Raises `ValueError` on the first file that holds none."""
    runs = [read(path) for path in sorted(folder.glob(f"{lab}--*.json"))]
    return tuple(sorted(runs, key=lambda run: run.day, reverse=True))


SHOWN = ("duration, s", "output tokens per s", "TTFT p50, s", "TPOT p50, s")


def table(runs: Iterable[Record]) -> Table:
    """Runs of one lab side by side: of each number what was predicted, then what was measured."""
    runs = tuple(runs)
    known = [name for run in runs for name in run.measured]
    names = [name for name in SHOWN if name in known] or list(dict.fromkeys(known))[:4]
    errors = any("e2e" in run.error for run in runs)
    rows = []
    for run in runs:
        engines = ", ".join(f"{engine} {version}" for engine, version in run.engines.items())
        numbers = [f"{_short(run.predicted.get(name))} / {_short(run.measured.get(name))}" for name in names]
        mean = [f"{run.error['e2e']:.0%}" if "e2e" in run.error else "–"] if errors else []
        rows.append((run.hardware, engines, run.day, *numbers, *mean))
    return Table(("Machine", "Engine", "Day", *names, *(["mean error of E2E"] if errors else [])), tuple(rows))


def _summary(run: Trace | Mapping[str, float]) -> dict[str, float]:
    if isinstance(run, Mapping):
        return {str(name): float(value) if _is_number(value) else value for name, value in run.items()}
    if not isinstance(run, Trace):
        raise ValueError("predicted and measured must each be a Trace, or numbers by name")
    summary: Summary = run.summary()
    numbers = {
        "requests": summary.requests,
        "duration, s": summary.duration,
        "requests per s": summary.request_throughput,
        "output tokens per s": summary.output_throughput,
    }
    for metric in ("ttft", "tpot", "e2e"):
        numbers |= {f"{metric.upper()} {part}, s": n for part, n in getattr(summary, metric)._asdict().items()}
    return {name: round(value, 6) for name, value in numbers.items() if math.isfinite(value)}


def _own_names() -> set[str]:
    user = os.environ.get("USER", ""), os.path.basename(os.path.expanduser("~"))
    return {name.lower() for name in (platform.node(), platform.node().partition(".")[0], *user) if name}


def _hardware(machine: Machine) -> str:
    if machine.gpus:
        return f"{len(machine.gpus)} x {machine.gpus[0].name}" if len(machine.gpus) > 1 else machine.gpus[0].name
    cpu = re.sub(r"\((?:R|TM)\)", "", machine.cpu)
    return f"{cpu}, {machine.cores} cores"


def _plain(text: str) -> str:
    """`text` with what a record must not hold turned into hyphens."""
    return re.sub(r"[^A-Za-z0-9_ .,:+()%×=®™@-]|@(?! )", "-", text)[:400]


def _matches(name: str, value, pattern: re.Pattern, most: int = 60) -> None:
    if not isinstance(value, str) or len(value) > most or not pattern.fullmatch(value):
        raise ValueError(f"{name} must be plain words and numbers, at most {most} characters")


def _numbers(name: str, values) -> None:
    if not isinstance(values, Mapping) or len(values) > MOST_NUMBERS:
        raise ValueError(f"{name} must be at most {MOST_NUMBERS} numbers by name")
    for key, value in values.items():
        _matches(f"a name in {name}", key, TEXT)
        if type(value) not in (int, float) or not abs(value) < LARGEST_NUMBER:
            raise ValueError(f"{name} must hold finite numbers")


def _is_number(value) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _no_number(text: str):
    raise ValueError("it holds a number that is not finite")


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"
