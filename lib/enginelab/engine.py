"""The engine behind `scheduler.simulate`: fed as time goes on, it does stretches of equal steps at once. (Chapter 2.)

`scheduler` says what the rules are. Between two events (an arrival, a finish, a block too few) every step is alike:
each running request gets one token. `Engine` computes such a stretch at once. Its time is the sum of an arithmetic
series, since the context that a step reads grows by one token a request; a histogram of the steps at which requests
begin a new block tells how many blocks the stretch needs. Every other step is computed as it is.
"""

from __future__ import annotations

import math
from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from .kvcache import BlockPool
from .step_time import PICOSECONDS, clock
from .workload import Request

if TYPE_CHECKING:
    from .scheduler import Config, Record

FOREVER = 1 << 100
ORDER = 48  # bits of the order of admission in a heap entry, below the step at which the request finishes
MASK = (1 << ORDER) - 1


class _Sequence:
    """A request in the engine.

    at        when it arrives, on the models' clock
    done      output tokens that it had when it was last put into the queue
    target    tokens to compute before the next one comes: the prompt, and after a preemption the output so far
    computed  how many of them have been, while it prefills
    since     the step after the last of these, from when it decodes
    """

    __slots__ = (
        *("at", "index", "prompt", "output", "ids", "done", "transferred"),
        *("target", "computed", "chunk", "order", "since", "residue", "last", "own"),
    )

    def __init__(self, at: int, request: Request, index: int, done: int, transferred: int, size: int):
        self.at, self.index, self.prompt, self.output = at, index, request.prompt_tokens, request.output_tokens
        self.ids = tuple(request.block_ids[: self.prompt // size]) if size and request.block_ids else ()
        self.done, self.transferred, self.target = done, transferred, self.prompt + done
        self.order, self.own = -1, None


class Engine:
    """One engine, fed as time goes on.

        record = Record(len(requests))
        engine = Engine(config, record)
        engine.submit(requests[0], 0)     # arrivals may lie ahead, but must be submitted in order
        engine.advance(12.5)              # every step that starts before 12.5 s
        engine.advance()                  # until all is done
        record.to_trace(requests)

    A step that starts at the very moment of an arrival serves it: a router calls `advance(request.arrival)` on every
    engine, chooses, and calls `submit` on one. Several engines may write into one record; a step that has started is
    written down at once, with the time at which it will end. A router may ask for `running`, `waiting`,
    `active_blocks`, `prefill_tokens` and `overlap(request)`; only the last two take longer than a moment.
    """

    def __init__(self, config: Config, record: Record):
        self.config, self.record = config, record
        self.pool = BlockPool(config.num_blocks, config.enable_prefix_caching)
        self._seats, self._budget, self._size = config.max_num_seqs, config.max_num_batched_tokens, config.block_size
        self._costs = config.step_time.coefficients
        self._surely_fits = FOREVER if config.num_blocks is None else config.num_blocks * config.block_size
        if not config.enable_chunked_prefill:
            self._surely_fits = min(self._surely_fits, config.max_num_batched_tokens)
        self._arrivals: deque[_Sequence] = deque()
        self._latest = 0
        self._queue: deque[_Sequence] = deque()
        self._look = True  # whether the head of the queue might be admitted now
        self._running: dict[int, _Sequence] = {}  # by order of admission
        self._admitted = 0
        self._prefilling: _Sequence | None = None  # cut by the budget, so it is the last of the running
        self._finishes: list[int] = []  # a heap; the entries of preempted requests stay until they come up
        self._next_finish = FOREVER
        self._need = [0] * config.block_size  # how many decoding requests begin a block in steps of each residue
        self._now = self._step = self._context = 0  # the context is that of all decoding requests together

    @property
    def now(self) -> float:
        """When the next step can start, seconds."""
        return self._now / PICOSECONDS

    @property
    def running(self) -> int:
        """Requests that are admitted and not done."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Requests that were submitted and are not admitted, preempted ones included."""
        return len(self._queue) + len(self._arrivals)

    @property
    def prefill_tokens(self) -> int:
        """Prompt tokens still to compute for all that was submitted; what will be found cached counts too."""
        cut = self._prefilling
        waiting = sum(s.target - s.transferred for line in (self._arrivals, self._queue) for s in line)
        return waiting + (cut.target - cut.computed if cut is not None else 0)

    @property
    def active_blocks(self) -> int:
        """KV blocks that running requests hold; one that several share counts once."""
        return self.pool.held

    @property
    def quiet_until(self) -> float:
        """A time, seconds, before which no request is admitted, preempted or done, if nothing is submitted.

        Until then each step computes one token of each running request, and the cache can only lose blocks that no
        running request holds. A time in the past says nothing.
        """
        if self._arrivals or self._queue or self._prefilling is not None:
            return 0.0
        if not self._running:
            return math.inf
        count, steps = len(self._running), self._next_finish - self._step
        if self._blocks(steps, count) > self.pool.free:
            return 0.0
        first, growth = self._decoding_step(count)  # bound by compute it takes longer: then the answer is too early
        return (self._now + steps * first + growth * (steps * (steps - 1) >> 1)) / PICOSECONDS

    def overlap(self, request: Request) -> int:
        """Leading blocks of the request's prompt that it would find in the prefix cache if it were admitted now."""
        if not self.config.enable_prefix_caching or not request.block_ids:
            return 0
        most = (request.prompt_tokens - 1) // self.config.block_size
        return self.pool.match(tuple(request.block_ids), min(most, len(request.block_ids))).blocks

    def submit(self, request: Request, index: int, generated: int = 0, transferred: int = 0) -> None:
        """Let `request` arrive at its arrival time; `index` is its place in the record.

        generated    output tokens that another engine has made already: this one makes the others
        transferred  leading tokens whose KV arrives with it: they take blocks, but no computing

        Raises `ValueError` if the engine could never finish it, or if it arrives before one submitted earlier.
        """
        if request.prompt_tokens + request.output_tokens > self._surely_fits:
            self.config.check(request, index)
        if generated or transferred:
            if not 0 <= generated < request.output_tokens:
                raise ValueError(f"generated must lie below the {request.output_tokens} output tokens: {generated!r}")
            if not 0 <= transferred < request.prompt_tokens + generated:
                raise ValueError(f"transferred must leave request {index} a token to compute: {transferred!r}")
        at = clock(request.arrival)
        if at < self._latest:
            raise ValueError(f"request {index} arrives at {request.arrival} s, before one submitted earlier")
        self._latest = at
        self._arrivals.append(_Sequence(at, request, index, generated, transferred, self.pool.caching and self._size))

    def advance(self, until: float = math.inf) -> None:
        """Run every step that starts before `until` seconds; without it, until every request is done."""
        limit = FOREVER if until == math.inf else clock(until)
        arrivals, queue, running = self._arrivals, self._queue, self._running
        next_at = arrivals[0].at if arrivals else FOREVER
        while self._now < limit:
            if next_at <= self._now or not (running or queue):
                if next_at >= limit:
                    break
                if next_at > self._now:
                    self._now = next_at
                if not queue:
                    self._look = True
                while next_at <= self._now:
                    queue.append(arrivals.popleft())
                    next_at = arrivals[0].at if arrivals else FOREVER
            if (
                self._prefilling is not None
                or (queue and self._look and len(running) < self._seats)
                or not self._jump(limit if queue or limit < next_at else next_at)
            ):
                self._mixed_step()
        self.pool.settle()

    def _jump(self, limit: int) -> bool:
        """Do the steps that start before `limit` and the next finish; every running request decodes.

        False if there are not blocks enough for a single one.
        """
        count = len(self._running)
        steps = self._next_finish - self._step
        first, growth = self._decoding_step(count)
        per_token = self._costs[-1]
        if per_token and first < per_token * count:  # bound by compute: up to the kink all steps take the same
            if growth:
                steps = min(steps, -((first - per_token * count) // growth))
            first, growth = per_token * count, 0
        time = steps * first + growth * (steps * (steps - 1) >> 1)
        room = limit - self._now
        if time > room:  # the first step boundary at or after the limit
            half = first - growth / 2
            steps = int(2 * room / (half + math.sqrt(half * half + 2.0 * growth * room))) + 1
            while (time := steps * first + growth * (steps * (steps - 1) >> 1)) < room:
                steps += 1
            while steps > 1 and (less := time - first - growth * (steps - 1)) >= room:
                steps, time = steps - 1, less
        blocks = self._blocks(steps, count)
        if blocks > self.pool.free:
            steps = self._lasting(count)
            if not steps:
                return False
            time = steps * first + growth * (steps * (steps - 1) >> 1)
            blocks = self._blocks(steps, count)
        self.pool.free -= blocks
        if self.record.detailed:
            self.record.note(self._now, first, growth, steps, {s.index: 1 for s in self._running.values()})
        self._now += time
        self._step += steps
        self._context += count * steps
        if self._step == self._next_finish:
            self._finish_decoding()
        return True

    def _decoding_step(self, count: int) -> tuple[int, int]:
        """What the next step takes if `count` requests decode, and how much longer each one after it, unless compute
        bounds them.
        """
        fixed, _, per_sequence, per_kv_token, *_ = self._costs
        return fixed + per_sequence * count + per_kv_token * self._context, per_kv_token * count

    def _blocks(self, steps: int, count: int) -> int:
        """Blocks that `count` decoding requests begin in the next `steps` steps."""
        size, need, begin = self._size, self._need, self._step % self._size
        end = begin + steps
        if end <= size:
            return sum(need[begin:end])
        rounds, end = divmod(end, size)
        return rounds * count + sum(need[:end]) - sum(need[:begin])

    def _lasting(self, count: int) -> int:
        """For how many steps the free blocks last."""
        rounds, left = divmod(self.pool.free, count)
        steps = rounds * self._size
        while left >= (begin := self._need[(self._step + steps) % self._size]):
            left -= begin
            steps += 1
        return steps

    def _mixed_step(self) -> None:
        """One step as it is: blocks for the running, or preemption; then admissions; then the time it takes."""
        pool, running, queue, prefills, preempted = self.pool, self._running, self._queue, [], ()
        budget, tokens = self._budget, 0
        blocks = self._need[self._step % self._size]
        sequence = self._prefilling
        if sequence is not None:
            sequence.chunk = min(sequence.target - sequence.computed, budget - len(running) + 1)
            blocks += self._more_blocks(sequence)
        if blocks > pool.free:
            preempted = self._preempt_until_it_fits()
        else:
            pool.free -= blocks
        decoding, context = len(running), self._context
        budget -= decoding
        if self._prefilling is not None:
            prefills.append(sequence)
            decoding, tokens, context = decoding - 1, sequence.chunk, context + sequence.computed
            budget -= tokens - 1
            self._prefill(sequence)
        self._look = True
        if not preempted:
            while queue and budget and len(running) < self._seats:
                sequence = queue[0]
                if not self._admit(sequence, budget):
                    self._look = bool(prefills)  # without them it is not the budget, and only a finish changes the rest
                    break
                prefills.append(sequence)
                chunk = sequence.chunk
                tokens, budget, context = tokens + chunk, budget - chunk, context + sequence.computed - chunk
        if not decoding and not prefills:
            if not preempted:
                raise stuck(queue[0].index, queue[0].target, self._budget)
            return
        fixed, per_prefill_token, per_sequence, per_kv_token, prefilling, per_token = self._costs
        time = fixed + per_prefill_token * tokens + per_sequence * decoding + per_kv_token * context
        if tokens:
            time += prefilling
        if per_token and time < per_token * (tokens + decoding):
            time = per_token * (tokens + decoding)
        if self.record.detailed:
            computed = {s.index: 1 for s in running.values()} | {s.index: s.chunk for s in prefills}
            silent = {s.index for s in prefills if s.computed < s.target}
            self.record.note(self._now, time, 0, 1, computed, preempted, silent)
        self._now += time
        self._step += 1
        self._context += decoding
        if self._step == self._next_finish:
            self._finish_decoding()
        self._prefilling = None
        for sequence in prefills:
            if sequence.computed == sequence.target:
                self._give_token(sequence)
            else:
                self._prefilling = sequence

    def _admit(self, sequence: _Sequence, budget: int) -> bool:
        """Admit the head of the queue if there are blocks for all of its tokens; False if it must wait."""
        pool, size, target, ids = self.pool, self._size, sequence.target, sequence.ids
        found = own = idle = 0
        if ids or sequence.own:
            most = (target - 1) // size
            match = pool.match(ids, most if most < len(ids) else len(ids))
            found, _, _, idle = match
            if sequence.own and found == len(ids):
                own = sequence.own.end
        context = cached = (found + own) * size
        if context < sequence.transferred:
            context = sequence.transferred
        chunk = target - context
        if chunk > budget:
            if not self.config.enable_chunked_prefill:
                return False
            chunk = budget
        if -(-target // size) - found + idle > pool.free:
            return False
        sequence.last = pool.hold(match) if found else pool.root
        if own:
            pool.hold_own(sequence.own)
        sequence.own = None
        pool.free -= -(-(context + chunk) // size) - found - own
        if sequence.order < 0:
            self.record.scheduled[sequence.index] = self._now / PICOSECONDS
            self.record.cached_tokens[sequence.index] = cached
        sequence.transferred = 0
        sequence.order = self._admitted
        self._admitted += 1
        self._running[sequence.order] = self._queue.popleft()
        sequence.computed, sequence.chunk = context, chunk
        self._prefill(sequence)
        return True

    def _prefill(self, sequence: _Sequence) -> None:
        """Compute a chunk; what it fills can be found by requests that are admitted later in this very step."""
        sequence.computed += sequence.chunk
        if ids := sequence.ids:
            full = sequence.computed // self._size
            sequence.last = self.pool.fill(sequence.last, ids, full if full < len(ids) else len(ids))

    def _more_blocks(self, sequence: _Sequence) -> int:
        return -(-(sequence.computed + sequence.chunk) // self._size) + (-sequence.computed // self._size)

    def _preempt_until_it_fits(self) -> tuple[int, ...]:
        """Give the running their blocks one by one, preempting the last admitted when none is free; who was."""
        pool, running, residue, preempted = self.pool, self._running, self._step % self._size, []
        for order, sequence in list(running.items()):
            if order not in running:  # preempted for one before it, like all after it
                break
            cut = sequence is self._prefilling
            blocks = self._more_blocks(sequence) if cut else int(sequence.residue == residue)
            while blocks > pool.free and order in running:
                preempted.append(self._preempt(running.popitem()[1]))
            if order in running:
                pool.free -= blocks
        self._finish_decoding()
        return tuple(preempted)

    def _preempt(self, sequence: _Sequence) -> int:
        if sequence is self._prefilling:
            self._prefilling = None
        else:
            made = self._step - sequence.since
            sequence.computed = sequence.target + made
            sequence.done += made
            sequence.target = sequence.computed + 1
            self._need[sequence.residue] -= 1
            self._context -= sequence.computed
        computed, size = sequence.computed, self._size
        sequence.own = self.pool.release(
            sequence.last, len(sequence.ids), computed // size, -(-computed // size), keep=True
        )
        self._queue.appendleft(sequence)
        return sequence.index

    def _give_token(self, sequence: _Sequence) -> None:
        """All tokens are computed: the next one comes, the first of all unless it was preempted; then it decodes."""
        sequence.done += 1
        if sequence.done == 1:
            self.record.first_token[sequence.index] = self._now / PICOSECONDS
        finish = self._step + sequence.output - sequence.done
        if finish == self._step:
            del self._running[sequence.order]
            self._leave(sequence)
            return
        sequence.since = self._step
        sequence.residue = (self._step - sequence.target) % self._size
        self._need[sequence.residue] += 1
        self._context += sequence.target
        heappush(self._finishes, (finish << ORDER) + sequence.order)
        if finish < self._next_finish:
            self._next_finish = finish

    def _finish_decoding(self) -> None:
        """Let those leave that have had their last token; find out who is next."""
        finishes, running, later = self._finishes, self._running, (self._step + 1) << ORDER
        self._next_finish = FOREVER
        while finishes:
            entry = finishes[0]
            sequence = running.get(entry & MASK)
            if sequence is not None:
                if entry >= later:
                    self._next_finish = entry >> ORDER
                    break
                del running[sequence.order]
                self._need[sequence.residue] -= 1
                self._context -= sequence.prompt + sequence.output - 1
                self._leave(sequence)
            heappop(finishes)

    def _leave(self, sequence: _Sequence) -> None:
        self.record.last_token[sequence.index] = self._now / PICOSECONDS
        computed, size, pool = sequence.prompt + sequence.output - 1, self._size, self.pool
        if pool.caching:
            pool.release(sequence.last, len(sequence.ids), computed // size, -(-computed // size))
        else:
            pool.free += -(-computed // size)
        self._look = True


def stuck(index: int, tokens: int, budget: int) -> ValueError:
    """The error of an engine that can admit nobody and has nothing else to do."""
    return ValueError(
        f"request {index} has {tokens} tokens to compute again after a preemption: "
        f"without chunked prefill, max_num_batched_tokens = {budget} is too few"
    )
