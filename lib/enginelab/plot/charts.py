"""Charts: schedules, bounds, runs, routing and planning as axes with numbers. (Chapters 2 and 7, every lab.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from .. import roofline as bounds
from ..batching import Schedule
from ..hardware import Gpu, Model
from ..planner import Replicas
from ..trace import Trace, mape
from .palette import colour, new_figure, styled


def slots(schedule: Schedule, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Who held which slot in which step; what stood idle is hatched.

    Shows where a batching policy loses its steps: idle stretches that end only when another request does.
    Requests are R1, R2 … in request order; those that had to wait for a slot have a heavier edge and another fill.
    """
    figure = new_figure(0.9 + 0.42 * schedule.slots) if ax is None else ax.figure
    with styled():
        ax = ax or figure.subplots()
        for slot, first, last in schedule.idle:
            ax.barh(slot, last - first + 1, left=first - 1, height=0.8, color="none", edgecolor=colour("muted"),
                    hatch="////", linewidth=0, label="_idle")  # fmt: skip
        for index, (run, arrival) in enumerate(zip(schedule.runs, schedule.arrivals, strict=True), start=1):
            waited = run.first_step - 1 > arrival
            ax.barh(
                run.slot,
                run.last_step - run.first_step + 1,
                left=run.first_step - 1,
                height=0.8,
                color=colour("orange" if waited else "blue"),
                edgecolor=colour("ink"),
                linewidth=1.8 if waited else 0.8,
                clip_on=False,
                label=f"_run-{index}",
            )
            ax.text((run.first_step - 1 + run.last_step) / 2, run.slot, f"R{index}", ha="center", va="center")
        ax.set(xlim=(0, schedule.steps), ylim=(schedule.slots + 0.6, 0.4), xlabel="steps done")
        ax.set_title(title or f"{schedule.steps} steps, {schedule.utilization:.0%} of the slot-steps useful")
        ax.set_yticks(range(1, schedule.slots + 1), [f"slot {slot}" for slot in range(1, schedule.slots + 1)])
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
    return ax


def static_and_continuous(static: Schedule, continuous: Schedule) -> tuple[Axes, Axes]:
    """The same requests under both policies, one above the other on one step axis.

    Shows how much sooner the work is done when a freed slot is refilled at the next step.
    """
    figure = new_figure(1.9 + 0.42 * (static.slots + continuous.slots))
    with styled():
        above, below = figure.subplots(2, sharex=True)
        for ax, name, schedule in ((above, "Static", static), (below, "Continuous", continuous)):
            slots(schedule, ax, f"{name}: {schedule.steps} steps, {schedule.utilization:.0%} of the slot-steps useful")
        below.set_xlim(0, max(static.steps, continuous.steps))
        above.set_xlabel("")
    return above, below


def roofline(
    model: Model, gpu: Gpu, batches: Sequence[int] = tuple(2**power for power in range(11)), context: int = 0
) -> tuple[Axes, Axes]:
    """The lower bound of a decode step, and the tokens/s it allows, against the batch.

    Shows that a memory-bound step costs the same for one request as for many, so that tokens/s grow with the batch
    until arithmetic takes as long as reading the weights. `context` is the tokens each sequence has in its KV cache.
    """
    steps = [bounds.decode_step(model, gpu, batch, context) for batch in batches]
    figure = new_figure(5.2)
    with styled():
        above, below = figure.subplots(2, sharex=True)
        for label, times, line, dashes in (
            ("reading memory", [step.memory_time for step in steps], "blue-line", "-"),
            ("computing", [step.compute_time for step in steps], "orange-line", "--"),
        ):
            above.plot(batches, [1e3 * time for time in times], dashes, color=colour(line), label=label)
        above.set_title(f"Decode step, ms: {model.name} on {gpu.name}")
        below.set_title("Tokens per second, at most")
        for bound, marker in (("memory", "o"), ("compute", "s")):
            chosen = [(b, step) for b, step in zip(batches, steps, strict=True) if step.bound == bound]
            if not chosen:
                continue
            x, chosen = zip(*chosen, strict=True)
            dots = {"linestyle": "none", "marker": marker, "color": colour("ink"), "label": f"{bound}-bound"}
            above.plot(x, [1e3 * step.time for step in chosen], **dots)
            below.plot(x, [step.tokens_per_second for step in chosen], **dots)
        for ax in (above, below):
            ax.set(xscale="log", yscale="log")
            ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
            ax.grid(True)
            ax.legend()
        below.set_xlabel("requests in the batch")
        below.set_xticks(batches, [f"{batch:,}" if i % 2 == 0 else "" for i, batch in enumerate(batches)])
        below.minorticks_off()
    return above, below


def compare(predicted: Trace, measured: Trace) -> tuple[Axes, Axes]:
    """Each request's predicted and measured latency: end to end above, to the first token below.

    Shows how far a prediction is off, and for which requests: the line between the two marks is the error.
    """
    order = range(1, len(measured.requests) + 1)
    figure = new_figure(5.4)
    with styled():
        axes = figure.subplots(2, sharex=True)
        for ax, metric, name in zip(axes, ("e2e", "ttft"), ("End to end", "To the first token"), strict=True):
            error = mape(measured, predicted, metric)
            expected, seen = getattr(predicted, metric), getattr(measured, metric)
            ax.vlines(order, expected, seen, color=colour("muted"), linewidth=1.2)
            ax.plot(order, expected, linestyle="none", marker="D", markerfacecolor=colour("paper"),
                    color=colour("orange-line"), markersize=5, label="predicted")  # fmt: skip
            ax.plot(
                order, seen, linestyle="none", marker="o", color=colour("blue-line"), markersize=5, label="measured"
            )
            ax.set_title(f"{name}, seconds: mean error {error:.0%}")
            ax.set_ylim(bottom=0)
            ax.grid(True, axis="y")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=2)
        axes[1].set_xlabel("request")
        axes[1].xaxis.set_major_locator(MaxNLocator(integer=True))
    return tuple(axes)


def routing(prompt_tokens: int, cached: Mapping[str, int]) -> Axes:
    """Prompt tokens that each worker would have to compute, and those it has in its cache.

    Shows what a router gains by sending a request where its prefix is. `cached` maps a worker's name to the prompt
    tokens that it holds.
    """
    figure = new_figure(1.3 + 0.6 * len(cached))
    with styled():
        ax = figure.subplots()
        for row, (worker, held) in enumerate(cached.items()):
            if not 0 <= held <= prompt_tokens:
                raise ValueError(
                    f"cached[{worker!r}] must lie between 0 and the prompt's {prompt_tokens}, not {held!r}"
                )
            for name, left, width, fill, hatch in (
                ("computed", held, prompt_tokens - held, "orange", None),
                ("cached", 0, held, "green", ".."),
            ):
                # One entry a kind in the legend: labels that begin with "_" stay out of it.
                ax.barh(row, width, left=left, height=0.6, color=colour(fill), hatch=hatch, edgecolor=colour("ink"),
                        clip_on=False, label=f"_{name}-{row}" if row else name)  # fmt: skip
                if width:
                    ax.text(left + width / 2, row, f"{width:,}", ha="center", va="center",
                            bbox={"facecolor": colour(fill), "edgecolor": "none", "pad": 2})  # fmt: skip
        ax.set_yticks(range(len(cached)), list(cached))
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        ax.set(ylim=(len(cached) - 0.5, -0.5), xlim=(0, prompt_tokens), xlabel="prompt tokens")
        ax.tick_params(axis="y", length=0)
        figure.legend(loc="outside upper right", ncols=2)
    return ax


def replicas(rates: Sequence[float], workers: Sequence[Replicas], marked: Sequence[float] = ()) -> tuple[Axes, Axes]:
    """Prefill and decode workers that a planner asks for, against the request rate.

    Shows that capacity comes in whole workers: flat stretches with room to spare, then one more. `workers` is what
    `planner.replicas` returned at each rate, in increasing order; `marked` are rates to point out.
    """
    figure = new_figure(4.2)
    with styled():
        axes = figure.subplots(2, sharex=True)
        for ax, phase, line, dashes in (
            (axes[0], "prefill", "blue-line", "-"),
            (axes[1], "decode", "orange-line", "--"),
        ):
            counts = [getattr(each, phase) for each in workers]
            ax.step(rates, counts, dashes, where="pre", color=colour(line))
            for rate in marked:
                count = counts[list(rates).index(rate)]
                ax.plot(rate, count, "o", color=colour("ink"))
                ax.annotate(f"{count} at {rate:g}/s", (rate, count), (-6, 6), textcoords="offset points", ha="right")
            ax.set_title(f"{phase.capitalize()} workers")
            ax.set_ylim(0, max(counts) + 1.5)
            ax.yaxis.set_major_locator(MaxNLocator(integer=True))
            ax.grid(True, axis="y")
        axes[1].set_xlabel("requests per second")
    return tuple(axes)
