"""Whether and how an engine can run on a machine, in a sentence. (`preflight`; the Preflight of every lab.)"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from .machines import GB, Machine
from .needs import CUDA_12_DRIVER, LABS, LANGUAGE, Choice, Needs, needs

RENTED = {"Colab": "Runtime, Change runtime type", "Kaggle": "Settings, Accelerator"}
"""Notebook hosts, where neither the driver nor Docker is the learner's; and where one asks for another GPU there."""


@dataclass(frozen=True)
class Verdict:
    """Whether a lab can run here.

    mode: "gpu", "cpu" or "" if it cannot; sentence: why, and what to do about it; dtype: the data type to serve with;
    version: the newest release of the engine that this machine's driver runs, or its CPU build.
    engine: its name; model: of the hub, for mode "gpu" ("" on a CPU, where the lab makes its own); flags: what to add
    to the command on this GPU; install: how to get the engine, "" where the lab does it or it is there.
    """

    ok: bool
    mode: str
    sentence: str
    dtype: str = ""
    version: str = ""
    engine: str = ""
    model: str = ""
    flags: tuple[str, ...] = ()
    install: str = ""


def check(engine: str, machine: Machine) -> Verdict:
    """Say whether and how the lab of `engine` can run on `machine`: on its best GPU, else on the CPU."""
    row = needs(engine)
    missing = _missing_for_gpu(row, machine)
    if not missing:
        return _on_gpu(row, machine)
    missing += _elsewhere(machine)
    if not row.cpu_build:
        return Verdict(False, "", f"{missing} It has no CPU build.", engine=row.engine)
    lacking = _missing_for_cpu(row, machine)
    if lacking:
        sentence = f"{missing} Its CPU build cannot run here either: {lacking}."
        return Verdict(False, "", sentence, engine=row.engine)
    sentence = f"{row.engine} can run on this CPU ({row.cpu_build}), {row.on_cpu}. On a GPU: {missing}"
    if row.cpu_tried_with not in machine.cpu_flags:
        sentence += f" It was tried on CPUs with {row.cpu_tried_with.upper()} only, and this one has none."
    return Verdict(True, "cpu", sentence, "float32", row.cpu_build.split()[-1], row.engine)


def engines(machine: Machine) -> tuple[Verdict, ...]:
    """The engines for language models that can run here and be compared: all on the GPU, or all on the CPU.

    Whichever is more; the GPU where it is the same.
    """
    verdicts = [check(engine, machine) for engine in LANGUAGE]
    without = dataclasses.replace(machine, gpus=(), no_gpu=machine.no_gpu or "left aside for this comparison")
    on_gpu = tuple(verdict for verdict in verdicts if verdict.mode == "gpu")
    on_cpu = tuple(verdict for engine in LANGUAGE if (verdict := check(engine, without)).ok)
    return on_gpu if on_gpu and len(on_gpu) >= len(on_cpu) else on_cpu


def lab(name: str, machine: Machine) -> Verdict:
    """The verdict on the lab `name`, a key of `LABS`; of one that takes any engine, on all that it can take here.

    ValueError if there is no such lab.
    """
    if name not in LABS:
        raise ValueError(f"lab must be one of {', '.join(LABS)}; got {name!r}")
    if len(LABS[name]) == 1:
        return check(LABS[name][0], machine)
    can = engines(machine)
    if not can:
        return Verdict(False, "", "None of the engines can run here. " + check(LABS[name][0], machine).sentence)
    names, where = ", ".join(each.engine for each in can), "GPU" if can[0].mode == "gpu" else "CPU"
    sentence = f"This lab can take {names} here, on the {where}."
    if name == "07_compare" and len(can) == 1:
        sentence += " One engine is no comparison, only two runs of it."
    sentence = " ".join([sentence, *(each.sentence for each in can)])
    return Verdict(True, can[0].mode, sentence, can[0].dtype, engine=names, model=can[0].model)


def _on_gpu(row: Needs, machine: Machine) -> Verdict:
    gpu, choice = machine.best_gpu, _choice(row, machine)
    dtype = "bfloat16" if (gpu.compute_capability or row.compute_capability) >= row.bfloat16 else "half"
    sentence = f"{row.engine} can run on this GPU ({gpu}), in {dtype}, and serve {choice.model}."
    if choice.flags:
        sentence += f" It has little memory for that model, so the lab adds {' '.join(choice.flags)}."
    old = 0 < gpu.driver_major < row.driver
    version, install = (row.cuda12, row.cuda12_install) if old else (row.version, row.install)
    if machine.host:
        install = row.in_container.format(version=version) or install
    if old:
        sentence += (
            f" Its driver, {gpu.driver}, has no CUDA 13: use {row.engine} {version}, not {row.version}: `{install}`."
        )
    elif row.program in machine.installed:
        install = ""
    else:
        sentence += f" Install it first: `{install}`."
    return Verdict(True, "gpu", sentence, dtype, version, row.engine, choice.model, choice.flags, install)


def _choice(row: Needs, machine: Machine) -> Choice | None:
    """The largest model for the best GPU and the machine's memory, None if there is none.

    A GPU that does not tell its memory, such as a MIG slice, gets the smallest.
    """
    memory = machine.best_gpu.memory_bytes
    if memory is None:
        return row.choices[-1]
    fits = (c for c in row.choices if memory >= c.memory_gb * GB and machine.memory_bytes >= c.host_gb * GB)
    return next(fits, None)


def _missing_for_gpu(row: Needs, machine: Machine) -> str:
    """What keeps the engine from this machine's GPU, in a sentence; "" if nothing does.

    What nvidia-smi does not tell is not held against the machine.
    """
    gpu = machine.best_gpu
    wanted = "{} needs one NVIDIA GPU with {} GB and compute capability {}.{} (the smallest sensible: {})".format(
        row.engine, row.memory_gb, *row.compute_capability, row.smallest
    )
    if row.listed:
        wanted = f"{row.engine} needs one NVIDIA GPU of those that its documentation lists ({', '.join(row.listed)})"
    if gpu is None and machine.other_gpu:
        return f"{wanted}; found {machine.other_gpu}. {row.amd}."
    if gpu is None:
        return f"{wanted}; found none ({machine.no_gpu or 'nvidia-smi lists none'})."
    too_old = gpu.compute_capability is not None and gpu.compute_capability < row.compute_capability
    too_small = gpu.memory_bytes is not None and gpu.memory_bytes < row.memory_gb * GB
    if too_old or too_small or (row.listed and not set(gpu.name.replace("-", " ").split()) & set(row.listed)):
        return f"{wanted}; found {gpu}. {row.remark}"
    if machine.system != "Linux":
        return f"{row.engine} needs Linux, and this is {machine.system}."
    oldest, its_cuda = (CUDA_12_DRIVER, 12) if row.cuda12 else (row.driver, 13)
    if 0 < gpu.driver_major < oldest:
        advice = f"{machine.host} gives no other" if machine.host in RENTED else "update it on the machine itself"
        return f"{row.engine} needs a driver of {oldest} or newer, for CUDA {its_cuda}; found {gpu.driver}: {advice}."
    choice = _choice(row, machine)
    if choice is None:
        least = row.choices[-1].host_gb
        return f"{row.engine} needs {least} GB of memory beside this GPU ({gpu}), and there are {_gb(machine)}."
    disk = choice.disk_gb + (0 if row.program in machine.installed else row.gpu_disk_gb)
    if machine.free_disk_bytes is not None and machine.free_disk_bytes < disk * GB:
        return (
            f"{row.engine} and {choice.model} need {disk} GB of free disk, and there are "
            f"{machine.free_disk_bytes / GB:.0f}: make room, or set HF_HOME to a folder on a larger disk."
        )
    return ""


def _missing_for_cpu(row: Needs, machine: Machine) -> str:
    if machine.system != "Linux" or machine.architecture not in ("x86_64", "AMD64"):
        return f"it needs Linux on x86-64, and this is {machine.system} on {machine.architecture}"
    if row.cpu_flag not in machine.cpu_flags:
        return f"it needs a CPU with {row.cpu_flag.upper()}"
    if not machine.libnuma:
        return "it needs libnuma: install libnuma1 (`apt-get install libnuma1`)"
    if machine.memory_bytes < row.cpu_memory_gb * GB:
        return f"it needs {row.cpu_memory_gb} GB of memory, and there are {_gb(machine)}"
    free = machine.free_disk_bytes
    if row.lock not in machine.installed and free is not None and free < row.cpu_disk_gb * GB:
        return (
            f"it needs {row.cpu_disk_gb} GB of free disk, and there are {free / GB:.1f}: make room, or set "
            "ENGINELAB_CACHE to a folder on a larger disk"
        )
    return ""


def _gb(machine: Machine) -> str:
    return f"{machine.memory_bytes / GB:.1f}"


def _elsewhere(machine: Machine) -> str:
    """What a notebook host lets one do about a missing GPU."""
    place = RENTED.get(machine.host)
    return f" On {machine.host}, ask for another GPU under {place}." if place else ""
