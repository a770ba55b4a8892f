"""`prefix_tree`, `router` and `kvrouter` once more, on arrays, and `serve`, which runs it all."""

from __future__ import annotations

import numpy

from .engine import advance, quiet_until, submit
from .kvcache import delete, drop_run, find, insert, new_run, parting, replace
from .memory import FOREVER, FULL, NONE, jit, kept

AT_ONCE = 1000  # as in `scheduler` and in `router`
ALONE, IN_TURN, FEWEST_REQUESTS, KV_AWARE = range(4)


# --- prefix_tree ------------------------------------------------------------------------------------------------


@jit
def _add(m, e, s, count):
    found, parent = 0, e.prompts
    while found < count:
        r = find(m, parent, m.ids[s.offset + found])
        if r == NONE:
            break
        run = m.runs[r]
        stop = min(run.end, count)
        if m.ids[run.offset + stop - 1] != m.ids[s.offset + stop - 1]:
            stop = parting(m, run.offset, s.offset, found, stop - 1)
        if stop < run.end:
            r = _split_prompt(m, r, stop)
        m.runs[r].users += 1
        found, parent = stop, r
    if found < count:
        parent = new_run(m, s.offset, s.ids, found, count, parent, 1)
        insert(m, parent)
        e.active_blocks += count - found
    return parent


@jit
def _split_prompt(m, r, at):
    run = m.runs[r]
    head = new_run(m, run.offset, run.ids, run.start, at, run.parent, run.users)
    replace(m, r, head)
    run.start, run.parent, run.first = at, head, m.ids[run.offset + at]
    insert(m, r)
    return head


@jit
def _remove(m, e, r):
    while r != e.prompts:
        run = m.runs[r]
        parent = run.parent
        run.users -= 1
        if not run.users:
            e.active_blocks -= run.end - run.start
            delete(m, r)
            drop_run(m, r)
        r = parent


@jit
def _known(m, s, count, parent):
    found, used = 0, True
    while found < count:
        r = find(m, parent, m.ids[s.offset + found])
        if r == NONE:
            break
        run = m.runs[r]
        stop = min(run.end, count, run.ids)
        used = used and run.users > 0
        if m.ids[run.offset + stop - 1] != m.ids[s.offset + stop - 1]:
            return parting(m, run.offset, s.offset, found, stop - 1), used
        found, parent = stop, r
    return found, used


# --- router._Worker ---------------------------------------------------------------------------------------------


@jit
def _catch_up(m, e, now, at):
    if now >= e.engine_quiet:
        advance(m, e, at)
        e.engine_quiet = quiet_until(m, e)
    quiet = e.engine_quiet
    while e.first_prefill != NONE and m.results[e.first_prefill].first_token <= now:
        e.prefill_tokens -= m.sequences[e.first_prefill].to_prefill
        e.first_prefill = m.sequences[e.first_prefill].next_prefill
    if e.first_prefill != NONE and m.results[e.first_prefill].first_token < quiet:
        quiet = m.results[e.first_prefill].first_token
    while e.first_left != NONE and m.results[e.first_left].last_token <= now:
        s = m.sequences[e.first_left]
        e.first_left = s.next_left
        e.requests -= 1
        e.other_blocks -= s.others
        if s.booked != NONE:
            _remove(m, e, s.booked)
    if e.first_left != NONE and m.results[e.first_left].last_token < quiet:
        quiet = m.results[e.first_left].last_token
    e.quiet = quiet


@jit
def _cached(m, e, s, count):
    blocks, used = _known(m, s, count, e.root)
    if not used:
        advance(m, e, s.at)
        blocks, _ = _known(m, s, count, e.root)
    return blocks


@jit
def _book(m, e, i, prefill_tokens):
    s = m.sequences[i]
    full = s.prompt // e.size
    count = min(full, s.ids)
    s.booked = _add(m, e, s, count) if count else NONE
    s.others = full - count
    s.to_prefill, s.next_prefill = prefill_tokens, NONE
    if e.first_prefill == NONE:
        e.first_prefill = i
    else:
        m.sequences[e.last_prefill].next_prefill = i
    e.last_prefill = i
    e.other_blocks += full - count
    e.prefill_tokens += prefill_tokens
    e.requests += 1
    e.quiet = e.engine_quiet = 0.0


# --- the policies -----------------------------------------------------------------------------------------------


@jit
def _place_by_requests(m, engines, s):
    chosen = 0
    for w in range(engines.size):
        if s.arrival >= engines[w].quiet:
            _catch_up(m, engines[w], s.arrival, s.at)
        if engines[w].requests < engines[chosen].requests:
            chosen = w
    return chosen


@jit
def _place_by_cost(m, engines, s, weights, uniform):
    """The worker, and whether `uniform` decided."""
    credit, decay, scale, per_request = weights
    size = engines[0].size
    full = s.prompt // size
    count = min(full, s.ids)
    least = FOREVER
    for w in range(engines.size):
        e = engines[w]
        if s.arrival >= e.quiet:
            _catch_up(m, e, s.arrival, s.at)
        e.overlap = 0
        if count and find(m, e.root, m.ids[s.offset]) != NONE:
            e.overlap = _cached(m, e, s, count)
        least = min(least, e.prefill_tokens)
    low = high = 0.0
    for w in range(engines.size):
        e = engines[w]
        blocks = e.active_blocks + e.other_blocks + full
        if count:
            blocks -= _known(m, s, count, e.prompts)[0]
        share = credit
        if decay:
            more = (e.prefill_tokens - least) / size / -(-s.prompt // size)
            share *= 1.0 / (1.0 + decay * more)
        prefill = (e.prefill_tokens + s.prompt) / size - share * e.overlap
        if prefill < 0.0:
            prefill = 0.0
        e.price = scale * prefill + blocks + per_request * e.requests
        low = e.price if w == 0 else min(low, e.price)
        high = e.price if w == 0 else max(high, e.price)
    return _choose(engines, low, high, uniform)


@jit
def _choose(engines, low, high, uniform):
    """`kvrouter.choose` at temperature 0, which draws by `random.Random.choices`."""
    ties, first = 0, NONE
    for w in range(engines.size):
        if engines[w].price == low:
            ties += 1
            first = w if first == NONE else first
    if ties == 1:
        return first, False
    total = 0.0
    for w in range(engines.size):
        total += (engines[w].price == low) / ties
    chance, reached = uniform * total, 0.0
    for w in range(engines.size - 1):
        reached += (engines[w].price == low) / ties
        if chance < reached:
            return w, True
    return engines.size - 1, True


@kept
def serve(m, engines, policy, weights, uniforms):
    """Give every request to an engine and run all engines until all is done; `m.report` says if that was possible.

    engines   one row of `ENGINE` a worker
    weights   credit, decay, scale and weight of a request, for KV_AWARE
    uniforms  what `random.Random(seed).random()` gives, in order, one a request
    """
    count, ties = m.sequences.size, 0
    for i in range(count):
        s = m.sequences[i]
        if m.spare[0] < 4:
            m.report[0] = FULL
            return
        if policy == ALONE:
            w = 0
        elif policy == IN_TURN:
            turn, w = i // engines.size, i % engines.size
            if turn % AT_ONCE == AT_ONCE - 1:
                advance(m, engines[w], s.at)
        elif policy == FEWEST_REQUESTS:
            w = _place_by_requests(m, engines, s)
        else:
            w, tied = _place_by_cost(m, engines, s, weights, uniforms[ties])
            ties += tied
        if m.report[0]:
            return
        submit(m, engines[w], i)
        if m.report[0]:
            return
        if policy == ALONE and (i % AT_ONCE == AT_ONCE - 1 or i == count - 1):
            advance(m, engines[w], s.at)
            if m.report[0]:
                return
        elif policy == FEWEST_REQUESTS:
            _book(m, engines[w], i, s.prompt)
        elif policy == KV_AWARE:
            _book(m, engines[w], i, s.prompt - engines[w].overlap * engines[w].size)
    for w in range(engines.size):
        advance(m, engines[w], numpy.int64(FOREVER))
        if m.report[0]:
            return
