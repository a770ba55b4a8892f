"""Workloads as columns for the compiled core, and back.

It counts in 64 bits. Before it begins, `_check` computes how large its numbers can become, with Python's unbounded
ones, and refuses what is too large; the clock, which no bound tells beforehand, is watched as it runs.
"""

from __future__ import annotations

import random
import struct
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy

from ..engine import stuck
from ..step_time import PICOSECONDS, clock
from ..workload import Request, in_order
from . import Served, Unsuited, memory, router

if TYPE_CHECKING:
    from ..kvrouter import Weights
    from ..scheduler import Config

AT_ONCE = 1000  # requests that are written into columns together: what Python needs for that stays small
TOO_LATE = "its clock goes beyond 53 days"


def serve(
    requests: Sequence[Request], configs: Sequence[Config], policy: str | None, weights: Weights | None, seed: int
) -> Served:
    """As `compiled.serve`; raises `Unsuited` where the plain models have to do it."""
    order = in_order([request.arrival for request in requests])
    if mixed := isinstance(order, list):
        requests = [requests[index] for index in order]
    knows_blocks = policy == "kv_aware" or any(config.enable_prefix_caching for config in configs)
    sequences, ids = _written(requests, knows_blocks)
    _check(sequences, configs)
    factors, uniforms = _choice(weights, seed, len(requests)) if policy == "kv_aware" else ((0.0,) * 4, [])
    number = {None: router.ALONE, "round_robin": router.IN_TURN}
    number |= {"least_loaded": router.FEWEST_REQUESTS, "kv_aware": router.KV_AWARE}
    room, ended = min(2 * len(requests), 1 << 16) if knows_blocks else 0, memory.FULL
    while ended == memory.FULL:  # start again, with more room for runs of blocks
        engines, given = memory.fresh(sequences, ids, configs, room)
        router.serve(given, engines, number[policy], factors, numpy.array(uniforms, "f8"))
        (ended, index, worker), room = given.report.tolist(), 2 * room
    if ended == memory.LATE:
        raise Unsuited(TOO_LATE)
    if ended == memory.REFUSED:
        configs[worker].check(requests[index], order[index])
    if ended == memory.STUCK:
        raise stuck(order[index], int(sequences["target"][index]), configs[worker].max_num_batched_tokens)
    results = given.results[numpy.argsort(order)] if mixed else given.results
    del sequences, ids, given  # by far the larger part
    kinds = {"first_token": "d", "last_token": "d", "scheduled": "d", "cached": "q", "worker": "q"}
    return Served(*(array(kind, results[name].astype(kind).tobytes()) for name, kind in kinds.items()))


def _written(requests: Sequence[Request], with_ids: bool):
    """The rows of `Memory.sequences`, and the block ids of all prompts, one after the other."""
    sequences, ids = numpy.zeros(len(requests), memory.SEQUENCE), bytearray()
    for start in range(0, len(requests), AT_ONCE):
        some, rows = requests[start : start + AT_ONCE], sequences[start : start + AT_ONCE]
        arrivals = [request.arrival for request in some]
        if not all(issubclass(kind, (float, int)) for kind in set(map(type, arrivals))):
            raise Unsuited("its arrivals are not floats")
        rows["arrival"], rows["at"] = arrivals, _clock(numpy.array(arrivals, "f8"))
        for name, column in (("prompt", "prompt_tokens"), ("output", "output_tokens")):
            tokens = [getattr(request, column) for request in some]
            if max(tokens) >= 1 << 30:
                raise Unsuited("its tokens are too many")
            rows[name] = tokens
        if with_ids:
            prompts = [request.block_ids or () for request in some]
            lengths = numpy.array(list(map(len, prompts)))
            rows["ids"], rows["offset"] = lengths, len(ids) // 8 + numpy.cumsum(lengths) - lengths
            try:
                ids += b"".join([struct.pack(f"{len(prompt)}q", *prompt) for prompt in prompts])
            except struct.error:
                raise Unsuited("its block ids are not whole numbers of 64 bits") from None
    return sequences, numpy.frombuffer(ids, "i8")


def _clock(arrivals):
    """`step_time.clock` of an array: where the product was rounded down, it has the last word."""
    if arrivals.max() * PICOSECONDS > memory.LATEST:
        raise Unsuited(TOO_LATE)
    ticks = numpy.ceil(arrivals * PICOSECONDS)
    at = ticks.astype("i8")
    for index in numpy.flatnonzero(ticks / PICOSECONDS < arrivals):
        at[index] = clock(float(arrivals[index]))
    return at


def _choice(weights: Weights, seed: int, count: int):
    """What the KV-aware policy weighs by, and the numbers that decide between equal costs."""
    if weights.temperature:
        raise Unsuited("its router has a temperature above 0")
    factors = (
        *(weights.overlap_score_credit, weights.overlap_score_credit_decay),
        *(weights.prefill_load_scale, weights.decode_active_request_weight),
    )
    if not all(isinstance(factor, float) or factor in range(1 << 20) for factor in factors):
        raise Unsuited("its router's weights are not floats")
    draw = random.Random(seed).random
    return tuple(map(float, factors)), [draw() for _ in range(count)]


def _check(sequences, configs: Sequence[Config]) -> None:
    """Refuse what might not fit 64 bits, or would take much memory for settings that are hardly ever used."""
    count = len(sequences)
    longest = sum(int(sequences[name].max()) for name in ("prompt", "output"))
    if count >= 1 << 31 or count * longest >= 1 << 50:
        raise Unsuited("its tokens are too many")
    for config in configs:
        seats = min(config.max_num_seqs, count)
        fixed, per_prefill_token, per_sequence, per_kv_token, prefilling, per_token = config.step_time.coefficients
        tokens = min(config.max_num_batched_tokens, seats * longest)
        step = fixed + prefilling + per_prefill_token * tokens + per_sequence * seats + per_kv_token * seats * longest
        if (step + per_token * (tokens + seats)) * longest > memory.LONGEST:
            raise Unsuited("its steps are too long")
        if len(configs) * max(seats, config.block_size) > 1 << 20:
            raise Unsuited("its seats or its blocks are too large")
