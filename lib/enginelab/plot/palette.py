"""The colours and type of every figure. (All chapters.)

A figure is drawn in the light colours; where the site shows it, each is swapped for its dark partner when the reader
turns the page dark. Colour never carries meaning alone: bars have labels or hatches, lines have different dashes.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.figure import Figure


class Colour(NamedTuple):
    """One colour as `#rrggbb` on a light page and on a dark one."""

    light: str
    dark: str


# Text is `ink` on any fill, or `muted` on paper; lines and markers are strokes on paper.
PALETTE: Mapping[str, Colour] = MappingProxyType(
    {
        "ink": Colour("#1b2733", "#e4ebf2"),
        "muted": Colour("#51606f", "#a3b2c1"),
        "grid": Colour("#d6dde4", "#36424f"),
        "paper": Colour("#ffffff", "#12181f"),
        "blue": Colour("#bcdcf6", "#1d4a73"),
        "orange": Colour("#fbd8a5", "#6e4409"),
        "green": Colour("#c4e8c8", "#1c5330"),
        "blue-line": Colour("#0b62a8", "#6db7f5"),
        "orange-line": Colour("#a94a00", "#f2a65a"),
    }
)
FILLS = ("paper", "blue", "orange", "green")
STROKES = ("ink", "muted", "blue-line", "orange-line")

WIDTH = 4.8
"""Inches. A phone shows a figure this wide at three quarters of its size, which leaves 11 pt type readable."""


def colour(name: str) -> str:
    """The light value of a palette colour, `#rrggbb`."""
    return PALETTE[name].light


def new_figure(height: float, layout: str = "constrained") -> Figure:
    """An empty figure of the course's width, `height` inches high.

    To be made outside `styled()`: the first figure of a notebook loads its display, which changes settings for good,
    and a context around it would take them back.
    """
    figure = plt.figure(figsize=(WIDTH, height), layout=layout, facecolor=colour("paper"))
    if layout == "constrained":
        figure.get_layout_engine().set(h_pad=0.1)
    return figure


def styled() -> AbstractContextManager:
    """The course's matplotlib settings, for as long as the context lasts."""
    ink = colour("ink")
    return mpl.rc_context(
        {
            "font.size": 11,
            "axes.titlesize": 11,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.axisbelow": True,
            "axes.facecolor": colour("paper"),
            "legend.frameon": False,
            "lines.linewidth": 2,
            "hatch.linewidth": 0.8,
            "hatch.color": colour("muted"),
            "patch.edgecolor": ink,
            "grid.color": colour("grid"),
            **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 10),
            **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), ink),
        }
    )
