"""Looking at this machine, once and without importing an engine. (`enginelab.preflight`.)"""

from __future__ import annotations

import ctypes.util
import http.client
import os
import platform
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from . import environments
from .machines import MIB, Gpu, Machine
from .needs import NEEDS

QUERY = ("nvidia-smi", "--query-gpu=name,memory.total,compute_cap,driver_version", "--format=csv,noheader")
PATIENCE = 10.0  # seconds for nvidia-smi, which hangs when a driver does
AMD, ITS_GPUS = "0x1002", "sys/class/drm"  # AMD's number among the makers of PCI devices


def machine(root: Path = Path("/")) -> Machine:
    """Look at this machine; takes up to 20 s if nvidia-smi hangs, else well under one.

    root: where its file system begins (another one for a test). Opens no connection and reads no token.
    """
    out, problem = _output(QUERY)
    gpus, doubt = parse_gpus(out)
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        gpus, problem = (), "CUDA_VISIBLE_DEVICES hides them"
    limits = (_text(root / "sys/fs/cgroup/memory.max"), _text(root / "sys/fs/cgroup/memory/memory.limit_in_bytes"))
    cpu, flags = parse_cpuinfo(_text(root / "proc/cpuinfo"))
    return Machine(
        system=platform.system(),
        architecture=platform.machine(),
        cpu=cpu or platform.processor() or "CPU of unknown name",
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_bytes=least_limit(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), limits),
        cpu_flags=flags,
        libnuma=ctypes.util.find_library("numa") is not None,
        gpus=gpus,
        cuda=parse_cuda(_output(("nvidia-smi",))[0]) if gpus else None,
        no_gpu="" if gpus else problem or doubt,
        other_gpu="" if gpus else amd_gpu(root),
        host=host(os.environ, root),
        free_disk_bytes=free_disk(environments.cache()),
        installed=installed(environments.cache()),
    )


def host(environment: Mapping[str, str], root: Path) -> str:
    """Where this runs, as `Machine.host` names it: from environment variables and from files under `root`.

    Kaggle's image is built on Colab's and may carry its variables, so it is asked for first.
    """
    if environment.get("KAGGLE_KERNEL_RUN_TYPE"):
        return "Kaggle"
    if environment.get("COLAB_RELEASE_TAG") or environment.get("COLAB_JUPYTER_IP"):
        return "Colab"
    if environment.get("KUBERNETES_SERVICE_HOST"):
        return "Kubernetes"
    marked = (root / ".dockerenv").exists() or (root / "run/.containerenv").exists()
    grouped = re.search(r"docker|containerd|kubepods|libpod|/lxc/", _text(root / "proc/1/cgroup"))
    return "container" if marked or grouped else ""


def amd_gpu(root: Path) -> str:
    """The name of the first AMD GPU that Linux's device files show, "" if there is none."""
    for card in sorted((root / ITS_GPUS).glob("card*/device")):
        # The compute driver's device file tells a GPU that can compute from a display adapter.
        if _text(card / "vendor").strip() == AMD and (root / "dev/kfd").exists():
            return _printable(_text(card / "product_name")) or "an AMD GPU"
    return ""


def free_disk(folder: Path) -> int | None:
    """Free bytes where `folder` lies or would lie, None if that cannot be told."""
    there = next((each for each in (folder, *folder.parents) if each.exists()), None)
    try:
        return shutil.disk_usage(str(there)).free if there else None
    except OSError:
        return None


def installed(cache: Path) -> frozenset[str]:
    """The engines' programs that the PATH has, and the locks whose environments lie in `cache`."""
    programs = {row.program for row in NEEDS if shutil.which(row.program)}
    locks = {
        row.lock
        for row in NEEDS
        if row.lock and any(map(environments.made, cache.glob(f"{row.lock}-{'[0-9a-f]' * 12}")))
    }
    return frozenset(programs | locks)


class Hub(NamedTuple):
    """Whether the model hub answered, and a sentence on it."""

    reachable: bool
    sentence: str


def hub(model: str, patience: float = 10.0) -> Hub:
    """Ask the Hugging Face hub, once, whether it would give out `model`; the only function here that uses the network.

    It asks the server that HF_ENDPOINT names, through the proxy that HTTPS_PROXY names, and waits `patience` seconds.
    The labs' models are open to all, so no token is read or sent. ValueError if `model` is no name of a model.
    """
    if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", model):
        raise ValueError(f"model must look like owner/name, not {model!r}")
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        return Hub(False, "HF_HUB_OFFLINE is set: only models that are already in the cache can be served.")
    endpoint = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    try:
        scheme, name = urlsplit(endpoint).scheme, urlsplit(endpoint).hostname
    except ValueError:
        scheme = name = None
    if scheme not in ("http", "https") or not name:
        return Hub(False, "HF_ENDPOINT is not a web address: it should look like https://huggingface.co.")
    request = urllib.request.Request(f"{endpoint.rstrip('/')}/api/models/{model}", method="HEAD")
    try:
        # A new opener, since the usual one keeps the proxies of its first call.
        with urllib.request.build_opener().open(request, timeout=patience):
            return Hub(True, f"The hub at {name} answers, and has {model}.")
    except urllib.error.HTTPError as error:
        return Hub(False, f"The hub at {name} answers, but refuses {model} ({error.code}): is its name still right?")
    except (OSError, ValueError, http.client.HTTPException) as error:
        why = _printable(str(getattr(error, "reason", None) or error))
        return Hub(
            False,
            f"The hub at {name} does not answer ({why}): set HTTPS_PROXY to a proxy or HF_ENDPOINT to a mirror, or "
            "bring the model in the hub's cache folder from a machine that can reach it.",
        )


def parse_gpus(text: str) -> tuple[tuple[Gpu, ...], str]:
    """Return the GPUs in what `QUERY` printed, and what it said instead if that was no list of GPUs.

    Lines look like "Tesla T4, 15360 MiB, 7.5, 550.54.15"; any field may be "[N/A]" or "[Insufficient Permissions]".
    """
    gpus = []
    for line in text.splitlines():
        fields = [_printable(part) for part in line.rsplit(",", 3)]
        if len(fields) < 4:
            continue
        memory = re.fullmatch(r"(\d+) MiB", fields[1])
        capability = re.fullmatch(r"(\d+)\.(\d+)", fields[2])
        driver = re.fullmatch(r"\d+(\.\d+)+", fields[3])
        if fields[0] and (memory or capability or driver):
            gpus.append(
                Gpu(
                    fields[0],
                    int(memory[1]) * MIB if memory else None,
                    (int(capability[1]), int(capability[2])) if capability else None,
                    driver[0] if driver else "unknown",
                )
            )
    said = next((_printable(line) for line in text.splitlines() if line.strip()), "")
    return tuple(gpus), "" if gpus or not said else f"nvidia-smi says: {said}"


def parse_cuda(text: str) -> tuple[int, int] | None:
    """Return the newest CUDA that the driver speaks, from the head of plain `nvidia-smi`."""
    found = re.search(r"CUDA(?: \w+)? Version\s*:\s*(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def parse_cpuinfo(text: str) -> tuple[str, frozenset[str]]:
    """Return the CPU's name and instruction sets from the text of /proc/cpuinfo."""
    values = dict(re.findall(r"^(model name|flags|Features)[ \t]*:[ \t]*(.*)$", text, re.M))
    return _printable(values.get("model name", "")), frozenset(
        (values.get("flags") or values.get("Features", "")).split()
    )


def least_limit(physical: int, limits: tuple[str, ...]) -> int:
    """Return the least of the physical memory and the limits that a container's control group states (bytes)."""
    return min([physical, *(int(limit) for limit in limits if limit.strip().isdecimal() and int(limit))])


def _output(argv: tuple[str, ...]) -> tuple[str, str]:
    try:
        done = subprocess.run(argv, capture_output=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        return "", "there is no nvidia-smi"
    except subprocess.TimeoutExpired:
        return "", f"nvidia-smi gave no answer within {PATIENCE:g} s"
    except OSError as error:
        return "", f"nvidia-smi cannot be run: {error.strerror}"
    return (done.stdout + done.stderr).decode(errors="replace"), ""


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def _printable(text: str) -> str:
    return "".join(character for character in text if character.isprintable()).strip()[:100]
