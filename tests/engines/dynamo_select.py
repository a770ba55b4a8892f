"""Run by the Python of Dynamo's environment: states of a fleet on stdin, what Dynamo's KV router chooses on stdout.

A state says what each worker's prefix cache holds and which requests it works on. The real `SelectionService` learns
the first from KV events, as vLLM publishes them, and the second from reservations. No worker has to run. States come
in groups that share the router's settings, given as Dynamo's environment variables.
"""

import asyncio
import itertools
import json
import os
import sys
import tempfile
import time
import traceback
from importlib.metadata import version

import msgspec
import zmq

LOG = tempfile.TemporaryFile()
ANSWERS, ERRORS = os.fdopen(os.dup(1), "w"), os.fdopen(os.dup(2), "w")
# The router says what each worker costs in its log and nowhere else; it writes to the process's own descriptors.
os.dup2(LOG.fileno(), 1)
os.dup2(LOG.fileno(), 2)
os.environ.update(DYN_LOG="error,dynamo_kv_router::scheduling::selector=info", DYN_LOGGING_JSONL="1")

from dynamo._core import SelectionService  # noqa: E402

PATIENCE = 20.0  # seconds for an event to reach the router


class Fleet:
    """Workers of one block size and number, known to the router under a model name of their own."""

    def __init__(self, service: SelectionService, context: zmq.Context, first: int, count: int, block_size: int):
        self.service, self.size, self.model = service, block_size, f"{count}-workers-{block_size}"
        self.first = first  # a worker's number is its own in the whole service
        self.sent, self.said = [0] * count, [set() for _ in range(count)]
        self.sockets = [context.socket(zmq.PUB) for _ in range(count)]
        self.ports = [socket.bind_to_random_port("tcp://127.0.0.1") for socket in self.sockets]
        self.numbers = itertools.count()

    async def register(self) -> None:
        for worker, port in enumerate(self.ports):
            await self.service.upsert_worker(
                {
                    "worker_id": self.first + worker,
                    "model_name": self.model,
                    "block_size": self.size,
                    "endpoint": f"http://127.0.0.1:{port}",
                    "kv_events_endpoint": f"tcp://127.0.0.1:{port}",
                    "total_kv_blocks": 1 << 20,
                    "max_num_batched_tokens": 8192,
                }
            )
        # A subscriber misses what was sent before it had joined.
        for worker in range(len(self.sockets)):
            await self.until_known([20_000_000 + worker], worker, again=True)

    def tokens(self, blocks: list[int], tail: int = 0) -> list[int]:
        """Content for block ids: equal ids, equal tokens; `tail` tokens that fill no block."""
        return [block * self.size + i for block in blocks for i in range(self.size)] + [2**32 - 1] * tail

    def publish(self, worker: int, blocks: list[int]) -> None:
        """Say, as vLLM does, which blocks the worker has besides those that it has said already."""
        new = [block for block in blocks if block not in self.said[worker]]
        parent = blocks[-len(new) - 1] if 0 < len(new) < len(blocks) else None
        self.said[worker].update(new)
        event = ["BlockStored", new, parent, self.tokens(new), self.size, None]  # an id serves as its block's hash
        number = self.sent[worker].to_bytes(8, "big")
        self.sockets[worker].send_multipart([b"", number, msgspec.msgpack.encode([time.time(), [event], 0])])
        self.sent[worker] += 1

    async def until_known(self, blocks: list[int], worker: int, again: bool = False) -> None:
        """Publish that a worker holds these blocks, and wait until the router counts them."""
        self.publish(worker, blocks)
        deadline = time.monotonic() + PATIENCE
        while True:
            found = await self.service.overlap_scores({"model_name": self.model, "token_ids": self.tokens(blocks)})
            if {w["worker_id"]: w["device_blocks"] for w in found["workers"]}.get(self.first + worker) == len(blocks):
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"the router counts {found}, not {len(blocks)} blocks on worker {worker}")
            await asyncio.sleep(0.002)
            if again:
                self.said[worker].clear()
                self.publish(worker, blocks)

    async def answer(self, state: dict) -> dict:
        booked = []
        for worker, has in enumerate(state["workers"]):
            for chain in has["cached"]:
                await self.until_known(chain, worker)
            for active in has["active"]:
                booked.append(f"{self.model}-{next(self.numbers)}")
                await self.service.create_reservation(
                    {
                        "selection_id": booked[-1],
                        "model_name": self.model,
                        "worker_id": self.first + worker,
                        "dp_rank": 0,
                        "token_ids": self.tokens(active["blocks"], active["tail"]),
                        "effective_prefill_tokens": active["prefill_tokens"],
                    }
                )
                if active["prefilled"]:
                    await self.service.prefill_complete(booked[-1])
        question = {"model_name": self.model, "token_ids": self.tokens(state["blocks"], state["tail"])}
        chosen, cost = await self.selected(question)
        workers = range(len(self.sockets))
        # Asked for one worker at a time, the router says what each would have cost.
        costs = [(await self.selected(question | {"allowed_worker_ids": [self.first + w]}))[1] for w in workers]
        again = [(await self.service.select(question))["worker_id"] - self.first for _ in range(state["again"])]
        for name in booked:
            await self.service.free_reservation(name)
        return {"worker": chosen, "cost": cost, "costs": costs, "again": again}

    async def selected(self, question: dict) -> tuple[int, float]:
        """The worker that the router selects, and what it costs."""
        begin = os.fstat(LOG.fileno()).st_size
        chosen = await self.service.select(question)
        said = os.pread(LOG.fileno(), os.fstat(LOG.fileno()).st_size - begin, begin).decode().splitlines()
        (cost,) = [line["logit"] for line in map(json.loads, said) if line["message"] == "Selected worker"]
        return chosen["worker_id"] - self.first, float(cost)


async def main(groups: list[dict]) -> list[dict]:
    context, answers = zmq.Context(), []
    for group in groups:
        os.environ.update(group["settings"])  # read when a service starts
        service, fleets = SelectionService(indexer_threads=1), {}
        for state in group["states"]:
            shape = len(state["workers"]), state["block_size"]
            if shape not in fleets:
                fleets[shape] = Fleet(service, context, 100 * len(fleets), *shape)
                await fleets[shape].register()
            answers.append(await fleets[shape].answer(state))
        service.shutdown()
    return answers


try:
    answers = asyncio.run(main(json.load(sys.stdin)))
except Exception:
    traceback.print_exc(file=ERRORS)
    sys.exit(1)
json.dump({"dynamo": version("ai-dynamo-runtime"), "answers": answers}, ANSWERS)
ANSWERS.flush()
