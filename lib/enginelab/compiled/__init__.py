"""The compiled core: the engine and the router once more, for large workloads, with the same bits as a result.

`scheduler.simulate` and `routing.simulate` use it where numba is installed (`pip install numba`); elsewhere,
as in a browser, they are plain Python and this package does nothing. The plain modules say what the rules are and why.
Here `kvcache`, `engine` and `router` do the same under the same names, function by function, on arrays, so that both
can be read side by side: a change there is a change here, and tests compare the two to the last bit.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..workload import Request

if TYPE_CHECKING:
    from ..kvrouter import Weights
    from ..scheduler import Config

CORES = ("auto", "python", "numba")
WORTH_IT = 10_000  # requests from which "auto" takes the compiled core


class Served(NamedTuple):
    """What became of each request, in the order of the requests; seconds, tokens, and the place of its worker."""

    first_token: array
    last_token: array
    scheduled: array
    cached_tokens: array
    workers: array


class Unsuited(Exception):
    """Why the compiled core cannot serve a load."""


def serve(
    requests: Sequence[Request],
    configs: Sequence[Config],
    policy: str | None = None,
    weights: Weights | None = None,
    seed: int = 0,
    core: str = "auto",
) -> Served | None:
    """Serve the requests by the compiled core; None if plain Python is to do it.

    policy  of the router, None for one engine without
    core    "python": never; "numba": always; "auto": from 10,000 requests on, if numba is installed and they suit it

    The first time on a machine numba compiles for some ten seconds, and keeps the result in the cache folder; the first
    time in a process it takes about half a second (`prepare` does it beforehand). What does not suit it: a temperature
    above 0, or numbers that might not fit 64 bits.

    Raises `ValueError` for an unknown core and for "numba" where it is impossible, and whatever the plain models raise.
    """
    if core not in CORES:
        raise ValueError(f"core must be 'auto', 'python' or 'numba', not {core!r}")
    if core == "python" or not requests or (core == "auto" and len(requests) < WORTH_IT):
        return None
    try:
        from . import columns
    except ImportError as why:  # there is no numba, or one that does not go with the numpy that is there
        if core == "auto":
            return None
        raise ValueError(f"core 'numba' needs a package numba that works here (pip install numba): {why}") from None
    try:
        return columns.serve(requests, configs, policy, weights, seed)
    except Unsuited as reason:
        if core == "auto":
            return None
        raise ValueError(f"core 'numba' cannot serve this load, and 'python' can: {reason}") from None


class Prepared(NamedTuple):
    """How many CPU seconds it took until the machine code was there, and whether it was only loaded."""

    seconds: float
    loaded: bool

    def __str__(self):
        return f"compiled core: {'loaded' if self.loaded else 'compiled'} in {self.seconds:.1f} s of CPU time"


def prepare() -> Prepared:
    """Compile the core, or load it, now rather than in the first large run. Raises `ValueError` without numba."""
    from ..scheduler import Config  # which imports this module

    begin = time.process_time()
    serve([Request(0.0, 1, 1)], [Config()], core="numba")
    from .router import serve as whole

    return Prepared(time.process_time() - begin, bool(whole.stats.cache_hits))
