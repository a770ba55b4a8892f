"""Engines behind a router, online: what the router knows of each worker, and the policies that use it. (Chapter 7.)

The router keeps books, as Dynamo's does: which requests it sent where, which of them have had their first token and
which their last. Nothing is asked of an engine that cannot have changed since it was last looked at.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence

from .engine import Engine
from .kvrouter import DEFAULT, Weights, choose, cost
from .prefix_tree import ActivePrompts, known
from .scheduler import Config, Record
from .workload import Request

AT_ONCE = 1000  # requests handed to an engine together, where the policy asks nothing of it


class Router:
    """Engines behind one router, fed as time goes on; arguments as for `simulate`.

    router = Router([config, config], record, "kv_aware")
    router.send(requests[0], 0)     # in order of arrival; returns the worker
    router.finish()
    """

    def __init__(
        self,
        configs: Sequence[Config],
        record: Record,
        policy: str = "round_robin",
        weights: Weights = DEFAULT,
        seed: int = 0,
    ):
        if not configs:
            raise ValueError("configs must name at least one worker")
        for index, config in enumerate(configs):
            if not isinstance(config, Config):
                raise ValueError(f"configs[{index}] must be a scheduler.Config, not {config!r}")
        if not isinstance(weights, Weights):
            raise ValueError(f"weights must be a routing.Weights, not {weights!r}")
        self.workers = [_Worker(config, record) for config in configs]
        if policy == "round_robin":
            self._place = _InTurn(self.workers)
        elif policy == "least_loaded":
            self._place = _FewestRequests(self.workers)
        elif policy == "kv_aware":
            self._place = _KvAware(self.workers, weights, seed)
        else:
            raise ValueError(f"policy must be 'round_robin', 'least_loaded' or 'kv_aware', not {policy!r}")

    def send(self, request: Request, index: int, generated: int = 0, transferred: int = 0) -> int:
        """Place a request at its arrival; arguments as for `Engine.submit`. Returns the place of its worker."""
        worker, cached = self._place(request)
        self.workers[worker].engine.submit(request, index, generated, transferred)
        if cached is not None:
            self.workers[worker].book(request, index, request.prompt_tokens - max(transferred, cached))
        return worker

    def finish(self) -> None:
        """Run every engine until all is done."""
        for worker in self.workers:
            worker.engine.advance()


class _Engine(Engine):
    """An engine that says which requests have left it, in order."""

    def __init__(self, config: Config, record: Record):
        super().__init__(config, record)
        self.left: deque[int] = deque()

    def _leave(self, sequence) -> None:
        super()._leave(sequence)
        self.left.append(sequence.index)


class _Worker:
    """What a router knows of one worker: its own requests there, and the worker's cache.

    All of it is true until `quiet`, a time in seconds, unless a request is booked.
    """

    def __init__(self, config: Config, record: Record):
        self.engine, self.record, self.size = _Engine(config, record), record, config.block_size
        self.cache = self.engine.pool.root
        self.requests = self.prefill_tokens = self.other_blocks = 0
        self.prompts = ActivePrompts()
        self.quiet = self._engine_quiet = 0.0
        self._prefills: deque[tuple[int, int]] = deque()  # first tokens come in the order of arrival
        self._booked: dict[int, tuple[object, int]] = {}

    def catch_up(self, now: float) -> None:
        """Learn what has happened before `now` or at it."""
        if now >= self._engine_quiet:
            self.engine.advance(now)
            self._engine_quiet = self.engine.quiet_until
        quiet, prefills, left = self._engine_quiet, self._prefills, self.engine.left
        if prefills:
            first = self.record.first_token
            while prefills and first[prefills[0][0]] <= now:
                self.prefill_tokens -= prefills.popleft()[1]
            if prefills and (at := first[prefills[0][0]]) < quiet:
                quiet = at
        if left:
            last = self.record.last_token
            while left and last[left[0]] <= now:
                self.requests -= 1
                run, others = self._booked.pop(left.popleft())
                self.other_blocks -= others
                self.prompts.remove(run)
            if left and last[left[0]] < quiet:
                quiet = last[left[0]]
        self.quiet = quiet

    def cached(self, ids: tuple[int, ...], count: int, now: float) -> int:
        """How many of the first `count` blocks its cache holds."""
        blocks, used = known(ids, count, self.cache.children)
        if not used:  # what no request holds may have been lost since the engine was last advanced
            self.engine.advance(now)
            blocks, _ = known(ids, count, self.cache.children)
        return blocks

    def book(self, request: Request, index: int, prefill_tokens: int) -> None:
        """A request has been sent here; `prefill_tokens` of its prompt are to compute."""
        full, ids = request.prompt_tokens // self.size, request.block_ids
        count = min(full, len(ids)) if ids else 0
        self._booked[index] = self.prompts.add(ids, count) if count else None, full - count
        self._prefills.append((index, prefill_tokens))
        self.other_blocks += full - count
        self.prefill_tokens += prefill_tokens
        self.requests += 1
        self.quiet = self._engine_quiet = 0.0


# Each policy answers with a worker and how many tokens of the prompt it has cached; None if it keeps no books.


class _InTurn:
    def __init__(self, workers: Sequence[_Worker]):
        self.workers, self.sent = workers, 0

    def __call__(self, request: Request) -> tuple[int, None]:
        turn, worker = divmod(self.sent, len(self.workers))
        self.sent += 1
        if turn % AT_ONCE == AT_ONCE - 1:  # keeps the queue of arrivals short
            self.workers[worker].engine.advance(request.arrival)
            self.workers[worker].engine.left.clear()
        return worker, None


class _FewestRequests:
    def __init__(self, workers: Sequence[_Worker]):
        self.workers = workers

    def __call__(self, request: Request) -> tuple[int, int]:
        now = request.arrival
        for worker in self.workers:
            if now >= worker.quiet:
                worker.catch_up(now)
        counts = [worker.requests for worker in self.workers]
        return counts.index(min(counts)), 0


class _KvAware:
    def __init__(self, workers: Sequence[_Worker], weights: Weights, seed: int):
        sizes = sorted({worker.size for worker in workers})
        if len(sizes) > 1:
            raise ValueError(f"workers behind a KV-aware router must have one block_size, not {sizes}")
        self.workers, self.weights, self.size, self.draw = workers, weights, sizes[0], random.Random(seed)

    def __call__(self, request: Request) -> tuple[int, int]:
        prompt, ids, now, size = request.prompt_tokens, request.block_ids, request.arrival, self.size
        full = prompt // size
        count = min(full, len(ids)) if ids else 0
        begin = ids[0] if count else None
        loads = []
        for worker in self.workers:
            if now >= worker.quiet:
                worker.catch_up(now)
            prompts, cached = worker.prompts, 0
            blocks = prompts.blocks + worker.other_blocks + full
            if (runs := worker.cache.children) and begin in runs:
                cached = worker.cached(ids, count, now)
            if begin in prompts.root:
                blocks -= known(ids, count, prompts.root)[0]
            loads.append((cached, worker.prefill_tokens, blocks, worker.requests))
        weights = self.weights
        least = min([load[1] for load in loads]) if weights.overlap_score_credit_decay else 0
        prices = [cost(prompt, a, b, c, d, size, weights, least) for a, b, c, d in loads]
        chosen = choose(prices, weights.temperature, self.draw)
        return chosen, loads[chosen][0] * size
