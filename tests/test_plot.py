"""The figures: what they draw is what the data says, and they can be read in both themes."""

import io
import re
import xml.etree.ElementTree as ET
from itertools import product

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from matplotlib.patches import FancyBboxPatch

import inline_figures
from enginelab import batching, choosing, hardware, planner, plot, roofline
from enginelab.plot.palette import FILLS, PALETTE, STROKES

LESSON = [2, 8, 3, 5, 3, 4]


def bars(ax, kind):
    """(label, bar) of every bar whose label begins with `kind`; each call of `barh` draws one bar."""
    labelled = [(group.get_label().lstrip("_"), bar) for group in ax.containers for bar in group]
    return [(label, bar) for label, bar in labelled if label.startswith(kind)]


def texts(ax):
    return [text.get_text() for text in ax.texts if text.get_text()]


def figures():
    """One of each figure, by name."""
    static, continuous = batching.static(LESSON, 4), batching.continuous(LESSON, 4)
    rates = range(1, 71)
    workers = [planner.replicas(rate, 2000, 500, 20_000, 5_000) for rate in rates]
    nodes = [plot.Node("a", "A", 0.5, 0, fill="paper"), plot.Node("b", "B", 0, 1, "below", "orange"),
             plot.Node("c", "C", 1, 1)]  # fmt: skip
    return {
        "slots": lambda: plot.slots(continuous),
        "static_and_continuous": lambda: plot.static_and_continuous(static, continuous)[0],
        "roofline": lambda: plot.roofline(hardware.LLAMA_3_1_8B, hardware.H100)[0],
        "compare": lambda: plot.compare(continuous.to_trace(0.1), continuous.to_trace(0.12))[0],
        "routing": lambda: plot.routing(1200, {"worker A": 1000, "worker B": 0}),
        "replicas": lambda: plot.replicas(rates, workers, marked=[30])[0],
        "flowchart": lambda: plot.flowchart(choosing.TREE),
        "graph": lambda: plot.graph(nodes, [plot.Edge("a", "b"), plot.Edge("b", "c", "KV cache")]),
    }


def svg(ax):
    with mpl.rc_context({"svg.fonttype": "none"}), io.StringIO() as file:
        ax.figure.savefig(file, format="svg")
        return file.getvalue()


loads = st.lists(st.integers(1, 9), min_size=1, max_size=12)


@settings(max_examples=25)
@given(loads, st.integers(1, 4), st.booleans())
def test_every_slot_step_is_drawn_once_by_its_request_or_as_idle(lengths, slots, refill):
    schedule = (batching.continuous if refill else batching.static)(lengths, slots)
    ax = plot.slots(schedule)
    drawn = {}
    for name, bar in bars(ax, "run-") + bars(ax, "idle"):
        first, slot = round(bar.get_x()) + 1, round(bar.get_y() + bar.get_height() / 2)
        for step in range(first, first + round(bar.get_width())):
            assert (slot, step) not in drawn
            drawn[slot, step] = name.split("-")[1] if name.startswith("run-") else None
    expected = dict.fromkeys(product(range(1, slots + 1), range(1, schedule.steps + 1)))
    for index, run in enumerate(schedule.runs, start=1):
        expected |= {(run.slot, step): str(index) for step in range(run.first_step, run.last_step + 1)}
    assert drawn == expected
    assert texts(ax) == [f"R{index}" for index in range(1, len(lengths) + 1)]
    plt.close("all")


def test_requests_that_waited_differ_by_more_than_colour():
    edge = {name: bar.get_linewidth() for name, bar in bars(plot.slots(batching.continuous(LESSON, 4)), "run-")}
    assert edge["run-5"] == edge["run-6"] > max(edge[f"run-{n}"] for n in range(1, 5))
    idle = bars(plot.slots(batching.static(LESSON, 4)), "idle")
    assert idle and all(bar.get_hatch() for _, bar in idle)


def test_static_and_continuous_share_one_step_axis():
    above, below = plot.static_and_continuous(batching.static(LESSON, 4), batching.continuous(LESSON, 4))
    assert above.get_xlim() == below.get_xlim() == (0, 12)
    assert "12 steps, 52%" in above.get_title(loc="left") and "8 steps, 78%" in below.get_title(loc="left")


def test_roofline_draws_the_bound_of_each_batch_in_its_own_mark():
    model, gpu, batches = hardware.LLAMA_3_1_8B, hardware.H100, (1, 64, 4096)
    above, below = plot.roofline(model, gpu, batches)
    steps = [roofline.decode_step(model, gpu, batch) for batch in batches]
    assert [step.bound for step in steps] == ["memory", "memory", "compute"]
    marks = {line.get_label(): line for line in below.get_lines()}
    for bound in ("memory", "compute"):
        expected = [step.tokens_per_second for step in steps if step.bound == bound]
        assert list(marks[f"{bound}-bound"].get_ydata()) == pytest.approx(expected)
    assert marks["memory-bound"].get_marker() != marks["compute-bound"].get_marker()
    solid, dashed = above.get_lines()[:2]
    assert list(solid.get_ydata()) == pytest.approx([1e3 * step.memory_time for step in steps])
    assert solid.get_linestyle() != dashed.get_linestyle()


def test_compare_shows_each_request_twice_and_computes_the_error():
    schedule = batching.continuous(LESSON, 4)
    above, below = plot.compare(schedule.to_trace(0.1), schedule.to_trace(0.125))
    for ax in (above, below):
        predicted, measured = ax.get_lines()
        assert len(predicted.get_ydata()) == len(measured.get_ydata()) == len(LESSON)
        assert list(measured.get_ydata()) == pytest.approx([1.25 * value for value in predicted.get_ydata()])
        assert "mean error 20%" in ax.get_title(loc="left")
        assert predicted.get_marker() != measured.get_marker()


def test_routing_splits_each_prompt_into_cached_and_computed():
    ax = plot.routing(1200, {"A": 1000, "B": 0})
    widths = {name: bar.get_width() for name, bar in bars(ax, "cached") + bars(ax, "computed")}
    assert widths == {"cached": 1000, "computed": 200, "cached-1": 0, "computed-1": 1200}
    assert texts(ax) == ["200", "1,000", "1,200"]
    with pytest.raises(ValueError, match="'C'"):
        plot.routing(1200, {"C": 1201})


def test_replicas_marks_what_the_planner_said():
    rates = [10, 30, 60]
    workers = [planner.replicas(rate, 2000, 500, 20_000, 5_000) for rate in rates]
    for ax in plot.replicas(rates, workers, marked=[30, 60]):
        assert list(ax.get_lines()[0].get_ydata()) == [1, 3, 6]
        assert texts(ax) == ["3 at 30/s", "6 at 60/s"]


def leaves(node):
    return [node.name] if isinstance(node, choosing.Answer) else leaves(node.yes) + leaves(node.no)


def test_flowchart_has_every_question_and_answer_of_the_tree_inside_its_boxes():
    ax = plot.flowchart(choosing.TREE)
    words = " ".join(texts(ax))
    questions = list(choosing.questions())
    assert set(leaves(choosing.TREE)) <= set(texts(ax))
    assert all(question.text in words for question in questions)
    assert texts(ax).count("yes") == texts(ax).count("no") == len(questions)
    boxes = [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    assert len(boxes) == len(questions) + len(leaves(choosing.TREE))
    extents = [box.get_window_extent() for box in boxes]
    for text in ax.texts:
        if text.get_text() not in ("yes", "no"):
            inside = text.get_window_extent().get_points()
            assert any(box.contains(*inside[0]) and box.contains(*inside[1]) for box in extents)
    assert not any(a is not b and a.overlaps(b) for a in extents for b in extents)


def test_an_edge_to_no_box_is_an_error():
    with pytest.raises(ValueError, match="'nowhere'"):
        plot.graph([plot.Node("a", "A", 0, 0)], [plot.Edge("a", "nowhere")])


@pytest.mark.parametrize("name", figures())
def test_a_figure_becomes_part_of_the_page_with_colours_that_follow_the_theme(name, suits_the_book):
    suits_the_book(figures()[name])
    drawn = svg(figures()[name]())
    element = inline_figures.inline(drawn, 'What "it" shows', "figure-7-")
    assert not re.search(r"#[0-9a-fA-F]{6}\b", element)
    root = ET.fromstring(element)
    assert root.get("role") == "img" and root.get("aria-label") == 'What "it" shows'
    assert root.get("width") is None and root.get("viewBox")
    assert "<style" not in element and "<metadata" not in element
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids)) and all(name.startswith("figure-7-") for name in ids)
    links = re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', element)
    assert {a or b for a, b in links} <= set(ids)
    # Black is what an SVG draws when it names no colour; a dark page would swallow it.
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        assert "fill: var(--figure-" in text.get("style", "")


def test_a_colour_outside_the_palette_is_found():
    _, ax = plt.subplots()
    ax.plot([1, 2])
    assert to_hex("C0") in inline_figures.foreign_colours(svg(ax))


def luminance(hex_colour):
    channels = [int(hex_colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_lines_stand_out(theme):
    """WCAG 2.2: 4.5:1 for text (1.4.3), 3:1 for what a figure needs to be understood (1.4.11)."""
    value = {name: getattr(colour, theme) for name, colour in PALETTE.items()}
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    pairs = [("ink", fill) for fill in FILLS] + [("muted", "paper")]
    text = {pair: contrast(*(value[name] for name in pair)) for pair in pairs}
    assert {pair: ratio for pair, ratio in text.items() if ratio < 4.5} == {}
    lines = {stroke: contrast(value[stroke], value["paper"]) for stroke in STROKES}
    assert {name: ratio for name, ratio in lines.items() if ratio < 3} == {}
    assert len({colour.light for colour in PALETTE.values()}) == len(PALETTE)
