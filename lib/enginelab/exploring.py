"""A figure that answers: what its reader can set, and what comes back. (The live figures; `explorations` holds them.)

An exploration is plain data and one function, so that the same one serves the built page (a still picture), the
reader's browser, and a notebook with a live kernel. What a reader types is untrusted: `read` turns it into numbers
within bounds, or says in a sentence what is wrong with which control.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


class Complaint(ValueError):
    """A setting that cannot be used: `control` is its name, the message a sentence for the reader."""

    def __init__(self, control: str, sentence: str):
        super().__init__(sentence)
        self.control = control


@dataclass(frozen=True)
class Number:
    """A number that the reader sets; whole if `step` is."""

    name: str
    label: str
    default: float
    minimum: float
    maximum: float
    step: float = 1
    unit: str = ""

    def read(self, text: str) -> float:
        """The number that `text` says. Raises `Complaint`."""
        return _number(self, text.strip())

    def write(self, value: float) -> str:
        """The text that `read` takes back."""
        return f"{value:g}" if abs(value) < 1e6 or value != int(value) else str(int(value))


@dataclass(frozen=True)
class Numbers:
    """A list of numbers, typed with commas between them: at least one, at most `at_most`; whole if `step` is."""

    name: str
    label: str
    default: tuple[float, ...]
    minimum: float
    maximum: float
    at_most: int
    step: float = 1
    unit: str = ""
    optional: bool = False

    def read(self, text: str) -> tuple[float, ...]:
        """The numbers that `text` says. Raises `Complaint`."""
        parts = text.replace(",", " ").replace(";", " ").split()
        if not parts and not self.optional:
            raise Complaint(self.name, f"{self.label}: type a number, or several: {self.write(self.default)}.")
        if len(parts) > self.at_most:
            raise Complaint(self.name, f"{self.label}: at most {self.at_most} numbers, and here are {len(parts):,}.")
        return tuple(_number(self, part) for part in parts)

    def write(self, value: Sequence[float]) -> str:
        """The text that `read` takes back."""
        return ", ".join(f"{number:g}" for number in value)


@dataclass(frozen=True)
class Choice:
    """One of a few: `options` are pairs of a value, as it stands in an address, and the words that the reader sees."""

    name: str
    label: str
    default: str
    options: tuple[tuple[str, str], ...]

    def read(self, text: str) -> str:
        """The value chosen. Raises `Complaint`."""
        if text not in dict(self.options):
            raise Complaint(self.name, f"{self.label}: choose one of {', '.join(value for value, _ in self.options)}.")
        return text

    def write(self, value: str) -> str:
        """The text that `read` takes back."""
        return value


Control = Number | Numbers | Choice


# Not all that `float` takes, which a browser would read otherwise: "1_000", "nan", digits of other scripts.
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
THOUSANDS = re.compile(r",(?=\d{3}(?!\d))", re.ASCII)


def number_of(text: str) -> float:
    """The number that somebody typed, as in "1,000", "-2.5" or "1e3"; NaN for anything else."""
    plain = THOUSANDS.sub("", text.strip())
    return float(plain) + 0.0 if NUMBER.fullmatch(plain) else math.nan  # "-0" is 0


def _number(control: Number | Numbers, text: str) -> float:
    """What a reader typed, within the control's bounds."""
    shown = text if len(text) <= 20 else text[:20] + "…"
    value, whole = number_of(text), control.step == int(control.step)
    if math.isnan(value):
        raise Complaint(control.name, f"{control.label}: “{shown}” is not a number.")
    if not control.minimum <= value <= control.maximum:
        between = f"between {control.minimum:,g} and {control.maximum:,g}"
        unit = f" {control.unit}" if control.unit else ""
        raise Complaint(control.name, f"{control.label}: choose a number {between}{unit}; {shown} is not.")
    if whole and value % 1:
        raise Complaint(control.name, f"{control.label}: “{shown}” is not a whole number.")
    return int(value) if whole else value


# --- what comes back ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Span:
    """A bar from `start` to `end` in row `row` (from 0, counted from above). `look` is one of `LOOKS`."""

    row: int
    start: float
    end: float
    label: str = ""
    look: str = "blue"


@dataclass(frozen=True)
class Mark:
    """A line across the chart at `at` on the x axis, and what it says."""

    at: float
    label: str


@dataclass(frozen=True)
class Spans:
    """A timeline: rows from above, each with bars. `key` says what each look means, in the order of the legend."""

    title: str
    rows: tuple[str, ...]
    spans: tuple[Span, ...]
    x_label: str
    x_end: float
    key: Mapping[str, str] = field(default_factory=dict)
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class Line:
    """One curve; `stepped` holds each value until the next x. Lines differ in dashes as well as in colour."""

    label: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    stepped: bool = False


@dataclass(frozen=True)
class Lines:
    """Curves over one x axis, and where the reader stands: `here` is a point (x, y) with a dot, or None."""

    title: str
    lines: tuple[Line, ...]
    x_label: str
    y_label: str
    log_x: bool = False
    log_y: bool = False
    marks: tuple[Mark, ...] = ()
    here: tuple[float, float] | None = None


@dataclass(frozen=True)
class Series:
    """One value for each category. `look` is one of `LOOKS`."""

    label: str
    values: tuple[float, ...]
    look: str = "blue"


@dataclass(frozen=True)
class Bars:
    """Horizontal bars, a category a row; several series are stacked. `limit` is a line that they should not cross."""

    title: str
    categories: tuple[str, ...]
    series: tuple[Series, ...]
    x_label: str
    limit: Mark | None = None


Chart = Spans | Lines | Bars

LOOKS = ("blue", "orange", "green", "paper", "idle")
"""Fills of bars: palette colours, and the hatched `idle`. An edge, a hatch or a label tells each apart as well."""


@dataclass(frozen=True)
class Picture:
    """What an exploration answers.

    words   one to three sentences that say the result, for the page and for a screen reader
    charts  the same as pictures, from above to below
    answer  the number that a guess is compared with, if the exploration asks for one
    header, rows  a table of texts, if one helps
    """

    words: str
    charts: tuple[Chart, ...]
    answer: float | None = None
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Guess:
    """What the reader is asked before the answer to new settings shows: a question that a number answers."""

    question: str
    unit: str


@dataclass(frozen=True)
class Exploration:
    """One live figure: `explore` takes the controls' values by name and returns a `Picture`."""

    title: str
    controls: tuple[Control, ...]
    explore: Callable[..., Picture]
    guess: Guess | None = None

    def __post_init__(self):
        names = [control.name for control in self.controls]
        if len(set(names)) < len(names) or not all(name.isidentifier() for name in names):
            raise ValueError(f"the controls of {self.title!r} need names that are identifiers and differ: {names}")

    def read(self, settings: Mapping[str, str]) -> dict[str, object]:
        """The values of all controls from texts by name; what is not given has its default. Raises `Complaint`."""
        return {
            control.name: control.read(settings[control.name]) if control.name in settings else control.default
            for control in self.controls
        }

    def __call__(self, settings: Mapping[str, str] | None = None) -> Picture:
        """The answer to `settings`, texts by name. Raises `Complaint`, also for what `explore` finds impossible."""
        return self.explore(**self.read(settings or {}))
