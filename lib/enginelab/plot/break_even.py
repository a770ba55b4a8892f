"""Charts of promises: which fleet keeps them, what they cost, and where a router pays. (Chapter 7.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from ..autoscaling import Day
from .palette import colour, new_figure, styled

# Each kind of line has dashes and a mark of its own, so that none needs its colour.
KINDS = (("ink", "-", "o"), ("blue-line", "--", "s"), ("orange-line", "-.", "D"), ("muted", ":", "^"))


def attained(
    rates: Sequence[float], panels: Mapping[str, Mapping[str, Sequence[float]]], promised: float = 0.9
) -> tuple[Axes, ...]:
    """Share of the requests that met their limits, against the rate; one line a fleet, one panel a promise.

    Shows which fleet keeps which promise to what rate: where its line falls below the one at `promised`.
    """
    figure = new_figure(0.9 + 2.1 * len(panels))
    with styled():
        axes = figure.subplots(len(panels), sharex=True, squeeze=False)[:, 0]
        for ax, (title, fleets) in zip(axes, panels.items(), strict=True):
            ax.axhline(promised, color=colour("muted"), linewidth=1)
            for (name, shares), (line, dashes, mark) in zip(fleets.items(), cycle(KINDS), strict=False):
                ax.plot(rates, shares, dashes, marker=mark, color=colour(line), label=name)
            ax.set_title(title)
            ax.set_ylim(-0.05, 1.1)
            ax.yaxis.set_major_formatter(PercentFormatter(1))
            ax.set_yticks([0, 0.5, promised])
            ax.grid(True, axis="x")
        axes[-1].set_xlabel("requests per second")
        axes[-1].set_xticks(rates[::2])
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=len(names))
    return tuple(axes)


def price_of_a_promise(fleets: Mapping[str, Sequence[Day]]) -> Axes:
    """Share of the requests within the SLA against GPU-hours; one line a kind of fleet, one mark a setting of it.

    Shows what the same promise costs each kind: the line further left pays less for it.
    """
    figure = new_figure(3.6)
    with styled():
        ax = figure.subplots()
        for (name, days), (line, dashes, mark) in zip(fleets.items(), cycle(KINDS), strict=False):
            pairs = sorted((each.gpu_hours, each.attained) for each in days)
            ax.plot(*zip(*pairs, strict=True), dashes, marker=mark, color=colour(line), label=name)
        ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        ax.set(xlabel="GPU-hours of the day")
        ax.set_title("Requests within the SLA")
        ax.grid(True)
        figure.legend(loc="outside lower center", ncols=2)
    return ax


def break_even_map(shares: Sequence[float], plain: Sequence[float], aware: Sequence[float]) -> Axes:
    """The map of where a KV-aware router pays: the rate up to which a fleet keeps its SLA with it and without it.

    `shares` of the prompt tokens that lie in a shared prefix, 0 … 1, increasing; `plain` and `aware` requests/s at
    each. Below both lines any router will do; between them only the KV-aware one; above, the fleet is too small.
    """
    top = 1.12 * max(*plain, *aware)
    figure = new_figure(4.2)
    with styled():
        ax = figure.subplots()
        ax.fill_between(shares, 0, plain, color=colour("blue"), linewidth=0)
        ax.fill_between(shares, plain, aware, facecolor=colour("green"), hatch="..", edgecolor=colour("muted"),
                        linewidth=0)  # fmt: skip
        for values, (line, dashes, mark), name in zip(
            (plain, aware), KINDS, ("round robin keeps up", "KV-aware keeps up"), strict=False
        ):
            ax.plot(shares, values, dashes, marker=mark, color=colour(line), label=name)
        widest = max(range(len(shares)), key=lambda index: aware[index] - plain[index])
        last = shares[widest]
        middle = shares[0] + 0.42 * (shares[-1] - shares[0])
        for x, y, words, fill, side in (
            (middle, 0.4 * min(plain), "any router will do", "blue", "center"),
            (middle, 0.8 * top, "neither: add workers", "paper", "center"),
            (last - 0.01, (plain[widest] + aware[widest]) / 2, "only KV-aware", "green", "right"),
        ):
            ax.text(x, y, words, ha=side, va="center", bbox={"facecolor": colour(fill), "edgecolor": "none", "pad": 2})
        ax.set(xlim=(shares[0], shares[-1]), ylim=(0, top), xlabel="share of the prompt in a shared prefix")
        ax.set_title("Requests per second")
        ax.xaxis.set_major_formatter(PercentFormatter(1))
        figure.legend(loc="outside lower center", ncols=2)
    return ax
