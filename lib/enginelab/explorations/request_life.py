"""The life of one request, from the HTTP call to its last token. (Chapter 2; the primer on latency.)

The engine's part is computed: `scheduler`'s rules, and `StepTime.roofline`, a lower bound. What happens around it, on
the wire and in the server, are round figures that only say where the time goes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from ..exploring import Exploration, Mark, Number, Picture, Span, Spans
from ..hardware import Gpu, Model
from ..scheduler import Config, Engine, Record, StepTime
from ..workload import Request
from .offers import GPU, GPU_OF, MODEL, MODEL_OF

# Seconds, assumed: one way between client and server, reading a call, tokens into words.
WIRE, PARSE, DETOKENIZE = 0.002, 0.001, 0.0001
TOKENIZE = 2e-6  # seconds a prompt token, assumed
CONTEXT = 1000  # tokens in the KV cache of every other request
BUDGET, SEATS = 8192, 1024  # of `vllm serve` on an H100, see `footprint.defaults`
SHOWN = 3  # tokens in the first chart
ROWS = ("client", "HTTP server", "tokenizer", "queue", "engine", "detokenizer")
CLIENT, SERVER, TOKENIZER, QUEUE, ENGINE, DETOKENIZER = range(len(ROWS))
KEY = {"paper": "only drawn", "idle": "waiting", "orange": "prefill", "blue": "decode"}


class Life(NamedTuple):
    """When what happened to one request, in seconds from the moment the client sent it.

    submitted  it came to the engine
    chunks     the steps that computed its prompt
    tokens     when the engine had each of its tokens
    """

    submitted: float
    chunks: tuple[tuple[float, float], ...]
    tokens: tuple[float, ...]

    @property
    def received(self) -> tuple[float, ...]:
        """When the client has each token."""
        return tuple(at + DETOKENIZE + WIRE for at in self.tokens)

    @property
    def itl(self) -> float:
        """Mean seconds between two tokens; 0 for a single one."""
        return (self.tokens[-1] - self.tokens[0]) / max(1, len(self.tokens) - 1)


def live(prompt: int, output: int, others: int, model: Model, gpu: Gpu) -> Life:
    """The life of a request of `prompt` and `output` tokens on an engine in which `others` decode all the while.

    Each of the others has `CONTEXT` tokens or a few more. The request comes in the middle of one of their steps.
    """
    config = Config(SEATS, BUDGET, step_time=StepTime.roofline(model, gpu))
    record = Record(others + 1, steps=True)
    engine = Engine(config, record)
    most = output + -(-prompt // max(1, BUDGET - others)) + 3  # steps until ours is done, and some
    for index in range(others):
        engine.submit(Request(0, CONTEXT, most), index, transferred=CONTEXT - 1)
    came = 0.0
    if others:
        # The others' first step; ours comes in the middle of the second.
        engine.advance(1e-12)
        second = config.step_time.seconds(0, others, others * CONTEXT)
        came = record.steps[-1].end + second / 2
    engine.submit(Request(came, prompt, output), others)
    engine.advance()
    submitted = WIRE + PARSE + TOKENIZE * prompt
    since = submitted - came
    ours = [step for step in record.steps if others in step.tokens]
    # A step that does not finish the prompt gives no token; every other gives one, at its end.
    silent = len(ours) - output
    chunks = tuple((step.start + since, step.end + since) for step in ours[: silent + 1])
    return Life(submitted, chunks, tuple(step.end + since for step in ours[silent:]))


def explore(prompt: int, output: int, others: int, model: str, gpu: str) -> Picture:
    """Two timelines of one request: up to its first tokens, and the whole of it."""
    shape, card = MODEL_OF[model], GPU_OF[gpu]
    life = live(prompt, output, others, shape, card)
    ttft, e2e, chunks = life.received[0], life.received[-1], len(life.chunks)
    pause = f", then a token every {1e3 * life.itl:.3g} ms (ITL)" if output > 1 else ""
    words = (
        f"The first token is there after {_ms(ttft)} (TTFT){pause}, and the last after {_ms(e2e)} (E2E). "
        f"Prefill takes {_ms(life.chunks[-1][1] - life.chunks[0][0])}, {chunks} {'step' if chunks == 1 else 'steps'}. "
        "Queue, prefill and decode are computed, by vLLM's rules and at best speed (roofline); wire, HTTP and "
        "tokenizer are round figures, only drawn."
    )
    if shape.weight_bytes > card.memory_bytes:
        words += f" (One {card.name} cannot hold the weights: read it as a GPU of that speed with more memory.)"
    return Picture(words, (_beginning(life), _whole(life)))


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:,.3g} ms" if seconds < 1 else f"{seconds:,.2f} s"


def _beginning(life: Life) -> Spans:
    """Up to the first tokens: who has the request when."""
    shown = life.tokens[:SHOWN]
    first, received = life.tokens[0], life.received
    bars = [
        (CLIENT, 0, WIRE, "", "paper"),
        (SERVER, WIRE, WIRE + PARSE, "", "paper"),
        (TOKENIZER, WIRE + PARSE, life.submitted, "", "paper"),
        (CLIENT, WIRE, received[0], "waits", "idle"),
    ]
    if life.chunks[0][0] > life.submitted:
        bars.append((QUEUE, life.submitted, life.chunks[0][0], "", "idle"))
    bars += [(ENGINE, start, end, "prefill", "orange") for start, end in life.chunks]
    bars += [(ENGINE, start, end, f"{n}", "blue") for n, (start, end) in enumerate(pairwise(shown), start=2)]
    bars += [(DETOKENIZER, at, at + DETOKENIZE, "", "paper") for at in shown]
    end = received[len(shown) - 1]
    marks = [Mark(1e3 * received[0], f"TTFT {_ms(received[0])}")]
    if len(shown) > 1:
        marks.append(Mark(1e3 * received[1], f"ITL {_ms(shown[1] - first)}"))
    return Spans(
        "Up to the first tokens" if len(life.tokens) > 1 else "Up to the only token",
        ROWS,
        tuple(Span(row, 1e3 * start, 1e3 * until, label, look) for row, start, until, label, look in bars),
        "milliseconds since the client sent it",
        1e3 * end,
        KEY,
        tuple(marks),
    )


def _whole(life: Life) -> Spans:
    """From the call to the end of the stream."""
    received = life.received
    spans = [
        Span(0, 0, 1e3 * life.submitted, "", "paper"),
        Span(0, 1e3 * life.chunks[0][0], 1e3 * life.chunks[-1][1], "", "orange"),
        Span(0, 1e3 * life.tokens[-1], 1e3 * received[-1], "", "paper"),
    ]
    if life.chunks[0][0] > life.submitted:
        spans.append(Span(0, 1e3 * life.submitted, 1e3 * life.chunks[0][0], "", "idle"))
    if len(life.tokens) > 1:
        spans.append(Span(0, 1e3 * life.tokens[0], 1e3 * life.tokens[-1], "decode", "blue"))
    marks = (Mark(1e3 * received[0], "TTFT"), Mark(1e3 * received[-1], f"E2E {_ms(received[-1])}"))
    return Spans(
        "The whole request",
        ("request",),
        tuple(spans),
        "milliseconds since the client sent it",
        1e3 * received[-1],
        KEY,
        marks,
    )


EXPLORATION = Exploration(
    "The life of one request",
    (
        Number("prompt", "Prompt", 2000, 1, 32_768, unit="tokens"),
        Number("output", "Output", 500, 1, 1000, unit="tokens"),
        Number("others", "Other requests in the batch", 16, 0, 256),
        MODEL,
        GPU,
    ),
    explore,
)
