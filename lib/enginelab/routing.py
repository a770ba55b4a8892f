"""Routing: which worker should serve a request. (Chapter 7.)"""

from __future__ import annotations

from .workload import whole


def prefill_saved(prompt_tokens: int, cached_tokens: int) -> float:
    """Share of a prompt's prefill that a worker saves by having `cached_tokens` of it in its prefix cache, 0 … 1.

    Raises `ValueError` if the prompt is empty or more is cached than the prompt holds.
    """
    prompt_tokens = whole("prompt_tokens", prompt_tokens, least=1)
    cached_tokens = whole("cached_tokens", cached_tokens)
    if cached_tokens > prompt_tokens:
        raise ValueError(f"cached_tokens must not exceed the prompt's {prompt_tokens} tokens, not {cached_tokens}")
    return cached_tokens / prompt_tokens
