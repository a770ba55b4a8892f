"""Diagrams: boxes and arrows from data. (Chapters 6 and 7.)"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from ..choosing import Answer, Question
from .palette import WIDTH, colour, new_figure, styled

# Inches; the figure's coordinates are inches too, so that type and boxes keep their proportion.
LINE, PADDING, MARGIN = 0.19, 0.12, 0.05
BETWEEN_COLUMNS, BETWEEN_ROWS = 0.8, 0.5
CHARACTER = 0.088


class Node(NamedTuple):
    """A box in a diagram.

    key          what edges name it by
    title, text  a bold line, and plain words below it
    column, row  its place, from 0
    fill         a fill of the palette
    rounded      round corners, for boxes of another kind than the rest
    """

    key: str
    title: str
    column: float
    row: int
    text: str = ""
    fill: str = "blue"
    rounded: bool = False


class Edge(NamedTuple):
    """An arrow between two boxes, named by their keys, and what it says."""

    start: str
    end: str
    label: str = ""


def graph(nodes: Sequence[Node], edges: Sequence[Edge]) -> Axes:
    """Boxes on a grid, joined by labelled arrows.

    Shows who talks to whom, and what passes between them. Columns count from 0 and may lie between two (0.5); rows
    count from 0 at the top, and are as high as their fullest box. Raises `ValueError` for an edge to an unknown box.
    """
    columns = max(node.column for node in nodes) + 1
    width = (WIDTH - 2 * MARGIN - BETWEEN_COLUMNS * (columns - 1)) / columns
    lines = {node.key: _wrapped(node, width) for node in nodes}
    heights = [
        max(len(lines[node.key]) for node in nodes if node.row == row) * LINE + 2 * PADDING
        for row in range(max(node.row for node in nodes) + 1)
    ]
    middles = [sum(heights[:row]) + row * BETWEEN_ROWS + heights[row] / 2 for row in range(len(heights))]
    total = sum(heights) + BETWEEN_ROWS * (len(heights) - 1)
    figure = new_figure(total + 2 * MARGIN, layout="none")
    with styled():
        ax = figure.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, WIDTH), ylim=(total + MARGIN, -MARGIN))
        ax.axis("off")
        boxes = {}
        for node in nodes:
            centre = (MARGIN + width / 2 + node.column * (width + BETWEEN_COLUMNS), middles[node.row])
            boxes[node.key] = _box(ax, node, lines[node.key], centre, width)
        for edge in edges:
            for end in (edge.start, edge.end):
                if end not in boxes:
                    raise ValueError(
                        f"edge {edge.start!r} to {edge.end!r} names no box {end!r}; there are {sorted(boxes)}"
                    )
            _arrow(ax, boxes[edge.start], boxes[edge.end], edge.label)
    return ax


def flowchart(tree: Question | Answer) -> Axes:
    """A decision tree: from each question, "yes" leads to the right and "no" leads down.

    Shows every answer and the questions on the way to it, from the same tree that the choosing function walks.
    """
    nodes, edges = [], []

    def place(part: Question | Answer, column: int, row: int) -> tuple[str, int]:
        key = f"{column}-{row}"
        if isinstance(part, Answer):
            nodes.append(Node(key, part.name, column, row, part.why, "green", rounded=True))
            return key, row + 1
        nodes.append(Node(key, part.text, column, row))
        yes, below = place(part.yes, column + 1, row)
        no, end = place(part.no, column, below)
        edges.extend((Edge(key, yes, "yes"), Edge(key, no, "no")))
        return key, end

    place(tree, 0, 0)
    return graph(nodes, edges)


def _wrapped(node: Node, width: float) -> list[tuple[str, str]]:
    """Lines of a box with their weight. One text object a line, because only single lines stay centred in any font."""
    fits = max(8, int((width - 0.1) / CHARACTER))
    return [
        (line, weight)
        for text, weight in ((node.title, "bold" if node.text else "normal"), (node.text, "normal"))
        for line in textwrap.wrap(text, fits - 2 * (weight == "bold"))
    ]


def _box(ax: Axes, node: Node, lines: list[tuple[str, str]], centre: tuple[float, float], width: float):
    x, y = centre
    height = len(lines) * LINE + 2 * PADDING
    shape = "round,pad=0,rounding_size=0.1" if node.rounded else "square,pad=0"
    box = FancyBboxPatch(
        (x - width / 2, y - height / 2),
        width,
        height,
        boxstyle=shape,
        facecolor=colour(node.fill),
        edgecolor=colour("ink"),
    )
    ax.add_patch(box)
    for number, (line, weight) in enumerate(lines):
        ax.text(x, y + (number - (len(lines) - 1) / 2) * LINE, line, ha="center", va="center", weight=weight)
    return box


def _arrow(ax: Axes, start: FancyBboxPatch, end: FancyBboxPatch, label: str) -> None:
    """Straight from one box to the other, leaving and entering at the sides that face each other."""
    (ax0, ay0, ax1, ay1), (bx0, by0, bx1, by1) = start.get_bbox().extents, end.get_bbox().extents
    beside = ay0 < by1 and by0 < ay1
    if beside:
        middle = (max(ay0, by0) + min(ay1, by1)) / 2
        tail, head = ((ax1, middle), (bx0, middle)) if ax1 <= bx0 else ((ax0, middle), (bx1, middle))
    else:
        # From above to below the x where both boxes are, or from one middle to the other where there is none.
        left, right = max(ax0, bx0), min(ax1, bx1)
        x_tail, x_head = ((left + right) / 2,) * 2 if left < right else ((ax0 + ax1) / 2, (bx0 + bx1) / 2)
        tail, head = ((x_tail, ay1), (x_head, by0)) if ay1 <= by0 else ((x_tail, ay0), (x_head, by1))
    ax.add_patch(
        FancyArrowPatch(tail, head, arrowstyle="-|>", mutation_scale=13, shrinkA=0, shrinkB=1, color=colour("ink"))
    )
    if label:
        x, y = (tail[0] + head[0]) / 2, (tail[1] + head[1]) / 2
        if beside:
            ax.text(x, y - 0.05, label, ha="center", va="bottom", fontsize=10)
        else:
            ax.text(x + 0.1, y, label, ha="left", va="center", fontsize=10)
