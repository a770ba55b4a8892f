"""SGLang's own words: its endpoint `/generate`, with token ids in and out, and the passes in its log. (Lab 2.)

The OpenAI protocol speaks in text, and hides which tokens a request had and what the model thought of each; `/generate`
tells. Tried with SGLang 0.5.14. What it sends is checked, never trusted.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from .client import ClientError, post, readable
from .server import Server
from .workload import whole


class Reply(NamedTuple):
    """One answer: its token ids, the tokens of its prompt, and how many of these lay in the prefix cache.

    seconds: from sending the request until the whole answer was there, or those of the whole group.
    """

    tokens: tuple[int, ...]
    prompt_tokens: int
    cached_tokens: int
    seconds: float


class Pass(NamedTuple):
    """One run of the model, as the log tells it.

    kind: "prefill", for prompts of requests that enter, or "decode", a token for each that runs; requests: how many
    were in it.
    """

    kind: str
    requests: int


PASS = re.compile(r"\b(?:(Prefill) batch.*? #new-seq: (\d+)|(Decode) batch.*? #running-req: (\d+))")


def passes(log: str) -> list[Pass]:
    """The passes in the text of a log, in order; without --decode-log-interval 1 most decode passes are not there."""
    found = (match.group(1, 2) if match[1] else match.group(3, 4) for match in PASS.finditer(log))
    return [Pass(kind.lower(), int(requests)) for kind, requests in found]


def generate(engine: Server | str, prompts: Sequence[Sequence[int]], max_tokens: Sequence[int]) -> list[Reply]:
    """Greedy answers to prompts of token ids, answer i exactly max_tokens[i] long whatever the model says.

    All go in one request, which SGLang hands to its scheduler as one message: they enter in the same pass, as far as
    there are slots.

    Raises `ClientError` if the engine gives no such answers, `ServerError` if it has died.
    """
    if len(prompts) != len(max_tokens):
        raise ValueError(f"max_tokens must have one entry per prompt ({len(prompts)}), not {len(max_tokens)}")
    begin = time.perf_counter()
    answers = _generate(engine, prompts, max_tokens, {})
    seconds = time.perf_counter() - begin
    with _understood():
        replies = [_reply(answer, seconds) for answer in answers]
    for number, (reply, limit) in enumerate(zip(replies, max_tokens, strict=True), start=1):
        if len(reply.tokens) != limit:
            raise ClientError(f"Request {number} got {len(reply.tokens)} tokens, not the {limit} it asked for.")
    return replies


def check_draft(engine: Server | str, tokens: Sequence[int], draft: Sequence[int]) -> tuple[int, ...]:
    """The token that the model would put at each place of `draft` behind `tokens`, and the one behind all of it.

    One request and one pass through the model: tokens and draft go in together, and the engine is asked for its
    likeliest token at every place of the draft. That is the check of speculative decoding, done from outside.

    Raises as `generate` does.
    """
    tokens, draft = list(tokens), list(draft)
    asked = {"return_logprob": True, "logprob_start_len": len(tokens) - 1, "top_logprobs_num": 1}
    [answer] = _generate(engine, [tokens + draft], [1], asked)
    with _understood():
        # An entry a place, [[log-probability, token id, text]]; the first place has nothing before it.
        inside = [whole("token", places[0][1]) for places in answer["meta_info"]["input_top_logprobs"][1:]]
        chosen = (*inside, *_reply(answer, 0.0).tokens)
        if len(chosen) != len(draft) + 1:
            raise ValueError(f"{len(chosen)} tokens for the {len(draft) + 1} places of a draft")
    return chosen


def _generate(engine, prompts, max_tokens, asked: Mapping[str, object]) -> list:
    sampling = [{"max_new_tokens": limit, "temperature": 0, "ignore_eos": True} for limit in max_tokens]
    answers = post(engine, "/generate", {"input_ids": list(map(list, prompts)), "sampling_params": sampling, **asked})
    if not isinstance(answers, list) or len(answers) != len(prompts):
        raise ClientError(f"The engine gave no list of {len(prompts)} answers: is this SGLang?")
    return answers


def _reply(answer: Mapping, seconds: float) -> Reply:
    tokens = tuple(whole("output_ids", token) for token in answer["output_ids"])
    counts = (whole(name, answer["meta_info"][name]) for name in ("prompt_tokens", "cached_tokens"))
    return Reply(tokens, *counts, seconds)


@contextmanager
def _understood() -> Iterator[None]:
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError) as error:
        reason = readable(f"{type(error).__name__}: {error}")[:200]
        raise ClientError(f"The engine's answer is not what this course knows of SGLang ({reason}).") from None
