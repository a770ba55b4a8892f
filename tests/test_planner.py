"""The planner's arithmetic against the lesson and against exact rationals."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab import planner

WORKER = {"prefill_tokens_per_s": 20_000, "decode_tokens_per_s": 5_000}


def test_the_lesson():
    assert planner.demand(rate=30, input_tokens=2000, output_tokens=500) == (60_000, 15_000)
    assert planner.replicas(rate=30, input_tokens=2000, output_tokens=500, **WORKER) == (3, 3)
    assert planner.replicas(rate=60, input_tokens=2000, output_tokens=500, **WORKER) == (6, 6)
    # One request more than the workers keep up with costs a worker of each kind.
    assert planner.replicas(rate=31, input_tokens=2000, output_tokens=500, **WORKER) == (4, 4)


cents = st.decimals(0, 1000, places=2)


@given(rate=cents, tokens=st.integers(0, 5000), speed=st.decimals(Decimal("0.01"), 1000, places=2))
def test_replicas_are_the_exact_ratio_rounded_up(rate, tokens, speed):
    got = planner.replicas(float(rate), tokens, tokens, float(speed), float(speed), least=0)
    exact = math.ceil(Fraction(rate) * tokens / Fraction(speed))
    assert got == (exact, exact)


def test_a_tenth_of_ten_needs_one_worker():
    assert planner.replicas(0.1, 10, 10, prefill_tokens_per_s=1, decode_tokens_per_s=1) == (1, 1)


def test_workers_stay_up_without_load():
    assert planner.replicas(0, 2000, 500, **WORKER) == (1, 1)
    assert planner.replicas(0, 2000, 500, **WORKER, least=2) == (2, 2)


@pytest.mark.parametrize("value", ["30", None, -1, math.nan, math.inf, True, [30], 10**400])
@pytest.mark.parametrize("name", ["rate", "input_tokens", "output_tokens"])
def test_loads_that_are_not_numbers_are_named(name, value):
    load = {"rate": 30, "input_tokens": 2000, "output_tokens": 500} | {name: value}
    for call in (planner.demand, lambda **load: planner.replicas(**load, **WORKER)):
        with pytest.raises(ValueError, match=f"^{name} must be a finite number"):
            call(**load)


@pytest.mark.parametrize("value", [0, -1, "fast", math.nan])
@pytest.mark.parametrize("name", WORKER)
def test_a_worker_has_a_speed(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be a finite number greater than 0"):
        planner.replicas(30, 2000, 500, **WORKER | {name: value})
