"""The live figures of one engine: their numbers against brute force, and an answer to everything a reader can set."""

import json
import math
from dataclasses import asdict
from itertools import product

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from plain_engine import PlainEngine
from test_batching import walk

from enginelab import explorations
from enginelab.explorations import request_life
from enginelab.exploring import LOOKS, Bars, Choice, Complaint, Lines, Number, Numbers, Spans
from enginelab.footprint import footprint
from enginelab.hardware import GPUS, H100, LLAMA_3_1_8B, MODELS, T4
from enginelab.scheduler import Config, StepTime
from enginelab.workload import Request

# The most bars and points that one answer may have, whatever is set.
MOST = {"slots": 120, "tokens": 1500, "batch_size": 33, "fit": 13, "request_life": 40}
FIGURES = {name: explorations.find(name) for name in MOST}


def check(name, values):
    """What holds for any answer to settings within the bounds; a complaint is an answer too. Returns the picture."""
    figure = FIGURES[name]
    texts = {control.name: control.write(values[control.name]) for control in figure.controls}
    try:
        picture = figure(texts)
    except Complaint as complaint:
        assert complaint.control in values and str(complaint).endswith(".")
        return None
    json.dumps(asdict(picture), allow_nan=False)
    assert picture.words and picture.charts
    size = 0
    for chart in picture.charts:
        if isinstance(chart, Spans):
            size += len(chart.spans)
            assert {span.look for span in chart.spans} <= set(chart.key) <= set(LOOKS)
            assert all(0 <= span.row < len(chart.rows) for span in chart.spans)
            assert all(0 <= span.start < span.end <= chart.x_end * (1 + 1e-9) for span in chart.spans)
            assert all(0 <= mark.at <= chart.x_end * (1 + 1e-9) for mark in chart.marks)
            for row in range(len(chart.rows)):
                # One thing at a time in a row.
                bars = sorted((span.start, span.end) for span in chart.spans if span.row == row)
                assert all(a[1] <= b[0] * (1 + 1e-9) for a, b in zip(bars, bars[1:], strict=False))
        elif isinstance(chart, Lines):
            points = [point for line in chart.lines for point in zip(line.xs, line.ys, strict=True)]
            size += len(points)
            points += [chart.here] if chart.here else []
            assert all(x > 0 or not chart.log_x for x, _ in points)
            assert all(y > 0 or not chart.log_y for _, y in points)
        elif isinstance(chart, Bars):
            size += len(chart.series)
            assert all(value >= 0 for series in chart.series for value in series.values)
    assert size <= MOST[name]
    return picture


def random_value(draw, control, count):
    if isinstance(control, Choice):
        return draw(st.sampled_from([value for value, _ in control.options]))
    whole = st.integers(int(control.minimum), int(control.maximum))
    if isinstance(control, Number):
        return draw(whole)
    if control.optional and draw(st.booleans()):
        return ()
    return tuple(draw(st.lists(whole, min_size=count, max_size=count)))


@st.composite
def settings_of(draw, name):
    """Any valid setting; lists of one length, so that few are complained about."""
    controls = FIGURES[name].controls
    lists = [control for control in controls if isinstance(control, Numbers)]
    count = draw(st.integers(1, min((control.at_most for control in lists), default=1)))
    return {control.name: random_value(draw, control, count) for control in controls}


@pytest.mark.parametrize("name", FIGURES)
def test_any_valid_setting_is_answered(name):
    @settings(max_examples=300, database=None, phases=[Phase.generate])  # shrinking takes minutes
    @given(settings_of(name))
    def answered(values):
        check(name, values)

    answered()


def extremes(control):
    if isinstance(control, Choice):
        return [value for value, _ in control.options]
    if isinstance(control, Number):
        return [control.minimum, control.maximum]
    ends = [(end,) * control.at_most for end in (control.minimum, control.maximum)]
    return [*ends, ()] if control.optional else ends


@pytest.mark.parametrize("name", FIGURES)
def test_every_corner_is_answered(name):
    controls = FIGURES[name].controls
    answers = [
        check(name, dict(zip((control.name for control in controls), corner, strict=True)))
        for corner in product(*map(extremes, controls))
    ]
    assert any(answers)


@pytest.mark.parametrize("name", FIGURES)
def test_a_value_out_of_bounds_is_complained_about_by_name(name):
    for control in FIGURES[name].controls:
        bad = ["", "x", "1;2;3;x", "1e99", "-1", "nan", "0.5", "999999999"]
        bad += [",".join(["1"] * (control.at_most + 1))] if isinstance(control, Numbers) else []
        for text in bad:
            if text == "" and getattr(control, "optional", False):
                continue
            with pytest.raises(Complaint) as caught:
                FIGURES[name]({control.name: text})
            assert caught.value.control == control.name, text


# --- slots ----------------------------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(settings_of("slots"))
def test_slots_draws_what_a_server_does_that_walks_step_by_step(values):
    lengths, slots, arrivals = values["lengths"], values["slots"], values["arrivals"] or (0,) * len(values["lengths"])
    picture = FIGURES["slots"].explore(**values)
    steps = []
    for chart, refill in zip(picture.charts, (False, True), strict=True):
        runs = walk(lengths, slots, arrivals, refill)
        steps.append(max(run.last_step for run in runs))
        expected = {
            (f"R{index}", run.slot - 1, step, "orange" if run.first_step > arrival + 1 else "blue")
            for index, (run, arrival) in enumerate(zip(runs, arrivals, strict=True), start=1)
            for step in range(run.first_step, run.last_step + 1)
        }
        taken = {(row, step) for _, row, step, _ in expected}
        for row, step in product(range(slots), range(1, steps[-1] + 1)):
            if (row, step) not in taken:
                expected.add(("", row, step, "idle"))
        drawn = [
            (span.label, span.row, step, span.look)
            for span in chart.spans
            for step in range(int(span.start) + 1, int(span.end) + 1)
        ]
        assert len(drawn) == len(set(drawn)) and set(drawn) == expected
    assert picture.answer == steps[1]
    assert f"needs {steps[0]} steps" in picture.words and f"needs {steps[1]} " in picture.words


def test_slots_says_what_the_lesson_says():
    assert FIGURES["slots"]().words == (
        "Static batching needs 12 steps and uses 52% of its slot-steps; "
        "continuous batching needs 8 and uses 78%: 1.50 times the throughput."
    )
    assert "gains no step" in FIGURES["slots"]({"lengths": "5"}).words


def test_slots_needs_an_arrival_for_each_request():
    with pytest.raises(Complaint, match="6 requests need 6 arrivals, and here are 2") as caught:
        FIGURES["slots"]({"arrivals": "1, 2"})
    assert caught.value.control == "arrivals"


# --- tokens ---------------------------------------------------------------------------------------------------------


class Watched(PlainEngine):
    """The oracle, noting how many blocks are held in each step."""

    def run(self):
        self.used = []
        return super().run()

    def schedule(self):
        answer = super().schedule()
        if answer[0]:
            self.used.append(sum(len(self.blocks[index]) for index in self.running))
        return answer


@settings(max_examples=150)
@given(settings_of("tokens"))
def test_tokens_draws_what_the_plain_engine_does(values):
    try:
        picture = FIGURES["tokens"].explore(**values)
    except Complaint:
        return
    arrivals = values["arrivals"] or [0] * len(values["prompts"])
    requests = [
        Request(at / 1e3, p, o) for at, p, o in zip(arrivals, values["prompts"], values["outputs"], strict=True)
    ]
    config = Config(
        values["max_num_seqs"],
        values["max_num_batched_tokens"],
        values["num_blocks"],
        values["block_size"],
        enable_chunked_prefill=values["chunked"] == "on",
        step_time=StepTime(0.010, 0.001, 0, 0),
    )
    engine = Watched(requests, config).run()
    timeline, blocks = picture.charts
    drawn = sorted((round(span.start, 6), span.row, round(span.end, 6), span.label) for span in timeline.spans)
    assert drawn == sorted(
        (round(1e3 * step.start, 6), index, round(1e3 * step.end, 6), str(tokens))
        for step in engine.steps
        for index, tokens in step.tokens.items()
    )
    held = dict(zip(blocks.lines[0].xs, blocks.lines[0].ys, strict=True))
    for step, used in zip(engine.steps, engine.used, strict=True):
        assert held[1e3 * step.start] == used <= values["num_blocks"]
    lost = [f"R{index + 1} preempted" for step in engine.steps for index in step.preempted]
    assert [mark.label for mark in blocks.marks] == lost[:4]
    assert ("nobody is preempted" in picture.words) == (not lost)
    gaps = [b - a for times in engine.token_times for a, b in zip(times, times[1:], strict=False)]
    assert not gaps or f"is {1e3 * max(gaps):.0f} ms (ITL)" in picture.words
    first = engine.token_times[-1][0] - requests[-1].arrival
    assert f"gets its first token {1e3 * first:.0f} ms after" in picture.words


def test_tokens_shows_the_early_guest_of_the_chapter():
    picture = FIGURES["tokens"](
        {"prompts": "3,2,5", "outputs": "3,7,5", "arrivals": "", "max_num_batched_tokens": "4", "num_blocks": "4"}
    )
    assert picture.words.startswith("11 steps") and "one request is preempted and computed again" in picture.words
    again = [span.label for span in picture.charts[0].spans if span.look == "green"]
    assert again == ["4", "4", "1"]


@pytest.mark.parametrize(
    "texts, control, says",
    [
        ({"outputs": "1"}, "outputs", "3 prompts need 3, and here are 1"),
        ({"arrivals": "1"}, "arrivals", "3 prompts need 3, and here are 1"),
        ({"max_num_batched_tokens": "2"}, "max_num_batched_tokens", "fewer than max_num_seqs, which is 3"),
        ({"chunked": "off"}, "max_num_batched_tokens", "R3's prompt of 15 tokens"),
        ({"num_blocks": "3"}, "num_blocks", "R3 alone needs 4 of 4 tokens"),
        (
            {
                "prompts": "8 8",
                "outputs": "12 12",
                "arrivals": "",
                "chunked": "off",
                "num_blocks": "6",
                "max_num_batched_tokens": "9",
            },
            "max_num_batched_tokens",
            "without chunked prefill they must fit",
        ),
    ],
)
def test_tokens_refuses_what_the_engine_could_not_do(texts, control, says):
    with pytest.raises(Complaint, match=says) as caught:
        FIGURES["tokens"](texts)
    assert caught.value.control == control


# --- batch size -----------------------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(settings_of("batch_size"))
def test_batch_size_is_bytes_over_bandwidth_or_operations_over_peak(values):
    picture = FIGURES["batch_size"].explore(**values)
    model = next(model for model in MODELS if model.name.lower().replace(" ", "-") == values["model"])
    gpu = next(gpu for gpu in GPUS if gpu.name.lower().replace(" ", "-") == values["gpu"])
    bits = {"16": 16, "8": 8, "4": 4 + 8 / 16}[values["weights"]]

    def times(batch):
        kv = 2 * model.layers * model.kv_heads * model.head_dim * 2 * values["context"] * batch
        return (
            1e3 * (model.parameters * bits / 8 + kv) / gpu.bandwidth,
            1e3 * 2 * model.active_parameters * batch / gpu.flops,
        )

    above, below = picture.charts
    for line, which in zip(above.lines, (0, 1), strict=True):
        assert line.ys == pytest.approx([times(batch)[which] for batch in line.xs])
    batch = values["batch"]
    assert above.here == (batch, pytest.approx(max(times(batch))))
    assert below.here == (batch, pytest.approx(1e3 * batch / max(times(batch))))
    turning = [size for size in range(1, 1025) if times(size)[1] >= times(size)[0]]
    if turning and turning[0] > 1:
        assert f"compute-bound at a batch of {turning[0]:,}." in picture.words
        assert math.ceil(above.marks[0].at) == turning[0]
    else:
        assert not above.marks


# --- does it fit ----------------------------------------------------------------------------------------------------


def test_fit_adds_up_to_what_the_engine_may_use_and_says_how_many():
    picture = FIGURES["fit"]()
    (bars, lines) = picture.charts
    assert sum(series.values[0] for series in bars.series) == pytest.approx(bars.limit.at) == pytest.approx(0.92 * 80)
    memory = footprint(LLAMA_3_1_8B, H100)
    left = 0.92 * 80e9 - 8.03e9 * 2 - 1024 * 128_256 * 40 - 0.5e9
    assert memory.kv == pytest.approx(left)
    blocks = left // (16 * 2 * 32 * 8 * 128 * 2)
    assert f"That is {blocks // 512:.0f} sequences of 8,192 tokens." in picture.words
    assert dict(zip(lines.lines[0].xs, lines.lines[0].ys, strict=True)) == {
        length: blocks // (length / 16) for length in (512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072)
    }
    assert lines.here == (8192, blocks // 512)


def test_fit_says_when_it_does_not():
    words = FIGURES["fit"]({"model": "llama-3.1-70b"}).words
    over = 70.6 * 2 + 1024 * 128_256 * 40 / 1e9 + 0.5 - 0.92 * 80
    assert words.startswith("It does not fit: ") and f"{over:.1f} GB more" in words
    words = FIGURES["fit"]({"gpu": "l4", "context": "131072"}).words
    assert words.startswith("A sequence of 131,072 tokens does not fit: ")
    assert FIGURES["fit"]({"model": "llama-3.1-70b", "gpus": "4"}).words.startswith("It fits.")
    assert "vLLM runs 1,024 of them" in FIGURES["fit"]({"context": "16"}).words


# --- the life of a request ------------------------------------------------------------------------------------------


ROUNDED = 1e-4  # the models' clock has whole picoseconds, also for each KV token


def seconds(model, gpu, tokens, context):
    """The roofline of one step, by hand."""
    kv = 2 * model.layers * model.kv_heads * model.head_dim * 2
    return max(
        (model.parameters * model.bytes_per_weight + kv * context) / gpu.bandwidth,
        2 * model.active_parameters * tokens / gpu.flops,
    )


@settings(max_examples=60)
@given(
    st.integers(1, 32_768), st.integers(1, 60), st.integers(0, 256), st.sampled_from(MODELS),
    st.sampled_from([T4, H100]),
)  # fmt: skip
def test_a_request_lives_as_long_as_its_steps_added_up(prompt, output, others, model, gpu):
    life = request_life.live(prompt, output, others, model, gpu)
    sent = 0.002 + 0.001 + 2e-6 * prompt
    assert life.submitted == pytest.approx(sent)
    context = others * 1000
    now = sent + (seconds(model, gpu, others, context) / 2 if others else 0)
    context += others  # a token each in the step in which ours came
    done, chunks, tokens = 0, [], []
    while done < prompt:
        chunk = min(prompt - done, 8192 - others)
        start, now = now, now + seconds(model, gpu, chunk + others, context + done)
        chunks.append((start, now))
        done, context = done + chunk, context + others
    tokens.append(now)
    while len(tokens) < output:
        now += seconds(model, gpu, 1 + others, context + done)
        tokens.append(now)
        done, context = done + 1, context + others
    assert [value for chunk in life.chunks for value in chunk] == pytest.approx(
        [at for chunk in chunks for at in chunk], rel=ROUNDED
    )
    assert life.tokens == pytest.approx(tokens, rel=ROUNDED)
    assert life.received[0] == pytest.approx(tokens[0] + 0.0021, rel=ROUNDED)
    if output > 1:
        assert life.itl == pytest.approx((tokens[-1] - tokens[0]) / (output - 1), rel=ROUNDED)


def test_a_request_that_comes_alone_does_not_queue():
    alone = FIGURES["request_life"]({"others": "0"}).charts[0]
    queue = alone.rows.index("queue")
    assert not [span for span in alone.spans if span.row == queue]
    crowded = FIGURES["request_life"]().charts[0]
    assert [span.look for span in crowded.spans if span.row == queue] == ["idle"]


def test_a_life_names_its_latencies_and_says_what_is_only_drawn():
    picture = FIGURES["request_life"]({"output": "1"})
    assert "(TTFT)" in picture.words and "(E2E)" in picture.words and "(ITL)" not in picture.words
    assert "only drawn" in picture.words
    assert "cannot hold the weights" in FIGURES["request_life"]({"model": "deepseek-v3"}).words
