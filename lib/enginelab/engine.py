"""The engine behind `scheduler.simulate`, fed as time goes on, with every stretch of equal steps done at once. (Chapter 2.)

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

    done      output tokens that it had when it was last put into the queue
    target    tokens to compute before the next one comes: the prompt, and after a preemption the output so far
    computed  how many of them have been, while it prefills
    since     the step after the last of these, from when it decodes
    """

    __slots__ = (
        *("index", "prompt", "output", "ids", "done", "transferred"),
        *("target", "computed", "order", "since", "residue", "last", "own"),
    )

    def __init__(self, request: Request, index: int, done: int, transferred: int, block_size: int):
        self.index, self.prompt, self.output = index, request.prompt_tokens, request.output_tokens
        ids = request.block_ids
        self.ids = ids[: self.prompt // block_size] if ids else ()
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

    A step that starts at the very moment of an arrival serves it: `advance(request.arrival)`, choose, `submit`.
    Several engines may write into one record. The state that a router asks for is true after `advance`, and cheap:
    `running`, `waiting`, `prefill_tokens`, `active_blocks`, `overlap(request)`.
    """

    def __init__(self, config: Config, record: Record):
        self.config, self.record = config, record
        self.pool = BlockPool(config.num_blocks, config.enable_prefix_caching)
        self._costs = config.step_time.coefficients
        self.prefill_tokens = 0  # of all that has arrived, still to compute; what waiting prompts will find cached too
        self._arrivals: deque[tuple[int, Request, int, int, int]] = deque()
        self._latest = 0
        self._queue: deque[_Sequence] = deque()
        self._look = True  # whether the head of the queue might be admitted now
        self._running: dict[int, _Sequence] = {}  # by order of admission
        self._admitted = 0
        self._prefilling: _Sequence | None = None  # cut by the budget, so it is the last of the running
        self._finishes: list[int] = []  # a heap; the entries of preempted requests stay until they come up
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
        """Requests that have arrived and are not admitted, preempted ones included."""
        return len(self._queue)

    @property
    def active_blocks(self) -> int:
        """KV blocks that running requests hold; one that several share counts once."""
        return self.pool.held

    def overlap(self, request: Request) -> int:
        """Leading blocks of the request's prompt that it would find in the prefix cache if it were admitted now."""
        if not self.config.enable_prefix_caching or not request.block_ids:
            return 0
        most = (request.prompt_tokens - 1) // self.config.block_size
        return self.pool.match(request.block_ids, min(most, len(request.block_ids))).blocks

    def submit(self, request: Request, index: int, generated: int = 0, transferred: int = 0) -> None:
        """Let `request` arrive at its arrival time; `index` is its place in the record.

        generated    output tokens that another engine has made already: this one makes the others
        transferred  leading tokens whose KV arrives with it: they take blocks, but no computing

        Raises `ValueError` if the engine could never finish it, or if it arrives before one submitted earlier.
        """
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
        self._arrivals.append((at, request, index, generated, transferred))

    def advance(self, until: float = math.inf) -> None:
        """Run every step that starts before `until` seconds; without it, until every request is done."""
        limit = FOREVER if until == math.inf else clock(until)
        arrivals, queue, running = self._arrivals, self._queue, self._running
        block_size, seats = self.config.block_size, self.config.max_num_seqs
        while True:
            if arrivals:
                if not running and not queue and self._now < arrivals[0][0] < limit:
                    self._now = arrivals[0][0]
                while arrivals and arrivals[0][0] <= self._now:
                    _, request, index, generated, transferred = arrivals.popleft()
                    sequence = _Sequence(request, index, generated, transferred, block_size)
                    self.prefill_tokens += sequence.target - transferred
                    self._look |= not queue
                    queue.append(sequence)
            if self._now >= limit or not (running or queue):
                return
            if self._prefilling is not None or (queue and self._look and len(running) < seats):
                self._mixed_step()
            elif not self._jump(limit):
                self._mixed_step()

    def _jump(self, limit: int) -> bool:
        """Do all steps to the next event, in which every running request decodes; False if not one has the blocks."""
        config, finishes, running, step = self.config, self._finishes, self._running, self._step
        while finishes[0] & MASK not in running:
            heappop(finishes)
        count = len(running)
        steps = (finishes[0] >> ORDER) - step
        fixed, _, per_sequence, per_kv_token, per_token = self._costs
        first = fixed + per_sequence * count + per_kv_token * self._context
        growth = per_kv_token * count
        if first < per_token * count:  # bound by compute: up to the kink all steps take the same
            if growth:
                steps = min(steps, -((first - per_token * count) // growth))
            first, growth = per_token * count, 0
        time = steps * first + growth * (steps * (steps - 1) >> 1)
        if self._arrivals and not self._queue and self._arrivals[0][0] < limit:
            limit = self._arrivals[0][0]
        room = limit - self._now
        if time > room:  # the first step boundary at or after the limit
            half = first - growth / 2
            steps = max(1, int(2 * room / (half + math.sqrt(half * half + 2.0 * growth * room))))
            while (time := steps * first + growth * (steps * (steps - 1) >> 1)) < room:
                steps += 1
            while steps > 1 and (less := time - first - growth * (steps - 1)) >= room:
                steps, time = steps - 1, less
        if config.num_blocks is not None:
            steps_with_blocks = self._take_blocks(steps, count)
            if not steps_with_blocks:
                return False
            if steps_with_blocks < steps:
                steps = steps_with_blocks
                time = steps * first + growth * (steps * (steps - 1) >> 1)
        if self.record.detailed:
            self.record.note(self._now, first, growth, steps, {s.index: 1 for s in running.values()})
        self._now += time
        self._step = step + steps
        self._context += count * steps
        if finishes[0] >> ORDER == self._step:
            self._finish_decoding()
        return True

    def _take_blocks(self, steps: int, count: int) -> int:
        """Take the blocks of up to `steps` decode steps; returns for how many steps they last."""
        size, need, residue = self.config.block_size, self._need, self._step % self.config.block_size
        free = self.pool.free
        if count * (steps // size + 1) > free:
            rounds, left = divmod(free, count)
            lasting = rounds * size
            while lasting < steps and left >= need[(residue + lasting) % size]:
                left -= need[(residue + lasting) % size]
                lasting += 1
            steps = min(steps, lasting)
        rounds, rest = divmod(steps, size)
        blocks = rounds * count + sum(need[residue : residue + rest])
        if residue + rest > size:
            blocks += sum(need[: residue + rest - size])
        if blocks:
            self.pool.take(blocks)
        return steps

    def _mixed_step(self) -> None:
        """One step as it is: blocks for the running, or preemption; then admissions; then the time it takes."""
        config, pool, running, prefills = self.config, self.pool, self._running, []
        sequence, chunk = self._prefilling, 0
        blocks = self._need[self._step % config.block_size]
        if sequence is not None:
            chunk = min(sequence.target - sequence.computed, config.max_num_batched_tokens - len(running) + 1)
            blocks += self._more_blocks(sequence, chunk)
        preempted = ()
        if blocks > pool.free:
            preempted = self._preempt_until_it_fits(chunk)
        elif blocks:
            pool.take(blocks)
        context, decoding, tokens = self._context, len(running), 0
        if self._prefilling is not None:
            prefills.append((sequence, chunk))
            tokens, context, decoding = chunk, context + sequence.computed, decoding - 1
            self._compute(sequence, chunk)
            self._prefilling = None
        budget = config.max_num_batched_tokens - decoding - tokens
        self._look = True
        if not preempted:
            while self._queue and budget and len(running) < config.max_num_seqs:
                sequence = self._queue[0]
                chunk = self._admit(sequence, budget)
                if not chunk:
                    self._look = bool(prefills)  # without them it is not the budget, and only a finish changes the rest
                    break
                prefills.append((sequence, chunk))
                tokens, budget, context = tokens + chunk, budget - chunk, context + sequence.computed - chunk
        if not decoding and not prefills:
            if not preempted:
                raise ValueError(
                    f"request {self._queue[0].index} has {self._queue[0].target} tokens to compute again after a "
                    f"preemption: without chunked prefill, max_num_batched_tokens = {config.max_num_batched_tokens} "
                    "is too few"
                )
            return
        fixed, per_prefill_token, per_sequence, per_kv_token, per_token = self._costs
        time = fixed + per_prefill_token * tokens + per_sequence * decoding + per_kv_token * context
        time = max(time, per_token * (tokens + decoding))
        if self.record.detailed:
            chunks = {sequence.index: chunk for sequence, chunk in prefills}
            running_now = {s.index: chunks.get(s.index, 1) for s in running.values()}
            silent = {s.index for s, _ in prefills if s.computed < s.target}
            self.record.note(self._now, time, 0, 1, running_now, preempted, silent)
        self._now += time
        self._step += 1
        self._context += decoding
        if self._finishes and self._finishes[0] >> ORDER == self._step:
            self._finish_decoding()
        for sequence, _ in prefills:
            if sequence.computed == sequence.target:
                self._first_token(sequence)
            else:
                self._prefilling = sequence

    def _admit(self, sequence: _Sequence, budget: int) -> int:
        """Admit the head of the queue if there are blocks for all of its tokens; returns its chunk, 0 if it must wait."""
        config, pool, target = self.config, self.pool, sequence.target
        size = config.block_size
        found = own = idle = 0
        if config.enable_prefix_caching and (sequence.ids or sequence.own):
            shared = len(sequence.ids)
            match = pool.match(sequence.ids, min(shared, (target - 1) // size))
            found, idle = match.blocks, match.idle
            if sequence.own and found == shared:
                own = sequence.own.end
        context = max((found + own) * size, sequence.transferred)
        chunk = target - context
        if chunk > budget:
            if not config.enable_chunked_prefill:
                return 0
            chunk = budget
        if -(-target // size) - found + idle > pool.free:
            return 0
        sequence.last = pool.root
        if found:
            sequence.last = pool.hold(match)
        if own:
            pool.hold_own(sequence.own)
        sequence.own = None
        pool.take(-(-(context + chunk) // size) - found - own)
        if sequence.order < 0:
            self.record.scheduled[sequence.index] = self._now / PICOSECONDS
            self.record.cached_tokens[sequence.index] = (found + own) * size
        self.prefill_tokens -= context - sequence.transferred
        sequence.transferred = 0
        sequence.order = self._admitted
        self._admitted += 1
        self._queue.popleft()
        self._running[sequence.order] = sequence
        sequence.computed = context
        self._compute(sequence, chunk)
        return chunk

    def _compute(self, sequence: _Sequence, chunk: int) -> None:
        """Count a chunk as computed; what it fills can be found by requests admitted later in this very step."""
        sequence.computed += chunk
        self.prefill_tokens -= chunk
        if sequence.ids and self.config.enable_prefix_caching:
            full = min(len(sequence.ids), sequence.computed // self.config.block_size)
            sequence.last = self.pool.fill(sequence.last, sequence.ids, full)

    def _more_blocks(self, sequence: _Sequence, chunk: int) -> int:
        size = self.config.block_size
        return -(-(sequence.computed + chunk) // size) + (-sequence.computed // size)

    def _preempt_until_it_fits(self, chunk: int) -> tuple[int, ...]:
        """Give the running their blocks one by one, preempting the last admitted when none is free; who was."""
        pool, running, residue, preempted = self.pool, self._running, self._step % self.config.block_size, []
        for order, sequence in list(running.items()):
            if order not in running:  # preempted for one before it, like all after it
                break
            cut = sequence is self._prefilling
            blocks = self._more_blocks(sequence, chunk) if cut else int(sequence.residue == residue)
            while blocks > pool.free and order in running:
                preempted.append(self._preempt(running.popitem()[1]))
            if order in running:
                pool.take(blocks)
        return tuple(preempted)

    def _preempt(self, sequence: _Sequence) -> int:
        size = self.config.block_size
        if sequence is self._prefilling:
            self._prefilling = None
            self.prefill_tokens += sequence.computed
        else:
            made = self._step - sequence.since
            sequence.computed = sequence.target + made
            sequence.done += made
            sequence.target = sequence.computed + 1
            self._need[sequence.residue] -= 1
            self._context -= sequence.computed
            self.prefill_tokens += sequence.target
        self._release(sequence, sequence.computed, keep=True)
        self._queue.appendleft(sequence)
        return sequence.index

    def _release(self, sequence: _Sequence, computed: int, keep: bool) -> None:
        size, pool = self.config.block_size, self.pool
        blocks = -(-computed // size)
        if not pool.caching:
            return pool.give_back(blocks)
        full = computed // size
        own = max(0, full - len(sequence.ids))
        sequence.own = pool.release(sequence.last, own, blocks - full, keep)

    def _first_token(self, sequence: _Sequence) -> None:
        """The prompt is computed: a token comes, the first unless the request was preempted; then it decodes."""
        sequence.done += 1
        if sequence.done == 1:
            self.record.first_token[sequence.index] = self._now / PICOSECONDS
        left = sequence.output - sequence.done
        if not left:
            del self._running[sequence.order]
            self._leave(sequence)
            return
        sequence.since = self._step
        sequence.residue = (self._step - sequence.target) % self.config.block_size
        self._need[sequence.residue] += 1
        self._context += sequence.target
        heappush(self._finishes, (self._step + left << ORDER) + sequence.order)

    def _finish_decoding(self) -> None:
        finishes, step = self._finishes, self._step
        while finishes and finishes[0] >> ORDER == step:
            sequence = self._running.pop(heappop(finishes) & MASK, None)
            if sequence is not None:
                self._need[sequence.residue] -= 1
                self._context -= sequence.prompt + sequence.output - 1
                self._leave(sequence)

    def _leave(self, sequence: _Sequence) -> None:
        self.record.last_token[sequence.index] = self._now / PICOSECONDS
        self._release(sequence, sequence.prompt + sequence.output - 1, keep=False)
        self._look = True
