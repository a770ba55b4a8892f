"""Ask a running engine, and read its own counters, over HTTP. (The Ask and Compare of every lab.)

`ask` streams one answer, `ask_all` several that run together, `metrics` reads what the engine counted itself.
(`load` offers it a whole workload.) What a server sends is never trusted: anything that is not an answer
becomes a `ClientError` of one sentence.
"""

from __future__ import annotations

import json
import math
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

import openai
from prometheus_client.parser import text_string_to_metric_families

from .logs import SECRET_SHAPE
from .server import Server

LARGEST_REPLY = 64 * 2**20
SILENCE = 60.0
TAKEN_IN = 0.025  # seconds within which an engine has a request, if it does not say so by its headers
# Seen in vLLM 0.32.0, SGLang 0.5.14 and Dynamo 1.6.1 on 1 December 2026; TensorRT-LLM has vLLM's, by its source.
VERSION_PAGES = ("/version", "/server_info", "/openapi.json")


class ClientError(RuntimeError):
    """What went wrong between the client and the engine, in one sentence."""


@dataclass(frozen=True)
class Answer:
    """One streamed answer.

    text; prompt_tokens, output_tokens, cached_tokens: as the engine counted them (cached: found in its prefix cache,
    None if it does not say, which is also how SGLang says none); chunk_times: seconds from sending until each piece
    of the answer came. A piece is one token, unless the engine or the network was quicker than the reader: then it is
    several. nvext: what Dynamo adds when `extra_body` asks for it, the last word on each entry; else empty.
    """

    text: str
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int | None
    chunk_times: tuple[float, ...]
    nvext: Mapping[str, object] = field(default_factory=dict)

    @property
    def ttft(self) -> float:
        """Time to first token, seconds."""
        return self.chunk_times[0]

    @property
    def tpot(self) -> float:
        """Time per output token after the first, seconds; nan for a single token."""
        after = self.output_tokens - 1
        return (self.chunk_times[-1] - self.chunk_times[0]) / after if after else math.nan


def ask(
    engine: Server | str,
    prompt: str | Sequence[int],
    *,
    model: str,
    max_tokens: int = 64,
    ignore_eos: bool = False,
    show: bool = False,
    extra_body: Mapping[str, object] | None = None,
    deadline: float = 300.0,
) -> Answer:
    """Ask `engine` (a running `Server`, or a URL) to continue `prompt`, greedily, and stream its answer.

    prompt: text, or the ids of its tokens; model: the name under which the engine serves it; ignore_eos: go on to
    max_tokens whatever the model says; show: print the answer as it comes; extra_body: more for the request, such as
    Dynamo's {"nvext": {"extra_fields": ["worker_id", "timing"]}}; deadline: seconds for the whole answer.

    Raises `ClientError` if no whole answer came, and `ServerError`, with the log, if the engine has died.
    """
    with _connected(engine, deadline) as client:
        return _Stream(client, prompt, model, max_tokens, ignore_eos, extra_body).read(show)


def ask_all(
    engine: Server | str,
    prompts: Sequence[str | Sequence[int]],
    max_tokens: Sequence[int],
    *,
    model: str,
    hold: bool = False,
    in_turn: bool = False,
    extra_body: Mapping[str, object] | None = None,
    deadline: float = 300.0,
) -> list[Answer]:
    """Ask all `prompts` at once, prompt i for exactly max_tokens[i] tokens; answers in the order of the prompts.

    The requests go out one after the other, each when the engine has taken in the one before, so it may begin the
    first before it has the last. With `hold` the engine's scheduler is stopped until all are in, so that all can enter
    in the same step. That takes vLLM's development endpoints /pause and /resume (VLLM_SERVER_DEV_MODE=1), which are
    not for production. With `in_turn` each goes out once the one before has had its first token, and all of them go on
    together. extra_body: more for each request.

    Raises as `ask` does.
    """
    if len(prompts) != len(max_tokens):
        raise ValueError(f"max_tokens must have one entry per prompt ({len(prompts)}), not {len(max_tokens)}")

    def answer(prompt: str | Sequence[int], limit: int, taken: threading.Event) -> Answer:
        try:
            stream = _Stream(client, prompt, model, limit, True, extra_body)
            if in_turn:
                return stream.read(began=taken.set)
        finally:
            taken.set()
        return stream.read()

    # The pool is left last: what goes wrong ends the connections first, so no thread waits for an answer in vain.
    with (
        ThreadPoolExecutor(max(1, len(prompts))) as senders,
        _connected(engine, deadline) as client,
        ExitStack() as door,
    ):
        if hold:
            _page(engine, "POST", "/pause?mode=keep")
            door.callback(_page, engine, "POST", "/resume")
        answers = []
        for prompt, limit in zip(prompts, max_tokens, strict=True):
            taken = threading.Event()
            answers.append(senders.submit(answer, prompt, limit, taken))
            # vLLM sends the headers of a streamed answer once it has the request, SGLang only with the first token.
            taken.wait(deadline if hold or in_turn else TAKEN_IN)
        door.close()
        return [answer.result() for answer in answers]


def metrics(engine: Server | str) -> dict[str, float]:
    """What the engine counted so far (GET /metrics): sample name -> value, summed over the sample's labels.

    Histograms appear as their `_count` and `_sum`. Counters never fall, so take one reading before and one after.
    Raises `ClientError` if the page is not in Prometheus's text format, `ServerError` if the engine has died.
    """
    text = _page(engine, "GET", "/metrics")
    values: dict[str, float] = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if not sample.name.endswith("_bucket"):
                    values[sample.name] = values.get(sample.name, 0.0) + sample.value
    except Exception as error:  # the parser raises whatever its slicing raises
        _fail(engine, "The engine's /metrics page is not in Prometheus's text format", error)
    if not values:
        raise ClientError("The engine's /metrics page holds no metric: is this the port of an engine?")
    return values


def version(engine: Server | str) -> str:
    """The engine's own version: of vLLM and TensorRT-LLM from GET /version, SGLang /server_info, Dynamo /openapi.json.

    Raises `ClientError` if there is none on the first of these pages that it has, and `ServerError` if it has died.
    """
    for path in VERSION_PAGES:
        page = _page(engine, "GET", path, may_lack=True)
        if page is None:
            continue
        try:
            told = json.loads(page)
            # Every FastAPI server has an /openapi.json, with a version that is not the engine's.
            if path == "/openapi.json" and "Dynamo" in told["info"]["title"]:
                told = told["info"]
            return readable(told["version"])[:40]
        except (ValueError, TypeError, KeyError) as error:
            _fail(engine, f"The engine's {path} page holds no version", error)
    raise ClientError(f"No page tells the engine's version ({', '.join(VERSION_PAGES)}): is this an engine's port?")


def post(engine: Server | str, path: str, body: Mapping[str, object]) -> object:
    """What one of the engine's own endpoints answers to the JSON object `body`, decoded if it is JSON, else as text.

    Raises `ClientError` if there is no answer or an error status, `ServerError` if the engine has died.
    """
    text = _page(engine, "POST", path, body=body)
    try:
        return json.loads(text)
    except ValueError:
        return text


def page(engine: Server | str, path: str) -> str:
    """The body of the engine's page at `path` (GET). Raises as `ask` does."""
    return _page(engine, "GET", path)


class _Stream:
    """One request that has been sent, and whose answer is still to be read."""

    def __init__(self, client: openai.OpenAI, prompt, model: str, max_tokens: int, ignore_eos: bool, extra_body):
        self._sent = time.perf_counter()
        self._chunks = client.completions.create(
            model=model,
            prompt=prompt,
            max_tokens=max_tokens,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
            extra_body={"ignore_eos": ignore_eos, **(extra_body or {})},
        )

    def read(self, show: bool = False, began: Callable[[], None] = lambda: None) -> Answer:
        """Wait for the whole answer; `began` is called once its first piece has come."""
        text, times, usage, nvext, finished = [], [], None, {}, False
        for chunk in self._chunks:
            usage = getattr(chunk, "usage", None) or usage
            nvext |= getattr(chunk, "nvext", None) or {}
            for choice in chunk.choices:
                times.append(time.perf_counter() - self._sent)
                if len(times) == 1:
                    began()
                text.append(readable(choice.text))
                finished = finished or choice.finish_reason is not None
                if show:
                    print(text[-1], end="", flush=True)
        if show:
            print()
        if not finished or usage is None:
            raise ClientError(f"The answer broke off after {len(times)} pieces: the engine may have died.")
        cached = getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None)
        counts = int(usage.prompt_tokens), int(usage.completion_tokens), cached
        return Answer("".join(text), *counts, tuple(times), nvext)


def readable(text: str) -> str:
    """`text` without the control characters that could move a terminal's cursor or change its colours."""
    if not isinstance(text, str):
        raise TypeError(f"a piece of text was expected, not {text!r:.80}")
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _url(engine: Server | str) -> str:
    return engine if isinstance(engine, str) else engine.url


@contextmanager
def _connected(engine: Server | str, deadline: float) -> Iterator[openai.OpenAI]:
    """An openai client for `engine`; whatever goes wrong while it is used becomes a `ClientError`."""
    until = time.monotonic() + deadline

    def bounded(response) -> None:
        pieces, seen = response.iter_bytes, 0

        def iter_bytes(*args, **kwargs):
            nonlocal seen
            for piece in pieces(*args, **kwargs):
                seen += len(piece)
                if seen > LARGEST_REPLY:
                    raise ClientError(f"The answer passed {LARGEST_REPLY >> 20} MiB: this is not an answer.")
                if time.monotonic() > until:
                    raise ClientError(f"The answer was not complete within {deadline:g} s.")
                yield piece

        response.iter_bytes = iter_bytes

    # No key of the learner's, and no proxy, has any business with a server on this machine.
    http = openai.DefaultHttpxClient(trust_env=False, event_hooks={"response": [bounded]})
    client = openai.OpenAI(
        base_url=f"{_url(engine)}/v1", api_key="none", max_retries=0, timeout=min(SILENCE, deadline), http_client=http
    )
    try:
        with client:
            yield client
    except Exception as error:
        _fail(engine, "The engine gave no proper answer", error)


def _page(engine: Server | str, method: str, path: str, may_lack: bool = False, body: object = None) -> str | None:
    """The body of one of the engine's small pages; None for one that it may lack, and does. `body` is sent as JSON."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(_url(engine) + path, data, {"Content-Type": "application/json"}, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=SILENCE) as reply:
            body = reply.read(LARGEST_REPLY + 1)
        if len(body) > LARGEST_REPLY:
            raise ClientError(f"{method} {path} brought more than {LARGEST_REPLY >> 20} MiB: this is not its answer.")
        return body.decode()
    except Exception as error:
        if may_lack and isinstance(error, urllib.error.HTTPError) and error.code == 404:
            return None
        _fail(engine, f"{method} {path} failed", error)


def _fail(engine: Server | str, sentence: str, error: Exception) -> NoReturn:
    """Raise the engine's death if it has died, else `sentence` with the first cause, short and without secrets."""
    if isinstance(engine, Server):
        engine.check()
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, ClientError):
        raise error from None
    reason = " ".join(readable(str(error) or type(error).__name__).split())
    raise ClientError(f"{sentence}: {SECRET_SHAPE.sub('…', reason)[:300]}") from None
