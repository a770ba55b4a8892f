"""The KV-aware router's cost and choice: worked numbers, and plain counting."""

import math
import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab.kvrouter import Load, Weights, choose, cost, costs, probabilities


def test_dynamos_own_numbers():
    # ai-dynamo 1.6.1, blocks of 16: of 1,200 tokens worker 1 has 62 blocks; then it gets 800 unrelated tokens, twice.
    assert costs(1200, [Load(62, 0, 75), Load(0, 0, 75)], 16) == [88.0, 150.0]
    assert costs(1200, [Load(62, 0, 125), Load(0, 0, 75)], 16) == [138.0, 150.0]
    assert costs(1200, [Load(62, 0, 175), Load(0, 0, 75)], 16) == [188.0, 150.0]


def test_each_weight_does_what_it_says():
    load, other = Load(10, 160, 40, 3), Load(0, 0, 20, 0)
    assert cost(320, *load, 16) == 20 + 10 - 10 + 40
    assert cost(320, *load, 16, Weights(overlap_score_credit=0.5)) == 20 + 10 - 5 + 40
    assert cost(320, *load, 16, Weights(prefill_load_scale=2)) == 2 * 20 + 40
    assert cost(320, *load, 16, Weights(decode_active_request_weight=1.5)) == 20 + 40 + 4.5
    # 10 blocks more than the other worker, half of the prompt's 20: the credit is divided by 1 + 1 * 0.5.
    decayed = costs(320, [load, other], 16, Weights(overlap_score_credit_decay=1))
    assert decayed == pytest.approx([20 + 10 - 10 / 1.5 + 40, 20 + 20])


def test_more_cached_than_there_is_to_prefill_costs_nothing():
    assert cost(160, 10, 0, 10, 0, 16, Weights(overlap_score_credit=1.0)) == 10
    assert cost(160, 10, 0, 10, 0, 16, Weights(overlap_score_credit=3.0)) == 10


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6), st.sampled_from([0.0, 0.3, 1.0, 5.0]))
def test_probabilities_add_up_and_fall_with_cost(values, temperature):
    shares = probabilities(values, temperature)
    assert math.isclose(sum(shares), 1)
    for (a, p), (b, q) in pairwise(zip(values, shares, strict=True)):
        assert (p >= q) if a < b else (p <= q) if a > b else math.isclose(p, q)


def test_the_unit_of_cost_has_no_say():
    assert probabilities([1, 2, 4], 0.5) == pytest.approx(probabilities([100, 200, 400], 0.5))


def test_choices_follow_the_probabilities():
    draw, values = random.Random(1), [10.0, 12.0, 15.0]
    counted = Counter(choose(values, 0.5, draw) for _ in range(20_000))
    for worker, share in enumerate(probabilities(values, 0.5)):
        assert abs(counted[worker] / 20_000 - share) < 0.015


def test_equal_costs_are_drawn_or_the_first():
    assert choose([3, 1, 1]) == 1
    draw = random.Random(0)
    assert {choose([3, 1, 1], 0.0, draw) for _ in range(50)} == {1, 2}


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda: Weights(overlap_score_credit=-1), "overlap_score_credit"),
        (lambda: Weights(temperature=math.nan), "temperature"),
        (lambda: costs(0, [Load(0, 0, 0)], 16), "prompt_tokens"),
        (lambda: costs(10, [Load(0, 0, 0)], 0), "block_size"),
        (lambda: costs(10, [Load(0, -1, 0)], 16), "prefill_tokens"),
        (lambda: costs(10, [Load(0.5, 0, 0)], 16), "overlap_blocks"),
        (lambda: probabilities([]), "costs"),
        (lambda: choose([]), "costs"),
        (lambda: choose([1], -1), "temperature"),
        (lambda: choose([1], 0.5), "a temperature above 0 needs draw"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(ValueError, match=f"^{named}"):
        call()
