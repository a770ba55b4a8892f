"""The KV-aware router: what a request would cost each worker, and which one gets it. (Chapter 7.)

The rules are those of Dynamo 1.6's router (ai-dynamo 1.6.1, `lib/kv-router/src/scheduling/selector`), which weighs
prefill that a prefix cache would not save against load, both in KV blocks. It knows two things about a worker: which
blocks its cache holds, from the worker's KV events, and which requests it was sent that have not ended.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .workload import number, whole


@dataclass(frozen=True)
class Weights:
    """How the KV-aware router weighs what it knows; names and defaults as in Dynamo 1.6.

    overlap_score_credit          share of a cached block that counts as saved
    overlap_score_credit_decay    how fast that share falls with the prefill that the worker has more than the others
    prefill_load_scale            how much a block to prefill counts against a block to hold
    decode_active_request_weight  blocks that each active request counts besides its own
    temperature                   0 takes the cheapest worker; above, dearer ones get a chance (`router_temperature`)

    Raises `ValueError` naming the weight that is negative or not a number.
    """

    overlap_score_credit: float = 1.0
    overlap_score_credit_decay: float = 0.0
    prefill_load_scale: float = 1.0
    decode_active_request_weight: float = 0.0
    temperature: float = 0.0

    def __post_init__(self):
        for name in self.__dataclass_fields__:
            number(name, getattr(self, name), least=0)


DEFAULT = Weights()


class Load(NamedTuple):
    """What the router knows of one worker when it places a request.

    overlap_blocks  leading blocks of the prompt that the worker's cache holds
    prefill_tokens  tokens still to prefill for requests that have no first token yet
    decode_blocks   full prompt blocks of its active requests and of this one, each counted once
    requests        active requests: sent there and not ended
    """

    overlap_blocks: int
    prefill_tokens: int
    decode_blocks: int
    requests: int = 0


def cost(
    prompt_tokens: int,
    overlap_blocks: int,
    prefill_tokens: int,
    decode_blocks: int,
    requests: int,
    block_size: int,
    weights: Weights = DEFAULT,
    least: int = 0,
) -> float:
    """What placing a prompt on a worker with such a `Load` costs, in KV blocks; less is better.

        prefill_load_scale * max(0, prefill_blocks - credit * overlap_blocks)
            + decode_blocks + decode_active_request_weight * requests

    `prefill_blocks` are those of the prompt and of the worker's active prefill together, and need not be whole.
    `least` is the smallest `prefill_tokens` of all workers: with a decay, the credit is divided by
    1 + decay * (blocks of active prefill above the least) / (blocks of the prompt, rounded up).
    """
    credit = weights.overlap_score_credit
    if weights.overlap_score_credit_decay:
        more = (prefill_tokens - least) / block_size / -(-prompt_tokens // block_size)
        credit *= 1.0 / (1.0 + weights.overlap_score_credit_decay * more)
    prefill = (prefill_tokens + prompt_tokens) / block_size - credit * overlap_blocks
    if prefill < 0.0:
        prefill = 0.0
    return weights.prefill_load_scale * prefill + decode_blocks + weights.decode_active_request_weight * requests


def costs(prompt_tokens: int, loads: Sequence[Load], block_size: int, weights: Weights = DEFAULT) -> list[float]:
    """`cost` on every worker. Raises `ValueError` naming a count that is negative or not whole."""
    whole("prompt_tokens", prompt_tokens, least=1)
    whole("block_size", block_size, least=1)
    for load in loads:
        for name, value in zip(Load._fields, load, strict=True):
            whole(name, value)
    least = min((load.prefill_tokens for load in loads), default=0)
    return [cost(prompt_tokens, *load, block_size, weights, least) for load in loads]


def probabilities(costs: Sequence[float], temperature: float = 0.0) -> list[float]:
    """How likely the router is to take each worker, given what each costs.

    At temperature 0 the cheapest, or one of the cheapest, all alike. Above, the softmax of the negative costs divided
    by the temperature and by the range between the cheapest and the dearest, so that the unit of cost has no say.
    """
    temperature = number("temperature", temperature, least=0)
    if not costs:
        raise ValueError("costs must have at least one worker")
    low, high = min(costs), max(costs)
    if low == high:
        return [1 / len(costs)] * len(costs)
    if not temperature:
        return [(value == low) / costs.count(low) for value in costs]
    scale = -1.0 / ((high - low) * temperature)
    weights = [math.exp(value * scale - low * scale) for value in costs]
    total = sum(weights)
    return [weight / total for weight in weights]


def choose(costs: Sequence[float], temperature: float = 0.0, draw: random.Random | None = None) -> int:
    """The index of the worker that gets the request, drawn from `probabilities`.

    `draw` decides between equal costs and, above temperature 0, at all; without it the first of the cheapest is taken
    at temperature 0. Raises `ValueError` for a temperature without `draw`.
    """
    if not costs:
        raise ValueError("costs must have at least one worker")
    if not temperature:
        low = min(costs)
        if draw is None or costs.count(low) == 1:
            return costs.index(low)
    elif number("temperature", temperature, least=0) and draw is None:
        raise ValueError("a temperature above 0 needs draw, a random.Random, to choose by chance")
    return draw.choices(range(len(costs)), probabilities(costs, temperature))[0]
