"""Pictures side by side, and how long they take. (The image labs.)"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from ..diffusion import Latency
from .palette import colour, new_figure, styled


def gallery(pictures: Mapping[str, np.ndarray], columns: int = 3) -> list[Axes]:
    """Pictures by title, in rows of `columns`, each an array of height x width x 3 from 0 to 255."""
    rows = -(-len(pictures) // columns)
    figure = new_figure(rows * (4.8 / columns + 0.35))
    with styled():
        places = figure.subplots(rows, columns, squeeze=False).ravel()
        for ax in places:
            ax.axis("off")
        shown = list(zip(places, pictures.items(), strict=False))
        for ax, (title, pixels) in shown:
            ax.imshow(pixels, interpolation="nearest")
            ax.set_title(title, fontsize=10, fontweight="normal")
    return [ax for ax, _ in shown]


def apart(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Where two pictures differ, as a picture: black where they agree, ten times the difference elsewhere."""
    return np.clip(10 * np.abs(one.astype(int) - other.astype(int)), 0, 255).astype(np.uint8)


def picture_times(
    predicted: Mapping[str, Latency],
    known: Mapping[str, Mapping[int, float]],
    measured: Mapping[str, Mapping[int, float]],
) -> Axes:
    """Seconds for a picture against its steps, a line for each size.

    predicted: the lines, by size; known: the points that they were fitted to; measured: those that came afterwards,
    {size: {steps: seconds}}.
    """
    figure = new_figure(3.4)
    most = max(steps for points in (*known.values(), *measured.values()) for steps in points)
    with styled():
        ax = figure.subplots()
        for (size, line), stroke, dash in zip(
            predicted.items(), ("blue-line", "orange-line", "ink"), ("-", "--", ":"), strict=False
        ):
            ax.plot([0, most], [line.seconds(0), line.seconds(most)], color=colour(stroke), ls=dash)
            ax.annotate(size.replace("x", " × "), (most, line.seconds(most)), (4, 0), textcoords="offset points",
                        va="center", fontsize=10)  # fmt: skip
            for points, marker, filled in ((known.get(size, {}), "o", False), (measured.get(size, {}), "D", True)):
                ax.plot(list(points), list(points.values()), marker, color=colour(stroke), ms=7, clip_on=False,
                        markerfacecolor=colour(stroke if filled else "paper"))  # fmt: skip
        ax.plot([], [], "o", color=colour("ink"), markerfacecolor=colour("paper"), label="measured, line fitted to it")
        ax.plot([], [], "D", color=colour("ink"), label="measured afterwards")
        ax.set(xlabel="steps", ylabel="seconds for a picture", xlim=(0, None), ylim=(0, None))
        ax.grid(axis="y")
        ax.legend(loc="upper left")
    return ax
