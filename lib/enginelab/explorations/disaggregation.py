"""Four GPUs: do all of them both kinds of work, or some prefill and some decode? (Chapter 7.)"""

from __future__ import annotations

from ..disaggregation import Split, splits
from ..exploring import Bars, Exploration, Guess, Number, Picture, Series
from ..hardware import LLAMA_3_1_8B
from ..scheduler import Config
from ..trace import percentile
from ..workload import Request, build, lognormal, poisson

GPUS = 4
COUNT, LEFT_OUT = 60, 20  # requests, and how many of them find a fleet that is still filling up
TTFT = 1.0  # the limit, seconds
MODEL = LLAMA_3_1_8B


def offered(rate: float, input_tokens: int, output_tokens: int) -> list[Request]:
    """`COUNT` requests at `rate` requests/s, lengths lognormal with these medians: small enough for a browser."""
    prompts = lognormal(input_tokens, 0.5, COUNT, seed=3, longest=4 * input_tokens)
    answers = lognormal(output_tokens, 0.5, COUNT, seed=2, longest=4 * output_tokens)
    return build(poisson(rate, COUNT, seed=1), prompts, answers)


class Promise:
    """How many of a run's requests kept the limits on TTFT and TPOT (seconds), after the first `LEFT_OUT`."""

    def __init__(self, split: Split, tpot: float):
        self.name = f"{split.prefill} prefill + {split.decode} decode" if split.prefill else f"{GPUS} together"
        self.ttft, self.tpot = split.trace.ttft[LEFT_OUT:], split.trace.tpot[LEFT_OUT:]
        late = [(first > TTFT, each > tpot) for first, each in zip(self.ttft, self.tpot, strict=True)]
        self.kept = late.count((False, False)) / len(late)
        self.late_first = late.count((True, False)) / len(late)
        self.late_each = late.count((False, True)) / len(late)
        self.late_both = late.count((True, True)) / len(late)


def explore(rate: float, input_tokens: int, output_tokens: int, bandwidth: float, tpot: float) -> Picture:
    """The fleet and its splits at `rate` requests/s; `bandwidth` in Gbit/s out of a prefill worker, `tpot` in ms."""
    requests = offered(rate, input_tokens, output_tokens)
    per_token, network = MODEL.kv_bytes_per_token, bandwidth * 1e9 / 8
    runs = splits(requests, Config(), GPUS, TTFT, tpot / 1e3, network, per_token)
    fleets = [Promise(split, tpot / 1e3) for split in runs]
    together, best = fleets[0], max(fleets[1:], key=lambda fleet: fleet.kept)
    megabytes = input_tokens * per_token / 1e6
    verdict = (
        "disaggregation wins"
        if best.kept > together.kept
        else "nothing is gained by splitting"
        if best.kept == together.kept
        else "better not to split"
    )
    words = (
        f"At {rate:g} requests/s, {GPUS} GPUs together keep both promises, a first token within {TTFT:g} s and "
        f"{tpot:g} ms per token, for {together.kept:.0%} of the requests; the best split, {best.name}, for "
        f"{best.kept:.0%}: {verdict}. The KV cache of a prompt, {megabytes:,.0f} MB, takes "
        f"{1e9 * megabytes / network:,.1f} ms to send. (Simulated: {COUNT} requests to {MODEL.name}, the first "
        f"{LEFT_OUT} not counted, so the shares are rough.)"
    )
    chart = Bars(
        f"Best: {max(fleets, key=lambda fleet: fleet.kept).name}",
        tuple(fleet.name for fleet in fleets),
        (
            Series("kept both promises", tuple(100 * fleet.kept for fleet in fleets), "blue"),
            Series("late first token", tuple(100 * fleet.late_first for fleet in fleets), "orange"),
            Series("slow tokens", tuple(100 * fleet.late_each for fleet in fleets), "green"),
            Series("both", tuple(100 * fleet.late_both for fleet in fleets), "idle"),
        ),
        "share of the requests, %",
    )
    rows = tuple(
        (fleet.name, f"{fleet.kept * rate:.1f}", f"{percentile(fleet.ttft, 90):.2f}",
         f"{1e3 * percentile(fleet.tpot, 90):.1f}")
        for fleet in fleets
    )  # fmt: skip
    header = ("GPUs", "Goodput, requests/s", "TTFT p90, s", "TPOT p90, ms")
    return Picture(words, (chart,), best.kept * rate, header, rows)


EXPLORATION = Exploration(
    "Together or apart",
    (
        Number("rate", "Request rate", 10, 1, 40, unit="requests/s"),
        Number("input_tokens", "Prompt length (median)", 3_000, 100, 8_000, unit="tokens"),
        Number("output_tokens", "Output length (median)", 100, 2, 400, unit="tokens"),
        Number("bandwidth", "Network out of a prefill worker", 400, 1, 3_200, unit="Gbit/s"),
        Number("tpot", "Promised time per output token (mean ITL)", 20, 10, 200, unit="ms"),
    ),
    explore,
    Guess("How many requests/s does the best split answer within both limits (its goodput)?", "requests/s"),
)
