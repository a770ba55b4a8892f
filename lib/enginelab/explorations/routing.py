"""A warm and busy worker or a cold and idle one: where the KV-aware router flips. (Chapter 7.)"""

from __future__ import annotations

from bisect import bisect

from ..exploring import Bars, Choice, Exploration, Guess, Line, Lines, Mark, Number, Picture, Series
from ..kvrouter import Load, costs
from ..routing import place, prefill_saved
from ..scheduler import Config
from ..workload import Request

BLOCK = 16  # tokens, as vLLM's default
MOST = 400  # requests on the warm worker up to which the flip is looked for
NAMES = "ABCDEFGH"
POLICIES = {"round_robin": "Round robin", "least_loaded": "Least loaded", "kv_aware": "KV-aware"}


class Prompt:
    """A prompt of `shared` tokens that the warm worker has cached, and `new` ones behind them, in whole KV blocks."""

    def __init__(self, shared: int, new: int):
        self.tokens, self.found = shared + new, shared // BLOCK * BLOCK
        self.blocks = self.tokens // BLOCK
        self.own = self.blocks - shared // BLOCK

    @property
    def rest(self) -> int:
        """Tokens that the warm worker computes."""
        return self.tokens - self.found

    def on_warm(self, busy: int, waiting: bool) -> Load:
        """The warm worker with `busy` requests like this one, which wait for their prefill or decode already."""
        held = self.blocks + busy * self.own  # the shared blocks are held once, whoever uses them
        return Load(self.found // BLOCK, busy * self.rest if waiting else 0, held, busy)

    def on_cold(self) -> Load:
        """A worker that has nothing, and nothing to do."""
        return Load(0, 0, self.blocks)

    def costs(self, busy: int, waiting: bool, workers: int = 2) -> list[float]:
        """What the request costs on the warm worker, then on each of the others, in KV blocks."""
        return costs(self.tokens, [self.on_warm(busy, waiting), *[self.on_cold()] * (workers - 1)], BLOCK)

    def flip(self, waiting: bool) -> int | None:
        """From how many requests on the warm worker a cold one is cheaper; None if that takes more than `MOST`."""

        def turned(busy: int) -> bool:
            warm, cold = self.costs(busy, waiting)
            return cold < warm

        at = bisect(range(MOST + 1), False, key=turned)  # each request makes the warm worker dearer, or none does
        return at if at <= MOST else None


def burst(prompt: Prompt, count: int, waiting: bool) -> list[Request]:
    """One request that warms worker A, and half a minute later `count` like it.

    They come at the same moment, so that they wait for their prefill, or one a second with answers so long that all
    are being decoded when the last one comes.
    """
    shared = tuple(range(prompt.found // BLOCK))
    requests = [Request(0.0, prompt.tokens, 1, _ids(shared, 0, prompt))]
    for number in range(1, count + 1):
        at = 30.0 if waiting else 30.0 + number
        requests.append(Request(at, prompt.tokens, 100 if waiting else 5_000, _ids(shared, number, prompt)))
    return requests


def _ids(shared: tuple[int, ...], number: int, prompt: Prompt) -> tuple[int, ...]:
    start = len(shared) + number * prompt.own
    return (*shared, *range(start, start + prompt.own))


def explore(workers: int, shared: int, new: int, busy: int, state: str) -> Picture:
    """A request of `shared` + `new` tokens, `workers` of which one has the shared part cached and `busy` requests."""
    prompt, waiting = Prompt(shared, new), state == "waiting"
    names = tuple(f"worker {name}" for name in NAMES[:workers])
    prices = prompt.costs(busy, waiting, workers)
    to = _cheapest(prices)
    flip = prompt.flip(waiting)
    many = f"{busy} request{'' if busy == 1 else 's'}"
    turn = f"flips at {flip} requests on A" if flip else f"does not flip, however many are on A (tried: {MOST})"
    words = (
        f"Worker A has {prompt.found:,} of the prompt's {prompt.tokens:,} tokens cached and computes {prompt.rest:,}; "
        f"any other computes all {prompt.tokens:,}: A saves {prefill_saved(prompt.tokens, prompt.found):.0%} of the "
        f"prefill. With {many} on A, the request costs {prices[0]:,.0f} blocks there and {prices[1]:,.0f} elsewhere: "
        f"the KV-aware router sends it to {to}, and {turn}."
    )
    computed = (prompt.rest, *[prompt.tokens] * (workers - 1))
    loads = [prompt.on_warm(busy, waiting), *[prompt.on_cold()] * (workers - 1)]
    held = tuple(load.decode_blocks for load in loads)
    charts = (
        Bars(
            f"Prefill of this request: A computes {prompt.rest:,} tokens, the others {prompt.tokens:,}",
            names,
            (
                Series("to compute", computed, "orange"),
                Series("cached", tuple(prompt.tokens - tokens for tokens in computed), "idle"),
            ),
            "prompt tokens",
        ),
        Bars(
            f"Cost of each worker: the router takes {to}",
            names,
            (
                Series("to prefill", tuple(a - b for a, b in zip(prices, held, strict=True)), "orange"),
                Series("to hold", held, "green"),
            ),
            "cost, KV blocks",
        ),
        _lines(prompt, busy, waiting, flip),
    )
    return Picture(words, charts, flip, ("Policy", "Sends it to", "It computes", f"All {busy + 1} of a burst"),
                   _policies(prompt, workers, busy, waiting, to))  # fmt: skip


def _cheapest(prices: list[float]) -> str:
    cheapest = [NAMES[index] for index, price in enumerate(prices) if price == min(prices)]
    return cheapest[0] if len(cheapest) == 1 else f"{', '.join(cheapest[:-1])} or {cheapest[-1]}, by lot"


def _lines(prompt: Prompt, busy: int, waiting: bool, flip: int | None) -> Lines:
    end = max(busy, min(max(5, 2 * (flip or 0)), 48))
    load = tuple(range(end + 1))
    warm, cold = zip(*(prompt.costs(count, waiting) for count in load), strict=True)
    seen = flip is not None and flip <= end
    return Lines(
        f"From {flip} requests on A the cold worker is cheaper" if flip else "Worker A is never the dearer one",
        (Line("worker A, which has the prefix", load, warm), Line("a worker that has nothing", load, cold)),
        "requests on worker A",
        "cost, KV blocks",
        marks=(Mark(flip, "flips"),) if seen else (),
        here=(busy, warm[busy]),
    )


def _policies(prompt: Prompt, workers: int, busy: int, waiting: bool, to: str) -> tuple[tuple[str, ...], ...]:
    """What each policy does with this request, and with all of a burst."""
    first = "A" if not busy else "B"  # the one with the fewest requests, the first of equals
    aware = f"{prompt.rest if to == 'A' else prompt.tokens:,}" if len(to) == 1 else "depends on the lot"
    mean = (prompt.rest + (workers - 1) * prompt.tokens) / workers
    rows = {
        "round_robin": ("whose turn it is", f"{mean:,.0f} on average"),
        "least_loaded": (first, f"{prompt.rest if first == 'A' else prompt.tokens:,}"),
        "kv_aware": (to, aware),
    }
    requests = burst(prompt, busy + 1, waiting)
    out = []
    for policy, name in POLICIES.items():
        run = place(requests, [Config(enable_prefix_caching=True, block_size=BLOCK)] * workers, policy, core="python")
        computed = sum(prompt.tokens - cached for cached in run.trace.cached_tokens[1:])
        out.append((name, *rows[policy], f"{computed:,}"))
    return tuple(out)


EXPLORATION = Exploration(
    "Prefix cache and routing",
    (
        Number("busy", "Requests on worker A", 2, 0, 40),
        Number("shared", "Shared system prompt", 1_000, 0, 8_000, unit="tokens"),
        Number("new", "New part of the prompt", 200, 1, 4_000, unit="tokens"),
        Choice(
            "state",
            "Requests on A are",
            "waiting",
            (("waiting", "waiting for their prefill"), ("decoding", "decoding already")),
        ),
        Number("workers", "Workers", 2, 2, 8),
    ),
    explore,
    Guess("From how many requests on worker A does the KV-aware router send the next one elsewhere?", "requests"),
)
