"""The figures of promises: what they draw is what the data says, in colours that follow the theme."""

import pytest

from enginelab import autoscaling, plot
from enginelab.engine_profile import Curve, Profile
from enginelab.planner import Replicas

RATES = (8, 10, 12)
PANELS = {"25 ms": {"6 together": (1, 0.8, 0.2), "3 + 3": (1, 1, 0.9)}, "60 ms": {"6 together": (1, 1, 1)}}
SHARES, PLAIN, AWARE = (0, 0.5, 0.9), (14, 16, 20), (14, 18, 40)


def days():
    """A day of two intervals, with a small and a large fixed fleet."""
    profile = Profile(Curve((0, 100), (0.1, 0.9)), Curve((0, 100), (0.01, 0.09)))
    loads = [autoscaling.Load(1, 60, 60), autoscaling.Load(2, 60, 60)]
    sizes = [Replicas(n, n) for n in (4, 1)]
    sla = autoscaling.Sla(0.6, 0.06)
    return [autoscaling.over_a_day(loads, autoscaling.fixed(n), profile, sla, n) for n in sizes]


FIGURES = {
    "attained": lambda: plot.attained(RATES, PANELS)[0],
    "price_of_a_promise": lambda: plot.price_of_a_promise({"fixed": days(), "planned": days()[:1]}),
    "break_even_map": lambda: plot.break_even_map(SHARES, PLAIN, AWARE),
}


def lines(ax):
    return {line.get_label(): line for line in ax.get_lines() if not line.get_label().startswith("_")}


def test_each_panel_has_a_line_for_each_fleet_and_one_for_the_promise():
    axes = plot.attained(RATES, PANELS, promised=0.9)
    for ax, (title, fleets) in zip(axes, PANELS.items(), strict=True):
        assert ax.get_title(loc="left") == title
        assert {name: tuple(line.get_ydata()) for name, line in lines(ax).items()} == fleets
        assert any(set(line.get_ydata()) == {0.9} for line in ax.get_lines())
    marks = [line.get_marker() for line in lines(axes[0]).values()]
    assert len(set(marks)) == len(marks)


def test_the_price_has_a_point_a_day_from_cheap_to_dear():
    some = days()
    (line,) = lines(plot.price_of_a_promise({"fixed": some})).values()
    assert list(line.get_xdata()) == sorted(day.gpu_hours for day in some)
    assert set(zip(line.get_xdata(), line.get_ydata(), strict=True)) == {(d.gpu_hours, d.attained) for d in some}
    assert len({day.attained for day in some}) == 2


def test_the_map_has_both_lines_and_names_the_regions_where_they_lie():
    ax = plot.break_even_map(SHARES, PLAIN, AWARE)
    drawn = [tuple(line.get_ydata()) for line in lines(ax).values()]
    assert drawn == [PLAIN, AWARE]
    heights = {text.get_text(): text.get_position()[1] for text in ax.texts}
    assert heights["any router will do"] < min(PLAIN) and PLAIN[-1] < heights["only KV-aware"] < AWARE[-1]
    assert heights["neither: add workers"] > 18


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_suits_the_book(name, suits_the_book):
    suits_the_book(FIGURES[name])
