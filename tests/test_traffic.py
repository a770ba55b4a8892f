"""A day of traffic: its shape, and what it refuses."""

import pytest

from enginelab.traffic import working_day


def test_without_noise_the_day_has_the_levels_that_were_asked_for():
    day = working_day(night=6, day=40, noon=14, noise=0)
    assert len(day) == 288
    assert day[0].rate == pytest.approx(6, abs=0.01)
    assert day[11 * 12].rate == pytest.approx(46, rel=0.01)  # before the peak sets in
    assert max(day).rate == day[13 * 12].rate == pytest.approx(60, rel=0.01)
    assert {load[1:] for load in day} == {(2000, 500)}


def test_the_length_of_an_interval_changes_no_hour():
    fine, coarse = (working_day(6, 40, 14, intervals=count, noise=0) for count in (288, 24))
    assert fine[::12] == coarse


def test_noise_comes_from_the_seed():
    assert working_day(6, 40, seed=1) == working_day(6, 40, seed=1) != working_day(6, 40, seed=2)
    assert min(working_day(0, 0.1, noise=0.2, seed=3)).rate >= 0


@pytest.mark.parametrize("name, value", [("night", -1), ("noon", "1"), ("noise", 0.3), ("intervals", 0)])
def test_what_is_impossible_is_named(name, value):
    with pytest.raises(ValueError, match=name):
        working_day(**({"night": 1, "day": 1} | {name: value}))
