"""Tuning: what an engine would make of other settings, once one of them has been measured. (The tuning lab.)

Calibrate on one setting, predict the others, measure only the few that matter. The step time is a property of model
and machine, so it is fitted once; what a setting changes is which tokens share a step, and which need none.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from .scheduler import Config, simulate
from .speculation import keep, look_up
from .step_time import StepTime
from .trace import Trace
from .workload import Request, whole

LONGEST, SHORTEST = 5, 2  # last tokens that a draft by look-up searches for: vLLM's prompt_lookup_max and _min
CONFIG = "tuned.yaml"


@dataclass(frozen=True)
class Setting:
    """What one launch of an engine chooses, by vLLM's names; guesses: tokens of each n-gram draft, 0 for none.

    Raises `ValueError` naming what is impossible.
    """

    max_num_seqs: int
    max_num_batched_tokens: int
    prefix_caching: bool = True
    chunked_prefill: bool = True
    guesses: int = 0

    def __post_init__(self):
        whole("max_num_seqs", self.max_num_seqs, least=1)
        whole("max_num_batched_tokens", self.max_num_batched_tokens, least=self.max_num_seqs)
        whole("guesses", self.guesses)

    def __str__(self) -> str:
        cache = "cache" if self.prefix_caching else "no cache"
        whole_prompts = "" if self.chunked_prefill else ", whole prompts"
        return f"{self.max_num_seqs} seqs, {self.max_num_batched_tokens} tokens, {cache}{whole_prompts}" + (
            f", {self.guesses} guesses" if self.guesses else ""
        )

    @property
    def short(self) -> str:
        """The same in few words, for a figure: seats, tokens, and what is switched on."""
        words = [str(self.max_num_seqs), str(self.max_num_batched_tokens)]
        words += ["cache"] * self.prefix_caching + ["whole"] * (not self.chunked_prefill)
        return ", ".join(words + ["guesses"] * bool(self.guesses))

    def changes(self, other: Setting) -> int:
        """In how many choices two settings differ."""
        return sum(getattr(self, field.name) != getattr(other, field.name) for field in fields(self))

    def flags(self, engine: str) -> str:
        """The flags that make `engine` run so, for a shell command; TensorRT-LLM's name a file, see `yaml`.

        Raises `ValueError` for an engine that the course does not launch, and for guesses with another than vLLM:
        SGLang's n-gram drafts need CUDA, and TensorRT-LLM's were never tried.
        """
        if engine == "vLLM":
            words = [f"--max-num-seqs {self.max_num_seqs}", f"--max-num-batched-tokens {self.max_num_batched_tokens}"]
            words += [f"--{'' if self.prefix_caching else 'no-'}enable-prefix-caching"]
            words += [f"--{'' if self.chunked_prefill else 'no-'}enable-chunked-prefill"]
            if self.guesses:
                draft = {"method": "ngram", "num_speculative_tokens": self.guesses}
                draft |= {"prompt_lookup_max": LONGEST, "prompt_lookup_min": SHORTEST}
                words += [f"--speculative-config {shlex.quote(json.dumps(draft))}"]
            return " ".join(words)
        budget = self.max_num_batched_tokens
        if engine == "SGLang" and not self.guesses:
            words = [f"--max-running-requests {self.max_num_seqs}", f"--max-prefill-tokens {budget}"]
            words += [f"--chunked-prefill-size {budget if self.chunked_prefill else -1}"]
            return " ".join(words + ([] if self.prefix_caching else ["--disable-radix-cache"]))
        if engine == "TensorRT-LLM" and not self.guesses:
            words = [f"--max_batch_size {self.max_num_seqs}", f"--max_num_tokens {budget}"]
            words += ["--enable_chunked_prefill"] if self.chunked_prefill else []
            return " ".join([*words, f"--extra_llm_api_options {CONFIG}"])
        raise ValueError(f"the course has no flags for {engine} with {self.guesses} guesses")

    def yaml(self) -> str:
        """The file `CONFIG` beside TensorRT-LLM's flags, for it has no flag for prefix caching."""
        return f"kv_cache_config:\n  enable_block_reuse: {'true' if self.prefix_caching else 'false'}\n"


class Drafts(NamedTuple):
    """What n-gram drafts came to: tokens that a round yields on average, and guesses that it checked."""

    tokens: float = 1.0
    guesses: float = 0.0


NO_DRAFTS = Drafts()


def drafts(prompts: Sequence[Sequence[int]], answers: Sequence[Sequence[int]], guesses: int) -> Drafts:
    """What drafts of up to `guesses` tokens would have come to in answers that were made without any.

    Greedy decoding gives the same answer with drafts and without, so a plain one tells which guesses are right. All
    arguments in token ids. Raises `ValueError` if there is no answer.
    """
    rounds = made = checked = 0
    for prompt, answer in zip(prompts, answers, strict=True):
        done = 1  # the first token comes with the prefill
        while done < len(answer):
            draft = look_up([*prompt, *answer[:done]], guesses, LONGEST, SHORTEST)[: len(answer) - done - 1]
            done += len(keep(draft, answer[done : done + len(draft) + 1]))
            rounds, checked = rounds + 1, checked + len(draft)
        made += max(0, len(answer) - 1)
    if not rounds:
        raise ValueError("answers must hold one of two or more tokens: no drafts were made in these")
    return Drafts(made / rounds, checked / rounds)


def speculating(step: StepTime, found: Drafts) -> StepTime:
    """The step time at which an engine without drafts is as fast as one with them, on average.

    A round checks its guesses beside each sequence's own token. A guess costs what a prompt token does, for both are
    tokens that a step computes at once. It yields `tokens`, so a token's share of the round is that part of it.
    """
    return replace(
        step,
        fixed=step.fixed / found.tokens,
        per_sequence=(step.per_sequence + found.guesses * step.per_prefill_token) / found.tokens,
        per_kv_token=step.per_kv_token / found.tokens,
    )


def predict(
    setting: Setting, requests: Iterable[Request], step: StepTime, found: Drafts = NO_DRAFTS, block_size: int = 16
) -> Trace:
    """The run that `setting` would make of a load.

    step: fitted to a run without drafts; found: by `drafts`, for this many guesses; block_size: tokens to a KV block.

    Raises `ValueError` naming the first request that could never finish.
    """
    config = Config(
        max_num_seqs=setting.max_num_seqs,
        max_num_batched_tokens=setting.max_num_batched_tokens,
        block_size=block_size,
        enable_prefix_caching=setting.prefix_caching,
        enable_chunked_prefill=setting.chunked_prefill,
        step_time=speculating(step, found) if setting.guesses else step,
    )
    return simulate(requests, config)
