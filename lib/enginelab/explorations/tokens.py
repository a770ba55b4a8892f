"""A few requests in one engine: tokens of each step, and KV blocks in use. (Chapter 2.)"""

from __future__ import annotations

from collections.abc import Sequence

from ..exploring import Choice, Complaint, Exploration, Line, Lines, Mark, Number, Numbers, Picture, Span, Spans
from ..scheduler import AGAIN, NEXT, PROMPT, Config, Step, StepTime, Work, schedule, simulate, work_of
from ..workload import Request

# Numbers that are easy to add, as in the chapter.
EASY = StepTime(fixed=0.010, per_prefill_token=0.001, per_sequence=0, per_kv_token=0)
LOOKS = {PROMPT: "orange", NEXT: "blue", AGAIN: "green"}
MOST_MARKS = 4


def explore(
    prompts: tuple[int, ...],
    outputs: tuple[int, ...],
    arrivals: tuple[int, ...],
    max_num_batched_tokens: int,
    chunked: str,
    max_num_seqs: int,
    num_blocks: int,
    block_size: int,
) -> Picture:
    """What one engine does with requests of `prompts` and `outputs` tokens; `arrivals` in ms, none for all at once."""
    requests = _requests(prompts, outputs, arrivals)
    config = _config(requests, max_num_batched_tokens, chunked, max_num_seqs, num_blocks, block_size)
    try:
        steps = schedule(requests, config)
    except ValueError:  # the only way in which this engine gets stuck
        raise Complaint(
            "max_num_batched_tokens",
            f"max_num_batched_tokens: a request is preempted and has more than {max_num_batched_tokens} tokens to "
            "compute again; without chunked prefill they must fit into one step.",
        ) from None
    run = simulate(requests, config, token_times=True)
    work = list(work_of(requests, steps))
    lost = [(1e3 * step.start, index) for step in steps for index in step.preempted]
    used = [sum(-(-each.held // block_size) for each in done.values()) for done in work]
    longest = 1e3 * max(step.end - step.start for step in steps)
    words = (
        f"{len(steps)} steps, the longest {longest:.0f} ms. "
        f"{_pause(run.itl)}R{len(requests)} gets its first token {1e3 * run.ttft[-1]:.0f} ms after it came (TTFT), "
        f"and all is done after {1e3 * steps[-1].end:.0f} ms. "
        f"At most {max(used)} of {num_blocks} KV blocks are in use, and {_preemptions(len(lost))}."
    )
    return Picture(words, (_timeline(steps, work, len(requests)), _blocks(steps, used, lost, num_blocks)))


def _requests(prompts: Sequence[int], outputs: Sequence[int], arrivals: Sequence[int]) -> list[Request]:
    for control, label, values in (("outputs", "Output tokens", outputs), ("arrivals", "Arrivals", arrivals)):
        if len(values) != len(prompts) and (values or control == "outputs"):
            raise Complaint(
                control, f"{label}: {len(prompts)} prompts need {len(prompts)}, and here are {len(values)}."
            )
    arrivals = arrivals or [0] * len(prompts)
    return [Request(at / 1e3, *tokens) for at, *tokens in zip(arrivals, prompts, outputs, strict=True)]


def _config(requests: Sequence[Request], budget: int, chunked: str, seats: int, blocks: int, size: int) -> Config:
    """The engine's settings. Raises `Complaint` for those with which the real one does not start."""
    if seats > budget:
        raise Complaint(
            "max_num_batched_tokens",
            f"max_num_batched_tokens: vLLM does not start with fewer than max_num_seqs, which is {seats}.",
        )
    for index, request in enumerate(requests, start=1):
        needed = -(-(request.prompt_tokens + request.output_tokens - 1) // size)
        if needed > blocks:
            raise Complaint("num_blocks", f"KV blocks: R{index} alone needs {needed} of {size} tokens each.")
        if chunked == "off" and request.prompt_tokens > budget:
            raise Complaint(
                "max_num_batched_tokens",
                f"max_num_batched_tokens: without chunked prefill R{index}'s prompt of {request.prompt_tokens} tokens "
                "must fit into one step.",
            )
    return Config(seats, budget, blocks, size, enable_chunked_prefill=chunked == "on", step_time=EASY)


def _pause(gaps: Sequence[float]) -> str:
    return f"The longest wait between two tokens of an answer is {1e3 * max(gaps):.0f} ms (ITL). " if gaps else ""


def _preemptions(count: int) -> str:
    if not count:
        return "nobody is preempted"
    return f"{'one request is' if count == 1 else f'{count} times a request is'} preempted and computed again"


def _timeline(steps: Sequence[Step], work: Sequence[dict[int, Work]], count: int) -> Spans:
    spans = tuple(
        Span(index, 1e3 * step.start, 1e3 * step.end, f"{each.tokens}", LOOKS[each.kind])
        for step, done in zip(steps, work, strict=True)
        for index, each in done.items()
    )
    seen = {span.look for span in spans}
    return Spans(
        "Tokens of each request in each step",
        tuple(f"R{row}" for row in range(1, count + 1)),
        spans,
        "milliseconds",
        1e3 * steps[-1].end,
        {look: kind for kind, look in LOOKS.items() if look in seen},
    )


def _blocks(steps: Sequence[Step], used: Sequence[int], lost: Sequence[tuple[float, int]], limit: int) -> Lines:
    xs, ys = [0.0], [0]
    for step, blocks in zip(steps, used, strict=True):
        if 1e3 * step.start > xs[-1]:  # the engine had nothing to do
            xs, ys = [*xs, 1e3 * step.start], [*ys, 0]
        ys[-1] = blocks
        xs, ys = [*xs, 1e3 * step.end], [*ys, 0]
    return Lines(
        "KV blocks in use",
        (
            Line("in use", tuple(xs), tuple(ys), stepped=True),
            Line("all there are", (0.0, xs[-1]), (limit, limit)),
        ),
        "milliseconds",
        "blocks",
        marks=tuple(Mark(at, f"R{index + 1} preempted") for at, index in lost[:MOST_MARKS]),
    )


EXPLORATION = Exploration(
    "Tokens, chunks and KV blocks",
    (
        Numbers("prompts", "Prompt tokens", (2, 3, 15), 1, 64, at_most=6, unit="tokens"),
        Numbers("outputs", "Output tokens", (8, 6, 2), 1, 32, at_most=6, unit="tokens"),
        Numbers("arrivals", "Arrivals", (0, 0, 5), 0, 1000, at_most=6, unit="ms", optional=True),
        Number("max_num_batched_tokens", "max_num_batched_tokens", 8, 1, 128, unit="tokens"),
        Choice("chunked", "Chunked prefill", "on", (("on", "on"), ("off", "off"))),
        Number("max_num_seqs", "max_num_seqs", 3, 1, 6),
        Number("num_blocks", "KV blocks", 9, 1, 96),
        Number("block_size", "Block size", 4, 1, 16, unit="tokens"),
    ),
    explore,
)
