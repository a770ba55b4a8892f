"""How far a long computation is: a bar on a screen or in a notebook, a line now and then in a log."""

from __future__ import annotations

import sys
from typing import TextIO

from tqdm.std import tqdm

# Seconds until the first sign, and between two of them.
SCREEN, ELSEWHERE = (0.5, 0.1), (5.0, 5.0)
LINE = "{desc}: {n_fmt} of {total_fmt} points, {elapsed} so far, {remaining} to go{postfix}"


class _Lines:
    """A stream on which tqdm, which redraws one line, writes line after line."""

    def __init__(self, stream: TextIO):
        self.stream = stream

    def write(self, text: str) -> None:
        if text := text.strip():
            self.stream.write(text + "\n")

    def flush(self) -> None:
        self.stream.flush()


def bar(name: str, total: int, known: int = 0, shown: bool = True) -> tqdm:
    """Return a progress bar for `total` points on standard error, which stands at `known` of them.

    Short work shows nothing. `update()` counts a point, `update(0)` redraws when it is time.
    """
    stream, words = sys.stderr, {}
    screen = stream.isatty()
    # In a notebook a line can be redrawn, but what is drawn stays in the file: nothing at all for a short sweep.
    if not screen and not type(stream).__module__.startswith("ipykernel"):
        stream = _Lines(stream)
        words = {"bar_format": LINE}
    delay, every = SCREEN if screen else ELSEWHERE
    return tqdm(
        total=total,
        initial=known,
        desc=name,
        unit="point",
        file=stream,
        disable=not shown,
        delay=delay,
        mininterval=every,
        miniters=0,
        dynamic_ncols=screen,
        **words,
    )
