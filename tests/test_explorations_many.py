"""The live figures over workers and time: their numbers against brute force, and whatever a reader may set."""

import cProfile
import itertools
import json
import math
import re
from dataclasses import astuple, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from enginelab import choosing, explorations, roofline, routing, traffic
from enginelab import disaggregation as pools
from enginelab import speculation as spec
from enginelab.explorations import chooser, disaggregation, planner_day, speculation
from enginelab.explorations import routing as router
from enginelab.exploring import Bars, Choice, Complaint, Lines, Picture, Spans
from enginelab.hardware import H100, LLAMA_3_1_8B
from enginelab.scheduler import Config

NAMES = ("routing", "disaggregation", "planner_day", "speculation", "chooser")
# Calls of Python functions that an answer takes at most: 25,000 are about 10 ms of CPython on the machine this was
# written on, and a browser takes a few times as long.
FIRST = 25_000
MOST_CALLS = {
    "routing": 15_000,
    "disaggregation": 25_000,
    "planner_day": 45_000,
    "speculation": 20_000,
    "chooser": 2_000,
}

every_figure = pytest.mark.parametrize("name", NAMES)


def answered(name: str, given: dict[str, str]) -> tuple[Picture, int]:
    """What the figure answers, and how many calls that took."""
    exploration, profile = explorations.find(name), cProfile.Profile(builtins=False)
    picture = profile.runcall(exploration, given)
    return picture, sum(entry.callcount for entry in profile.getstats())


def sound(picture: Picture) -> None:
    """A picture that can be drawn, sent and read: finite numbers, curves and bars of one length."""
    assert len(picture.words.split()) >= 5 and "nan" not in picture.words
    json.dumps([astuple(chart) for chart in picture.charts], allow_nan=False)
    assert picture.answer is None or math.isfinite(picture.answer)
    assert all(len(row) == len(picture.header) for row in picture.rows)
    for chart in picture.charts:
        if isinstance(chart, Lines):
            for line in chart.lines:
                assert len(line.xs) == len(line.ys) and all(a < b for a, b in itertools.pairwise(line.xs))
        elif isinstance(chart, Bars):
            assert {len(series.values) for series in chart.series} == {len(chart.categories)}
            assert all(value >= 0 for series in chart.series for value in series.values)
        elif isinstance(chart, Spans):
            assert {span.look for span in chart.spans} <= set(chart.key)
            assert all(0 <= span.start < span.end <= chart.x_end for span in chart.spans)
            assert {span.row for span in chart.spans} <= set(range(len(chart.rows)))


def edges(control) -> list[str]:
    if isinstance(control, Choice):
        return [value for value, _ in control.options]
    return [control.write(control.minimum), control.write(control.maximum)]


@every_figure
def test_a_figure_has_few_controls_and_starts_within_its_bounds(name):
    exploration = explorations.find(name)
    assert 2 <= len(exploration.controls) <= 5
    picture, calls = answered(name, {})
    sound(picture)
    assert calls <= min(FIRST, MOST_CALLS[name])
    assert json.loads(explorations.answer(name, "{}"))["picture"]["words"] == picture.words
    for control in exploration.controls:
        assert control.read(control.write(control.default)) == control.default


@every_figure
def test_every_corner_gives_a_picture_in_bounded_work(name):
    controls = explorations.find(name).controls
    for corner in itertools.product(*map(edges, controls)):
        picture, calls = answered(name, dict(zip((control.name for control in controls), corner, strict=True)))
        sound(picture)
        assert calls <= MOST_CALLS[name], corner


@every_figure
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_whatever_a_reader_sets_gives_a_picture_in_bounded_work(name, data):
    given = {}
    for control in explorations.find(name).controls:
        if isinstance(control, Choice):
            given[control.name] = data.draw(st.sampled_from(edges(control)))
        elif control.step == int(control.step):
            given[control.name] = str(data.draw(st.integers(control.minimum, control.maximum)))
        else:
            given[control.name] = repr(data.draw(st.floats(control.minimum, control.maximum)))
    picture, calls = answered(name, given)
    sound(picture)
    assert calls <= MOST_CALLS[name], given


@every_figure
def test_what_cannot_be_is_a_complaint_that_names_the_control(name):
    exploration = explorations.find(name)
    for control in exploration.controls:
        wrong = ["", "many", "nan", "1e99", "-1"]
        if not isinstance(control, Choice):
            wrong += [str(control.maximum + 1), str(control.minimum - 1)]
        for text in wrong:
            with pytest.raises(Complaint) as complaint:
                exploration({control.name: text})
            assert complaint.value.control == control.name
            assert str(complaint.value).startswith(control.label)


# --- routing --------------------------------------------------------------------------------------------------------


def by_hand(shared: int, new: int, busy: int, waiting: bool) -> tuple[float, float]:
    """What the request costs on the warm worker and on a cold one, in blocks of 16 tokens, block by block."""
    prompt = shared + new
    full = {("shared", at) if 16 * (at + 1) <= shared else ("own", at) for at in range(prompt // 16)}
    cached = {block for block in full if block[0] == "shared"}
    held = set(full)
    for other in range(busy):
        held |= {block if block in cached else (other, *block) for block in full}
    to_compute = prompt - 16 * len(cached)
    queue = busy * to_compute if waiting else 0
    return (queue + prompt) / 16 - len(cached) + len(held), prompt / 16 + len(full)


def test_the_lesson_is_where_routing_starts():
    picture = explorations.find("routing")()
    assert "saves 83%" in picture.words
    assert routing.prefill_saved(1_200, 1_000) == pytest.approx(0.83, abs=0.004)
    assert picture.answer == 3
    at_once = explorations.find("routing")({"busy": "3"})
    assert "sends it to B" in at_once.words and "sends it to A" in picture.words


@settings(max_examples=60)
@given(
    shared=st.integers(0, 3_000), new=st.integers(1, 600), busy=st.integers(0, 12), waiting=st.booleans(),
    workers=st.integers(2, 8),
)  # fmt: skip
def test_costs_choice_and_flip_are_those_of_blocks_counted_one_by_one(shared, new, busy, waiting, workers):
    picture = router.explore(workers, shared, new, busy, "waiting" if waiting else "decoding")
    warm, cold = by_hand(shared, new, busy, waiting)
    prefill, cost, over_load = picture.charts
    totals = [sum(values) for values in zip(*(series.values for series in cost.series), strict=True)]
    assert totals == pytest.approx([warm, *[cold] * (workers - 1)])
    assert {sum(values) for values in zip(*(series.values for series in prefill.series), strict=True)} == {shared + new}
    taken = "A" if warm < cold else "B" if warm > cold and workers == 2 else "by lot"
    assert taken in cost.title
    for line, at in zip(over_load.lines, (0, 1), strict=True):
        for count, value in list(zip(line.xs, line.ys, strict=True))[:8]:
            assert value == pytest.approx(by_hand(shared, new, count, waiting)[at])
    if picture.answer is not None and picture.answer < 40:
        flips = [by_hand(shared, new, count, waiting) for count in range(picture.answer + 1)]
        assert [a > b for a, b in flips] == [False] * picture.answer + [True]


@pytest.mark.parametrize("state", ["waiting", "decoding"])
@pytest.mark.parametrize("shared, new", [(1_000, 200), (3_000, 200), (500, 500), (2_000, 100)])
def test_the_router_of_the_simulated_fleet_flips_where_the_figure_says(shared, new, state):
    flip = router.explore(2, shared, new, 0, state).answer
    prompt = router.Prompt(shared, new)
    requests = router.burst(prompt, flip + 1, state == "waiting")
    workers = routing.place(requests, [Config(enable_prefix_caching=True)] * 2, "kv_aware").workers
    sent = [worker == workers[0] for worker in workers[1:]]
    assert not sent[flip]
    # Where both cost the same the router draws lots, so it may turn away one request earlier.
    warm, cold = by_hand(shared, new, flip - 1, state == "waiting")
    assert all(sent[: flip - (warm == cold)])


def test_the_table_counts_what_each_policy_computes():
    rows = {row[0]: row for row in router.explore(4, 1_000, 200, 7, "waiting").rows}
    assert rows["Least loaded"][1:3] == ("B", "1,200")
    assert rows["KV-aware"][1] == "B, C or D, by lot"
    assert rows["Round robin"][2] == f"{(208 + 3 * 1_200) / 4:,.0f} on average"
    # Eight at once, in turn from B on: each cold worker computes its first prompt in full and finds it for its second.
    assert int(rows["Round robin"][3].replace(",", "")) == 3 * 1_200 + 5 * 208
    three = {row[0]: int(row[3].replace(",", "")) for row in router.explore(4, 1_000, 200, 2, "waiting").rows}
    assert three == {"Round robin": 3 * 1_200, "Least loaded": 208 + 2 * 1_200, "KV-aware": 3 * 208}


# --- disaggregation -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate, prompts, answers, bandwidth, tpot", [(10, 3_000, 100, 400, 20), (6, 1_000, 300, 5, 25),
                                                                      (30, 500, 50, 100, 15)])  # fmt: skip
def test_the_shares_are_those_of_each_fleet_run_by_itself(rate, prompts, answers, bandwidth, tpot):
    picture = disaggregation.explore(rate, prompts, answers, bandwidth, tpot)
    requests = disaggregation.offered(rate, prompts, answers)
    runs = [routing.simulate(requests, [Config()] * 4, "least_loaded")]
    network = bandwidth * 1e9 / 8, LLAMA_3_1_8B.kv_bytes_per_token
    runs += [pools.simulate(requests, [Config()] * n, [Config()] * (4 - n), *network) for n in (1, 2, 3)]
    (chart,) = picture.charts
    for place, run in enumerate(runs):
        counts = dict.fromkeys(("kept both promises", "late first token", "slow tokens", "both"), 0)
        for request, first, last in list(zip(run.requests, run.first_token, run.last_token, strict=True))[20:]:
            late = first - request.arrival > 1
            slow = request.output_tokens > 1 and last - first > (request.output_tokens - 1) * tpot / 1e3
            counts["both" if late and slow else "late first token" if late else "slow tokens" if slow
                   else "kept both promises"] += 1  # fmt: skip
        for series in chart.series:
            assert series.values[place] == pytest.approx(100 * counts[series.label] / 40, abs=1e-9)
    kept = chart.series[0].values
    assert picture.answer == pytest.approx(rate * max(kept[1:]) / 100)
    assert ("disaggregation wins" in picture.words) == (max(kept[1:]) > kept[0])


def test_the_promise_and_the_network_decide():
    figure = explorations.find("disaggregation")
    assert "disaggregation wins" in figure().words
    assert "disaggregation wins" not in figure({"tpot": "100"}).words
    assert "better not to split" in figure({"bandwidth": "5", "tpot": "25"}).words
    for bandwidth in ("10", "400"):
        milliseconds = 3_000 * 2 * 32 * 8 * 128 * 2 * 8 / (float(bandwidth) * 1e6)
        assert f"takes {milliseconds:,.1f} ms to send" in figure({"bandwidth": bandwidth}).words


# --- the planner's day ----------------------------------------------------------------------------------------------


def day_by_hand(loads, decide, workers, startup):
    """GPU-hours and the share of requests in good intervals, each worker kept as the interval from which it serves."""
    good = hours = 0.0
    fleets = [[0] * count for count in workers]
    for now, (rate, *tokens) in enumerate(loads):
        if now:
            for fleet, wish in zip(fleets, decide(now, [len(fleet) for fleet in fleets]), strict=True):
                wish = max(1, len(fleet) - 8, min(len(fleet) + 8, wish))
                del fleet[wish:]
                fleet += [now + startup] * (wish - len(fleet))
        hours += sum(map(len, fleets)) / 2
        fits = [
            rate * each <= speed * sum(since <= now for since in fleet)
            for each, speed, fleet in zip(tokens, (20_000, 5_000), fleets, strict=True)
        ]
        good += rate * all(fits)
    return hours, good / sum(load.rate for load in loads)


@pytest.mark.parametrize(
    "given",
    [{}, {"startup": "0"}, {"startup": "60", "spare": "0"}, {"peak": "137", "input_tokens": "900", "spare": "30"},
     {"peak": "200", "output_tokens": "2000"}],
)  # fmt: skip
def test_the_day_is_what_one_gets_by_hand(given):
    picture = explorations.find("planner_day")(given)
    read = explorations.find("planner_day").read(given)
    slow, keep = int(read["startup"]) // 30, 1 - read["spare"] / 100
    tokens = read["input_tokens"], read["output_tokens"]
    yesterday, today = planner_day.traffic(read["peak"], *tokens)
    assert len(today) == 48 and max(load.rate for load in today) == read["peak"]

    def needed(rate):
        return [max(1, math.ceil(rate / (speed / each))) for each, speed in zip(tokens, (20_000, 5_000), strict=True)]

    def reactive(now, have):
        return needed(today[now - 1].rate / keep)

    def planned(now, have):
        rates = [load.rate for load in (*yesterday, *today[:now])]
        if now < 3:  # a day and three intervals have not been seen yet
            return needed(rates[-1] / keep)
        level = sum(rates[-3:]) / sum(rates[-51:-48])
        coming = [rates[-48 + ahead] * level for ahead in range(1 + slow)]
        return [max(pair) for pair in zip(*(needed(rate / keep) for rate in coming), strict=True)]

    midnight = needed(today[0].rate / keep)
    peak = needed(read["peak"])
    for row, decide, start in zip(picture.rows, (lambda now, have: peak, reactive, planned), (peak, midnight, midnight),
                                  strict=True):  # fmt: skip
        hours, kept = day_by_hand(today, decide, start, slow)
        assert row[1:3] == (f"{hours:,.0f}", f"{kept:.1%}"), row[0]
    assert picture.answer == pytest.approx(hours)
    bars = picture.charts[2]
    assert sum(series.values[2] for series in bars.series) == pytest.approx(hours)


def test_the_lessons_sum_is_where_the_day_starts():
    words = explorations.find("planner_day")().words
    assert "At 60 requests/s, 2,000 tokens in and 500 out need 6 prefill and 6 decode workers" in words
    assert "at half that rate 3 and 3" in words


def test_a_day_of_traffic_has_the_shape_of_the_chapters():
    _, today = planner_day.traffic(60, 2_000, 500)
    same = traffic.working_day(night=6.6, day=44, noon=15.4, seed=2, intervals=48)
    assert {round(a.rate / b.rate, 9) for a, b in zip(today, same, strict=True)} == {
        round(60 / max(load.rate for load in same), 9)
    }


# --- speculation ----------------------------------------------------------------------------------------------------


def bound(tokens, batch, context):
    """Seconds of a step of Llama 3.1 8B on one H100, from the data sheets' numbers."""
    reads = (8.03e9 * 2 + batch * context * 2 * 32 * 8 * 128 * 2) / 3.35e12
    return max(reads, 2 * 8.03e9 * tokens / 989e12)


def gain(acceptance, guesses, share, batch, context):
    tokens = sum(acceptance**right for right in range(guesses + 1))
    plain = bound(batch, batch, context)
    return tokens * plain / (guesses * share * plain + bound(batch * (guesses + 1), batch, context))


@settings(max_examples=80)
@given(
    acceptance=st.floats(0, 1), guesses=st.integers(1, 12), cost=st.integers(0, 100), batch=st.integers(1, 1024),
    context=st.integers(0, 32_000),
)  # fmt: skip
def test_the_gain_is_that_of_the_formulas_written_out(acceptance, guesses, cost, batch, context):
    picture = speculation.explore(acceptance, guesses, cost, batch, context)
    share = cost / 100
    assert picture.answer == pytest.approx(gain(acceptance, guesses, share, batch, context))
    over_acceptance, over_batch = picture.charts
    mine, best, plain = over_acceptance.lines
    for x, y, most in list(zip(mine.xs, mine.ys, best.ys, strict=True))[::5]:
        assert y == pytest.approx(gain(x, guesses, share, batch, context))
        assert most == pytest.approx(max(gain(x, each, share, batch, context) for each in range(1, 13)))
    assert set(plain.ys) == {1}
    for x, y in list(zip(over_batch.lines[0].xs, over_batch.lines[0].ys, strict=True))[::5]:
        assert y == pytest.approx(gain(acceptance, guesses, share, x, context))
    for mark in over_acceptance.marks:
        assert gain(mark.at, guesses, share, batch, context) == pytest.approx(
            max(1, gain(0, guesses, share, batch, context))
        )
    assert bool(over_acceptance.marks) == (gain(1, guesses, share, batch, context) >= 1 - 1e-12)


@pytest.mark.parametrize("context", [0, 100, 700, 5_000])
@pytest.mark.parametrize(
    "acceptance, guesses, cost", [(0.7, 1, 5), (0.7, 4, 5), (0.9, 8, 2), (0.3, 3, 20), (0.0, 2, 1)]
)
def test_the_last_batch_that_pays_is_found_by_trying_all(acceptance, guesses, cost, context):
    pays = [batch for batch in range(1, 1025) if gain(acceptance, guesses, cost / 100, batch, context) >= 1]
    assert speculation.last_paying(acceptance, guesses, cost / 100, context) == max(pays, default=0)


def test_the_last_batch_that_pays_is_the_librarys_for_a_draft_that_is_a_smaller_copy():
    draft = replace(LLAMA_3_1_8B, parameters=8.03e9 / 20, active_parameters=8.03e9 / 20)
    for guesses in (1, 3, 6):
        most = spec.last_paying_batch(LLAMA_3_1_8B, draft, H100, 0.7, guesses, most=1024)
        assert speculation.last_paying(0.7, guesses, 0.05, 0) == most


def test_the_chapters_gain_without_a_draft_is_here():
    model, gpu = LLAMA_3_1_8B, H100
    for batch in (64, 128, 256):
        plain, checked = (roofline.decode_step(model, gpu, n).time for n in (batch, 2 * batch))
        given = {"batch": str(batch), "draft_cost": "0"}
        assert explorations.find("speculation")(given).answer == pytest.approx(1.7 * plain / checked)


# --- the chooser ----------------------------------------------------------------------------------------------------


def as_the_lesson_says(gpu, model, wish, scale):
    """The lesson's tree, and its rule for Dynamo."""
    if gpu == "hopper" and model in ("moe", "dense") and wish == "top":
        engine = "TensorRT-LLM"
    elif model in ("moe", "moe-new", "images") or wish == "control":
        engine = "SGLang"
    else:
        engine = "vLLM"
    return engine, "Dynamo" if scale in ("heavy", "foundation") else "the engine alone"


def test_every_combination_leads_where_the_lesson_leads():
    names = [control.name for control in explorations.find("chooser").controls]
    ends = set()
    for values in itertools.product(*(chooser.ANSWERS[name] for name in names)):
        given = dict(zip(names, values, strict=True))
        engine, above = as_the_lesson_says(**given)
        picture = chooser.explore(**given)
        assert picture.words.startswith(f"{engine}, with{'' if above == 'Dynamo' else 'out'} Dynamo")
        for (label, answer, changed), name in zip(picture.rows, names, strict=True):
            assert (label, answer) == (chooser.LABELS[name], chooser.ANSWERS[name][given[name]].words)
            others = {as_the_lesson_says(**{**given, name: value}) for value in chooser.ANSWERS[name]}
            expected = {e if e != engine else a for e, a in others - {(engine, above)}}
            said = set() if changed == "nothing" else set(re.findall(r"(?:^|; )([^:;]+): ", changed))
            assert said == expected, (given, changed)
        ends.add((engine, above))
    assert len(ends) == 6


def test_the_path_shows_what_holds():
    picture = chooser.explore("older", "moe", "top", "one")
    (chart,) = picture.charts
    looks = {span.label: span.look for span in chart.spans}
    assert looks == {"Hopper+": "idle", "supported": "green", "top speed": "green", "large MoE": "green",
                     "images": "idle", "control": "idle", "traffic": "idle", "workers": "idle"}  # fmt: skip
    unasked = chooser.explore("hopper", "moe", "top", "one").charts[0]
    assert {span.look for span in unasked.spans if span.row == 1} == {"paper"}


def test_the_answers_speak_of_every_condition_of_the_tree_and_of_nothing_else():
    facts = {fact for options in chooser.ANSWERS.values() for option in options.values() for fact in option.facts}
    asked = {condition.key for question in choosing.questions() for condition in question.conditions}
    assert facts == asked | {condition.key for condition in choosing.DYNAMO} | {"foundation_model"}
    assert set(chooser.SHORT) == facts - {"foundation_model"}
