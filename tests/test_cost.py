"""What a million tokens cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab.cost import per_million_tokens

amounts = st.floats(min_value=1e-3, max_value=1e6)


def test_a_million_tokens_in_an_hour_cost_what_the_hour_does():
    assert per_million_tokens(2.5, 1_000_000 / 3600) == pytest.approx(2.5)
    assert per_million_tokens(0, 10) == 0


@given(price=amounts, rate=amounts)
def test_it_is_the_bill_divided_by_what_was_made(price, rate):
    hours = 7
    assert per_million_tokens(price, rate) == pytest.approx(price * hours / (rate * hours * 3600 / 1e6))


@pytest.mark.parametrize(
    "price, rate, named", [(-1, 10, "price_per_hour"), (1, 0, "tokens_per_second"), (1, "x", "tokens_per_second")]
)
def test_impossible_numbers_are_named(price, rate, named):
    with pytest.raises(ValueError, match=named):
        per_million_tokens(price, rate)
