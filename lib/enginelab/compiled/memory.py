"""What the compiled core works on, and how it is compiled.

`Run`, `_Sequence` and `Engine` of the plain modules become rows of arrays of records, None becomes `NONE`, and a list
or a dictionary that keeps an order becomes a chain of rows. Times are whole picoseconds in 64 bits.

All functions name alike what they take: `m` is the `Memory`, `e` a row of `ENGINE`, `s` a row of `SEQUENCE` and `i` its
place, `r` (or a word for what it is) the place of a row of `RUN`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numba
import numpy

from .. import step_time
from ..kvcache import PLENTY
from ..step_time import PICOSECONDS

if TYPE_CHECKING:
    from ..scheduler import Config

NONE = -1
FOREVER = (1 << 63) - 1  # a time or a step that never comes
LATEST = 1 << 62  # a clock that goes beyond this, 53 days, is given back to Python
LONGEST = 1 << 60  # what one look ahead may take: one after the other still fits 63 bits
DONE, REFUSED, STUCK, FULL, LATE = range(5)  # how a run ends


def _record(**names: str) -> numpy.dtype:
    return numpy.dtype([(name, kind) for kind, line in names.items() for name in line.split()])


SEQUENCE = _record(
    i8="at offset order since finish after last own booked",
    f8="arrival",
    i4="prompt output ids shared before place done target computed chunk residue"
    " others to_prefill next_prefill next_left",
)
RESULT = _record(f8="scheduled first_token last_token", i4="cached worker")
RUN = _record(i8="offset first ids start end parent users kids before after idle kept original copies next_copy")
ENGINE = _record(
    i8="number seats budget size chunked caching limited margin holds longest_prompt"
    " fixed per_prefill_token per_sequence per_kv_token per_prefill_step per_token"
    " free cached first_idle last_idle root look admitted now step context running prefilling finishing next_finish"
    " first_arrival last_arrival first_waiting last_waiting first_running last_running"
    " requests prefill_tokens other_blocks active_blocks prompts first_prefill last_prefill first_left last_left"
    " overlap",
    f8="quiet engine_quiet price",
)


class Memory(NamedTuple):
    """What all engines share.

    sequences  one row a request, in order of arrival
    results    what became of each: all that stays when the others are gone
    ids        the block ids of all prompts, one after the other; `offset` says where a prompt's begin
    runs       of every cache and of every tree of active prompts; the roots come first
    table      where a run is found by its parent and first id, open addressing
    spare      rows of `runs` that are not in use, a stack whose height stands first
    need       by engine and residue, how many decoding requests begin a block
    heap       by engine, decoding requests by the step at which they finish, then by order of admission
    report     how the run ended, and at which request in which engine
    """

    sequences: numpy.ndarray
    results: numpy.ndarray
    ids: numpy.ndarray
    runs: numpy.ndarray
    table: numpy.ndarray
    spare: numpy.ndarray
    need: numpy.ndarray
    heap: numpy.ndarray
    report: numpy.ndarray


def fresh(sequences, ids, configs: Sequence[Config], room: int):
    """One row of `ENGINE` a config, and fresh `Memory` with `room` for runs beside what every step may need."""
    count, workers = len(sequences), len(configs)
    engines = numpy.zeros(workers, ENGINE)
    for number, (config, engine) in enumerate(zip(configs, engines, strict=True)):
        limit = PLENTY if config.num_blocks is None else min(config.num_blocks, PLENTY)
        seats, budget = min(config.max_num_seqs, count), min(config.max_num_batched_tokens, PLENTY)
        step = ("fixed", "per_prefill_token", "per_sequence", "per_kv_token", "per_prefill_step", "per_token")
        row = dict(zip(step, config.step_time.coefficients, strict=True)) | {
            "number": number,
            "seats": seats,
            "budget": budget,
            "size": config.block_size,
            "chunked": config.enable_chunked_prefill,
            "caching": config.enable_prefix_caching,
            "limited": config.num_blocks is not None,
            "margin": 3 * seats + 4 if config.enable_prefix_caching else 0,
            "holds": min(limit * config.block_size, PLENTY),
            "longest_prompt": PLENTY if config.enable_chunked_prefill else budget,
            "free": limit,
            "look": True,
            "next_finish": FOREVER,
            "root": number,
            "prompts": workers + number,
        }
        lines = ("idle", "arrival", "waiting", "running", "prefill", "left")
        row |= {f"{end}_{line}": NONE for line in lines for end in ("first", "last")} | {"prefilling": NONE}
        for name, value in row.items():
            engine[name] = value
    rows = 2 * workers + int(engines["margin"].max()) + 4 + room
    runs = numpy.zeros(rows, RUN)
    runs["parent"] = runs["original"] = runs["copies"] = NONE
    spare = numpy.concatenate(([rows - 2 * workers], numpy.arange(rows - 1, 2 * workers - 1, -1))).astype("i8")
    memory = Memory(
        sequences=sequences,
        results=numpy.full(count, numpy.array((numpy.nan, numpy.nan, numpy.nan, 0, 0), RESULT)),
        ids=ids,
        runs=runs,
        table=numpy.full(1 << (2 * rows - 1).bit_length(), NONE, "i4"),
        spare=spare,
        need=numpy.zeros((workers, max(config.block_size for config in configs)), "i8"),
        heap=numpy.zeros((workers, max(1, min(max(config.max_num_seqs for config in configs), count))), "i8"),
        report=numpy.zeros(3, "i8"),
    )
    return engines, memory


def cache_folder() -> Path:
    """Where machine code is kept: in the user's cache folder, by what these sources say, never in the checkout."""
    home = os.environ.get("ENGINELAB_CACHE")
    home = Path(home or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "enginelab")).expanduser().absolute()
    sources = [*sorted(Path(__file__).parent.glob("*.py")), Path(step_time.__file__)]  # all that is compiled
    key = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    return home / f"compiled-{key}"


def jit(function):
    """Compile `function` into those that call it, when the first of them is called.

    Without counting references, which takes most of the time in functions as small as these: nothing here allocates.
    """
    return numba.njit(_nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


def kept(function):
    """Compile a function that Python calls, and keep it with all that it calls: the next process only loads it."""
    before, folder = numba.config.CACHE_DIR, cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            return numba.njit(function)
        numba.config.CACHE_DIR = before or str(folder)  # numba reads it when a function is declared
        return numba.njit(cache=True)(function)
    except OSError:
        return numba.njit(function)
    finally:
        numba.config.CACHE_DIR = before


@jit
def seconds(ticks):
    """`ticks / PICOSECONDS` as Python divides whole numbers: rounded once."""
    if ticks <= 1 << 53:
        return ticks / PICOSECONDS
    whole, rest = ticks // PICOSECONDS, ticks % PICOSECONDS
    bits = 52
    while whole >> (53 - bits):  # so many bits of the fraction fit a float
        bits -= 1
    upper, rest = (rest << 20) // PICOSECONDS, (rest << 20) % PICOSECONDS
    lower, rest = (rest << (bits - 20)) // PICOSECONDS, (rest << (bits - 20)) % PICOSECONDS
    scaled = (whole << bits) + (upper << (bits - 20)) + lower
    if 2 * rest > PICOSECONDS:  # it is never the half: 10**12 has too few factors of 2
        scaled += 1
    return scaled / (1 << bits)
