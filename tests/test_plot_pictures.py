"""The figures of the image labs draw the pictures and points that they are given."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from enginelab import plot
from enginelab.diffusion import Latency
from enginelab.plot.palette import PALETTE

NAMED = {colour.light for colour in PALETTE.values()}


def test_a_gallery_shows_each_picture_under_its_title():
    pictures = {f"picture {n}": np.full((8, 16, 3), 20 * n, np.uint8) for n in range(5)}
    places = plot.gallery(pictures, columns=3)
    assert [ax.get_title(loc="left") for ax in places] == list(pictures)
    for ax, pixels in zip(places, pictures.values(), strict=True):
        assert (ax.images[0].get_array() == pixels).all()
    everything = places[0].figure.axes
    assert len(everything) == 6 and not any(ax.axison for ax in everything)


def test_apart_is_ten_times_the_difference_and_black_where_there_is_none():
    one, other = np.zeros((1, 3, 3), np.uint8), np.array([[[0, 0, 0], [2, 0, 0], [0, 200, 0]]], np.uint8)
    assert (plot.apart(one, other) == [[[0, 0, 0], [20, 0, 0], [0, 255, 0]]]).all()
    assert (plot.apart(other, one) == plot.apart(one, other)).all()


def test_picture_times_draws_each_line_and_tells_fitted_points_from_later_ones():
    small, large = Latency(256, 256, 1.0, 0.1), Latency(512, 512, 4.0, 0.5)
    ax = plot.picture_times(
        {"256x256": small, "512x512": large},
        {"256x256": {4: 1.4, 24: 3.4}},
        {"512x512": {8: 7.5}, "256x256": {12: 2.0}},
    )
    drawn = [(line.get_marker(), list(line.get_xdata()), list(line.get_ydata())) for line in ax.lines]
    assert ("None", [0, 24], [1.0, pytest.approx(3.4)]) in drawn
    assert ("None", [0, 24], [4.0, pytest.approx(16.0)]) in drawn
    assert ("o", [4, 24], [1.4, 3.4]) in drawn
    assert ("D", [8], [7.5]) in drawn and ("D", [12], [2.0]) in drawn
    lines = [line for line in ax.lines if line.get_marker() == "None"]
    assert len({line.get_linestyle() for line in lines}) == len(lines) == 2
    assert {to_hex(line.get_color()) for line in ax.lines} <= NAMED
    assert [text.get_text() for text in ax.texts] == ["256 × 256", "512 × 512"]
