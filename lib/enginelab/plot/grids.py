"""Number formats as rulers: which values each of them can say. (The primer on quantization.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from .palette import colour, new_figure, styled


def rulers(formats: Mapping[str, Sequence[float]]) -> Axes:
    """One line for each format with a stroke at each value from zero up, as a share of its largest.

    Shows that whole numbers lie at equal distances, and floating-point numbers closer together towards zero.
    """
    figure = new_figure(0.8 + 0.55 * len(formats))
    with styled():
        ax = figure.subplots()
        for row, values in enumerate(formats.values()):
            largest = max(values)
            ax.vlines([value / largest for value in values], row - 0.28, row + 0.28, color=colour("blue-line"),
                      linewidth=2 if len(values) < 20 else 0.9)  # fmt: skip
            ax.hlines(row, 0, 1, color=colour("muted"), linewidth=0.8)
        names = [f"{name}\n{len(values)} values" for name, values in formats.items()]
        ax.set_yticks(range(len(formats)), names)
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.set(xlim=(-0.01, 1.01), ylim=(len(formats) - 0.5, -0.5), xlabel="share of the largest value")
    return ax
