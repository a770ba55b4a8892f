"""The still picture of a live figure: what `exploring` describes as data, drawn as every other figure. (All chapters.)

A page shows it before Python starts in the reader's browser, on paper, and where scripts are off; a notebook shows it
for each setting.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.textpath import TextPath
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator
from matplotlib.transforms import ScaledTranslation

from ..exploring import Bars, Chart, Lines, Mark, Picture, Spans
from .palette import WIDTH, colour, new_figure, styled


class _Fill(NamedTuple):
    """A look of `exploring.LOOKS`: a palette fill, or none, and the hatch that tells it from the others."""

    fill: str | None
    hatch: str | None = None


FILLS = {
    "blue": _Fill("blue"),
    "orange": _Fill("orange", ".."),
    "green": _Fill("green", r"\\\\"),
    "paper": _Fill("paper"),
    "idle": _Fill(None, "////"),
}
STROKES = (("blue-line", "-", "o"), ("orange-line", "--", "s"), ("ink", ":", "D"), ("muted", "-.", "^"))
CHARACTER = 0.085  # inches, a little more than the mean of a letter at 11 pt
ROW = 15  # points between the rows of words above the axes
MOST_DOTS = 24  # a curve with more points than this has a dot at every so many


def picture(picture: Picture) -> tuple[Axes, ...]:
    """The charts of an exploration's answer from above to below; `picture.words` is their alternative text.

    Shows what the live figure shows, without being touched. Raises `ValueError` if there is no chart to draw.
    """
    charts = picture.charts
    if not charts:
        raise ValueError("a picture needs at least one chart to be drawn")
    room = WIDTH - 0.2 - max(_margin(chart) for chart in charts)
    heads = [_Head(chart, room, above) for chart, above in zip(charts, (None, *charts), strict=False)]
    heights = [_height(chart) for chart in charts]
    figure = new_figure(sum(heights) + sum(head.points / 72 + 0.55 for head in heads))
    with styled():
        axes = figure.subplots(len(charts), squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
        for index, (ax, chart, head) in enumerate(zip(axes, charts, heads, strict=True)):
            {Spans: _spans, Lines: _lines, Bars: _bars}[type(chart)](ax, chart, room)
            head.draw(ax)
            below = charts[index + 1] if index + 1 < len(charts) else None
            # One name is enough for an axis that the next chart continues.
            if below is None or type(below) is not type(chart) or below.x_label != chart.x_label:
                ax.set_xlabel(chart.x_label)
    return tuple(axes)


def _height(chart: Chart) -> float:
    """Inches between the axes of a chart."""
    if isinstance(chart, Lines):
        return 1.9
    rows = len(chart.rows if isinstance(chart, Spans) else chart.categories)
    return max(0.5, min(0.42 * rows, 2.0 + 0.2 * rows))


def _margin(chart: Chart) -> float:
    """Inches to the left of the axes."""
    if isinstance(chart, Lines):
        return 0.8
    names = chart.rows if isinstance(chart, Spans) else chart.categories
    return CHARACTER * max(map(len, names), default=0)


# --- the words above the axes ---------------------------------------------------------------------------------------


class _Head:
    """Title, legend and the names of marks, one above the other, so that none covers what is drawn."""

    def __init__(self, chart: Chart, room: float, above: Chart | None):
        self.title = _wrapped(chart.title, room)
        self.marks = _marks(chart)
        self.handles = _legend(chart)
        if above and _meanings(self.handles) == _meanings(_legend(above)):
            self.handles = []  # said once, for both
        self.columns = _columns([handle.get_label() for handle in self.handles], room)
        self.levels = _levels(self.marks, _extent(chart), room)
        self.legend_at = 4 + ROW * (1 + max(self.levels, default=-1))
        self.title_at = self.legend_at + ROW * (-(-len(self.handles) // self.columns)) + (4 if self.handles else 0)
        self.points = self.title_at + ROW * len(self.title)

    def draw(self, ax: Axes) -> None:
        low, high = ax.get_xlim()
        for mark, level in zip(self.marks, self.levels, strict=True):
            ax.axvline(mark.at, color=colour("ink"), linewidth=1.2, linestyle=(0, (4, 2)))
            across = ax.transData.transform((mark.at, 1))[0] - ax.transData.transform((low, 1))[0]
            left = across < (ax.transData.transform((high, 1))[0] - ax.transData.transform((low, 1))[0]) / 2
            ax.annotate(
                mark.label,
                (mark.at, 1),
                xycoords=ax.get_xaxis_transform(),
                xytext=(3 if left else -3, 3 + ROW * level),
                textcoords="offset points",
                ha="left" if left else "right",
                fontsize=10,
                annotation_clip=False,
            )
            if level:
                stem = {"arrowstyle": "-", "color": colour("ink"), "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
                ax.annotate("", (mark.at, 1), (0, ROW * (level + 0.8)), xycoords=ax.get_xaxis_transform(),
                            textcoords="offset points", arrowprops=stem, annotation_clip=False)  # fmt: skip
        if self.handles:
            higher = ax.transAxes + ScaledTranslation(0, self.legend_at / 72, ax.figure.dpi_scale_trans)
            ax.legend(
                handles=self.handles,
                ncols=self.columns,
                loc="lower left",
                bbox_to_anchor=(0, 1),
                bbox_transform=higher,
                borderaxespad=0,
                borderpad=0,
                labelspacing=0.25,
                columnspacing=1.2,
                handlelength=2 if isinstance(self.handles[0], Line2D) else 1.4,
            )
        ax.set_title("\n".join(self.title), pad=self.title_at + 2)


def _wrapped(title: str, room: float) -> list[str]:
    """The title in lines that are no wider than `room`."""
    bold = FontProperties(weight="bold")
    for width in range(len(title), 12, -1):
        lines = wrap(title, width)
        if all(TextPath((0, 0), line, size=11, prop=bold).get_extents().width / 72 <= room for line in lines):
            return lines
    return wrap(title, 12)


def _marks(chart: Chart) -> tuple[Mark, ...]:
    if isinstance(chart, Bars):
        return (chart.limit,) if chart.limit else ()
    return chart.marks


def _extent(chart: Chart) -> tuple[float, float]:
    """Both ends of the x axis."""
    if isinstance(chart, Spans):
        return 0, chart.x_end
    if isinstance(chart, Bars):
        totals = [sum(values) for values in zip(*(series.values for series in chart.series), strict=True)]
        return 0, 1.04 * max([*totals, *(mark.at for mark in _marks(chart))], default=1) or 1
    places = [x for line in chart.lines for x in line.xs] + [mark.at for mark in chart.marks]
    if chart.here:
        places.append(chart.here[0])
    return min(places), max(places)


def _levels(marks: Sequence[Mark], extent: tuple[float, float], room: float) -> list[int]:
    """The row, from 0, in which each mark's words stand, so that no two meet."""
    low, high = extent
    places = [(mark.at - low) / (high - low) * room if high > low else 0 for mark in marks]
    widths = [CHARACTER * len(mark.label) + 0.1 for mark in marks]
    levels = [0] * len(marks)
    taken: list[list[tuple[float, float]]] = []
    # Words stand to the right of a mark in the left half and to the left of one in the right half. From the middle
    # outwards, the line down from a higher name passes no lower one.
    for index in sorted(range(len(marks)), key=lambda index: abs(places[index] - room / 2)):
        begin = places[index] if places[index] < room / 2 else places[index] - widths[index]
        end = begin + widths[index]
        free = (row for row, spans in enumerate(taken) if all(end <= b or e <= begin for b, e in spans))
        levels[index] = next(free, len(taken))
        if levels[index] == len(taken):
            taken.append([])
        taken[levels[index]].append((begin, end))
    return levels


def _legend(chart: Chart) -> list[Patch | Line2D]:
    if isinstance(chart, Spans):
        return [_patch(look, meaning) for look, meaning in chart.key.items()]
    if isinstance(chart, Bars):
        return [_patch(series.look, series.label) for series in chart.series] if len(chart.series) > 1 else []
    if len(chart.lines) == 1 and not chart.here:
        return []
    handles = [
        Line2D([], [], color=colour(stroke), linestyle=dashes, marker=dot, label=line.label)
        for line, (stroke, dashes, dot) in zip(chart.lines, _strokes(chart), strict=True)
    ]
    if chart.here:
        handles.append(Line2D([], [], **HERE, color=colour("ink"), label="your setting"))
    return handles


def _meanings(handles: Sequence[Patch | Line2D]) -> list[tuple[type, str]]:
    return [(type(handle), handle.get_label()) for handle in handles]


HERE = {"linestyle": "none", "marker": "*", "markersize": 15, "markeredgewidth": 1.2}


def _patch(look: str, label: str) -> Patch:
    fill, hatch = FILLS[look]
    face = colour(fill) if fill else "none"
    return Patch(facecolor=face, hatch=hatch, edgecolor=colour("ink" if fill else "muted"), label=label)


def _columns(labels: Sequence[str], room: float) -> int:
    """As many columns of a legend as have room beside each other."""
    for columns in range(len(labels), 1, -1):
        widest = [max(map(len, labels[column::columns])) for column in range(columns)]
        if sum(0.5 + CHARACTER * 0.92 * width for width in widest) <= room:
            return columns
    return 1


# --- the charts -----------------------------------------------------------------------------------------------------


def _number(value: float, _: int | None = None) -> str:
    return f"{value:,.10g}"


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _whole(values: Iterable[float]) -> bool:
    return all(value == int(value) for value in values)


def _box(ax: Axes, row: float, start: float, width: float, look: str, text: str, inches: float) -> None:
    """One bar of a row with words in it if they fit into `inches`."""
    fill, hatch = FILLS[look]
    ax.barh(row, width, left=start, height=0.8, color=colour(fill) if fill else "none", hatch=hatch,
            edgecolor=colour("ink" if fill else "muted"), linewidth=0.8 if fill else 0, clip_on=False,
            label=f"_{look}")  # fmt: skip
    if text and CHARACTER * len(text) <= inches:
        clear = {"facecolor": colour(fill or "paper"), "edgecolor": "none", "pad": 1} if hatch else None
        ax.text(start + width / 2, row, text, ha="center", va="center", bbox=clear)


def _rows(ax: Axes, names: Sequence[str]) -> None:
    ax.set_ylim(len(names) - 0.45, -0.55)
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def _spans(ax: Axes, chart: Spans, room: float) -> None:
    for span in chart.spans:
        width = span.end - span.start
        _box(ax, span.row, span.start, width, span.look, span.label, room * width / chart.x_end if chart.x_end else 0)
    ends = [end for span in chart.spans for end in (span.start, span.end)]
    ax.set_xlim(0, chart.x_end or 1)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=chart.x_end >= 4 or _whole(ends)))
    ax.xaxis.set_major_formatter(FuncFormatter(_number))
    _rows(ax, chart.rows)


def _bars(ax: Axes, chart: Bars, room: float) -> None:
    ax.set_xlim(*_extent(chart))
    below = [0.0] * len(chart.categories)
    for series in chart.series:
        for row, value in enumerate(series.values):
            if value:
                _box(ax, row, below[row], value, series.look, _rounded(value), room * value / ax.get_xlim()[1])
            below[row] += value
    ax.xaxis.set_major_locator(MaxNLocator(nbins=6))
    ax.xaxis.set_major_formatter(FuncFormatter(_number))
    _rows(ax, chart.categories)


def _strokes(chart: Lines) -> list[tuple[str, str, str]]:
    return [STROKES[index % len(STROKES)] for index in range(len(chart.lines))]


def _lines(ax: Axes, chart: Lines, room: float) -> None:
    for line, (stroke, dashes, dot) in zip(chart.lines, _strokes(chart), strict=True):
        ax.plot(
            line.xs,
            line.ys,
            dashes,
            marker=dot,
            markevery=1 + len(line.xs) // MOST_DOTS,
            color=colour(stroke),
            drawstyle="steps-post" if line.stepped else "default",
            clip_on=False,
            label=line.label,
        )
    if chart.here:
        ax.plot(*chart.here, **HERE, color=colour("ink"), markeredgecolor=colour("paper"), zorder=5, clip_on=False,
                label="_here")  # fmt: skip
    if chart.log_x:
        ax.set_xscale("log")
    else:
        ax.set_xlim(*_extent(chart))
    if chart.log_y:
        ax.set_yscale("log")
        low, high = ax.get_ylim()
        # Powers of ten alone would leave a small range with one number.
        ax.yaxis.set_major_locator(LogLocator(subs=(1,) if high > 100 * low else (1, 2, 5)))
    else:
        ys = [y for line in chart.lines for y in line.ys]
        ax.set_ylim(bottom=min(0, *ys))
        ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=_whole(ys)))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(_number))
    ax.minorticks_off()
    ax.set_ylabel(chart.y_label)
    ax.grid(True)
