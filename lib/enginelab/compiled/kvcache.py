"""`kvcache.BlockPool` once more, on arrays: the same functions in the same order of work.

All trees share one hash table, from (parent run, first block id) to the run.
"""

from __future__ import annotations

from .memory import NONE, jit


@jit
def _slot(m, parent, first):
    mixed = parent * 0x2545F4914F6CDD1D + first * 0x1B03738712FAD5C9
    return (mixed ^ (mixed >> 32)) & (m.table.size - 1)


@jit
def find(m, parent, first):
    """The run under `parent` that begins with the block id `first`, or NONE."""
    if not m.runs[parent].kids:
        return NONE
    slot = _slot(m, parent, first)
    while m.table[slot] != NONE:
        run = m.runs[m.table[slot]]
        if run.parent == parent and run.first == first:
            return m.table[slot]
        slot = (slot + 1) & (m.table.size - 1)
    return NONE


@jit
def insert(m, r):
    """Make run `r` one of its parent's children."""
    slot = _slot(m, m.runs[r].parent, m.runs[r].first)
    while m.table[slot] != NONE:
        slot = (slot + 1) & (m.table.size - 1)
    m.table[slot] = r
    m.runs[m.runs[r].parent].kids += 1


@jit
def replace(m, r, other):
    """Let `other`, which begins alike, be found where run `r` was."""
    slot = _slot(m, m.runs[r].parent, m.runs[r].first)
    while m.table[slot] != r:
        slot = (slot + 1) & (m.table.size - 1)
    m.table[slot] = other


@jit
def delete(m, r):
    """Let run `r` be found no more; runs behind it that were pushed on by others move up."""
    mask = m.table.size - 1
    hole = _slot(m, m.runs[r].parent, m.runs[r].first)
    while m.table[hole] != r:
        hole = (hole + 1) & mask
    m.runs[m.runs[r].parent].kids -= 1
    slot = (hole + 1) & mask
    while m.table[slot] != NONE:
        run = m.runs[m.table[slot]]
        if ((slot - _slot(m, run.parent, run.first)) & mask) >= ((slot - hole) & mask):
            m.table[hole] = m.table[slot]
            hole = slot
        slot = (slot + 1) & mask
    m.table[hole] = NONE


@jit
def new_run(m, offset, ids, start, end, parent, users):
    """A run like `kvcache.Run(ids, start, end, parent)`; an `offset` of NONE stands for ids that are None."""
    r = m.spare[m.spare[0]]
    m.spare[0] -= 1
    run = m.runs[r]
    run.offset, run.ids, run.start, run.end, run.parent, run.users = offset, ids, start, end, parent, users
    run.first = m.ids[offset + start] if offset != NONE else NONE
    run.kids = run.idle = run.kept = 0
    run.original = run.copies = run.next_copy = run.before = run.after = NONE
    return r


@jit
def drop_run(m, r):
    """Nothing refers to the run any more."""
    m.spare[0] += 1
    m.spare[m.spare[0]] = r


@jit
def parting(m, a, b, low, high):
    while high - low > 1:
        middle = (low + high) // 2
        if m.ids[a + middle] == m.ids[b + middle]:
            low = middle
        else:
            high = middle
    return high


# --- the pool --------------------------------------------------------------------------------------------------


@jit
def _make_idle(m, e, r):
    run = m.runs[r]
    run.idle, run.before, run.after = 1, e.last_idle, NONE
    if e.last_idle != NONE:
        m.runs[e.last_idle].after = r
    else:
        e.first_idle = r
    e.last_idle = r
    e.free += run.end - run.start
    e.cached += run.end - run.start


@jit
def _not_idle(m, e, r):
    run = m.runs[r]
    run.idle = 0
    if run.before != NONE:
        m.runs[run.before].after = run.after
    else:
        e.first_idle = run.after
    if run.after != NONE:
        m.runs[run.after].before = run.before
    else:
        e.last_idle = run.before


@jit
def match(m, e, s, most):
    if e.cached > e.free:
        settle(m, e)
    r, found, inside, idle = e.root, 0, 0, 0
    while found < most:
        child = find(m, r, m.ids[s.offset + found])
        if child == NONE:
            break
        r, run = child, m.runs[child]
        stop = min(run.end, run.ids, most)
        if m.ids[run.offset + stop - 1] != m.ids[s.offset + stop - 1]:
            stop = parting(m, run.offset, s.offset, found, stop - 1)
        inside = stop - found
        if not run.users:
            idle += inside
        found = stop
        if stop < run.end:
            break
    return found, r, inside, idle


@jit
def hold(m, e, r, inside):
    run = m.runs[r]
    if r != e.root and inside < run.end - run.start:
        r = _split(m, r, inside)
    last = r
    while r != e.root:
        run = m.runs[r]
        if not run.users:
            if run.idle:
                _not_idle(m, e, r)
            e.free -= run.end - run.start
            e.cached -= run.end - run.start
        run.users += 1
        r = run.parent
    return last


@jit
def _split(m, r, count):
    run = m.runs[r]
    h = new_run(m, run.offset, run.ids, run.start, run.start + count, run.parent, run.users)
    head = m.runs[h]
    head.copies, run.copies = run.copies, NONE
    copy = head.copies
    while copy != NONE:
        m.runs[copy].original = h
        copy = m.runs[copy].next_copy
    replace(m, r, h)
    if head.end < run.ids:
        run.parent, run.start, run.first = h, head.end, m.ids[run.offset + head.end]
        insert(m, r)
    else:
        run.offset, run.parent, run.start, run.end = NONE, NONE, 0, run.end - head.end
    return h


@jit
def hold_own(m, e, r):
    settle(m, e)
    if m.runs[r].idle:
        _not_idle(m, e, r)
        e.free -= m.runs[r].end
        e.cached -= m.runs[r].end


@jit
def settle(m, e):
    missing = e.cached - e.free
    while missing > 0:
        r = e.first_idle
        run = m.runs[r]
        length = run.end - run.start
        if length > missing:
            run.end -= missing
            e.cached -= missing
            break
        _not_idle(m, e, r)
        missing -= length
        e.cached -= length
        run.end = run.start
        if run.offset != NONE:
            _forget(m, r)
        if not run.kept:
            drop_run(m, r)


@jit
def _forget(m, r):
    run = m.runs[r]
    if run.original != NONE:
        first = m.runs[run.original]
        if first.copies == r:
            first.copies = run.next_copy
        else:
            copy = first.copies
            while m.runs[copy].next_copy != r:
                copy = m.runs[copy].next_copy
            m.runs[copy].next_copy = run.next_copy
    elif run.copies != NONE:
        h = run.copies
        heir = m.runs[h]
        heir.original, heir.copies, heir.next_copy = NONE, heir.next_copy, NONE
        copy = heir.copies
        while copy != NONE:
            m.runs[copy].original = h
            copy = m.runs[copy].next_copy
        replace(m, r, h)
    else:
        delete(m, r)


@jit
def fill(m, last, s, end):
    start = m.runs[last].end
    if end <= start:
        return last
    r = new_run(m, s.offset, s.shared, start, end, last, 1)
    t = find(m, last, m.runs[r].first)
    if t == NONE:
        insert(m, r)
        return r
    m.runs[r].original = t
    if m.runs[t].copies == NONE:
        m.runs[t].copies = r
    else:
        copy = m.runs[t].copies
        while m.runs[copy].next_copy != NONE:
            copy = m.runs[copy].next_copy
        m.runs[copy].next_copy = r
    return r


@jit
def release(m, e, last, shared, full, blocks, keep):
    if not e.caching:
        e.free += blocks
        return NONE
    if e.cached > e.free:
        settle(m, e)
    own, r, run = full - shared, NONE, m.runs[last]
    if own <= 0 or (not e.limited and not keep):
        e.free += blocks - min(full, shared)
    else:
        e.free += blocks - full
        if not keep and last != e.root and run.users == 1 and run.end == run.ids and not run.kids:
            run.end += own
        else:
            r = new_run(m, NONE, 0, 0, own, NONE, 1)
            m.runs[r].kept = keep
            _make_idle(m, e, r)
    while last != e.root:
        run = m.runs[last]
        run.users -= 1
        if not run.users:
            _make_idle(m, e, last)
        last = run.parent
    return r
