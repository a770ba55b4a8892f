"""The rulers of number formats have a stroke at each value and nowhere else."""

import pytest
from matplotlib.colors import to_hex

from enginelab import plot
from enginelab.plot.palette import PALETTE
from enginelab.quantization import E2M1, INT4

NAMED = {colour.light for colour in PALETTE.values()}


def test_each_row_has_its_formats_values_as_shares_of_the_largest():
    ax = plot.rulers({"INT4": INT4.values, "E2M1": E2M1.values})
    strokes, lines = ax.collections[0::2], ax.collections[1::2]
    for row, (drawn, element) in enumerate(zip(strokes, (INT4, E2M1), strict=True)):
        places = [path.vertices for path in drawn.get_paths()]
        assert [place[0][0] for place in places] == pytest.approx([v / element.largest for v in element.values])
        assert all(abs(y - row) < 0.5 for place in places for _, y in place)
    assert len(lines) == 2
    assert [label.get_text() for label in ax.get_yticklabels()] == ["INT4\n8 values", "E2M1\n8 values"]
    assert {to_hex(colour) for drawn in ax.collections for colour in drawn.get_edgecolor()} <= NAMED
