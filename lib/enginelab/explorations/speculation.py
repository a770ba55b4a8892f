"""When speculative decoding pays: acceptance, draft length, what the draft costs, and the batch. (Chapter 4.)"""

from __future__ import annotations

from bisect import bisect

from ..exploring import Exploration, Guess, Line, Lines, Mark, Number, Picture
from ..hardware import H100, LLAMA_3_1_8B
from ..roofline import decode_step
from ..speculation import Round, least_acceptance, speculate

MODEL, GPU = LLAMA_3_1_8B, H100
LONGEST, LARGEST = 12, 1024  # guesses, and sequences in a batch
ACCEPTANCES = tuple(percent / 100 for percent in range(0, 101, 4))
BATCHES = tuple(sorted({round(2 ** (power / 3)) for power in range(31)}))


def check_cost(draft_tokens: int, batch: int, context: int) -> float:
    """What checking so many guesses takes in plain decode steps, by the roofline bound of `MODEL` on `GPU`."""
    checking = decode_step(MODEL, GPU, batch, context, new_tokens=draft_tokens + 1)
    return checking.time / decode_step(MODEL, GPU, batch, context).time


def last_paying(acceptance: float, draft_tokens: int, draft_cost: float, context: int) -> int:
    """The largest batch up to `LARGEST` at which a round is no slower than plain decoding; 0 if there is none.

    A draft that always costs the same share of a plain step pays less and less as the batch grows, since checking only
    becomes dearer. So halving finds the end; `speculation.last_paying_batch` is for drafts of any shape.
    """

    def loses(batch: int) -> bool:
        cost = check_cost(draft_tokens, batch, context)
        return speculate(acceptance, draft_tokens, draft_cost, cost).speedup < 1

    return bisect(range(1, LARGEST + 1), False, key=loses)


def explore(acceptance: float, draft_tokens: int, draft_cost: float, batch: int, context: int) -> Picture:
    """Rounds of `draft_tokens` guesses, each right with `acceptance`, each at `draft_cost` % of a step."""
    share = draft_cost / 100
    checks = [check_cost(length, batch, context) for length in range(1, LONGEST + 1)]

    def at(chance: float, length: int) -> Round:
        return speculate(chance, length, share, checks[length - 1])

    here = at(acceptance, draft_tokens)
    best = max(range(1, LONGEST + 1), key=lambda length: at(acceptance, length).speedup)
    least = least_acceptance(draft_tokens, share, checks[draft_tokens - 1])
    last = last_paying(acceptance, draft_tokens, share, context)
    guesses = f"{draft_tokens} guess{'' if draft_tokens == 1 else 'es'}"
    pays = f"pays from an acceptance of {least:.0%} on" if least is not None else "would not pay if all were right"
    until = (
        "at no batch size"
        if not last
        else f"up to a batch of {last:,}"
        if last < LARGEST
        else f"at every batch up to {LARGEST:,}"
    )
    shortest = "no number of guesses pays" if at(acceptance, best).speedup < 1 else f"{best} would be the best number"
    words = (
        f"{MODEL.name} on one {GPU.name}: a round of {guesses} yields {here.tokens:.2f} tokens on average and takes "
        f"{here.draft + here.check:.2f} plain steps: {here.speedup:.2f} times as fast as plain decoding. At a batch of "
        f"{batch:,} it {pays}; at an acceptance of {acceptance:.0%} it pays {until}, and here {shortest}."
    )
    charts = (
        Lines(
            f"At a batch of {batch:,}: {here.speedup:.2f} times as fast",
            (
                Line(guesses, ACCEPTANCES, tuple(at(chance, draft_tokens).speedup for chance in ACCEPTANCES)),
                Line("best number of guesses", ACCEPTANCES, tuple(_best(at, chance) for chance in ACCEPTANCES)),
                Line("plain decoding", ACCEPTANCES, (1.0,) * len(ACCEPTANCES)),
            ),
            "acceptance",
            "speed-up",
            marks=() if least is None else (Mark(least, "breaks even"),),
            here=(acceptance, here.speedup),
        ),
        _over_batches(acceptance, draft_tokens, share, batch, context, last),
    )
    return Picture(words, charts, here.speedup)


def _best(at, chance: float) -> float:
    return max(at(chance, length).speedup for length in range(1, LONGEST + 1))


def _over_batches(acceptance: float, draft_tokens: int, share: float, batch: int, context: int, last: int) -> Lines:
    batches = tuple(sorted({*BATCHES, batch}))
    speedups = tuple(
        speculate(acceptance, draft_tokens, share, check_cost(draft_tokens, each, context)).speedup for each in batches
    )
    return Lines(
        f"At an acceptance of {acceptance:.0%}: the larger the batch, the less it gains",
        (Line("speculative", batches, speedups), Line("plain decoding", batches, (1.0,) * len(batches))),
        "batch, sequences",
        "speed-up",
        log_x=True,
        marks=(Mark(last, "last that pays"),) if 0 < last < LARGEST else (),
        here=(batch, speedups[batches.index(batch)]),
    )


EXPLORATION = Exploration(
    "When speculation pays",
    (
        Number("acceptance", "Acceptance of a guess", 0.7, 0, 1, step=0.01),
        Number("draft_tokens", "Guesses in a round", 1, 1, LONGEST, unit="tokens"),
        Number("draft_cost", "Cost of one guess", 5, 0, 100, unit="% of a plain step"),
        Number("batch", "Batch", 64, 1, LARGEST, unit="sequences"),
        Number("context", "Context of each sequence", 0, 0, 32_000, unit="tokens"),
    ),
    explore,
    Guess("How many times as fast as plain decoding is it?", "times"),
)
