"""Dots: one number for each of several runs, predicted and measured. (The comparing and the tuning lab.)"""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes

from ..trace import Trace, percentile
from .palette import colour, new_figure, styled

PANELS = (
    ("Output tokens per second", lambda run: run.output_throughput),
    ("To the first token, median, seconds", lambda run: percentile(run.ttft, 50)),
    ("End to end, median, seconds", lambda run: percentile(run.e2e, 50)),
)


def dots(predicted: Mapping[str, float], measured: Mapping[str, float], title: str, ax: Axes | None = None) -> Axes:
    """A row for each name: what was predicted, what was measured, and between them the error as a line.

    Shows at once which rows differ and how far the predictions are off. Rows stand in the order of `predicted`; those
    that `measured` lacks have one mark.
    """
    if strangers := set(measured) - set(predicted):
        raise ValueError(f"measured has names that predicted has not: {', '.join(sorted(strangers))}")
    figure = new_figure(1.2 + 0.27 * len(predicted)) if ax is None else ax.figure
    rows = {name: row for row, name in enumerate(predicted)}
    both = [rows[name] for name in measured]
    with styled():
        alone = ax is None
        ax = ax or figure.subplots()
        ax.hlines(both, [predicted[name] for name in measured], list(measured.values()), color=colour("muted"))
        ax.plot(list(predicted.values()), list(rows.values()), linestyle="none", marker="D", markersize=6,
                markerfacecolor=colour("paper"), color=colour("orange-line"), label="predicted")  # fmt: skip
        ax.plot(
            list(measured.values()), both, linestyle="none", marker="o", color=colour("blue-line"), label="measured"
        )
        ax.set_yticks(range(len(rows)), list(rows))
        ax.set(ylim=(len(rows) - 0.5, -0.5))
        ax.set_xlim(left=0)
        ax.tick_params(axis="y", length=0)
        ax.grid(True, axis="x")
        if alone:  # long names leave too little room above the axes
            figure.suptitle(title, x=0, ha="left", fontsize=11, fontweight="bold")
            figure.legend(*ax.get_legend_handles_labels(), loc="outside lower right", ncols=2)
        else:
            ax.set_title(title)
    return ax


def engines(predicted: Mapping[str, Trace], measured: Mapping[str, Trace]) -> tuple[Axes, ...]:
    """The same load on several engines: throughput, time to the first token and end-to-end time of each.

    Shows how much the engines differ, and whether by more than the predictions are off.
    """
    figure = new_figure(1.2 + len(PANELS) * (0.5 + 0.3 * len(predicted)))
    with styled():
        axes = figure.subplots(len(PANELS))
    for ax, (title, number) in zip(axes, PANELS, strict=True):
        runs = ({name: number(run) for name, run in each.items()} for each in (predicted, measured))
        dots(*runs, title, ax)
    with styled():
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower right", ncols=2)
    return tuple(axes)
