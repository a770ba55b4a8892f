"""The figures of several runs: what they draw is what the data says, in colours that follow the theme."""

import pytest

from enginelab import plot, scheduler, workload

PREDICTED, MEASURED = {"a": 3.0, "b": 2.0, "c": 1.0}, {"c": 1.5, "a": 2.5}
LOAD = workload.build(workload.poisson(5, 20, seed=1), 100, 20)
RUNS = {f"engine {seats}": scheduler.simulate(LOAD, scheduler.Config(max_num_seqs=seats)) for seats in (1, 2, 4)}
FIGURES = {
    "dots": lambda: plot.dots(PREDICTED, MEASURED, "Some number"),
    "engines": lambda: plot.engines(RUNS, RUNS)[0],
}


def marks(ax):
    """Marks by their label: name of the row -> value."""
    names = [label.get_text() for label in ax.get_yticklabels()]
    return {
        line.get_label(): {names[round(y)]: x for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)}
        for line in ax.get_lines()
    }


def test_each_row_has_its_own_numbers_and_a_line_where_there_are_two():
    ax = FIGURES["dots"]()
    assert marks(ax) == {"predicted": PREDICTED, "measured": MEASURED}
    drawn = {tuple(sorted(x for x, _ in path)) for path in ax.collections[0].get_segments()}
    assert drawn == {(2.5, 3.0), (1.0, 1.5)}
    assert ax.figure.get_suptitle() == "Some number" and len(ax.figure.legends) == 1


def test_a_measurement_of_something_else_is_an_error():
    with pytest.raises(ValueError, match="has not: d$"):
        plot.dots(PREDICTED, {"d": 1.0}, "Some number")


def test_engines_are_compared_in_three_numbers():
    fewer = dict(list(RUNS.items())[:2])
    axes = plot.engines(RUNS, fewer)
    throughput, first, whole = (marks(ax) for ax in axes)
    assert throughput["predicted"] == {name: run.output_throughput for name, run in RUNS.items()}
    assert set(throughput["measured"]) == set(fewer)
    assert all(first["predicted"][name] < whole["predicted"][name] for name in RUNS)
    assert len(axes[0].figure.legends) == 1


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_suits_the_book(name, suits_the_book):
    suits_the_book(FIGURES[name])
