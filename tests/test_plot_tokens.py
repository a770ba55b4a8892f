"""The figures of an engine's steps: what they draw is what the schedule says, without colour too."""

import math
import random
from dataclasses import replace

import matplotlib.pyplot as plt
import pytest
from matplotlib.text import Text
from plain_engine import PlainEngine
from test_plot import bars, texts

from enginelab import plot
from enginelab.plot.tokens import AGAIN, FOUND, NEXT, PROMPT
from enginelab.scheduler import Config, StepTime, schedule, simulate
from enginelab.workload import Request

EASY = StepTime(0.010, 0.001, 0, 0)
LONG = [Request(0, 2, 8), Request(0, 3, 6), Request(0.005, 15, 2)]
CHUNKED, WHOLE = Config(max_num_batched_tokens=8, step_time=EASY), Config(enable_chunked_prefill=False, step_time=EASY)
GUESTS = [Request(0, 3, 3), Request(0, 2, 7), Request(0, 5, 5)]
TIGHT = Config(3, 4, num_blocks=4, block_size=4, step_time=EASY)
PROMPTS = [Request(0, 16, 2, (1, 2, 3, 4)), Request(1, 18, 2, (1, 2, 5, 6)), Request(2, 16, 2, (1, 2, 3, 4))]
CACHED = simulate(PROMPTS, Config(block_size=4, enable_prefix_caching=True)).cached_tokens


FIGURES = {
    "step_tokens": lambda: plot.step_tokens({"Chunks": schedule(LONG, CHUNKED)}, LONG)[0],
    "kv_blocks": lambda: plot.kv_blocks({"Three slots": schedule(GUESTS, TIGHT)}, GUESTS, TIGHT)[0],
    "prompt_blocks": lambda: plot.prompt_blocks(PROMPTS, CACHED, 4),
}


def test_step_tokens_draws_every_step_of_every_request_as_long_as_it_takes():
    runs = {"Whole": schedule(LONG, WHOLE), "Chunks": schedule(LONG, CHUNKED)}
    for ax, steps in zip(plot.step_tokens(runs, LONG), runs.values(), strict=True):
        drawn = [(bar.get_x(), bar.get_width(), bar.get_y() + bar.get_height() / 2) for _, bar in bars(ax, "")]
        expected = [(1e3 * s.start, 1e3 * (s.end - s.start), index) for s in steps for index in s.tokens]
        assert [value for box in drawn for value in box] == pytest.approx([v for box in expected for v in box])
        assert texts(ax) == [str(tokens) for step in steps for tokens in step.tokens.values()]


def test_step_tokens_names_the_longest_step_and_shares_one_clock():
    above, below = plot.step_tokens({"A": schedule(LONG, WHOLE), "B": schedule(LONG, CHUNKED)}, LONG)
    assert above.get_title(loc="left") == "A: longest step 25 ms"
    assert below.get_title(loc="left") == "B: longest step 16 ms"
    assert above.get_xlim() == below.get_xlim() == (0, 100)


def test_prompt_decode_and_recomputed_tokens_differ_by_more_than_colour():
    (ax,) = plot.step_tokens({"Tight": schedule(GUESTS, TIGHT)}, GUESTS)
    hatches = {kind: {bar.get_hatch() for _, bar in bars(ax, kind)} for kind in (PROMPT, NEXT, AGAIN)}
    assert all(len(own) == 1 for own in hatches.values())
    assert len(set.union(*hatches.values())) == 3
    assert [label for label, _ in bars(ax, AGAIN)] == [f"{AGAIN} R3"] * 3
    assert [text.get_text() for text in ax.figure.legends[0].get_texts()] == [PROMPT, NEXT, AGAIN]


class Watched(PlainEngine):
    """The oracle, noting of every request in every step whether it decodes."""

    def __init__(self, requests, config):
        super().__init__(requests, config)
        self.decodes = []

    def schedule(self):
        planned = super().schedule()
        self.decodes.extend(not self.prefilling[index] for index in planned[0])
        return planned


def test_kinds_are_those_of_the_plain_oracle():
    """A request computes its prompt exactly when the oracle says that it prefills."""
    draw, recomputed = random.Random(4), 0
    for _ in range(60):
        load = [Request(0, draw.randint(1, 9), draw.randint(1, 12)) for _ in range(4)]
        config = Config(3, draw.randint(3, 9), num_blocks=draw.randint(6, 9), block_size=4, step_time=EASY)
        expected = Watched(load, config).run().decodes
        (ax,) = plot.step_tokens({"": schedule(load, config)}, load)
        drawn = [label.removesuffix(label[-3:]) for label, _ in bars(ax, "")]
        assert [kind == NEXT for kind in drawn] == expected
        recomputed += AGAIN in drawn
        plt.close("all")
    assert recomputed > 5, "too few of the loads preempt"


def test_kv_blocks_draws_what_each_request_holds_below_the_limit():
    (ax,) = plot.kv_blocks({"Three slots": schedule(GUESTS, TIGHT)}, GUESTS, TIGHT)
    held = {}
    for label, bar in bars(ax, "R"):
        name, step = label.split()
        held[int(step), name] = (round(bar.get_y()), round(bar.get_height()))
    # By hand: R3 holds two full blocks, is preempted in step 8, and comes back when R2 is done.
    assert [held[step, "R3"] for step in (2, 7, 9, 10, 11)] == [(2, 1), (2, 2), (0, 1), (0, 2), (0, 3)]
    assert (8, "R3") not in held and held[8, "R2"] == (0, 2)
    for step in range(1, 12):
        assert 0 < sum(height for (number, _), (_, height) in held.items() if number == step) <= TIGHT.num_blocks
    assert "R3 preempted" in texts(ax) and ax.get_title(loc="left") == "Three slots: 11 steps"
    (limit,) = (line for line in ax.get_lines() if set(line.get_ydata()) == {TIGHT.num_blocks})
    assert limit.get_linestyle() == "--"
    again = {label for label, bar in bars(ax, "R") if bar.get_hatch()}
    assert again == {"R3 9", "R3 10", "R3 11"}


def test_kv_blocks_without_a_limit_and_half_a_schedule_are_errors():
    steps = schedule(GUESTS, TIGHT)
    with pytest.raises(ValueError, match="num_blocks must be a number"):
        plot.kv_blocks({"": steps}, GUESTS, replace(TIGHT, num_blocks=None))
    for draw in (plot.step_tokens, lambda runs, requests: plot.kv_blocks(runs, requests, TIGHT)):
        with pytest.raises(ValueError, match="computes 8 tokens of request 2, not all of them"):
            draw({"": steps[:10]}, GUESTS)


def test_prompt_blocks_marks_what_was_found_and_gives_equal_content_one_letter():
    ax = plot.prompt_blocks(PROMPTS, CACHED, 4)
    found = [label for label, bar in bars(ax, FOUND) if bar.get_hatch()]
    assert found == [f"{FOUND} R{row}" for row, tokens in enumerate(CACHED, start=1) for _ in range(tokens // 4)]
    assert texts(ax) == list("abcd" + "abef" + "abcd")
    assert len(bars(ax, "")) == sum(math.ceil(request.prompt_tokens / 4) for request in PROMPTS)
    assert max(bar.get_x() + bar.get_width() for _, bar in bars(ax, "")) == 18


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_suits_the_book_and_its_words_are_large_enough_and_inside(name, suits_the_book):
    ax = suits_the_book(FIGURES[name])
    ax.figure.draw_without_rendering()
    edges = ax.figure.bbox
    words = [*ax.get_children(), *ax.figure.legends[0].get_texts()]
    for text in (each for each in words if isinstance(each, Text) and each.get_text()):
        assert text.get_fontsize() >= 10
        (left, low), (right, high) = text.get_window_extent().get_points()
        assert edges.x0 <= left and right <= edges.x1 and edges.y0 <= low and high <= edges.y1, text.get_text()
