"""SGLang's own endpoint: what the client asks, what it makes of the answer, and everything that is no answer."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from enginelab import native
from enginelab.client import ClientError
from enginelab.native import Pass


def answer(tokens, cached=3, prompt=7, **more):
    return {"text": "…", "output_ids": tokens, "meta_info": {"prompt_tokens": prompt, "cached_tokens": cached, **more}}


@pytest.fixture
def engine():
    """A server that gives each request the next of `replies`, and keeps what it was asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            reply = replies.pop(0)
            body = (reply if isinstance(reply, str) else json.dumps(reply)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    asked, replies = [], []
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked, replies
        server.shutdown()


def test_a_group_goes_out_as_one_request_with_a_limit_each(engine):
    url, asked, replies = engine
    replies.append([answer([5, 6]), answer([9], cached=0)])
    first, second = native.generate(url, [(1, 2), (3,)], [2, 1])
    assert first[:3] == ((5, 6), 7, 3) and second.tokens == (9,) and second.cached_tokens == 0
    assert first.seconds == second.seconds > 0
    [(path, body)] = asked
    assert path == "/generate" and body["input_ids"] == [[1, 2], [3]]
    assert [each["max_new_tokens"] for each in body["sampling_params"]] == [2, 1]
    assert all(each["temperature"] == 0 and each["ignore_eos"] for each in body["sampling_params"])


def test_a_check_asks_for_the_likeliest_token_at_every_place_of_the_draft(engine):
    url, asked, replies = engine
    places = [None, [[-1.5, 40, None]], [[-0.5, 41, None]]]
    replies.append([answer([42], input_top_logprobs=places)])
    assert native.check_draft(url, [1, 2, 3], [40, 50]) == (40, 41, 42)
    [(_, body)] = asked
    assert body["input_ids"] == [[1, 2, 3, 40, 50]]
    assert body["return_logprob"] is True and body["logprob_start_len"] == 2 and body["top_logprobs_num"] == 1


def test_without_a_draft_a_check_is_a_plain_step(engine):
    url, _, replies = engine
    replies.append([answer([42], input_top_logprobs=[None])])
    assert native.check_draft(url, [1], []) == (42,)


@pytest.mark.parametrize(
    "reply, sentence",
    [
        ("no JSON", "gave no list of 1 answers: is this SGLang"),
        ({"error": "no"}, "gave no list of 1 answers"),
        ([answer([1]), answer([1])], "gave no list of 1 answers"),
        ([{"text": "only"}], "not what this course knows of SGLang"),
        ([answer(["x"])], "not what this course knows of SGLang"),
        ([answer([-1])], "not what this course knows of SGLang"),
        ([answer([1], cached=None)], "not what this course knows of SGLang"),
        ([[1]], "not what this course knows of SGLang"),
        ([answer([1, 2])], "Request 1 got 2 tokens, not the 1"),
    ],
)
def test_what_is_no_answer_becomes_a_sentence(engine, reply, sentence):
    url, _, replies = engine
    replies.append(reply)
    with pytest.raises(ClientError, match=sentence):
        native.generate(url, [[1]], [1])


@pytest.mark.parametrize("places", [None, [], [None, []], [None, [[-1.0, "x", None]]], [None, [[-1.0, 4, None]]] * 2])
def test_a_check_without_its_places_becomes_a_sentence(engine, places):
    url, _, replies = engine
    replies.append([answer([1], input_top_logprobs=places)])
    with pytest.raises(ClientError, match="not what this course knows of SGLang"):
        native.check_draft(url, [1], [2])


def test_prompts_without_their_limits_are_refused():
    with pytest.raises(ValueError, match="max_tokens must have one entry per prompt"):
        native.generate("http://127.0.0.1:1", [[1], [2]], [1])


LOG = """\
[2026-12-01 14:17:31] Prefill batch, #new-seq: 4, #new-token: 12, #cached-token: 0, #running-req: 0, #queue-req: 2
[2026-12-01 14:17:31] INFO:     127.0.0.1:1 - "POST /generate HTTP/1.1" 200 OK
[2026-12-01 14:17:31] Decode batch, #running-req: 4, #token: 12, token usage: 0.00, #queue-req: 2
[2026-12-01 14:17:31 TP0] Decode batch, #running-req: 3, #token: 10, accept len: 1.80
"""


def test_passes_of_a_log():
    assert native.passes(LOG) == [Pass("prefill", 4), Pass("decode", 4), Pass("decode", 3)]
    assert native.passes("") == native.passes("Decode batch, and the line ends") == []
