"""Speculation: how many tokens a draft buys, and when it pays. (Chapter 4; the SGLang lab.)

A quick draft guesses the next tokens, and one step of the large model checks all guesses at once: a *round*. It keeps
the guesses up to the first wrong one, and adds the token that the large model itself puts there. So a round yields at
least one token, and the answer is the one that the large model would have given alone (Leviathan, Kalman and Matias,
"Fast inference from transformers via speculative decoding", ICML 2023).

Here a guess is right with the same probability whatever came before, as in that paper. Real acceptance changes with
the text and falls towards the end of a draft.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from . import roofline
from .hardware import Gpu, Model
from .workload import number, whole

HALVINGS = 60  # of an interval of length 1 or so: then it is as narrow as a float can tell


class Round(NamedTuple):
    """One round, measured in steps of plain decoding, each of which makes one token a sequence.

    tokens   what it yields on average, each sequence
    draft    what the draft's steps take, in plain steps
    check    what the checking step takes, in plain steps
    """

    tokens: float
    draft: float
    check: float

    @property
    def speedup(self) -> float:
        """How many times as fast as plain decoding; below 1 it does not pay."""
        return self.tokens / (self.draft + self.check)


def expected_tokens(acceptance: float, draft_tokens: int) -> float:
    """Tokens that a round yields on average: (1 - a^(k+1)) / (1 - a) = 1 + a + a² + … + a^k (Leviathan et al., eq. 1).

    acceptance    a, probability that a guess is right if all before it were, 0 … 1
    draft_tokens  k, guesses in a row, at least 0
    """
    whole("draft_tokens", draft_tokens)
    return tree_tokens((number("acceptance", acceptance, least=0),), draft_tokens, draft_tokens)


def acceptance(tokens: float, draft_tokens: int) -> float:
    """The inverse: the acceptance at which rounds of `draft_tokens` guesses yield `tokens` on average.

    SGLang's `spec_accept_length` is such a yield. Its `spec_accept_rate` is another thing: right guesses among all
    guesses, (tokens - 1) / draft_tokens. For one guess both are the same; for more the rate is lower, since a wrong
    guess makes those behind it useless, right or not.

    Raises `ValueError` if no acceptance gives that many: tokens must lie between 1 and draft_tokens + 1.
    """
    draft_tokens = whole("draft_tokens", draft_tokens, least=1)
    tokens = number("tokens", tokens)
    if not 1 <= tokens <= draft_tokens + 1:
        raise ValueError(f"tokens must lie between 1 and draft_tokens + 1 = {draft_tokens + 1}, not {tokens!r}")
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if expected_tokens(middle, draft_tokens) < tokens else (low, middle)
    return high


def tree_tokens(chances: Sequence[float], steps: int, draft_tokens: int) -> float:
    """Tokens that a round yields on average if the draft keeps several candidates: a tree, as in EAGLE-2.

    chances       chances[j]: that the next token is the draft's candidate j, if everything before it was right
    steps         tokens that the draft looks ahead
    draft_tokens  nodes of the tree that are checked; one step may check them all, since a node sees only its ancestors

    Each step, the draft extends its most probable nodes, as many as there are `chances`, by as many candidates each; of
    all nodes made so the most probable are checked. A round yields one token and one more for every level on which a
    node is right, so its mean is 1 plus the probability of each node's whole path (Li et al., "EAGLE-2", EMNLP 2024).
    SGLang: --speculative-eagle-topk = len(chances), --speculative-num-steps = steps, and
    --speculative-num-draft-tokens = draft_tokens + 1, for it counts the root.
    """
    chances = [number("chances", chance, least=0) for chance in chances]
    if sum(chances) > 1 + 1e-9:
        raise ValueError(f"acceptance, or chances together, must be at most 1, not {sum(chances)!r}")
    level, nodes = [1.0], []
    for _ in range(whole("steps", steps)):
        level = sorted((path * chance for path in level for chance in chances), reverse=True)
        nodes += level
        level = level[: len(chances)]
    return 1 + sum(sorted(nodes, reverse=True)[: whole("draft_tokens", draft_tokens)])


def speculate(acceptance: float, draft_tokens: int, draft_cost: float = 0.0, check_cost: float = 1.0) -> Round:
    """A round of `draft_tokens` guesses.

    draft_cost  what one guess takes, as a share of a plain step of the large model
    check_cost  what the check takes, in plain steps: 1 as long as decode is memory-bound, see `on_gpu`

    With `check_cost` 1 the speedup is Leviathan et al.'s Theorem 3.8.
    """
    draft = whole("draft_tokens", draft_tokens) * number("draft_cost", draft_cost, least=0)
    return Round(expected_tokens(acceptance, draft_tokens), draft, number("check_cost", check_cost, above=0))


def best_length(acceptance: float, draft_cost: float, most: int = 32) -> int:
    """How many guesses a round should hold at most `most`, if checking costs one plain step; 0: do not speculate."""
    lengths = range(whole("most", most) + 1)
    return max(lengths, key=lambda length: speculate(acceptance, length, draft_cost).speedup)


def least_acceptance(draft_tokens: int, draft_cost: float = 0.0, check_cost: float = 1.0) -> float | None:
    """The acceptance from which a round is no slower than plain decoding; None if even certain guesses do not pay."""
    cost = speculate(0.0, draft_tokens, draft_cost, check_cost)
    tokens = cost.draft + cost.check
    if tokens > draft_tokens + 1:
        return None
    return acceptance(tokens, draft_tokens) if tokens > 1 else 0.0


def on_gpu(
    target: Model, draft: Model, gpu: Gpu, acceptance: float, draft_tokens: int, batch: int = 1, context: int = 0
) -> Round:
    """A round on one GPU, by the roofline bound: `batch` sequences, each with `context` tokens in its KV cache.

    The check computes draft_tokens + 1 tokens a sequence and still reads the weights and each KV cache once. While
    that reading takes longer than the arithmetic, it costs one plain step; in large batches it costs more. The draft
    takes one step a guess. For EAGLE, `draft` is its single layer and the head.
    """
    plain = roofline.decode_step(target, gpu, batch, context).time
    check = roofline.decode_step(target, gpu, batch, context, new_tokens=draft_tokens + 1).time
    guess = roofline.decode_step(draft, gpu, batch, context).time
    return speculate(acceptance, draft_tokens, guess / plain, check / plain)


def last_paying_batch(
    target: Model, draft: Model, gpu: Gpu, acceptance: float, draft_tokens: int, context: int = 0, most: int = 4096
) -> int:
    """The largest batch, up to `most`, at which the round is no slower than plain decoding; 0 if there is none.

    Every batch is tried, for a round need not pay less and less: with long contexts a draft of few layers becomes
    cheaper, compared with the large model, the more KV caches are read.
    """
    batches = range(whole("most", most, least=1), 0, -1)
    rounds = ((batch, on_gpu(target, draft, gpu, acceptance, draft_tokens, batch, context)) for batch in batches)
    return next((batch for batch, round_ in rounds if round_.speedup >= 1), 0)


def look_up(tokens: Sequence[int], draft_tokens: int, longest: int = 5, shortest: int = 2) -> tuple[int, ...]:
    """A draft without a model: what followed the last few tokens when they occurred before (n-gram, prompt look-up).

    tokens             prompt and answer so far
    draft_tokens       guesses at most; there are fewer where the text ends, and none where nothing occurred before
    longest, shortest  how many last tokens are looked for; more are preferred to fewer, and earlier places to later

    The same guesses as vLLM 0.32's `ngram` method with prompt_lookup_max and prompt_lookup_min.
    """
    tokens, draft_tokens = tuple(tokens), whole("draft_tokens", draft_tokens)
    for size in range(min(longest, len(tokens) - 1), whole("shortest", shortest, least=1) - 1, -1):
        last = tokens[-size:]
        for end in range(size, len(tokens)):
            if tokens[end - size : end] == last:
                return tokens[end : end + draft_tokens]
    return ()


def keep(draft: Sequence[int], chosen: Sequence[int]) -> tuple[int, ...]:
    """What a round keeps when the large model, at each place of `draft` and behind it, would have `chosen` a token.

    The right guesses, then the large model's own token; `chosen` is one longer than `draft`.
    """
    if len(chosen) != len(draft) + 1:
        raise ValueError(f"chosen must have one token more than the draft of {len(draft)}, not {len(chosen)}")
    right = next((i for i, guess in enumerate(draft) if guess != chosen[i]), len(draft))
    return tuple(chosen[: right + 1])
