"""Prompts as a radix tree: how much of one prompt is among many others. (Chapter 7, the KV-aware router.)

Runs of blocks that the same requests share are one entry, so that a prompt is found, added or removed in a few
dictionary operations (Zheng et al., SGLang, 2024). A block id stands for all content up to its block, as in
`Request.block_ids`: comparing the last block of a run compares the run.
"""

from __future__ import annotations

from .kvcache import parting


class ActivePrompts:
    """The full prompt blocks of the requests that a worker is busy with, each counted once: `blocks`."""

    __slots__ = ("blocks", "root")

    def __init__(self):
        self.blocks = 0
        self.root: dict[int, _Run] = {}

    def add(self, ids: tuple[int, ...], count: int) -> _Run | None:
        """Count the first `count` of `ids` as active; returns what to hand to `remove`."""
        found, children, parent = 0, self.root, None
        while found < count and (run := children.get(ids[found])) is not None:
            stop = min(run.end, count)
            if run.ids[stop - 1] != ids[stop - 1]:
                stop = parting(run.ids, ids, found, stop - 1)
            if stop < run.end:
                run = run.split(stop, children)
            run.users += 1
            found, children, parent = stop, run.children, run
        if found < count:
            children[ids[found]] = parent = _Run(ids, found, count, parent, 1)
            self.blocks += count - found
        return parent

    def remove(self, run: _Run | None) -> None:
        """A request has ended: `run` is what `add` returned."""
        while run is not None:
            run.users -= 1
            if not run.users:
                self.blocks -= run.end - run.start
                siblings = self.root if run.parent is None else run.parent.children
                del siblings[run.ids[run.start]]
            run = run.parent


class _Run:
    """Blocks `start` … `end` - 1 of a prompt that `users` requests share."""

    __slots__ = ("children", "end", "ids", "parent", "start", "users")

    def __init__(self, ids: tuple[int, ...], start: int, end: int, parent: _Run | None, users: int):
        self.ids, self.start, self.end, self.parent, self.users = ids, start, end, parent, users
        self.children: dict[int, _Run] = {}

    def split(self, at: int, siblings: dict[int, _Run]) -> _Run:
        """Cut the run before block `at`; returns the first part. The last stays `self`, which requests hold."""
        head = _Run(self.ids, self.start, at, self.parent, self.users)
        siblings[self.ids[self.start]] = head
        self.start, self.parent = at, head
        head.children[self.ids[at]] = self
        return head


def known(ids: tuple[int, ...], count: int, children: dict | None) -> tuple[int, bool]:
    """How many of the first `count` of `ids` lie on a path of a radix tree of runs, and whether all are in use.

    `children` are the runs that begin the paths, by their first id, each with `ids`, `end`, `users` and `children`:
    those of `ActivePrompts` or of a `kvcache.BlockPool`.
    """
    found, used = 0, True
    while found < count and children and (run := children.get(ids[found])) is not None:
        stop = run.end
        if stop > count or stop > len(run.ids):  # behind its ids a run holds what no other prompt can have
            stop = min(count, len(run.ids))
        used = used and run.users > 0
        if run.ids[stop - 1] != ids[stop - 1]:
            return parting(run.ids, ids, found, stop - 1), used
        found, children = stop, run.children
    return found, used
