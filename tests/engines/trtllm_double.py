"""A double of `trtllm-serve` for tests: its command line and its HTTP pages, and no model behind them.

It serves as TensorRT-LLM's server does: /health, /version, /metrics as a list of steps that is handed out once, and
streamed /v1/completions in the OpenAI protocol. Requests run in flight: at most `--max_batch_size` of them in a step,
each step a token for each, and as long as its prompts make it.
"""

import argparse
import json
import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

VERSION = "1.2.1"
A_STEP, A_PROMPT_TOKEN = 0.01, 5e-5  # seconds


class Request:
    def __init__(self, prompt_tokens: int, output_tokens: int):
        self.prompt_tokens, self.left = prompt_tokens, output_tokens
        self.fresh, self.tokens = True, queue.SimpleQueue()


class Engine(threading.Thread):
    """Runs steps for ever; `waiting` takes requests, `records` has what /metrics tells of each step."""

    def __init__(self, slots: int):
        super().__init__(daemon=True)
        self.slots, self.waiting, self.records = slots, queue.SimpleQueue(), queue.SimpleQueue()

    def run(self) -> None:
        running, number = [], 0
        while True:
            while len(running) < self.slots and not (running and self.waiting.empty()):
                running.append(self.waiting.get())
            prompts = [request for request in running if request.fresh]
            seconds = A_STEP + A_PROMPT_TOKEN * sum(request.prompt_tokens for request in prompts)
            time.sleep(seconds)  # what a step is, here
            number += 1
            batch = {"numContextRequests": len(prompts), "numGenRequests": len(running) - len(prompts)}
            record = {"iter": number, "iterLatencyMS": 1000 * seconds}
            self.records.put(record | {"inflightBatchingStats": batch | {"numPausedRequests": 0}})
            for request in running:
                request.fresh, request.left = False, request.left - 1
                request.tokens.put(request.left)
            running = [request for request in running if request.left]


class Pages(BaseHTTPRequestHandler):
    engine: Engine

    def do_GET(self):
        records = []
        while self.path == "/metrics" and not self.engine.records.empty():
            records.append(self.engine.records.get())
        page = {"/metrics": records, "/version": {"version": VERSION}}.get(self.path, {})
        self.begin("application/json")
        self.wfile.write(json.dumps(page).encode())

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = asked["prompt"]
        count = len(prompt) if isinstance(prompt, list) else len(prompt.split())
        request = Request(count, asked["max_tokens"])
        self.begin("text/event-stream")
        self.engine.waiting.put(request)
        left = request.left
        while left:
            left = request.tokens.get()
            self.say(asked, [{"index": 0, "text": " so", "finish_reason": None if left else "length"}])
        self.say(asked, [], {"prompt_tokens": count, "completion_tokens": asked["max_tokens"], "total_tokens": 0})
        self.wfile.write(b"data: [DONE]\n\n")

    def begin(self, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.flush()

    def say(self, asked: dict, choices: list, usage: dict | None = None) -> None:
        chunk = {"id": "1", "object": "text_completion", "created": 0, "model": asked["model"], "choices": choices}
        self.wfile.write(f"data: {json.dumps(chunk | {'usage': usage})}\n\n".encode())
        self.wfile.flush()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    for name in ("host", "extra_llm_api_options"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("port", "max_batch_size", "max_num_tokens", "max_seq_len"):
        parser.add_argument(f"--{name}", type=int, required=True)
    given = parser.parse_args()
    assert "kv_cache_config:" in Path(given.extra_llm_api_options).read_text()
    Pages.engine = Engine(given.max_batch_size)
    Pages.engine.start()
    ThreadingHTTPServer((given.host, given.port), Pages).serve_forever()
