"""One scaling decision: what Dynamo says, and what must hold of any. The rest is against the real one, in engines/."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab.planner import Replicas
from enginelab.scaling import Limits, scale, wanted

pools = st.builds(Replicas, st.integers(0, 30), st.integers(0, 30))


@st.composite
def limits(draw):
    least, gpus = [draw(st.integers(0, 3)) for _ in range(2)], [draw(st.sampled_from([1, 2, 8])) for _ in range(2)]
    room = draw(st.none() | st.integers(0, 60))
    budget = None if room is None else room + sum(n * g for n, g in zip(least, gpus, strict=True))
    return Limits(*least, draw(st.sampled_from([1, 8, 100])), budget, *gpus)


def test_dynamos_own_decisions():
    # ai-dynamo 1.6.1: 100 requests/s at 10 a worker, from one of each: 8 more at most; 8 GPUs are shared.
    assert scale(Replicas(1, 1), wanted(100, 10, 10)) == (9, 9)
    eight = Limits(gpus=8)
    assert scale(Replicas(1, 1), wanted(60, 10, 10, eight), eight) == (4, 4)


@given(rate=st.floats(0, 1e3), speeds=st.tuples(st.floats(0.1, 100), st.floats(0.1, 100)), limits=limits())
def test_wanted_workers_keep_up_and_one_fewer_does_not(rate, speeds, limits):
    for count, speed, least in zip(wanted(rate, *speeds, limits), speeds, limits.least, strict=True):
        assert count >= least and count >= rate / speed
        assert count == least or count - 1 < rate / speed


@given(pools, pools, limits())
def test_a_decision_keeps_its_limits(current, target, limits):
    after = scale(current, target, limits)
    short = any(now < least for now, least in zip(current, limits.least, strict=True))
    assert limits.fits(after)
    assert all(count >= least for count, least in zip(after, limits.least, strict=True)) or not limits.fits(current)
    if limits.fits(current) and not short:
        goals = [max(goal, least) for goal, least in zip(target, limits.least, strict=True)]
        for now, goal, count in zip(current, goals, after, strict=True):
            assert min(now, goal) <= count <= max(now, goal)
            assert abs(count - now) <= limits.most_change


@given(pools, pools, limits())
def test_decisions_settle(current, target, limits):
    for _ in range(100):
        after = scale(current, target, limits)
        if after == current:
            return
        current = after
    raise AssertionError(f"still moving at {current}")


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda: Limits(least_prefill=-1), "least_prefill"),
        (lambda: Limits(most_change=0), "most_change"),
        (lambda: Limits(prefill_gpus=0), "prefill_gpus"),
        (lambda: Limits(gpus=1), "gpus must hold the least workers, which take 2"),
        (lambda: wanted(-1, 1, 1), "rate"),
        (lambda: wanted(1, 0, 1), "prefill_rate"),
        (lambda: wanted(1, 1, math.nan), "decode_rate"),
        (lambda: scale((1, -1), (1, 1)), "workers"),
    ],
)
def test_impossible_limits_are_named(call, named):
    with pytest.raises(ValueError, match=f"^{named}"):
        call()
