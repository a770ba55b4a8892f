"""The fleet's figures: what they draw is what the data says."""

import pytest

from enginelab import autoscaling, disaggregation, forecast, kvrouter
from enginelab.autoscaling import Load, Sla, over_a_day
from enginelab.engine_profile import Curve, Profile
from enginelab.planner import Replicas
from enginelab.plot import fleet
from enginelab.scheduler import Config
from enginelab.workload import build, poisson


def test_the_router_turns_where_the_cold_worker_gets_cheaper():
    busy = range(6)
    warm = [kvrouter.cost(1200, 62, 0, 75 + 50 * n, n, 16) for n in busy]
    cold = [kvrouter.cost(1200, 0, 0, 75, 0, 16)] * 6
    ax = fleet.router_flip(busy, warm, cold)
    lines = {line.get_label(): list(line.get_ydata()) for line in ax.lines}
    assert lines["has the prefix"] == warm and lines["has nothing"] == cold
    assert ax.get_title(loc="left") == "From 2 requests on, the cold worker is cheaper"
    seen = fleet.router_flip(busy, warm, cold, [(0, warm[0]), (2, cold[2])]).lines
    [real] = [line for line in seen if line.get_label() == "where the real router sent it"]
    assert list(zip(real.get_xdata(), real.get_ydata(), strict=True)) == [(0, warm[0]), (2, cold[2])]
    always = fleet.router_flip(busy, [1] * 6, [2] * 6)
    assert always.get_title(loc="left") == "The worker with the prefix is always cheaper"


def test_each_split_has_a_bar_as_long_as_its_goodput():
    splits = disaggregation.splits(build(poisson(5, 50), 1000, 50), Config(), 3, 1.0, 0.05, 25e9, 131072)
    ax = fleet.disaggregation(splits)
    assert [group[0].get_width() for group in ax.containers] == [split.goodput for split in splits]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [
        "all do both",
        "1 prefill, 2 decode",
        "2 prefill, 1 decode",
    ]


def test_a_day_shows_each_fleet():
    profile = Profile(Curve((0, 1000), (0.1, 0.5)), Curve((0, 100), (0.01, 0.05)))
    sla, loads = Sla(0.5, 0.05), [Load(rate, 100, 10) for rate in (5, 25, 25, 5)]
    scalers = {
        "fixed": autoscaling.fixed(Replicas(2, 2)),
        "planner": autoscaling.planned(profile, sla, forecast.constant),
    }
    days = {name: over_a_day(loads, each, profile, sla, Replicas(2, 2)) for name, each in scalers.items()}
    above, middle, below = fleet.day(days, interval=3600)
    assert list(above.lines[0].get_ydata()) == [5, 25, 25, 5]
    for line, (name, each) in zip(middle.lines, days.items(), strict=True):
        assert line.get_label() == name
        assert list(line.get_ydata()) == [sum(pair) for pair in each.workers]
    points = [(line.get_xdata()[0], line.get_ydata()[0]) for line in below.lines]
    assert points == [(each.gpu_hours, each.attained) for each in days.values()]
    with pytest.raises(ValueError, match="^days must hold 1 to 4 fleets"):
        fleet.day({})
