"""Speculation against dice: rounds are played out guess by guess, and every formula is held against what came of it."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab import hardware, roofline, speculation
from enginelab.hardware import Gpu, Model
from enginelab.speculation import look_up, on_gpu

ROUNDS = 40_000
probabilities = st.floats(0, 1)
lengths = st.integers(1, 12)
costs = st.floats(0, 2)


def tree(chances, steps, draft_tokens):
    """The paths that EAGLE-2's draft would check, each a tuple of candidate numbers, drawn node by node."""

    def likely(path):
        return math.prod(chances[j] for j in path)

    alive, made = [()], []
    for _ in range(steps):
        grown = [(*path, j) for path in alive for j in range(len(chances))]
        made += grown
        alive = sorted(grown, key=likely, reverse=True)[: len(chances)]
    return set(sorted(made, key=likely, reverse=True)[:draft_tokens])


def played(chances, steps, draft_tokens, seed=0):
    """Mean tokens of many rounds: the dice say which candidate is right on each level, if any; the path is walked."""
    paths, draw, tokens = tree(chances, steps, draft_tokens), random.Random(seed), 0
    candidates = [*range(len(chances)), None]
    weights = [*chances, 1 - sum(chances)]
    for _ in range(ROUNDS):
        path = ()
        while (path := (*path, draw.choices(candidates, weights)[0])) in paths:
            pass
        tokens += len(path)  # the last one is the large model's own
    return tokens / ROUNDS


@pytest.mark.parametrize("acceptance, k", [(0.0, 3), (0.3, 1), (0.7, 1), (0.7, 4), (0.9, 8), (1.0, 5)])
def test_a_chain_yields_what_the_dice_say(acceptance, k):
    assert speculation.expected_tokens(acceptance, k) == pytest.approx(played((acceptance,), k, k), rel=0.02)


@pytest.mark.parametrize(
    "chances, steps, nodes",
    [((0.6, 0.2), 3, 6), ((0.5, 0.3, 0.1), 2, 4), ((0.4, 0.3, 0.2, 0.05), 3, 12), ((0.7, 0.1), 1, 2)],
)
def test_a_tree_yields_what_the_dice_say(chances, steps, nodes):
    assert speculation.tree_tokens(chances, steps, nodes) == pytest.approx(played(chances, steps, nodes), rel=0.02)


@given(a=st.floats(0, 0.99), k=st.integers(0, 12))
def test_the_closed_form_of_the_paper(a, k):
    assert speculation.expected_tokens(a, k) == pytest.approx((1 - a ** (k + 1)) / (1 - a))


@given(a=probabilities, k=lengths)
def test_a_round_yields_at_least_one_token_and_at_most_all_guesses_and_one(a, k):
    assert 1 <= speculation.expected_tokens(a, k) <= k + 1
    assert speculation.expected_tokens(a, k) <= speculation.expected_tokens(a, k + 1) + 1e-12


@given(first=st.floats(0, 0.6), second=st.floats(0, 0.3), steps=st.integers(1, 4), nodes=st.integers(1, 8))
def test_a_second_candidate_is_no_loss_where_both_have_room(first, second, steps, nodes):
    chain = speculation.tree_tokens((max(first, second),), steps, nodes)
    both = speculation.tree_tokens((max(first, second), min(first, second)), steps, nodes)
    assert both >= chain - 1e-12


@given(a=probabilities, k=lengths)
def test_acceptance_is_the_inverse(a, k):
    tokens = speculation.expected_tokens(a, k)
    assert speculation.expected_tokens(speculation.acceptance(tokens, k), k) == pytest.approx(tokens)


@given(a=probabilities)
def test_for_one_guess_acceptance_and_the_share_of_right_guesses_are_the_same(a):
    tokens = speculation.expected_tokens(a, 1)
    assert speculation.acceptance(tokens, 1) == pytest.approx(tokens - 1, abs=1e-9)


def test_a_wrong_guess_takes_those_behind_it_along():
    tokens = speculation.expected_tokens(0.8, 4)
    assert (tokens - 1) / 4 < speculation.acceptance(tokens, 4) == pytest.approx(0.8)


@given(a=probabilities, k=lengths, cost=costs)
def test_speedup_is_the_papers_theorem(a, k, cost):
    theorem = speculation.expected_tokens(a, k) / (k * cost + 1)
    assert speculation.speculate(a, k, cost).speedup == pytest.approx(theorem)


@given(a=st.floats(0, 0.99), cost=st.floats(0.001, 1.5))
def test_the_best_length_beats_its_neighbours_and_is_none_exactly_where_one_guess_does_not_pay(a, cost):
    most = 64
    best = speculation.best_length(a, cost, most)
    speedup = {k: speculation.speculate(a, k, cost).speedup for k in range(min(best + 1, most) + 1)}
    assert all(speedup[best] >= other for other in speedup.values())
    # Leviathan et al., corollary 3.9: there is a length that pays if and only if acceptance exceeds the draft's cost.
    assert (best > 0) == (speculation.speculate(a, 1, cost).speedup > 1)
    if abs(a - cost) > 1e-9:
        assert (best > 0) == (a > cost)


@given(k=lengths, cost=costs, check=st.floats(0.5, 8))
def test_from_the_least_acceptance_on_a_round_pays(k, cost, check):
    least = speculation.least_acceptance(k, cost, check)
    if least is None:
        assert speculation.speculate(1.0, k, cost, check).speedup < 1
        return
    assert speculation.speculate(least, k, cost, check).speedup >= 1 - 1e-9
    if least > 1e-3:
        assert speculation.speculate(least - 1e-3, k, cost, check).speedup < 1


DRAFT = Model("draft", 0.4e9, 0.4e9, 1, 8, 128, "an EAGLE-like layer and a head, for the test")


def test_a_check_costs_one_plain_step_until_the_arithmetic_takes_longer():
    model, gpu = hardware.LLAMA_3_1_8B, hardware.H100
    critical = roofline.critical_batch(model, gpu)
    assert on_gpu(model, DRAFT, gpu, 0.7, 3, batch=int(critical / 4)).check == 1
    assert 1 < on_gpu(model, DRAFT, gpu, 0.7, 3, batch=int(critical / 2)).check < 4
    assert on_gpu(model, DRAFT, gpu, 0.7, 3, batch=int(critical) + 1).check == pytest.approx(4)


def test_the_check_reads_each_kv_cache_once():
    model, gpu = hardware.LLAMA_3_1_8B, hardware.H100
    plain, check = (roofline.decode_step(model, gpu, 32, 4000, new_tokens=n) for n in (1, 4))
    assert check.bytes_moved == plain.bytes_moved and check.operations == 4 * plain.operations
    assert roofline.decode_step(model, gpu, 128, 0).operations == check.operations


GPUS = st.builds(lambda b, f: Gpu("g", 80e9, b, f, "test", 9.0, "test"), st.floats(1e11, 1e13), st.floats(1e13, 1e15))


@given(gpu=GPUS, a=probabilities, k=st.integers(1, 6), context=st.sampled_from([0, 500, 20_000]))
def test_beyond_the_last_paying_batch_none_pays(gpu, a, k, context):
    load = (hardware.LLAMA_3_1_8B, DRAFT, gpu, a, k)
    last = speculation.last_paying_batch(*load, context, most=300)
    paying = [batch for batch in range(1, 301) if on_gpu(*load, batch, context).speedup >= 1]
    assert last == (paying[-1] if paying else 0)


def test_draft_by_look_up():
    text = [1, 2, 3, 9, 1, 2, 4, 7, 1, 2]
    assert look_up(text, 3) == (3, 9, 1)  # the earlier place
    assert look_up([5, *text[:5], 5, 1, 2], 2) == (3, 9)  # three tokens are found, and preferred to two
    assert look_up(text, 0) == look_up([1, 2, 3], 4) == look_up([], 4) == ()
    assert look_up([7, 7, 7], 5) == (7,)


@given(st.lists(st.integers(0, 3), max_size=30), st.integers(0, 5), st.integers(2, 5))
def test_a_looked_up_draft_did_follow_these_tokens_before(tokens, k, longest):
    draft = look_up(tokens, k, longest)
    assert len(draft) <= k
    text = "".join(map(str, tokens))
    for size in range(longest, 1, -1):
        place = text.find(text[-size:], 0, -1) if len(text) > size else -1
        if place >= 0:
            assert draft == tuple(map(int, text[place + size : place + size + k]))
            return
    assert draft == ()


@given(st.lists(st.integers(0, 2), min_size=1, max_size=40), st.integers(0, 4), st.integers(0, 99))
def test_speculation_never_changes_a_greedy_answer(answer, k, seed):
    """However bad the draft is: rounds of checked guesses end in the very tokens of plain decoding."""
    draw, done, rounds = random.Random(seed), [], 0
    truth = [*answer, *[0] * (k + 1)]
    while len(done) < len(answer):
        draft = [draw.randrange(3) for _ in range(k)]
        kept = speculation.keep(draft, truth[len(done) : len(done) + k + 1])
        assert 1 <= len(kept) <= k + 1 and list(kept[:-1]) == draft[: len(kept) - 1]
        done, rounds = done + list(kept), rounds + 1
    assert done[: len(answer)] == answer and rounds <= len(answer)


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda: speculation.expected_tokens(1.2, 3), "acceptance, or chances together"),
        (lambda: speculation.expected_tokens(math.nan, 3), "acceptance must"),
        (lambda: speculation.expected_tokens(0.5, -1), "draft_tokens must"),
        (lambda: speculation.tree_tokens((0.7, 0.4), 2, 3), "acceptance, or chances together"),
        (lambda: speculation.acceptance(2.5, 1), "tokens must lie between 1 and draft_tokens . 1 = 2"),
        (lambda: speculation.acceptance(0.9, 1), "tokens must lie between"),
        (lambda: speculation.speculate(0.5, 2, -0.1), "draft_cost"),
        (lambda: speculation.speculate(0.5, 2, 0.1, 0), "check_cost"),
        (lambda: speculation.keep([1, 2], [1, 2]), "chosen must have one token more"),
        (lambda: look_up([1, 2], 2, shortest=0), "shortest"),
    ],
)
def test_what_makes_no_sense_is_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()
