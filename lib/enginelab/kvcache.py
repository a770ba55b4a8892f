"""KV cache: how big it is, which blocks are free, and which prompts it already holds. (Chapter 2.)

An engine cuts the KV cache into blocks of a few tokens (PagedAttention: Kwon et al., SOSP 2023). Prefix caching keeps
a full block after its request has left, under the content of everything up to it, until the memory is needed: a later
prompt that begins alike takes the block instead of computing it again.

`BlockPool` does what vLLM 0.32's block pool does, block for block, but keeps *runs*: blocks that were filled together
share one entry, and runs form a radix tree (Zheng et al., SGLang, 2024). Admitting or freeing a request costs a few
dictionary operations, however many blocks it has.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .hardware import Gpu, Model
from .workload import whole

PLENTY = 1 << 62  # blocks of an unlimited cache


def block_bytes(model: Model, block_size: int = 16) -> float:
    """Bytes of one KV block: `block_size` tokens times `Model.kv_bytes_per_token`."""
    return whole("block_size", block_size, least=1) * model.kv_bytes_per_token


def blocks_that_fit(model: Model, gpu: Gpu, block_size: int = 16, share: float = 0.9) -> int:
    """How many KV blocks fit beside the weights into the `share` of the memory that the engine may use; 0 if none.

    Activations are not counted, so real engines have somewhat fewer.
    """
    return max(0, int((gpu.memory_bytes * share - model.weight_bytes) // block_bytes(model, block_size)))


class HitRate(NamedTuple):
    """Blocks looked up in a prefix cache, and how many of them were found."""

    hits: int
    lookups: int

    @property
    def rate(self) -> float:
        """Share of look-ups that hit, 0 … 1; 0 if there were none."""
        return self.hits / self.lookups if self.lookups else 0.0


def replay_hit_rate(blocks: Iterable[Sequence[int]]) -> HitRate:
    """The best a prefix cache could do: every block stays for ever, requests come one after the other.

    `blocks` yields each request's block ids in prompt order; an id stands for all content up to its block. A request
    looks up all of its blocks before its own are kept.
    """
    seen: set[int] = set()
    hits = lookups = 0
    for ids in blocks:
        ids = tuple(ids)
        lookups += len(ids)
        hits += sum(map(seen.__contains__, ids))
        seen.update(ids)
    return HitRate(hits, lookups)


class Run:
    """Blocks `start` … `end` - 1 of one prompt, which were filled together and are held by the same requests.

    `ids` is the prompt's tuple of block ids, or None for content that no other request can have; `end` may lie behind
    the ids, in what a request that is done made of its own. `users` counts the running requests that hold the run.
    `copies` are runs of one block with the content of this run's first block: vLLM does not merge them, and finds the
    oldest; `original` is set in such a copy.
    """

    __slots__ = ("children", "copies", "end", "ids", "original", "parent", "start", "users")

    def __init__(self, ids: tuple[int, ...] | None, start: int, end: int, parent: Run | None):
        self.ids, self.start, self.end, self.parent = ids, start, end, parent
        self.children: dict[int, Run] | None = None  # by their first block id; made when the first comes
        self.copies: list[Run] | None = None
        self.original: Run | None = None
        self.users = 1


class Match(NamedTuple):
    """What the cache holds of a prompt: `blocks` of it, the last `inside` of which lie in `run`.

    `idle` of these blocks belong to no running request, so that using them takes them from the free ones.
    """

    blocks: int
    run: Run
    inside: int
    idle: int


class BlockPool:
    """The KV blocks of one engine. `free` can be handed out; those that hold cached content are evicted last.

    num_blocks  usable blocks, None for an unlimited cache
    caching     whether freed full blocks keep their content until they are needed

    Order of eviction, as in vLLM 0.32: blocks without content first; then the least recently freed request, and of
    one request the end of its sequence first. So what is cached is always a prefix of some prompt, without holes.

    Blocks are taken by counting `free` down. What that evicts is forgotten by `settle`, which everything that looks
    at the cache or gives blocks back calls first: until then it makes no difference.
    """

    def __init__(self, num_blocks: int | None, caching: bool):
        self.num_blocks = num_blocks
        self.free = PLENTY if num_blocks is None else num_blocks
        self.caching = caching
        self.root = Run((), 0, 0, None)
        self._idle: OrderedDict[Run, None] = OrderedDict()  # no request holds them; in order of eviction
        self._cached = 0  # blocks in them, which are free

    @property
    def held(self) -> int:
        """Blocks that running requests hold, each counted once."""
        return (PLENTY if self.num_blocks is None else self.num_blocks) - self.free

    def match(self, ids: tuple[int, ...], most: int) -> Match:
        """The longest cached prefix of a prompt's block ids, at most `most` blocks of it."""
        if self._cached > self.free:
            self.settle()
        run, found, inside, idle = self.root, 0, 0, 0
        while found < most and run.children and (child := run.children.get(ids[found])) is not None:
            run, stop = child, child.end
            if stop > (length := len(run.ids)):
                stop = length
            if stop > most:
                stop = most
            if run.ids[stop - 1] != ids[stop - 1]:
                stop = parting(run.ids, ids, found, stop - 1)
            inside = stop - found
            if not run.users:
                idle += inside
            found = stop
            if stop < run.end:
                break
        return Match(found, run, inside, idle)

    def hold(self, match: Match) -> Run:
        """Give the matched blocks to one more running request; returns the run to pass to `fill` and `release`."""
        run = match.run
        if run is not self.root and match.inside < run.end - run.start:
            run = self._split(run, match.inside)
        last = run
        while run.parent is not None:
            if not run.users:
                self._idle.pop(run, None)
                self.free -= run.end - run.start
                self._cached -= run.end - run.start
            run.users += 1
            run = run.parent
        return last

    def _split(self, run: Run, count: int) -> Run:
        # `run` stays the tail: its place in the order of eviction comes first, and requests point to their last run.
        head = Run(run.ids, run.start, run.start + count, run.parent)
        head.users = run.users
        head.copies, run.copies = run.copies, None
        for copy in head.copies or ():
            copy.original = head
        run.parent.children[run.ids[run.start]] = head
        if head.end < len(run.ids):
            run.parent, run.start = head, head.end
            head.children = {run.ids[run.start]: run}
        else:  # the rest is a former request's own
            run.ids, run.parent, run.start, run.end = None, None, 0, run.end - head.end
        return head

    def hold_own(self, run: Run) -> int:
        """Take back what is left of a preempted request's own run; returns its number of blocks."""
        self.settle()
        if self._idle.pop(run, self) is not self:
            self.free -= run.end
            self._cached -= run.end
        return run.end

    def settle(self) -> None:
        """Forget the cached content of blocks that have been taken since."""
        idle, missing = self._idle, self._cached - self.free
        while missing > 0:
            run = next(iter(idle))
            length = run.end - run.start
            if length > missing:
                run.end -= missing
                self._cached -= missing
                break
            del idle[run]
            missing -= length
            self._cached -= length
            run.end = run.start
            if run.ids is not None:
                self._forget(run)

    def _forget(self, run: Run) -> None:
        if run.original is not None:
            run.original.copies.remove(run)
        elif run.copies:
            heir, *others = run.copies
            heir.original, heir.copies = None, others
            for copy in others:
                copy.original = heir
            run.parent.children[run.ids[run.start]] = heir
        else:
            del run.parent.children[run.ids[run.start]]

    def fill(self, last: Run, ids: tuple[int, ...], end: int) -> Run:
        """Make the prompt's blocks up to `end`, which a running request has computed, findable; returns its last run.

        `last` is the request's last run so far; a block whose content is cached already becomes a copy.
        """
        start = last.end
        if end <= start:
            return last
        run, first = Run(ids, start, end, last), ids[start]
        if last.children is None:
            last.children = {first: run}
        elif (twin := last.children.setdefault(first, run)) is not run:
            run.original = twin
            twin.copies = [*(twin.copies or ()), run]
        return run

    def release(self, last: Run, shared: int, full: int, blocks: int, keep: bool = False) -> Run | None:
        """Take back a request's `blocks`, of which `full` are full, `shared` of these with content that has an id.

        `last` is its last run. With `keep` (preemption) the run of the request's own full blocks is returned, for
        `hold_own`.
        """
        if not self.caching:
            self.free += blocks
            return None
        if self._cached > self.free:
            self.settle()
        own, run = full - shared, None
        if own <= 0 or (self.num_blocks is None and not keep):  # without a limit nobody will ask for its own
            self.free += blocks - min(full, shared)
        else:
            self.free += blocks - full
            if not keep and last.parent and last.users == 1 and last.end == len(last.ids) and not last.children:
                last.end += own
            else:
                run = Run(None, 0, own, None)
                self._idle[run] = None
                self.free += own
                self._cached += own
        while last.parent is not None:
            last.users -= 1
            if not last.users:
                self._idle[last] = None
                self.free += last.end - last.start
                self._cached += last.end - last.start
            last = last.parent
        return run


def parting(a: tuple[int, ...], b: tuple[int, ...], low: int, high: int) -> int:
    """The first block at which two prompts differ, after block `low`, which they share, and at most `high`."""
    while high - low > 1:
        middle = (low + high) // 2
        if a[middle] == b[middle]:
            low = middle
        else:
            high = middle
    return high
