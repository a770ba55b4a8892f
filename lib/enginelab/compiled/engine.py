"""`engine.Engine` once more, on arrays: the same functions in the same order of work."""

from __future__ import annotations

import math

from .kvcache import drop_run, fill, hold, hold_own, match, release, settle
from .memory import FOREVER, FULL, LATE, LATEST, NONE, REFUSED, STUCK, jit, seconds


@jit
def quiet_until(m, e):
    if e.first_arrival != NONE or e.first_waiting != NONE or e.prefilling != NONE:
        return 0.0
    if not e.running:
        return math.inf
    steps = e.next_finish - e.step
    if _blocks(m, e, steps) > e.free:
        return 0.0
    first, growth = _decoding_step(e)
    return seconds(e.now + steps * first + growth * (steps * (steps - 1) >> 1))


@jit
def submit(m, e, i):
    """Report the request if the engine could never finish it, as `Config.check` does."""
    s = m.sequences[i]
    if s.prompt + s.output - 1 > e.holds or s.prompt > e.longest_prompt:
        m.report[0], m.report[1], m.report[2] = REFUSED, i, e.number
        return
    s.shared = min(s.ids, s.prompt // e.size) if e.caching else 0
    m.results[i].worker, s.target = e.number, s.prompt
    s.order = s.own = s.after = NONE
    s.done = 0
    if e.first_arrival == NONE:
        e.first_arrival = i
    else:
        m.sequences[e.last_arrival].after = i
    e.last_arrival = i


@jit
def advance(m, e, limit):
    """Run every step that starts before `limit`; stops early with a report if it cannot go on."""
    if m.report[0]:
        return
    next_at = m.sequences[e.first_arrival].at if e.first_arrival != NONE else FOREVER
    while e.now < limit:
        if m.spare[0] < e.margin or e.now > LATEST:
            m.report[0] = LATE if e.now > LATEST else FULL
            return
        if next_at <= e.now or not (e.running or e.first_waiting != NONE):
            if next_at >= limit:
                break
            if next_at > e.now:
                e.now = next_at
            if e.first_waiting == NONE:
                e.look = 1
            while next_at <= e.now:
                i = e.first_arrival
                e.first_arrival = m.sequences[i].after
                m.sequences[i].after = NONE
                if e.first_waiting == NONE:
                    e.first_waiting = i
                else:
                    m.sequences[e.last_waiting].after = i
                e.last_waiting = i
                next_at = m.sequences[e.first_arrival].at if e.first_arrival != NONE else FOREVER
        waits = e.first_waiting != NONE
        if (
            e.prefilling != NONE
            or (waits and e.look and e.running < e.seats)
            or not _jump(m, e, limit if waits or limit < next_at else next_at)
        ):
            _mixed_step(m, e)
            if m.report[0]:
                return
    settle(m, e)


@jit
def _jump(m, e, limit):
    count = e.running
    steps = e.next_finish - e.step
    first, growth = _decoding_step(e)
    if e.per_token and first < e.per_token * count:
        if growth:
            steps = min(steps, -((first - e.per_token * count) // growth))
        first, growth = e.per_token * count, 0
    time = steps * first + growth * (steps * (steps - 1) >> 1)
    room = limit - e.now
    if time > room:
        half = first - growth / 2
        steps = int(2 * room / (half + math.sqrt(half * half + 2.0 * growth * room))) + 1
        time = steps * first + growth * (steps * (steps - 1) >> 1)
        while time < room:
            steps += 1
            time = steps * first + growth * (steps * (steps - 1) >> 1)
        while steps > 1 and time - first - growth * (steps - 1) >= room:
            steps, time = steps - 1, time - first - growth * (steps - 1)
    blocks = _blocks(m, e, steps)
    if blocks > e.free:
        steps = _lasting(m, e)
        if not steps:
            return False
        time = steps * first + growth * (steps * (steps - 1) >> 1)
        blocks = _blocks(m, e, steps)
    e.free -= blocks
    e.now += time
    e.step += steps
    e.context += count * steps
    if e.step == e.next_finish:
        _finish_decoding(m, e)
    return True


@jit
def _decoding_step(e):
    return e.fixed + e.per_sequence * e.running + e.per_kv_token * e.context, e.per_kv_token * e.running


@jit
def _blocks(m, e, steps):
    need, begin = m.need[e.number], e.step % e.size
    end, blocks = begin + steps, 0
    if end > e.size:
        blocks, end = end // e.size * e.running, end % e.size
        if end < begin:
            for residue in range(end, begin):
                blocks -= need[residue]
            return blocks
    for residue in range(begin, end):
        blocks += need[residue]
    return blocks


@jit
def _lasting(m, e):
    rounds, left = e.free // e.running, e.free % e.running
    steps = rounds * e.size
    begin = m.need[e.number, (e.step + steps) % e.size]
    while left >= begin:
        left -= begin
        steps += 1
        begin = m.need[e.number, (e.step + steps) % e.size]
    return steps


@jit
def _mixed_step(m, e):
    budget, tokens, preempted = e.budget, 0, False
    blocks = m.need[e.number, e.step % e.size]
    if e.prefilling != NONE:
        s = m.sequences[e.prefilling]
        s.chunk = min(s.target - s.computed, budget - e.running + 1)
        blocks += _more_blocks(e, s)
    if blocks > e.free:
        _preempt_until_it_fits(m, e)
        preempted = True
    else:
        e.free -= blocks
    decoding, context = e.running, e.context
    budget -= decoding
    prefills = e.prefilling  # the first of those that run from there on
    if prefills != NONE:
        s = m.sequences[prefills]
        decoding, tokens, context = decoding - 1, s.chunk, context + s.computed
        budget -= tokens - 1
        _prefill(m, e, s)
    e.look = 1
    if not preempted:
        while e.first_waiting != NONE and budget and e.running < e.seats:
            i = e.first_waiting
            s = m.sequences[i]
            if not _admit(m, e, i, budget):
                e.look = prefills != NONE
                break
            if prefills == NONE:
                prefills = i
            tokens, budget, context = tokens + s.chunk, budget - s.chunk, context + s.computed - s.chunk
    if not decoding and prefills == NONE:
        if not preempted:
            m.report[0], m.report[1], m.report[2] = STUCK, e.first_waiting, e.number
        return
    time = e.fixed + e.per_prefill_token * tokens + e.per_sequence * decoding + e.per_kv_token * context
    if tokens:
        time += e.per_prefill_step
    if e.per_token and time < e.per_token * (tokens + decoding):
        time = e.per_token * (tokens + decoding)
    e.now += time
    e.step += 1
    e.context += decoding
    if e.step == e.next_finish:
        _finish_decoding(m, e)
    e.prefilling = NONE
    while prefills != NONE:
        i, prefills = prefills, m.sequences[prefills].after
        if m.sequences[i].computed == m.sequences[i].target:
            _give_token(m, e, i)
        else:
            e.prefilling = i


@jit
def _admit(m, e, i, budget):
    s = m.sequences[i]
    found, own, idle, inside, r = 0, 0, 0, 0, e.root
    if s.shared or s.own != NONE:
        most = (s.target - 1) // e.size
        found, r, inside, idle = match(m, e, s, min(most, s.shared))
        if s.own != NONE and found == s.shared:
            own = m.runs[s.own].end
    cached = (found + own) * e.size
    chunk = s.target - cached
    if chunk > budget:
        if not e.chunked:
            return False
        chunk = budget
    if -(-s.target // e.size) - found + idle > e.free:
        return False
    s.last = hold(m, e, r, inside) if found else e.root
    if s.own != NONE:
        if own:
            hold_own(m, e, s.own)
        m.runs[s.own].kept = 0
        if not m.runs[s.own].idle:
            drop_run(m, s.own)
        s.own = NONE
    e.free -= -(-(cached + chunk) // e.size) - found - own
    if s.order < 0:
        m.results[i].scheduled, m.results[i].cached = seconds(e.now), cached
    s.order = e.admitted
    e.admitted += 1
    e.first_waiting = s.after
    _admit_last(m, e, i)
    s.computed, s.chunk = cached, chunk
    _prefill(m, e, s)
    return True


@jit
def _prefill(m, e, s):
    s.computed += s.chunk
    if s.shared:
        s.last = fill(m, s.last, s, min(s.computed // e.size, s.shared))


@jit
def _more_blocks(e, s):
    return -(-(s.computed + s.chunk) // e.size) + (-s.computed // e.size)


@jit
def _preempt_until_it_fits(m, e):
    residue, i = e.step % e.size, e.first_running
    while i != NONE:
        s = m.sequences[i]
        blocks = _more_blocks(e, s) if i == e.prefilling else int(s.residue == residue)
        while blocks > e.free:
            victim = e.last_running
            _run_no_more(m, e, victim)
            _preempt(m, e, victim)
            if victim == i:
                _finish_decoding(m, e)
                return
        e.free -= blocks
        i = s.after
    _finish_decoding(m, e)


@jit
def _preempt(m, e, i):
    s = m.sequences[i]
    if i == e.prefilling:
        e.prefilling = NONE
    else:
        made = e.step - s.since
        s.computed = s.target + made
        s.done += made
        s.target = s.computed + 1
        m.need[e.number, s.residue] -= 1
        e.context -= s.computed
        _drop_finish(m, e, i)
    s.own = release(m, e, s.last, s.shared, s.computed // e.size, -(-s.computed // e.size), True)
    s.after = e.first_waiting
    e.first_waiting = i
    if s.after == NONE:
        e.last_waiting = i


@jit
def _give_token(m, e, i):
    s = m.sequences[i]
    s.done += 1
    if s.done == 1:
        m.results[i].first_token = seconds(e.now)
    finish = e.step + s.output - s.done
    if finish == e.step:
        _run_no_more(m, e, i)
        _leave(m, e, i)
        return
    s.since = e.step
    s.residue = (e.step - s.target) % e.size
    m.need[e.number, s.residue] += 1
    e.context += s.target
    s.finish = finish
    _push_finish(m, e, i)
    if finish < e.next_finish:
        e.next_finish = finish


@jit
def _finish_decoding(m, e):
    e.next_finish = FOREVER
    while e.finishing:
        i = m.heap[e.number, 0]
        s = m.sequences[i]
        if s.finish > e.step:
            e.next_finish = s.finish
            break
        _drop_finish(m, e, i)
        _run_no_more(m, e, i)
        m.need[e.number, s.residue] -= 1
        e.context -= s.prompt + s.output - 1
        _leave(m, e, i)


@jit
def _leave(m, e, i):
    s = m.sequences[i]
    m.results[i].last_token = seconds(e.now)
    computed = s.prompt + s.output - 1
    if e.caching:
        release(m, e, s.last, s.shared, computed // e.size, -(-computed // e.size), False)
    else:
        e.free += -(-computed // e.size)
    e.look = 1
    s.next_left = NONE
    if e.first_left == NONE:
        e.first_left = i
    else:
        m.sequences[e.last_left].next_left = i
    e.last_left = i


# --- chains of requests -----------------------------------------------------------------------------------------


@jit
def _admit_last(m, e, i):
    """Put request `i` behind those that run."""
    s = m.sequences[i]
    s.before, s.after = e.last_running, NONE
    if e.last_running != NONE:
        m.sequences[e.last_running].after = i
    else:
        e.first_running = i
    e.last_running = i
    e.running += 1


@jit
def _run_no_more(m, e, i):
    s = m.sequences[i]
    if s.before != NONE:
        m.sequences[s.before].after = s.after
    else:
        e.first_running = s.after
    if s.after != NONE:
        m.sequences[s.after].before = s.before
    else:
        e.last_running = s.before
    e.running -= 1


@jit
def _sooner(m, a, b):
    """Whether request `a` finishes before `b`, or at the same step and was admitted before."""
    one, other = m.sequences[a], m.sequences[b]
    return one.finish < other.finish or (one.finish == other.finish and one.order < other.order)


@jit
def _sift(m, e, place, i):
    """Put request `i` into the heap at `place` or, to keep the heap a heap, above or below."""
    heap = m.heap[e.number]
    while place and _sooner(m, i, heap[(place - 1) >> 1]):
        heap[place] = heap[(place - 1) >> 1]
        m.sequences[heap[place]].place = place
        place = (place - 1) >> 1
    while 2 * place + 1 < e.finishing:
        child = 2 * place + 1
        if child + 1 < e.finishing and _sooner(m, heap[child + 1], heap[child]):
            child += 1
        if not _sooner(m, heap[child], i):
            break
        heap[place] = heap[child]
        m.sequences[heap[place]].place = place
        place = child
    heap[place] = i
    m.sequences[i].place = place


@jit
def _push_finish(m, e, i):
    e.finishing += 1
    _sift(m, e, e.finishing - 1, i)


@jit
def _drop_finish(m, e, i):
    e.finishing -= 1
    place, end = m.sequences[i].place, m.heap[e.number, e.finishing]
    if end != i:
        _sift(m, e, place, end)
