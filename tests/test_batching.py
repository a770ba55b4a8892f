"""The slot model against a server that walks step by step, and against the lesson's numbers."""

import re
from fractions import Fraction

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab import batching
from enginelab.batching import Run

LESSON = [2, 8, 3, 5, 3, 4]
POLICIES = {"static": batching.static, "continuous": batching.continuous}


def walk(lengths, slots, arrivals, refill):
    """The oracle: one step at a time. `refill` is whether a slot may be filled while others are still busy."""
    waiting = sorted(range(len(lengths)), key=lambda i: arrivals[i])
    place, runs, step = [None] * slots, [None] * len(lengths), 0
    while waiting or any(place):
        if refill or not any(place):
            for slot in range(slots):
                if place[slot] is None and waiting and arrivals[waiting[0]] <= step:
                    request = waiting.pop(0)
                    place[slot] = runs[request] = Run(slot + 1, step + 1, step + lengths[request])
        step += 1
        place = [None if run and run.last_step == step else run for run in place]
    return tuple(runs)


@st.composite
def loads(draw):
    lengths = draw(st.lists(st.integers(1, 9), max_size=14))
    arrivals = draw(st.lists(st.integers(0, 20), min_size=len(lengths), max_size=len(lengths)))
    return lengths, draw(st.integers(1, 6)), draw(st.sampled_from([arrivals, sorted(arrivals), [0] * len(lengths)]))


@pytest.mark.parametrize("name, refill", [("static", False), ("continuous", True)])
@given(load=loads())
def test_equals_a_server_that_walks_step_by_step(name, refill, load):
    lengths, slots, arrivals = load
    schedule = POLICIES[name](lengths, slots, arrivals)
    runs = walk(lengths, slots, arrivals, refill)
    assert schedule.runs == runs
    assert schedule.steps == max((run.last_step for run in runs), default=0)


@given(load=loads())
def test_without_arrivals_everyone_is_there_at_the_start(load):
    lengths, slots, _ = load
    for policy in POLICIES.values():
        assert policy(lengths, slots) == policy(lengths, slots, [0] * len(lengths))


@given(load=loads())
def test_continuous_is_bounded_by_the_longest_request_and_by_the_work(load):
    lengths, slots, _ = load
    schedule = batching.continuous(lengths, slots)
    assert schedule.useful_slot_steps == sum(lengths) <= schedule.slot_steps
    assert schedule.steps >= max(lengths, default=0)
    # Graham's bound for list scheduling: at most twice the best possible.
    assert schedule.steps <= sum(lengths) / slots + max(lengths, default=0)


def test_the_lesson():
    static, continuous = batching.static(LESSON, slots=4), batching.continuous(LESSON, slots=4)
    assert (static.steps, continuous.steps) == (12, 8)
    assert (static.slot_steps, continuous.slot_steps) == (48, 32)
    assert static.useful_slot_steps == continuous.useful_slot_steps == 25
    assert (round(100 * static.utilization), round(100 * continuous.utilization)) == (52, 78)
    assert Fraction(static.steps, continuous.steps) == Fraction(3, 2)
    assert continuous.runs == (
        Run(1, 1, 2), Run(2, 1, 8), Run(3, 1, 3), Run(4, 1, 5), Run(1, 3, 5), Run(3, 4, 7),
    )  # fmt: skip


def test_nothing_to_do_takes_no_steps():
    for policy in POLICIES.values():
        schedule = policy([], slots=4)
        assert (schedule.steps, schedule.utilization, schedule.runs) == (0, 0.0, ())


def test_numpy_integers_are_whole_numbers():
    assert batching.continuous(numpy.array(LESSON), slots=numpy.int64(4)) == batching.continuous(LESSON, slots=4)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize(
    "arguments, named",
    [
        (([1, 0], 4), "lengths[1] must be a whole number of at least 1, not 0"),
        (([-3], 4), "lengths[0] must be a whole number of at least 1, not -3"),
        (([1, 2.5], 4), "lengths[1] must be a whole number of at least 1, not 2.5"),
        (([True], 4), "lengths[0] must be a whole number of at least 1, not True"),
        (([float("nan")], 4), "lengths[0] must be a whole number of at least 1, not nan"),
        ((1_000_000, 4), "lengths must be a list of whole numbers, not 1000000"),
        (("28353", 4), "lengths must be a list of whole numbers, not '28353'"),
        ((None, 4), "lengths must be a list of whole numbers, not None"),
        (([1], 0), "slots must be a whole number of at least 1, not 0"),
        (([1], -1), "slots must be a whole number of at least 1, not -1"),
        (([1], 1.5), "slots must be a whole number of at least 1, not 1.5"),
        (([1], None), "slots must be a whole number of at least 1, not None"),
        (([1, 2], 4, [0]), "arrivals must have one entry per request (2), not 1"),
        (([1], 4, [-1]), "arrivals[0] must be a whole number of at least 0, not -1"),
        (([1], 4, 7), "arrivals must be a list of whole numbers, not 7"),
    ],
)
def test_bad_input_is_named(policy, arguments, named):
    with pytest.raises(ValueError, match=f"^{re.escape(named)}$"):
        policy(*arguments)


def test_an_endless_stream_of_bad_values_is_cut_in_the_message():
    with pytest.raises(ValueError) as error:
        batching.static("x" * 10_000, 4)
    assert len(str(error.value)) < 200


class TestToTrace:
    def test_steps_become_seconds(self):
        trace = batching.continuous(LESSON, slots=4).to_trace(0.5)
        assert trace.last_token == tuple(0.5 * step for step in (2 / 2 * 2, 8, 3, 5, 5, 7))
        assert trace.first_token == tuple(0.5 * step for step in (1, 1, 1, 1, 3, 4))
        assert trace.scheduled == (0, 0, 0, 0, 1.0, 1.5)
        assert [len(times) for times in trace.token_times] == LESSON

    def test_a_step_may_cost_more_when_more_requests_run(self):
        schedule = batching.continuous([1, 3], slots=2, arrivals=[0, 1])
        trace = schedule.to_trace(lambda running: 1 + running)
        # Step 1 runs one request, steps 2 to 4 the other: two seconds each.
        assert trace.requests[1].arrival == 2
        assert trace.last_token == (2, 8)

    @pytest.mark.parametrize("seconds", [0, -1, float("nan"), "1", None])
    def test_a_step_takes_time(self, seconds):
        with pytest.raises(ValueError, match="^step_seconds must be"):
            batching.static([1], slots=1).to_trace(seconds)
