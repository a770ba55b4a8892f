"""A Dynamo service on this machine: its settings, whether all of it is there, and where its router sent what.

The frontend and the workers of a service are programs of their own; `server.running(frontend, parts=…)` runs them.
Names and pages are those of ai-dynamo 1.6.1.
"""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from .client import Answer, ClientError
from .server import HOST

ASK_FOR = {"nvext": {"extra_fields": ["worker_id", "timing"]}}  # `extra_body` of `client.ask`, for `routed`
CHOSEN = re.compile(r" Selected worker .*?\bworker_id=(\d+)\b.*?\blogit=([\d.]+)")
PATIENCE = 2.0


def settings(folder: str | Path, publish: int, subscribe: int) -> dict[str, str]:
    """Environment variables for every program of a service that nobody else can reach, without etcd or NATS.

    folder: an empty one, in which the programs find each other; publish, subscribe: the ports of the event broker
    (labs/event_broker.py). Goes with `--discovery-backend file --request-plane tcp --event-plane zmq`.
    """
    return {
        "DYN_FILE_KV": str(folder),
        "DYN_TCP_RPC_HOST": HOST,
        "DYN_TCP_RESPONSE_STREAM_HOST": HOST,
        "DYN_SYSTEM_HOST": HOST,
        "DYN_ZMQ_BROKER_URL": f"xsub=tcp://{HOST}:{publish} , xpub=tcp://{HOST}:{subscribe}",
        # What `choices` reads, and little else: the frontend logs every look at its health.
        "DYN_LOG": "warn,dynamo_kv_router::scheduling=info",
        "DYN_SDK_DISABLE_ANSI_LOGGING": "1",
    }


def ready(model: str, workers: int) -> Callable[[str], bool]:
    """For `server.running(ready=…)`: whether the frontend serves `model` and sees so many workers."""

    def whole(url: str) -> bool:
        try:
            instances = _json(url, "/health")["instances"]
            served = [entry["id"] for entry in _json(url, "/v1/models")["data"]]
            seen = {instance["instance_id"] for instance in instances if instance["endpoint"] == "generate"}
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
            return False
        return model in served and len(seen) >= workers

    return whole


def _json(url: str, page: str):
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE)
    try:
        connection.request("GET", page)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


class Routed(NamedTuple):
    """Where one request went: the ids of its prefill and its decode worker, the same one unless they are apart.

    hit_rate: the share of the prompt's blocks that the router expected in the prefill worker's cache;
    cached_tokens: how many tokens that worker's engine then found there, None if it did not say.
    """

    prefill: int
    decode: int
    hit_rate: float
    cached_tokens: int | None


def routed(answer: Answer) -> Routed:
    """Where `answer`, which was asked for with `extra_body=ASK_FOR`, came from; `ClientError` if it does not say."""
    try:
        worker, timing = answer.nvext["worker_id"], answer.nvext["timing"]
        ids = int(worker["prefill_worker_id"]), int(worker["decode_worker_id"])
        return Routed(*ids, float(timing["kv_hit_rate"]), answer.cached_tokens)
    except (KeyError, TypeError, ValueError) as error:
        raise ClientError(
            f"The answer does not say where it was routed ({error}): ask with extra_body=dynamo_service.ASK_FOR."
        ) from None


class Choice(NamedTuple):
    """One choice of the router: the worker's id, and what the request cost there, in KV blocks."""

    worker: int
    cost: float


def choices(log: str | Path) -> list[Choice]:
    """Every choice that the frontend's log tells of, in order; the router logs the cost of the chosen worker only."""
    text = Path(log).read_text(errors="replace")
    return [Choice(int(worker), float(cost)) for worker, cost in CHOSEN.findall(text)]
