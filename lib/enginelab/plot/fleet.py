"""Charts of a fleet: where the router turns away, how GPUs are split, what a day costs. (Chapter 7.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ..autoscaling import Day
from ..disaggregation import Split
from .palette import colour, new_figure, styled

LOOKS = (("blue-line", "-", "o"), ("orange-line", "--", "s"), ("ink", ":", "D"), ("muted", "-.", "^"))


def router_flip(
    busy: Sequence[float],
    warm: Sequence[float],
    cold: Sequence[float],
    seen: Sequence[tuple[float, float]] = (),
) -> Axes:
    """What a request would cost on the worker that has its prefix and on one that has nothing, as the first fills up.

    Shows up to which load a warm cache is worth the wait. `busy` is the load on the warm worker at each point, in
    requests; `warm` and `cold` are the costs in KV blocks (`kvrouter.cost`). `seen` are loads and costs at which a real
    router placed a request; it chose well if they lie on the lower line.
    """
    figure = new_figure(3.4)
    turn = next((at for at, (a, b) in enumerate(zip(warm, cold, strict=True)) if b < a), None)
    with styled():
        ax = figure.subplots()
        for label, values, (line, dashes, marker) in (
            ("has the prefix", warm, LOOKS[0]),
            ("has nothing", cold, LOOKS[1]),
        ):
            ax.plot(busy, values, dashes, marker=marker, color=colour(line), label=label)
        if seen:
            look = dict(markersize=11, markerfacecolor="none", markeredgewidth=1.6, color=colour("ink"))
            ax.plot(*zip(*seen, strict=True), "o", label="where the real router sent it", **look)
        if turn is None:
            ax.set_title("The worker with the prefix is always cheaper")
        else:
            ax.axvline(busy[turn], color=colour("muted"), linewidth=1.2)
            ax.set_title(f"From {busy[turn]:g} requests on, the cold worker is cheaper")
        ax.set(xlabel="requests on the worker that has the prefix", ylabel="cost, blocks")
        ax.set_ylim(bottom=0)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.grid(True)
        ax.legend()
    return ax


def disaggregation(splits: Sequence[Split]) -> Axes:
    """Requests/s within both limits, for a fleet whose workers all do both and for every split into two pools.

    Shows whether any split beats the undivided fleet. `splits` is what `disaggregation.splits` returned.
    """
    figure = new_figure(1.2 + 0.5 * len(splits))
    best = max(splits, key=lambda split: split.goodput)
    with styled():
        ax = figure.subplots()
        for row, split in enumerate(splits):
            together = not split.prefill
            ax.barh(row, split.goodput, height=0.6, color=colour("blue" if together else "orange"),
                    hatch=None if together else "..", edgecolor=colour("ink"), linewidth=1.8 if split is best else 0.8,
                    clip_on=False, label=f"_split-{row}")  # fmt: skip
            ax.text(split.goodput, row, f" {split.goodput:.1f}", va="center", clip_on=False)
        names = [f"{s.prefill} prefill, {s.decode} decode" if s.prefill else "all do both" for s in splits]
        ax.set_yticks(range(len(splits)), names)
        ax.set(ylim=(len(splits) - 0.5, -0.5), xlabel="requests per second within both limits")
        ax.set_xlim(0, 1.12 * best.goodput or 1)
        ax.tick_params(axis="y", length=0)
        ax.set_title(f"Best: {names[splits.index(best)]}")
    return ax


def day(days: Mapping[str, Day], interval: float = 300.0) -> tuple[Axes, Axes, Axes]:
    """Several ways to run a fleet through the same traffic: the traffic, the GPUs' workers, and what it comes to.

    Shows what share of the requests each way serves within the SLA, for how many GPU-hours. `days` maps a name to what
    `autoscaling.over_a_day` returned; `interval` in seconds. At most four.
    """
    if not 1 <= len(days) <= len(LOOKS):
        raise ValueError(f"days must hold 1 to {len(LOOKS)} fleets, not {len(days)}")
    some = next(iter(days.values()))
    hours = [index * interval / 3600 for index in range(len(some.loads))]
    figure, handles = new_figure(7.2), []
    with styled():
        above, middle, below = figure.subplots(3, height_ratios=(1, 1.4, 1.4))
        above.plot(hours, [load.rate for load in some.loads], color=colour("ink"))
        above.set_title("Requests per second")
        above.set_ylim(bottom=0)
        for (name, each), (line, dashes, marker) in zip(days.items(), LOOKS, strict=False):
            workers = [pair.prefill + pair.decode for pair in each.workers]
            middle.step(hours, workers, dashes, where="post", color=colour(line), label=name)
            below.plot(each.gpu_hours, each.attained, marker, color=colour(line), markersize=8, label=f"_point-{name}")
            handles.append(Line2D([], [], linestyle=dashes, marker=marker, color=colour(line), label=name))
        middle.set_title("Workers that serve, prefill and decode together")
        middle.set(xlabel="hours")
        middle.set_ylim(bottom=0)
        middle.yaxis.set_major_locator(MaxNLocator(integer=True))
        below.set_title("Requests served within the SLA, against cost")
        below.set(xlabel="GPU-hours")
        below.margins(0.2)
        below.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        for ax in (above, middle, below):
            ax.grid(True)
        figure.legend(handles=handles, loc="outside upper center", ncols=2)
    return above, middle, below
