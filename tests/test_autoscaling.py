"""A fleet over a day: counted by hand, and what must hold of any scaler."""

import math

import pytest

from enginelab import autoscaling, forecast
from enginelab.autoscaling import Load, Sla, over_a_day
from enginelab.engine_profile import Curve, Profile
from enginelab.planner import Replicas
from enginelab.scaling import Limits

# One worker keeps up 1,000 prompt tokens/s and 100 output tokens/s: 10 requests/s of 100 and 10 tokens.
PROFILE = Profile(Curve((0, 1000, 2000), (0.1, 0.5, 4.5)), Curve((0, 100, 200), (0.01, 0.05, 0.45)))
SLA = Sla(0.5, 0.05)


def loads(*rates):
    return [Load(rate, 100, 10) for rate in rates]


def test_a_fixed_fleet_by_hand():
    two = Replicas(2, 2)
    day = over_a_day(loads(10, 20, 30, 0), autoscaling.fixed(two), PROFILE, SLA, start=two, interval=900)
    assert day.workers == (two,) * 4
    assert day.met == (True, True, False, True)
    assert day.attained == 30 / 60
    assert day.gpu_hours == 4.0


def test_the_planner_by_hand():
    planner = autoscaling.planned(PROFILE, SLA, forecast.constant)
    day = over_a_day(loads(5, 25, 25, 5, 5), planner, PROFILE, SLA, Replicas(1, 1), interval=3600)
    assert [pair.prefill for pair in day.workers] == [1, 1, 3, 3, 1]
    assert day.met == (True, False, True, True, True)
    assert day.gpu_hours == 2 * (1 + 1 + 3 + 3 + 1)


def test_starting_workers_cost_and_do_not_serve():
    planner = autoscaling.planned(PROFILE, SLA, forecast.constant)
    day = over_a_day(loads(5, 25, 25, 25, 25), planner, PROFILE, SLA, Replicas(1, 1), interval=3600, startup=2)
    assert [pair.decode for pair in day.workers] == [1, 1, 1, 1, 3]
    assert [pair.decode for pair in day.starting] == [0, 0, 2, 2, 0]
    assert day.gpu_hours == 2 * (1 + 1 + 3 + 3 + 3)


def test_reacting_keeps_its_share_in_hand():
    scaler = autoscaling.reactive(PROFILE, SLA, target=0.5)
    assert scaler(loads(20), Replicas(1, 1)) == (4, 4)
    assert scaler([], Replicas(1, 2)) == (1, 2)


def test_no_load_leaves_the_least():
    limits = Limits(2, 1)
    assert autoscaling.planned(PROFILE, SLA, forecast.constant, limits)(loads(0), Replicas(3, 3)) == (2, 1)
    assert autoscaling.reactive(PROFILE, SLA, limits)(loads(0), Replicas(3, 3)) == (2, 1)


def test_a_forecast_is_in_time_where_reacting_is_late():
    days = loads(*(20 + 15 * math.sin(2 * math.pi * i / 48) for i in range(96)))
    run = {"profile": PROFILE, "sla": SLA, "start": Replicas(3, 3), "startup": 2}
    late = over_a_day(days, autoscaling.planned(PROFILE, SLA, forecast.constant, ahead=3), **run)
    early = over_a_day(days, autoscaling.planned(PROFILE, SLA, forecast.seasonal(48), ahead=3, spare=0.01), **run)
    fixed = over_a_day(days, autoscaling.fixed(Replicas(4, 4)), **run)
    assert all(early.met[52:]), "with a day seen, the second is foreseen"
    assert not all(late.met[52:])
    assert early.gpu_hours < fixed.gpu_hours


def test_what_came_before_is_known_and_not_served():
    seen = []

    def scaler(history, current):
        seen.append([load.rate for load in history])
        return current

    day = over_a_day(loads(5, 6, 7), scaler, PROFILE, SLA, Replicas(1, 1), history=loads(1, 2))
    assert seen == [[1, 2, 5], [1, 2, 5, 6]] and [load.rate for load in day.loads] == [5, 6, 7]


def test_a_budget_holds_all_day():
    limits = Limits(gpus=5)
    planner = autoscaling.planned(PROFILE, SLA, forecast.constant, limits)
    day = over_a_day(loads(5, 50, 50, 1, 90), planner, PROFILE, SLA, Replicas(1, 1), limits, startup=1)
    for pair, more in zip(day.workers, day.starting, strict=True):
        assert limits.taken(pair) + limits.taken(more) <= 5


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda: autoscaling.fixed((0, 1)), "workers"),
        (lambda: autoscaling.reactive(PROFILE, SLA, target=0), "target"),
        (lambda: autoscaling.planned(PROFILE, SLA, forecast.constant, spare=1), "spare"),
        (lambda: autoscaling.capacities(Load(1, 0, 10), PROFILE, SLA), "input_tokens"),
        (lambda: autoscaling.capacities(Load(1, 10, 10), PROFILE, Sla(0.01, 1)), "a limit of 0.01 s is below"),
        (lambda: over_a_day(loads(-1), autoscaling.fixed((1, 1)), PROFILE, SLA, (1, 1)), "the rate of interval 0"),
        (lambda: over_a_day([], autoscaling.fixed((1, 1)), PROFILE, SLA, (1, 1), interval=0), "interval"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(ValueError, match=f"^{named}"):
        call()
