"""The latency of a picture: two points give a line, and the transformer's work carries it to other sizes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab.diffusion import Latency, Transformer


def counted(tokens: int, width: int) -> int:
    """Multiplications and additions of one layer, product by product: 2 x rows x columns x shared side."""
    products = [(tokens, width, width)] * 4  # query, key, value, output
    products += [(tokens, 4 * width, width), (tokens, width, 4 * width)]  # feed-forward
    products += [(tokens, tokens, width), (tokens, width, tokens)]  # scores, and what they weigh
    return sum(2 * rows * columns * shared for rows, columns, shared in products)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 64), st.integers(0, 50))
def test_the_work_is_that_of_the_matrix_products(wide, high, width, text):
    transformer = Transformer(width=width, text_tokens=text)
    size = (16 * wide, 16 * high)
    assert transformer.tokens(*size) == wide * high
    assert transformer.work(*size) == counted(wide * high + text, width)
    assert 0 < transformer.attention_share(*size) < 1


def test_attention_takes_over_as_pictures_grow():
    transformer = Transformer(width=256)
    shares = [transformer.attention_share(side, side) for side in (64, 256, 1024, 4096)]
    assert shares == sorted(shares) and shares[0] < 0.02 and shares[-1] > 0.9
    # all attention: sixteen times the work for twice the side; none: four times
    assert transformer.work(8192, 8192) / transformer.work(4096, 4096) == pytest.approx(16, rel=0.1)
    assert transformer.work(32, 32) / transformer.work(16, 16) == pytest.approx(4, rel=0.01)


@given(st.floats(0, 10), st.floats(0.01, 10), st.integers(1, 50), st.integers(1, 50), st.integers(1, 100))
def test_two_points_of_a_line_give_the_line_back(fixed, per_step, few, more, asked):
    points = {few + more: fixed + (few + more) * per_step, few: fixed + few * per_step}
    fitted = Latency.fit(512, 256, points)
    assert (fitted.width, fitted.height) == (512, 256)
    assert fitted.seconds(asked) == pytest.approx(fixed + asked * per_step, rel=1e-6, abs=1e-6)


def test_at_another_size_each_part_grows_by_its_own_rule():
    transformer = Transformer(width=256, text_tokens=24)
    here = Latency(256, 256, fixed=1.0, per_step=0.1)
    there = here.at(512, 512, transformer)
    assert there.fixed == pytest.approx(4.0)
    assert there.per_step / here.per_step == pytest.approx(counted(1048, 256) / counted(280, 256))
    assert here.at(256, 256, transformer) == here
    back = there.at(256, 256, transformer)
    assert (back.fixed, back.per_step) == (pytest.approx(1.0), pytest.approx(0.1))


@pytest.mark.parametrize(
    "points, says",
    [
        ({4: 1.0}, "exactly two measurements, not 1"),
        ({4: 1.0, 8: 2.0, 16: 4.0}, "exactly two measurements, not 3"),
        ({4: 1.0, 8: 0.9}, "8 steps took 0.90 s and 4 steps 1.00 s: measure again"),
        ({4: 0.0, 8: 0.9}, "seconds must be a finite number greater than 0"),
        ({4: 0.5, 8: float("nan")}, "seconds must be a finite number greater than 0"),
    ],
)
def test_what_gives_no_line_is_refused(points, says):
    with pytest.raises(ValueError, match=says):
        Latency.fit(256, 256, points)


def test_a_fixed_part_below_zero_becomes_zero():
    assert Latency.fit(256, 256, {4: 1.0, 8: 2.5}).fixed == 0


@pytest.mark.parametrize(
    "wrong", [{"width": 0}, {"width": 1.5}, {"width": 8, "pixels": 0}, {"width": 8, "text_tokens": -1}]
)
def test_a_transformer_of_no_size_is_refused(wrong):
    with pytest.raises(ValueError, match="must be a whole number"):
        Transformer(**wrong)


def test_a_picture_smaller_than_a_token_is_refused():
    with pytest.raises(ValueError, match="width must be a whole number"):
        Transformer(8).attention_share(15, 16)
