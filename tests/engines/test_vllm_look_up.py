"""The course's draft by look-up guesses what vLLM's n-gram proposer does."""

import random

from test_vllm import in_engine

from enginelab import speculation


def cases(count: int) -> list[tuple[list[int], int, int, int]]:
    """Texts of few different tokens, so that something is often found; guesses, longest and shortest n-gram."""
    draw, made = random.Random(0), []
    for _ in range(count):
        tokens = [draw.randrange(draw.choice([2, 4, 9])) for _ in range(draw.randrange(1, 60))]
        shortest = draw.randint(1, 4)
        made.append((tokens, draw.randint(1, 6), draw.randint(shortest, 6), shortest))
    return made


def test_the_same_guesses():
    asked = cases(3000)
    guesses = in_engine("look_up.py", asked)
    assert sum(map(bool, guesses)) > 1000
    for (tokens, *limits), guess in zip(asked, guesses, strict=True):
        assert list(speculation.look_up(tokens, *limits)) == guess, (tokens, limits)
