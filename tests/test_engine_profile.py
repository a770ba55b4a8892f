"""Engine profiles: interpolation, and that a worker keeps up what its table promises."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab import disaggregation, engine_profile, workload
from enginelab.engine_profile import Curve
from enginelab.scheduler import Config

CURVE = Curve((10, 20, 40), (1.0, 2.0, 6.0))


def test_between_points_it_is_a_line():
    assert [CURVE.at(load) for load in (0, 10, 15, 20, 30, 40)] == [1.0, 1.0, 1.5, 2.0, 4.0, 6.0]
    assert CURVE.at(41) == math.inf


def test_capacity_is_the_load_at_the_limit():
    assert [CURVE.capacity(limit) for limit in (1.0, 1.5, 4.0, 9.0)] == [10, 15, 30, 40]
    assert Curve((1, 2, 3), (1.0, 3.0, 2.0)).capacity(2.0) == 1.5, "beyond a load that fails, nothing counts"


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6), st.floats(1, 300))
def test_the_latency_at_capacity_is_within_the_limit(rises, limit):
    latencies = [sum(rises[: i + 1]) for i in range(len(rises))]
    curve = Curve(tuple(range(len(rises))), latencies)
    if latencies[0] > limit:
        with pytest.raises(ValueError, match="below the latency of an idle worker"):
            curve.capacity(limit)
    else:
        assert curve.at(curve.capacity(limit)) <= limit * (1 + 1e-9)


def test_a_pool_keeps_the_promise_of_its_profile():
    config = Config(max_num_batched_tokens=8192)
    profile = engine_profile.simulated(config, 1000, 200, [1, 4, 8, 12, 16, 20], [1, 4, 8, 16, 24, 32], count=400)
    for curve in profile:
        assert list(curve.latencies) == sorted(curve.latencies)
    ttft, tpot = 0.3, 0.03
    rate = min(profile.prefill.capacity(ttft) / 1000, profile.decode.capacity(tpot) / 200)
    requests = workload.build(workload.poisson(0.9 * rate, 1500, seed=5), 1000, 200)
    trace = disaggregation.simulate(requests, [config], [config], math.inf, 0)
    assert trace.goodput(ttft=ttft, tpot=tpot) > 0.9 * trace.request_throughput


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda: Curve((), ()), "a curve needs"),
        (lambda: Curve((1, 2), (1,)), "a curve needs"),
        (lambda: Curve((2, 1), (1, 1)), "loads must increase"),
        (lambda: Curve((1, 2), (1, -1)), r"latencies\[1\]"),
        (lambda: CURVE.at(-1), "load"),
        (lambda: CURVE.capacity(0), "limit"),
        (lambda: engine_profile.simulated(Config(), 10, 10, [], [1]), "prefill_rates"),
        (lambda: engine_profile.simulated(Config(), 10, 1, [1], [1]), "output_tokens"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(ValueError, match=f"^{named}"):
        call()
