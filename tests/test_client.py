"""The client against a stand-in server that misbehaves in every way a real one could."""

import json
import math
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from enginelab import client
from enginelab.client import ClientError


@contextmanager
def stand_in(reply):
    """A server on a free port whose every request is handled by `reply(handler)`; yields its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            reply(self)

        do_POST = do_GET

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def send(handler, body: bytes, status=200, kind="text/event-stream", length=None):
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    if length:
        handler.send_header("Content-Length", str(length))
    handler.end_headers()
    handler.wfile.write(body)


def event(data) -> bytes:
    return b"data: " + (data if isinstance(data, bytes) else json.dumps(data).encode()) + b"\n\n"


def piece(text, finish=None) -> bytes:
    return event({"id": "1", "object": "text_completion", "choices": [{"text": text, "finish_reason": finish}]})


USAGE = {"prompt_tokens": 5, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}
ENDING = event({"id": "1", "object": "text_completion", "choices": [], "usage": USAGE}) + event(b"[DONE]")
WHOLE = piece("one") + piece(" two") + piece(" three", "length") + ENDING


def body_of(handler) -> dict:
    return json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))


def ask(url, **more):
    return client.ask(url, "count", model="m", **more)


def test_ask_returns_text_counts_and_times(capsys):
    asked = []

    def reply(handler):
        asked.append((handler.path, body_of(handler)))
        send(handler, WHOLE)

    with stand_in(reply) as url:
        answer = ask(url, max_tokens=3, ignore_eos=True, show=True)
    assert answer.text == "one two three"
    assert (answer.prompt_tokens, answer.output_tokens, answer.cached_tokens) == (5, 3, 4)
    assert 0 < answer.ttft == answer.chunk_times[0] <= answer.chunk_times[1] <= answer.chunk_times[2]
    assert answer.tpot == pytest.approx((answer.chunk_times[2] - answer.chunk_times[0]) / 2)
    assert capsys.readouterr().out == "one two three\n"
    [(path, body)] = asked
    assert path == "/v1/completions"
    expected = {"model": "m", "prompt": "count", "max_tokens": 3, "temperature": 0, "ignore_eos": True, "stream": True}
    assert expected.items() <= body.items()


def test_one_token_has_no_time_per_token():
    assert math.isnan(client.Answer("x", 1, 1, None, (0.5,)).tpot)


def test_answer_comes_piece_by_piece():
    """The second piece is sent only once the client has shown the first: it cannot have waited for the whole."""
    shown = threading.Event()

    def reply(handler):
        send(handler, piece("one"))
        assert shown.wait(10)
        handler.wfile.write(piece(" two", "stop") + ENDING)

    class Screen:
        def write(self, text):
            if "one" in text:
                shown.set()

        def flush(self):
            pass

    with stand_in(reply) as url, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", Screen())
        assert ask(url, show=True).text == "one two"


def test_no_key_and_no_proxy_of_the_learner_is_used(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-learners-own-key")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    seen = []

    def reply(handler):
        seen.append(str(handler.headers))
        send(handler, WHOLE if handler.path.startswith("/v1") else b"a_metric 1\n")

    with stand_in(reply) as url:
        assert ask(url).output_tokens == 3
        assert client.metrics(url) == {"a_metric": 1}
    assert len(seen) == 2 and "learners" not in "".join(seen)


def test_control_characters_do_not_reach_the_terminal():
    with stand_in(lambda handler: send(handler, piece("a\x1b[2Jb\r\nc", "stop") + ENDING)) as url:
        assert ask(url).text == "a�[2Jb�\nc"


DYNAMO = {"worker_id": {"decode_worker_id": 2**63 + 1}}  # in every piece of Dynamo 1.6.1; timing comes with the last


def test_what_dynamo_adds_is_asked_for_and_kept():
    asked = []

    def reply(handler):
        asked.append(body_of(handler))
        choice = {"text": "a", "finish_reason": None}
        last = {"choices": [choice | {"finish_reason": "length"}], "nvext": DYNAMO | {"timing": {"kv_hit_rate": 0.5}}}
        send(handler, event({"choices": [choice], "nvext": DYNAMO}) + event(last) + ENDING)

    wanted = {"nvext": {"extra_fields": ["worker_id", "timing"]}}
    with stand_in(reply) as url:
        one = ask(url, extra_body=wanted)
        [other] = client.ask_all(url, ["count"], [3], model="m", extra_body=wanted)
    assert one.nvext == other.nvext == DYNAMO | {"timing": {"kv_hit_rate": 0.5}}
    assert [body["nvext"] for body in asked] == [wanted["nvext"]] * 2
    assert [body["ignore_eos"] for body in asked] == [False, True]


FAULTS = {
    "nvext of another kind": (lambda h: send(h, event({"choices": [], "nvext": 7})), "no proper answer"),
    "not JSON": (lambda h: send(h, event(b"<html>hello")), "no proper answer"),
    "JSON of another kind": (lambda h: send(h, event([1, 2, 3])), "no proper answer"),
    "choices of another kind": (lambda h: send(h, event({"choices": 7})), "no proper answer"),
    "text of another kind": (lambda h: send(h, event({"choices": [{"text": {"a": 1}}]})), "no proper answer"),
    "usage of another kind": (
        lambda h: send(h, piece("a", "stop") + event({"choices": [], "usage": {"prompt_tokens": "many"}})),
        "no proper answer",
    ),
    "not UTF-8": (lambda h: send(h, b"data: \xff\xfe\n\n"), "no proper answer"),
    "no stream": (lambda h: send(h, b"hello", kind="text/html"), "broke off after 0 pieces"),
    "nothing": (lambda h: send(h, b""), "broke off after 0 pieces"),
    "no usage": (lambda h: send(h, piece("a", "stop") + event(b"[DONE]")), "broke off after 1 pieces"),
    "an error in the stream": (
        lambda h: send(h, piece("a") + event({"error": {"message": "EngineCore encountered an issue"}})),
        "EngineCore encountered an issue",
    ),
    "an error status": (
        lambda h: send(h, b'{"error": {"message": "no model m"}}', 404, "application/json"),
        "no model m",
    ),
    "a secret in an error": (
        lambda h: send(h, event({"error": {"message": "key hf_AbCdEfGhIjKlMnOpQrStUvWx is bad"}})),
        "key … is bad",
    ),
    "a stream cut short": (lambda h: send(h, piece("a"), length=5000), "no proper answer"),
    "a stream that ends early": (lambda h: send(h, piece("a") + piece("b")), "broke off after 2 pieces"),
    "a reset": (lambda h: h.connection.close(), "no proper answer"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_one_sentence(fault):
    reply, sentence = FAULTS[fault]
    with stand_in(reply) as url, pytest.raises(ClientError, match=sentence) as caught:
        ask(url)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400
    assert "hf_" not in str(caught.value)


def test_nothing_listens():
    with socket.socket() as taken_but_deaf:
        taken_but_deaf.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken_but_deaf.getsockname()[1]}"
        with pytest.raises(ClientError, match="refused"):
            ask(url)
        with pytest.raises(ClientError, match="refused"):
            client.metrics(url)


def flood(handler, block: bytes):
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(block)
    except OSError:
        pass


@pytest.mark.parametrize("block", [b"x" * 65536, piece("word " * 1000)], ids=["one endless line", "endless pieces"])
def test_an_endless_answer_is_cut(block, monkeypatch):
    monkeypatch.setattr(client, "LARGEST_REPLY", 2**20)
    with stand_in(lambda handler: flood(handler, block)) as url:
        with pytest.raises(ClientError, match="passed 1 MiB"):
            ask(url)
        with pytest.raises(ClientError, match="more than 1 MiB"):
            client.metrics(url)


def test_silence_and_dribble_end_at_the_deadline():
    go = threading.Event()

    def silent(handler):
        go.wait(20)

    def dribble(handler):
        send(handler, b"")
        try:
            while not go.wait(0.02):
                handler.wfile.write(b": still here\n\n")
        except OSError:
            pass

    for reply in (silent, dribble):
        with stand_in(reply) as url:
            with pytest.raises(ClientError, match="tim|within 0.3 s"):
                ask(url, deadline=0.3)
            go.set()
        go.clear()


def test_a_dead_engine_is_named_instead_of_the_refused_connection():
    class Death(RuntimeError):
        pass

    def check():
        raise Death("vllm died")

    engine = client.Server("http://127.0.0.1:9", 9, 1, None, 0.0, (), check)
    for call in (ask, client.metrics):
        with pytest.raises(Death):
            call(engine)


def test_ask_all_holds_the_engine_until_every_request_is_in():
    events, lock, resumed = [], threading.Lock(), threading.Event()

    def reply(handler):
        body = body_of(handler) if handler.path.startswith("/v1") else {}
        with lock:
            events.append(handler.path if not body else body["prompt"])
        if not body:
            if handler.path == "/resume":
                resumed.set()
            return send(handler, b"{}", kind="application/json")
        send(handler, b"")
        assert resumed.wait(10)
        handler.wfile.write(piece(body["prompt"]) + piece("!", "length") + ENDING)

    with stand_in(reply) as url:
        answers = client.ask_all(url, ["a", "b", "c"], [3, 3, 3], model="m", hold=True)
    assert events == ["/pause?mode=keep", "a", "b", "c", "/resume"]
    assert [answer.text for answer in answers] == ["a!", "b!", "c!"]


def test_ask_all_does_not_wait_for_the_headers_of_an_engine_that_holds_them_back():
    """SGLang sends them with the first token: here only once all three requests are there."""
    order, everyone = [], threading.Barrier(3, timeout=10)

    def reply(handler):
        order.append(body_of(handler)["prompt"])
        everyone.wait()
        send(handler, WHOLE)

    with stand_in(reply) as url:
        answers = client.ask_all(url, ["a", "b", "c"], [3, 3, 3], model="m")
    assert sorted(order) == ["a", "b", "c"] and len(answers) == 3


def test_ask_all_needs_a_limit_for_each_prompt_before_it_sends_any():
    with pytest.raises(ValueError, match=r"one entry per prompt \(2\), not 1"):
        client.ask_all("http://127.0.0.1:9", ["a", "b"], [3], model="m")


def test_ask_all_in_turn_sends_each_after_the_first_token_of_the_one_before_and_all_go_on_together():
    order, last = [], threading.Event()

    def reply(handler):
        prompt = body_of(handler)["prompt"]
        order.append(f"{prompt} came")
        send(handler, b"")
        order.append(f"{prompt} begins")
        handler.wfile.write(piece("token"))
        if prompt == [3]:
            last.set()
        assert last.wait(10)
        handler.wfile.write(piece("!", "length") + ENDING)

    with stand_in(reply) as url:
        answers = client.ask_all(url, [[1], [2], [3]], [2, 2, 2], model="m", in_turn=True)
    assert order == [f"[{number}] {event}" for number in (1, 2, 3) for event in ("came", "begins")]
    assert [answer.text for answer in answers] == ["token!"] * 3


def test_ask_all_lets_go_when_a_request_fails():
    paths = []

    def reply(handler):
        paths.append(handler.path)
        if handler.path.startswith("/v1"):
            send(handler, b"no", 500, "text/plain")
        else:
            send(handler, b"{}", kind="application/json")

    with stand_in(reply) as url, pytest.raises(ClientError):
        client.ask_all(url, ["a"], [3], model="m", hold=True)
    assert paths == ["/pause?mode=keep", "/v1/completions", "/resume"]


METRICS = b"""\
# HELP steps Histogram of number of tokens per step.
# TYPE steps histogram
steps_bucket{engine="0",le="1.0"} 1.0
steps_bucket{engine="0",le="+Inf"} 5.0
steps_count{engine="0"} 5.0
steps_sum{engine="0"} 44.0
# TYPE done counter
done_total{reason="stop"} 2.0
done_total{reason="length"} 3.0
"""


def test_metrics_are_summed_over_labels_and_leave_buckets_out():
    with stand_in(lambda handler: send(handler, METRICS, kind="text/plain")) as url:
        assert client.metrics(url) == {"steps_count": 5, "steps_sum": 44, "done_total": 5}


@pytest.mark.parametrize(
    ("page", "status", "sentence"),
    [
        (b"<html><body>hello</body></html>", 200, "text format"),
        (b"", 200, "holds no metric"),
        (b"\xff\xfe", 200, "failed"),
        (b"gone", 500, "500"),
    ],
)
def test_a_page_that_is_not_metrics(page, status, sentence):
    with stand_in(lambda handler: send(handler, page, status, "text/plain")) as url:
        with pytest.raises(ClientError, match=sentence):
            client.metrics(url)


# What each engine answered on 1 December 2026, cut to the essential; a page that is not here is a 404.
VERSIONS = {
    "vLLM": ({"/version": {"version": "0.32.0+cpu"}}, "0.32.0+cpu"),
    "SGLang": ({"/server_info": {"api_key": None, "version": "0.5.14"}, "/openapi.json": {"info": {}}}, "0.5.14"),
    "Dynamo": ({"/openapi.json": {"info": {"title": "NVIDIA Dynamo OpenAI Frontend", "version": "1.6.1"}}}, "1.6.1"),
}


@contextmanager
def pages(known):
    def reply(handler):
        found = handler.path in known
        send(handler, json.dumps(known.get(handler.path)).encode(), 200 if found else 404, "application/json")

    with stand_in(reply) as url:
        yield url


@pytest.mark.parametrize("engine", VERSIONS)
def test_version_is_the_engines_own_word(engine):
    known, version = VERSIONS[engine]
    with pages(known) as url:
        assert client.version(url) == version


def test_the_version_of_a_web_framework_is_not_the_engines():
    with pages({"/openapi.json": {"info": {"title": "FastAPI", "version": "0.1.0"}}}) as url:
        with pytest.raises(ClientError, match="/openapi.json page holds no version"):
            client.version(url)


def test_no_page_with_a_version():
    with pages({}) as url, pytest.raises(ClientError, match="No page tells the engine's version"):
        client.version(url)


@pytest.mark.parametrize("page", [b"", b"[]", b"{}", b'{"version": 3}', b"0.32.0"])
def test_a_page_without_a_version(page):
    with stand_in(lambda handler: send(handler, page, kind="application/json")) as url:
        with pytest.raises(ClientError, match="holds no version"):
            client.version(url)
