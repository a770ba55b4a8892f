"""What the reader's browser runs besides the library: one question of a live figure, or a cell that was changed.

Read by worker.js; plain Python, so that tests run it as well.
"""

import json
import sys
import time
import traceback

OFTEN = 0.05  # seconds between two messages of a cell that prints


def explore(name: str, settings: str) -> str:
    """The answer of `explorations.answer`, or `{"error": …}` with a sentence."""
    from enginelab import explorations

    try:
        return explorations.answer(name, settings)
    except Exception as error:  # a fault of the figure, which must not look like one of the reader
        return json.dumps({"error": f"This figure has a fault: {_last_line(error)}"})


class Pieces:
    """Sends on what is written to it: the first at once, the rest in pieces, for each is a message to the page."""

    def __init__(self, send):
        self.send, self.waiting, self.sent_at = send, [], float("-inf")

    def write(self, text: str) -> None:
        self.waiting.append(text)
        if time.monotonic() - self.sent_at > OFTEN:
            self.flush()

    def flush(self) -> None:
        if self.waiting:
            self.send("".join(self.waiting))
            self.waiting, self.sent_at = [], time.monotonic()


def run(texts: str, send) -> str:
    """The `rerun.Ending` of a cell, as a JSON object; `send` takes what it prints, piece by piece.

    texts: a JSON list of two, the texts of all cells before it and its own.
    """
    from enginelab import rerun

    screen = Pieces(send)
    ending = rerun.run(*json.loads(texts), screen)
    screen.flush()
    return json.dumps(ending._asdict())


def _last_line(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]


def ready() -> str:
    """The version of Python, once what the first question needs is there."""
    import enginelab.explorations  # noqa: F401

    return sys.version.split()[0]
