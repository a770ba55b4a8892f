"""Looking at a machine: recorded texts and file trees, garbage included, stand-ins for nvidia-smi, and a hub."""

from __future__ import annotations

import dataclasses
import http.server
import os
import platform
import shutil
import subprocess
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab import environments, inspection, preflight
from enginelab.inspection import Hub
from enginelab.machines import GB, MIB, Gpu, described

T4 = Gpu("Tesla T4", 15360 * MIB, (7, 5), "580.82.07")
L4 = Gpu("NVIDIA L4", 23034 * MIB, (8, 9), "580.82.07")
A100 = Gpu("NVIDIA A100-SXM4-40GB", 40960 * MIB, (8, 0), "580.82.07")


@pytest.mark.parametrize(
    "text, gpus",
    [
        ("Tesla T4, 15360 MiB, 7.5, 580.82.07\n", (T4,)),
        ("Tesla T4, 15360 MiB, 7.5, 580.82.07\nNVIDIA L4, 23034 MiB, 8.9, 580.82.07\n", (T4, L4)),
        (
            "NVIDIA A100-SXM4-40GB MIG 1g.5gb, [N/A], 8.0, 580.82.07\n",
            (Gpu("NVIDIA A100-SXM4-40GB MIG 1g.5gb", None, (8, 0), "580.82.07"),),
        ),
        (
            "NVIDIA A100-SXM4-40GB, [Insufficient Permissions], 8.0, 580.82.07",
            (Gpu(A100.name, None, (8, 0), "580.82.07"),),
        ),
        ("NVIDIA GB10, [N/A], 12.1, [N/A]", (Gpu("NVIDIA GB10", None, (12, 1), "unknown"),)),
        ("A name, with a comma, 15360 MiB, 7.5, 580.1", (Gpu("A name, with a comma", 15360 * MIB, (7, 5), "580.1"),)),
        ("Tesla\x1b[31m T4, 15360 MiB, 7.5, 580.82.07", (Gpu("Tesla[31m T4", 15360 * MIB, (7, 5), "580.82.07"),)),
    ],
)
def test_reads_the_list_of_gpus(text, gpus):
    assert inspection.parse_gpus(text) == (gpus, "")


@pytest.mark.parametrize(
    "text, said",
    [
        ("", ""),
        ("No devices were found\n", "nvidia-smi says: No devices were found"),
        (
            "\nNVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
            "nvidia-smi says: NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        ),
        (
            'Field "compute_cap" is not a valid field to query.',
            'nvidia-smi says: Field "compute_cap" is not a valid field to query.',
        ),
        ("Hello, this, is, prose", "nvidia-smi says: Hello, this, is, prose"),
    ],
)
def test_no_list_of_gpus(text, said):
    assert inspection.parse_gpus(text) == ((), said)


@given(st.text())
def test_no_text_breaks_the_parsers(text):
    gpus, said = inspection.parse_gpus(text)
    for gpu in gpus:
        machine = dataclasses.replace(described("T4"), gpus=(gpu,))
        assert preflight.check("vLLM", machine).sentence.isprintable()
    assert said.isprintable()
    inspection.parse_cuda(text)
    inspection.parse_cpuinfo(text)


@pytest.mark.parametrize(
    "text, version",
    [
        ("| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4     |", (12, 4)),
        ("| NVIDIA-SMI 590.10   Driver Version: 590.10   CUDA UMD Version: 13.1 |", (13, 1)),
        ("CUDA Version: N/A", None),
        ("", None),
    ],
)
def test_reads_the_cuda_version(text, version):
    assert inspection.parse_cuda(text) == version


def test_reads_the_cpu():
    x86 = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R)\nflags\t\t: fpu avx2 avx512f\n\nprocessor\t: 1\n"
    assert inspection.parse_cpuinfo(x86) == ("Intel(R) Xeon(R)", frozenset({"fpu", "avx2", "avx512f"}))
    assert inspection.parse_cpuinfo("processor : 0\nFeatures : fp asimd\n") == ("", frozenset({"fp", "asimd"}))
    assert inspection.parse_cpuinfo("") == ("", frozenset())


def test_a_container_may_have_less_memory_than_its_host():
    assert inspection.least_limit(24 * GB, ("max\n", "")) == 24 * GB
    assert inspection.least_limit(24 * GB, ("", "8000000000\n")) == 8 * GB
    assert inspection.least_limit(24 * GB, ("9223372036854771712", "0")) == 24 * GB


def nvidia_smi(folder, monkeypatch, script: str) -> None:
    program = folder / "nvidia-smi"
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_asks_nvidia_smi(tmp_path, monkeypatch):
    script = "case $# in 0) echo CUDA Version: 13.0;; *) echo Tesla T4, 15360 MiB, 7.5, 580.82.07;; esac\n"
    nvidia_smi(tmp_path, monkeypatch, script)
    found = inspection.machine()
    assert (found.gpus, found.cuda, found.no_gpu) == ((T4,), (13, 0), "")
    assert "Tesla T4, 16 GB, compute capability 7.5, driver 580.82.07, CUDA 13.0" in found.describe()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert inspection.machine().no_gpu == "CUDA_VISIBLE_DEVICES hides them"


def test_a_failing_nvidia_smi(tmp_path, monkeypatch):
    nvidia_smi(tmp_path, monkeypatch, "echo No devices were found; exit 6\n")
    assert inspection.machine().no_gpu == "nvidia-smi says: No devices were found"


def test_a_hanging_nvidia_smi(tmp_path, monkeypatch):
    nvidia_smi(tmp_path, monkeypatch, "exec sleep 100\n")
    monkeypatch.setattr(inspection, "PATIENCE", 0.2)
    started = time.monotonic()
    assert inspection.machine().no_gpu == "nvidia-smi gave no answer within 0.2 s"
    assert time.monotonic() - started < 5


def test_no_nvidia_smi(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert inspection.machine().no_gpu == "there is no nvidia-smi"


def test_this_machine_and_its_stamp():
    found = inspection.machine()
    assert found.cores == int(subprocess.run(["nproc"], capture_output=True, text=True).stdout)
    assert 0 < found.memory_bytes <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    stamp = found.describe()
    assert f"{found.cores} cores" in stamp and stamp.isprintable()
    assert platform.node() not in stamp and "/" not in stamp


def tree(root, files: dict[str, str]):
    """A small file system under `root`."""
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


# As recorded: the variables that Colab's and Kaggle's notebooks show, Docker's and Podman's marks, the control groups
# of the first process under version 1 and 2.
HOSTS = {
    "Colab": ("Colab", {"COLAB_RELEASE_TAG": "release-colab-external_20260701", "COLAB_GPU": "1"}, {".dockerenv": ""}),
    "an older Colab": ("Colab", {"COLAB_JUPYTER_IP": "172.28.0.12"}, {}),
    "Kaggle": ("Kaggle", {"KAGGLE_KERNEL_RUN_TYPE": "Interactive"}, {".dockerenv": ""}),
    "Kaggle, whose image is Colab's": (
        "Kaggle",
        {"KAGGLE_KERNEL_RUN_TYPE": "Batch", "COLAB_RELEASE_TAG": "release-colab-external_20260701"},
        {},
    ),
    "a pod": ("Kubernetes", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, {"proc/1/cgroup": "0::/\n"}),
    "Docker": ("container", {}, {".dockerenv": ""}),
    "Podman": ("container", {}, {"run/.containerenv": ""}),
    "control groups 1": ("container", {}, {"proc/1/cgroup": "3:cpu:/docker/0123abcd\n"}),
    "a virtual machine": ("", {"HOME": "a", "USER": "b"}, {"proc/1/cgroup": "0::/init.scope\n"}),
    "nothing known": ("", {}, {}),
}


@pytest.mark.parametrize("kind", HOSTS)
def test_tells_where_it_runs(kind, tmp_path):
    host, environment, files = HOSTS[kind]
    assert inspection.host(environment, tree(tmp_path, files)) == host


@pytest.mark.parametrize(
    "files, name",
    [
        (
            {"sys/class/drm/card1/device/vendor": "0x1002\n", "dev/kfd": "",
             "sys/class/drm/card1/device/product_name": "AMD Instinct MI300X\n"},
            "AMD Instinct MI300X",
        ),
        ({"sys/class/drm/card0/device/vendor": "0x1002\n", "dev/kfd": ""}, "an AMD GPU"),
        ({"sys/class/drm/card0/device/vendor": "0x1002\n"}, ""),
        ({"sys/class/drm/card0/device/vendor": "0x8086\n", "dev/kfd": ""}, ""),
        ({}, ""),
    ],
    ids=["Instinct", "unnamed", "a display only", "Intel", "none"],
)  # fmt: skip
def test_sees_a_gpu_of_amd(files, name, tmp_path):
    assert inspection.amd_gpu(tree(tmp_path, files)) == name


def test_free_disk_is_told_of_a_folder_that_is_not_there_yet(tmp_path):
    assert inspection.free_disk(tmp_path / "not" / "yet") == pytest.approx(shutil.disk_usage(tmp_path).free, abs=GB)


def test_knows_what_is_installed(tmp_path, monkeypatch):
    for name, marker in (
        ("vllm-cpu-0123456789ab", "0123"),
        ("sglang-cpu-half-made", "0123"),
        ("dynamo-0123456789ab", environments.UNFINISHED),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / environments.MARKER).write_text(marker)
    (tmp_path / "vllm-omni-cpu-0123456789ab").mkdir()
    program = tmp_path / "trtllm-serve"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert inspection.installed(tmp_path) == {"vllm-cpu", "trtllm-serve"}


@pytest.fixture
def hub_server(monkeypatch):
    """A hub on this machine that has one model; yields the requests that it was sent."""
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self):
            seen.append((self.path, dict(self.headers)))
            self.send_response(200 if self.path == "/api/models/Qwen/Qwen3-0.6B" else 401)
            self.end_headers()

        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("HF_TOKEN", "hf_secretsecretsecret")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    yield seen
    server.shutdown()
    server.server_close()


def test_asks_the_hub_once_and_sends_no_token(hub_server):
    assert inspection.hub("Qwen/Qwen3-0.6B") == Hub(True, "The hub at 127.0.0.1 answers, and has Qwen/Qwen3-0.6B.")
    [(path, headers)] = hub_server
    assert path == "/api/models/Qwen/Qwen3-0.6B" and "hf_secret" not in str(headers)
    assert "authorization" not in {name.lower() for name in headers}


def test_a_model_that_the_hub_does_not_give_out(hub_server):
    told = inspection.hub("Qwen/gone")
    assert not told.reachable and "refuses Qwen/gone (401)" in told.sentence


def test_a_proxy_is_respected(monkeypatch, hub_server):
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("no_proxy", "")
    told = inspection.hub("Qwen/Qwen3-0.6B", patience=5)
    assert not told.reachable and "hub.invalid does not answer" in told.sentence and "refused" in told.sentence


@pytest.mark.parametrize(
    "variable, value, words",
    [
        ("HF_HUB_OFFLINE", "1", "HF_HUB_OFFLINE is set"),
        ("HF_ENDPOINT", "file:///etc/passwd", "HF_ENDPOINT is not a web address"),
        ("HF_ENDPOINT", "http://[", "HF_ENDPOINT is not a web address"),
        ("HF_ENDPOINT", "http://127.0.0.1:port", "The hub at 127.0.0.1 does not answer"),
        ("HF_ENDPOINT", "http://user:secret@127.0.0.1:1", "The hub at 127.0.0.1 does not answer"),
    ],
)
def test_a_hub_that_cannot_be_asked(variable, value, words, monkeypatch, hub_server):
    monkeypatch.setenv(variable, value)
    told = inspection.hub("Qwen/Qwen3-0.6B")
    assert not told.reachable and words in told.sentence and "secret" not in told.sentence and hub_server == []


@pytest.mark.parametrize("name", ["", "Qwen3", "../../etc/passwd", "a/b?c=d", "a/b/c", "-a/b", "a/b\n"])
def test_a_name_that_no_model_has(name):
    with pytest.raises(ValueError, match="owner/name"):
        inspection.hub(name)


def test_looking_opens_no_connection_and_reads_no_token(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secretsecretsecret")
    monkeypatch.setattr("socket.socket.connect", lambda *words: pytest.fail("preflight opened a connection"))
    assert "hf_secret" not in repr(inspection.machine())
