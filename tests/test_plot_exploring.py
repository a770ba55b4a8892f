"""The still pictures of the live figures: what they draw is what the data says, legible, and without colour too."""

from itertools import combinations

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from test_plot import bars, texts

from enginelab import explorations, plot
from enginelab.exploring import LOOKS, Bars, Line, Lines, Mark, Picture, Series, Span, Spans
from enginelab.plot.exploring import FILLS
from enginelab.plot.palette import PALETTE, WIDTH

SPANS = Spans(
    "Everything",
    ("first", "second row"),
    (
        Span(0, 0, 3, "sent"),
        Span(0, 3, 3.1, "too long for its bar", "green"),
        Span(0, 4, 20, "", "idle"),
        Span(1, 3, 9, "prefill", "orange"),
        Span(1, 9, 20, "decode", "paper"),
    ),
    "ms",
    20,
    {look: f"means {look}" for look in LOOKS},
    (Mark(9, "first token"), Mark(9.5, "the next one"), Mark(20, "the end of it all")),
)
LINES = Lines(
    "Curves",
    tuple(Line(f"curve {n}", (1, 10, 100, 1000), (n, 2 * n, 20 * n, 30 * n), stepped=n == 2) for n in range(1, 5)),
    "batch",
    "ms",
    log_x=True,
    log_y=True,
    marks=(Mark(100, "turns"),),
    here=(10, 20),
)
BARS = Bars(
    "Memory",
    ("each GPU", "the other"),
    (Series("weights", (16, 8)), Series("cache", (40, 0), "orange"), Series("left", (10, 30), "idle")),
    "GB",
    Mark(72, "all there is"),
)
EVERYTHING = Picture("Words.", (SPANS, LINES, BARS))
SETTINGS = [
    *((name, {}) for name in explorations.NAMES),
    ("slots", {"slots": "12", "lengths": ",".join(["7"] * 24)}),
    ("tokens", {"prompts": "3,2,5", "outputs": "3,7,5", "max_num_batched_tokens": "4", "num_blocks": "4"}),
    ("batch_size", {"model": "deepseek-v3", "gpu": "a100-80gb-sxm", "batch": "1"}),
    ("fit", {"model": "llama-3.1-70b", "gpu": "t4"}),
    ("fit", {"model": "deepseek-v3", "gpu": "h200-sxm", "gpus": "8", "weights": "8", "context": "131072"}),
    ("request_life", {"prompt": "32768", "output": "2", "others": "256"}),
]  # fmt: skip
CASES = [EVERYTHING, *(explorations.find(name)(texts) for name, texts in SETTINGS)]
IDS = ["everything", *(f"{name} {index}" for index, (name, _) in enumerate(SETTINGS))]


def boxes(ax):
    """(left, width, row, look) of every bar."""
    found = []
    for look in LOOKS:
        for _, bar in bars(ax, look):
            found.append((bar.get_x(), bar.get_width(), round(bar.get_y() + bar.get_height() / 2), look))
    return sorted(found)


def test_spans_are_drawn_where_they_are_with_the_labels_that_fit():
    ax = plot.picture(EVERYTHING)[0]
    expected = sorted((span.start, span.end - span.start, span.row, span.look) for span in SPANS.spans)
    assert [value for box in boxes(ax) for value in box] == pytest.approx([v for box in expected for v in box])
    assert [label for label in texts(ax) if label in {span.label for span in SPANS.spans}] == [
        "sent",
        "prefill",
        "decode",
    ]
    assert [label.get_text() for label in ax.get_yticklabels()] == list(SPANS.rows)
    top, bottom = (ax.transData.transform((0, row))[1] for row in (0, 1))
    assert top > bottom


def test_looks_differ_by_hatch_or_edge_and_not_only_by_colour():
    ax = plot.picture(EVERYTHING)[0]
    drawn = {look: bars(ax, look)[0][1] for look in LOOKS}
    signs = {look: (bar.get_hatch(), to_hex(bar.get_facecolor(), keep_alpha=True)) for look, bar in drawn.items()}
    hatched = [hatch for hatch, _ in signs.values() if hatch]
    assert len(set(hatched)) == len(hatched) == len(LOOKS) - 2
    assert signs["paper"][1] == to_hex(PALETTE["paper"].light, keep_alpha=True) and not signs["blue"][0]
    legend = ax.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [f"means {look}" for look in LOOKS]
    assert [patch.get_hatch() for patch in legend.get_patches()] == [FILLS[look].hatch for look in LOOKS]


def test_lines_have_their_points_and_differ_without_colour():
    ax = plot.picture(EVERYTHING)[1]
    drawn = {line.get_label(): line for line in ax.get_lines() if not line.get_label().startswith("_")}
    assert {name: (tuple(line.get_xdata()), tuple(line.get_ydata())) for name, line in drawn.items()} == {
        line.label: (line.xs, line.ys) for line in LINES.lines
    }
    assert len({line.get_linestyle() for line in drawn.values()}) == len(drawn)
    assert len({line.get_marker() for line in drawn.values()}) == len(drawn)
    assert [line.get_drawstyle() for line in drawn.values()] == ["default", "steps-post", "default", "default"]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    (here,) = [line for line in ax.get_lines() if line.get_label() == "_here"]
    assert (list(here.get_xdata()), list(here.get_ydata())) == ([10], [20])
    assert [text.get_text() for text in ax.get_legend().get_texts()][-1] == "your setting"


def test_bars_are_stacked_below_their_limit():
    ax = plot.picture(EVERYTHING)[2]
    assert boxes(ax) == sorted(
        [(0, 16, 0, "blue"), (16, 40, 0, "orange"), (56, 10, 0, "idle"), (0, 8, 1, "blue"), (8, 30, 1, "idle")]
    )
    assert [text for text in texts(ax) if text.isdigit()] == ["16", "8", "40", "10", "30"]
    (limit,) = [line for line in ax.get_lines() if list(line.get_xdata()) == [72, 72]]
    assert limit.get_linestyle() != "-" and "all there is" in texts(ax)


def test_numbers_on_bars_and_axes_are_whole_where_the_data_is():
    bars = Bars("Work", ("a",), (Series("tokens", (1200,)), Series("more", (12.345,))), "tokens")
    lines = Lines("GPUs", (Line("all", (0, 1, 2), (0, 3, 2), stepped=True),), "hour", "GPUs")
    spans = Spans("Conditions", ("a",), (Span(0, 0, 1), Span(0, 1, 2)), "conditions", 2, {"blue": "holds"})
    above, middle, below = plot.picture(Picture("Words.", (bars, lines, spans)))
    assert "1,200" in texts(above)
    assert all(tick == int(tick) for tick in [*middle.get_yticks(), *below.get_xticks()])


def test_what_the_next_chart_says_again_is_said_once():
    above, below = plot.picture(explorations.find("slots")())
    assert above.get_legend() and not below.get_legend()
    assert (above.get_xlabel(), below.get_xlabel()) == ("", "steps done")


def test_a_picture_without_charts_is_an_error():
    with pytest.raises(ValueError, match="at least one chart"):
        plot.picture(Picture("Only words.", ()))


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_figure_suits_the_book_and_no_words_cover_each_other_or_leave_it(case, suits_the_book):
    figure = suits_the_book(lambda: plot.picture(case)[0]).figure
    axes = figure.axes
    FigureCanvasAgg(figure).draw()
    renderer = figure.canvas.get_renderer()
    assert figure.get_figwidth() == WIDTH
    for ax in axes:
        words = [ax.title, ax._left_title, ax.xaxis.label, *ax.texts]
        low, high = sorted(ax.get_ylim())
        words += [tick for at, tick in zip(ax.get_yticks(), ax.get_yticklabels(), strict=True) if low <= at <= high]
        words += [ax.get_legend()] if ax.get_legend() else []
        shown = [
            (word, word.get_window_extent(renderer))
            for word in words
            if not hasattr(word, "get_text") or word.get_text()
        ]
        for word, box in shown:
            assert figure.bbox.x0 - 1 <= box.x0 and box.x1 <= figure.bbox.x1 + 1, word
            assert figure.bbox.y0 - 1 <= box.y0 and box.y1 <= figure.bbox.y1 + 1, word
        for (one, a), (other, b) in combinations(shown, 2):
            across, down = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
            assert across <= 1 or down <= 2, f"{one} and {other}"
    for (_, above), (_, below) in combinations(((ax, ax.get_tightbbox(renderer)) for ax in axes), 2):
        assert above.y0 >= below.y1 - 1
