"""How long a step of Dynamo's simulated engine takes: the mocker's own formulas, and the models' step time from them.

A mocker has no model and no weights. It schedules as vLLM does, and then waits as long as these polynomials say, which
someone once fitted to a real engine (ai-dynamo 1.6.1, `lib/mocker/src/common/perf_model.rs`, read on 1 December 2026).
A step that prefills and decodes takes the sum of both. A test asks the real mocker about each.
"""

from __future__ import annotations

from .step_time import StepTime
from .workload import whole


def prefill(tokens: int) -> float:
    """Seconds to prefill so many tokens in one step, 0 for none."""
    tokens = whole("tokens", tokens)
    return (16.50142 + 1.518344e-02 * tokens + 4.209989e-07 * tokens**2) / 1e3 if tokens else 0.0


def decode(kv_tokens: int, capacity: int) -> float:
    """Seconds to decode one token for each request, while `kv_tokens` of `capacity` tokens of KV cache are in use."""
    share = min(1.0, whole("kv_tokens", kv_tokens) / whole("capacity", capacity, least=1))
    return max(1.0, 5.74 + 54.01 * share - 25.74 * share**2) / 1e3


def step_time(prompt_tokens: int, capacity: int) -> StepTime:
    """The models' step time nearest to the mocker's, for steps that prefill about `prompt_tokens` or none.

    `StepTime` is made of straight lines, so a prompt token costs what it does on average in so long a prefill, and a
    token in the KV cache what it does in an almost empty one. A step that only prefills comes out 5.74 ms too long,
    since `fixed` counts in every step. capacity: of the KV cache, in tokens.
    """
    begin = prefill(1) - (prefill(2) - prefill(1))
    return StepTime(
        fixed=decode(0, capacity),
        per_prefill_token=(prefill(whole("prompt_tokens", prompt_tokens, least=1)) - begin) / prompt_tokens,
        per_sequence=0.0,
        per_kv_token=54.01e-3 / capacity,
        prefilling=begin,
    )
