"""How long one engine step takes: an affine cost, or a roofline bound. (Chapter 2; every prediction.)"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .hardware import Gpu, Model
from .workload import number

if TYPE_CHECKING:
    from .scheduler import Config
    from .trace import Trace

PICOSECONDS = 10**12  # in a second; the models' clock counts them as whole numbers, so that sums are exact


@dataclass(frozen=True)
class StepTime:
    """Seconds that a step takes, from what it does:

        max(fixed + per_prefill_token * p + per_sequence * s + per_kv_token * k + (prefilling if p),
            compute_per_token * (p + s))

    p  prompt tokens that the step computes (and tokens computed again after a preemption)
    s  sequences that decode, one token each
    k  tokens in the KV cache that the step reads: the context of every request in it, before the step

    Each coefficient is at least 0, `fixed` at least a nanosecond. The clock is in whole picoseconds, to which every
    coefficient is rounded. The defaults come from the run `rtxpro6000-llama-3.1-8b` (vLLM 0.19.0, Llama 3.1 8B in
    bfloat16, April 2026; LLMServingSim's examples): a prefilled token, and a decode step of up to 128 sequences with
    500 to 2,000 tokens of context each, take what `fit` finds on all of it, give or take 3 %.
    """

    fixed: float = 0.0132
    per_prefill_token: float = 3.9e-5
    per_sequence: float = 4.4e-5
    per_kv_token: float = 6.9e-8
    compute_per_token: float = 0.0
    prefilling: float = 0.0

    def __post_init__(self):
        number("fixed", self.fixed, least=1e-9)
        for name in ("per_prefill_token", "per_sequence", "per_kv_token", "compute_per_token", "prefilling"):
            number(name, getattr(self, name), least=0)

    @classmethod
    def roofline(cls, model: Model, gpu: Gpu, efficiency: float = 1.0) -> StepTime:
        """The lower bound of `enginelab.roofline`: read weights and KV cache, or compute, whichever takes longer.

        `efficiency` (above 0, at most 1) is the share of the data sheet's bandwidth and peak that is reached.
        """
        share = number("efficiency", efficiency, above=0)
        if share > 1:
            raise ValueError(f"efficiency must be at most 1, not {efficiency!r}")
        return cls(
            fixed=model.weight_bytes / gpu.bandwidth / share,
            per_prefill_token=0.0,
            per_sequence=0.0,
            per_kv_token=model.kv_bytes_per_token / gpu.bandwidth / share,
            compute_per_token=2 * model.active_parameters / gpu.flops / share,
        )

    @classmethod
    def fit(cls, run: Trace, config: Config, workers: int = 1) -> StepTime:
        """The coefficients that best explain a measured run; see `calibration.fit`."""
        from .calibration import fit  # it runs the engine model, which is built on this class

        return fit(run, config, workers)

    @property
    def coefficients(self) -> tuple[int, int, int, int, int, int]:
        """The six coefficients in picoseconds: those of the sum as they stand there, then `compute_per_token`."""
        summed = (self.fixed, self.per_prefill_token, self.per_sequence, self.per_kv_token, self.prefilling)
        return tuple(round(value * PICOSECONDS) for value in (*summed, self.compute_per_token))

    def picoseconds(self, prefill_tokens: int, sequences: int, kv_tokens: int) -> int:
        """What one step takes, on the models' clock."""
        fixed, prefill, sequence, kv, prefilling, compute = self.coefficients
        return max(
            fixed
            + prefill * prefill_tokens
            + sequence * sequences
            + kv * kv_tokens
            + prefilling * (prefill_tokens > 0),
            compute * (prefill_tokens + sequences),
        )

    def seconds(self, prefill_tokens: int = 0, sequences: int = 0, kv_tokens: int = 0) -> float:
        """What one step takes, in seconds."""
        return self.picoseconds(prefill_tokens, sequences, kv_tokens) / PICOSECONDS


def clock(seconds: float) -> int:
    """The first whole picosecond that is not before `seconds`, as the models compare times."""
    ticks = math.ceil(seconds * PICOSECONDS)
    if ticks / PICOSECONDS < seconds:  # the product was rounded down
        numerator, denominator = seconds.as_integer_ratio()
        ticks = -(-numerator * PICOSECONDS // denominator)
    return ticks
