"""Forecasts of loads whose future is known."""

import math

import pytest

from enginelab.forecast import constant, moving_average, seasonal


def test_a_constant_says_the_last_value_again():
    assert constant([]) == 0.0
    assert constant([1.0, 5.0], 3) == 5.0


def test_a_moving_average_is_of_the_last_values():
    forecast = moving_average(2)
    assert forecast([]) == 0.0
    assert forecast([4.0]) == 4.0
    assert forecast([10.0, 2.0, 4.0]) == 3.0


@pytest.mark.parametrize("ahead", [1, 2, 5])
def test_a_season_repeats_at_its_level(ahead):
    day = [5 + 3 * math.sin(2 * math.pi * i / 24) for i in range(24)]
    doubled = [*day, *(2 * value for value in day)]
    forecast = seasonal(24)
    for now in range(30, 48 - ahead):
        assert forecast(doubled[:now], ahead) == pytest.approx(doubled[now - 1 + ahead])


def test_before_a_season_has_passed_it_is_the_last_value():
    assert seasonal(24)([1.0, 2.0]) == 2.0
    assert seasonal(2, window=1)([0.0, 0.0, 3.0]) == 0.0  # nothing then, so no level: what was


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda: moving_average(0), "window"),
        (lambda: seasonal(0), "period"),
        (lambda: seasonal(5, 0), "window"),
        (lambda: constant([1.0], 0), "ahead"),
        (lambda: seasonal(3)([1.0] * 9, 4), "ahead must be at most the period"),
        (lambda: constant([-1.0]), "the last value of history"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(ValueError, match=f"^{named}"):
        call()
