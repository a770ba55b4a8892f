"""Charts of an engine's steps: tokens, KV blocks, and what a prefix cache finds; for small examples. (Chapter 2.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from ..scheduler import AGAIN, NEXT, PROMPT, Config, Step, work_of
from ..workload import Request
from .palette import colour, new_figure, styled


class _Look(NamedTuple):
    """A fill of the palette, and the hatch that tells it from others without colour."""

    fill: str
    hatch: str | None = None


KINDS = {PROMPT: _Look("orange", ".."), NEXT: _Look("blue"), AGAIN: _Look("green", "////")}
FOUND, COMPUTED = "found in the cache", "computed"
SOURCES = {FOUND: _Look("green", ".."), COMPUTED: _Look("orange")}
OWNERS = ("blue", "orange", "green")


def step_tokens(runs: Mapping[str, Sequence[Step]], requests: Sequence[Request]) -> tuple[Axes, ...]:
    """Tokens that each step computed for each request, over time; one panel a run, all on one clock.

    Shows what a long prompt does to everyone: a wide step is a long gap between the tokens of all requests in it.
    `runs` maps a title to what `scheduler.schedule` made of `requests`, which are called R1, R2 …, without prefix
    caching. Raises `ValueError` if a schedule leaves a request unfinished.
    """
    figure = new_figure(1.1 + len(runs) * (0.5 + 0.36 * len(requests)))
    with styled():
        axes = figure.subplots(len(runs), sharex=True, squeeze=False)[:, 0]
        seen = set()
        for ax, (title, steps) in zip(axes, runs.items(), strict=True):
            for step, work in zip(steps, work_of(requests, steps), strict=True):
                for index, done in work.items():
                    box = (1e3 * step.start, index - 0.4, 1e3 * (step.end - step.start), 0.8)
                    _cell(ax, box, KINDS[done.kind], f"{done.tokens}", f"_{done.kind} R{index + 1}")
                    seen.add(done.kind)
            longest = max(step.end - step.start for step in steps)
            ax.set_title(f"{title}: longest step {1e3 * longest:.3g} ms")
            _rows(ax, len(requests))
        axes[-1].set_xlim(0, max(1e3 * steps[-1].end for steps in runs.values()))
        axes[-1].set_xlabel("milliseconds; in the boxes: tokens")
        _legend(figure, {kind: look for kind, look in KINDS.items() if kind in seen})
    return tuple(axes)


def kv_blocks(runs: Mapping[str, Sequence[Step]], requests: Sequence[Request], config: Config) -> tuple[Axes, ...]:
    """KV blocks that each request holds in each step, below the line of all there are; one panel a run.

    Shows when memory runs out, who is preempted, and what is then computed again. `runs` and `requests` as for
    `step_tokens`; the blocks are those of `config`. Raises `ValueError` if they are unlimited.
    """
    limit = config.num_blocks
    if limit is None:
        raise ValueError("config.num_blocks must be a number, to draw the line at, not None")
    figure = new_figure(1.1 + len(runs) * (0.6 + 0.3 * (limit + 1)))
    with styled():
        axes = figure.subplots(len(runs), sharex=True, squeeze=False)[:, 0]
        for ax, (title, steps) in zip(axes, runs.items(), strict=True):
            for number, (step, work) in enumerate(zip(steps, work_of(requests, steps), strict=True), start=1):
                below = 0
                for index in sorted(work):
                    blocks = -(-work[index].held // config.block_size)
                    again = KINDS[AGAIN].hatch if work[index].kind == AGAIN else None
                    look = _Look(OWNERS[index % len(OWNERS)], again)
                    _cell(ax, (number - 0.5, below, 1, blocks), look, f"R{index + 1}", f"_R{index + 1} {number}")
                    below += blocks
                for index in step.preempted:
                    ax.annotate(f"R{index + 1} preempted", (number, below), (number, limit + 0.6), ha="center",
                                va="center", arrowprops={"arrowstyle": "-|>", "color": colour("ink")})  # fmt: skip
            ax.axhline(limit, linestyle="--", color=colour("ink"), linewidth=1.2)
            ax.set_title(f"{title}: {len(steps)} steps")
            ax.set_ylim(0, limit + 1.2)
            ax.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
            ax.set_ylabel("KV blocks")
        axes[-1].set_xlim(0.5, max(map(len, runs.values())) + 0.5)
        axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
        axes[-1].set_xlabel("step")
        _legend(figure, {AGAIN: _Look("paper", KINDS[AGAIN].hatch)})
    return tuple(axes)


def prompt_blocks(requests: Sequence[Request], cached: Sequence[int], block_size: int) -> Axes:
    """Every prompt in blocks: those found in the prefix cache, and those computed.

    Shows what a prefix cache can find: whole blocks, from the front, up to the first that differs. Blocks with the
    same letter have the same content up to there (`Request.block_ids`); `cached` is `Trace.cached_tokens`.
    """
    letters: dict[int, str] = {}
    figure = new_figure(1.2 + 0.42 * len(requests))
    with styled():
        ax = figure.subplots()
        for row, (request, found) in enumerate(zip(requests, cached, strict=True)):
            ids = request.block_ids or ()
            for number, begin in enumerate(range(0, request.prompt_tokens, block_size)):
                end = min(begin + block_size, request.prompt_tokens)
                letter = letters.setdefault(ids[number], chr(ord("a") + len(letters))) if number < len(ids) else ""
                source = FOUND if end <= found else COMPUTED
                box = (begin, row - 0.4, end - begin, 0.8)
                _cell(ax, box, SOURCES[source], letter, f"_{source} R{row + 1}")
        longest = max(request.prompt_tokens for request in requests)
        ax.set(xlim=(0, longest), xlabel="prompt tokens")
        ax.set_xticks(range(0, longest + 1, block_size))
        _rows(ax, len(requests))
        _legend(figure, SOURCES)
    return ax


def _cell(ax: Axes, box: tuple[float, float, float, float], look: _Look, text: str, label: str) -> None:
    """A box (left, bottom or top, width, height) with words in it; `label` begins with "_" to stay out of legends."""
    left, edge, width, height = box
    middle = edge + height / 2
    ax.barh(middle, width, left=left, height=height, color=colour(look.fill), hatch=look.hatch,
            edgecolor=colour("ink"), linewidth=0.8, clip_on=False, label=label)  # fmt: skip
    if text:
        clear = {"facecolor": colour(look.fill), "edgecolor": "none", "pad": 1} if look.hatch else None
        ax.text(left + width / 2, middle, text, ha="center", va="center", bbox=clear)


def _rows(ax: Axes, count: int) -> None:
    """One row a request, R1 on top."""
    ax.set_ylim(count - 0.5, -0.5)
    ax.set_yticks(range(count), [f"R{row + 1}" for row in range(count)])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def _legend(figure: Figure, looks: Mapping[str, _Look]) -> None:
    patches = [Patch(facecolor=colour(x.fill), edgecolor=colour("ink"), hatch=x.hatch) for x in looks.values()]
    figure.legend(patches, looks, loc="outside upper right", ncols=len(patches))
