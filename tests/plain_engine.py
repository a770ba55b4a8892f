"""The oracle of the engine model: vLLM's rules walked one step, one request and one block at a time.

It is slow and plain on purpose, and shares nothing with the library but the data types and the time of one step.
Blocks are single objects in one list in order of eviction; contents are looked up in a dictionary.
"""

from enginelab.scheduler import Step
from enginelab.step_time import PICOSECONDS, clock


class Pool:
    def __init__(self, config, contents):
        blocks = config.num_blocks if config.num_blocks is not None else sum(len(c) + 1 for c in contents)
        self.free = list(range(blocks))  # the front is handed out first
        self.total = blocks
        self.users = [0] * blocks
        self.content = [None] * blocks
        self.where = {}  # content -> blocks that hold it, oldest first

    def take(self):
        block = self.free.pop(0)
        assert self.users[block] == 0
        if self.content[block] is not None:
            self.where[self.content[block]].remove(block)
            self.content[block] = None
        self.users[block] = 1
        return block

    def use(self, block):
        if self.users[block] == 0:
            self.free.remove(block)
        self.users[block] += 1

    def remember(self, block, content):
        self.content[block] = content
        self.where.setdefault(content, []).append(block)

    def drop(self, blocks):
        front, back = [], []
        for block in reversed(blocks):
            self.users[block] -= 1
            if self.users[block] == 0:
                (front if self.content[block] is None else back).append(block)
        self.free = front + self.free + back


class PlainEngine:
    """After `run()`: `steps`, and by index `scheduled` (picoseconds), `cached` and `token_times` (seconds)."""

    def __init__(self, requests, config):
        self.requests, self.config = requests, config
        size = config.block_size
        self.contents = []  # of each request, one per block: what tells it from other blocks
        for index, request in enumerate(requests):
            shared = (request.block_ids or ())[: request.prompt_tokens // size]
            total = (request.prompt_tokens + request.output_tokens) // size
            self.contents.append([*shared, *((index, b) for b in range(len(shared), total))])
        self.pool = Pool(config, self.contents)
        count = len(requests)
        self.scheduled, self.cached = [None] * count, [0] * count
        self.token_times = [[] for _ in requests]
        self.computed, self.made, self.prefilling = [0] * count, [0] * count, [True] * count
        self.blocks = [[] for _ in requests]
        self.arriving = sorted(range(count), key=lambda i: clock(requests[i].arrival))
        self.waiting, self.running, self.steps, self.now = [], [], [], 0

    def tokens(self, i):
        return self.requests[i].prompt_tokens + self.made[i]

    def allocate(self, i, upto):
        """Blocks for the first `upto` tokens, and their contents made known; False if there are too few."""
        size = self.config.block_size
        missing = -(-upto // size) - len(self.blocks[i])
        if missing > len(self.pool.free):
            return False
        for _ in range(missing):
            self.blocks[i].append(self.pool.take())
        if self.config.enable_prefix_caching:
            for block, content in list(zip(self.blocks[i], self.contents[i], strict=False))[: upto // size]:
                if self.pool.content[block] is None:
                    self.pool.remember(block, content)
        return True

    def preempt(self, i):
        self.pool.drop(self.blocks[i])
        self.blocks[i], self.computed[i] = [], 0
        self.waiting.insert(0, i)

    def schedule(self):
        config, budget, tokens, preempted = self.config, self.config.max_num_batched_tokens, {}, []
        context = prefill = decodes = 0
        for i in list(self.running):
            if i not in self.running or budget == 0:
                break
            new = min(self.tokens(i) - self.computed[i], budget)
            while not self.allocate(i, self.computed[i] + new):
                victim = self.running.pop()
                self.preempt(victim)
                preempted.append(victim)
                if victim == i:
                    break
            if i not in self.running:
                break
            tokens[i] = new
            budget -= new
            context += self.computed[i]
            if self.prefilling[i]:
                prefill += new
            else:
                decodes += 1
        while not preempted and self.waiting and budget and len(self.running) < config.max_num_seqs:
            i = self.waiting[0]
            found = self.lookup(i)
            new = self.tokens(i) - len(found) * config.block_size
            if new > budget and not config.enable_chunked_prefill:
                break
            new = min(new, budget)
            idle = sum(self.pool.users[block] == 0 for block in found)
            if -(-self.tokens(i) // config.block_size) - len(found) + idle > len(self.pool.free):
                break
            for block in found:
                self.pool.use(block)
            self.blocks[i] = list(found)
            self.computed[i] = len(found) * config.block_size
            assert self.allocate(i, self.computed[i] + new)
            if self.scheduled[i] is None:
                self.scheduled[i], self.cached[i] = self.now, self.computed[i]
            self.waiting.pop(0)
            self.running.append(i)
            self.prefilling[i] = True
            tokens[i] = new
            budget -= new
            context += self.computed[i]
            prefill += new
        return tokens, preempted, prefill, decodes, context

    def lookup(self, i):
        found = []
        if self.config.enable_prefix_caching:
            for content in self.contents[i][: (self.tokens(i) - 1) // self.config.block_size]:
                if not self.pool.where.get(content):
                    break
                found.append(self.pool.where[content][0])
        return found

    def run(self):
        while self.arriving or self.waiting or self.running:
            if not self.waiting and not self.running:
                self.now = max(self.now, clock(self.requests[self.arriving[0]].arrival))
            while self.arriving and clock(self.requests[self.arriving[0]].arrival) <= self.now:
                self.waiting.append(self.arriving.pop(0))
            tokens, preempted, prefill, decodes, context = self.schedule()
            if not tokens:
                assert preempted, "nothing to do, yet requests wait"
                continue
            start = self.now
            self.now += self.config.step_time.picoseconds(prefill, decodes, context)
            self.steps.append(Step(start / PICOSECONDS, self.now / PICOSECONDS, tokens, tuple(preempted)))
            for i, new in tokens.items():
                self.computed[i] += new
                if self.computed[i] < self.tokens(i):
                    continue
                self.prefilling[i] = False
                self.made[i] += 1
                self.token_times[i].append(self.now / PICOSECONDS)
                if self.made[i] == self.requests[i].output_tokens:
                    self.running.remove(i)
                    self.pool.drop(self.blocks[i])
        assert len(self.pool.free) == self.pool.total, "a block leaked"
        return self
