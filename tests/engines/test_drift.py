"""The drift watch on two real releases of SGLang: the one that the labs serve with, and the one that the book is about.

Both are asked for real; the newer one is fetched from the package index as `make drift` does it.
"""

import subprocess
import sys
from pathlib import Path

import drift
import parsers
import pytest
import yaml

from enginelab import commands, printed, trtllm_reference
from enginelab.drift import Watched, report

OLD = next(each for each in parsers.PARSERS if each.name == "SGLang" and not each.in_front)
NEW = next(each for each in parsers.PARSERS if each.name == "SGLang" and each.in_front).version


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """What changed, for the lesson's command and for flags that the newer release is known to treat in each way."""
    lesson = tuple(commands.LESSON_SGLANG.argv)
    release = drift.Release(OLD, "sglang")
    before, after = parsers.ask(OLD, [lesson]), drift.ask_new(release, NEW, [lesson])
    named = ["--cuda-graph-max-bs", "--enable-dp-attention", "--hicache-ratio", "--quantization", "--tp-size"]
    return Watched("SGLang", OLD.version, NEW, drift.compare(before, after, named))


def test_the_newer_release_is_another_one():
    assert OLD.version != NEW


def test_every_kind_of_change_is_found_and_nothing_else(watched):
    kinds = {(change.kind, change.what) for change in watched.changes}
    assert kinds == {
        ("gone", "--cuda-graph-max-bs"),
        ("deprecated", "--enable-dp-attention"),
        ("default", "--hicache-ratio"),
        ("choices", "--quantization"),
    }


def test_what_is_gone_breaks_and_is_told_what_came_instead(watched):
    gone = watched.changes[0]
    assert watched.broke
    assert gone.says == "is gone: perhaps --cuda-graph-max-bs-decode or --cuda-graph-max-bs-prefill now"
    text = report([watched], "today")
    assert f"## SGLang: {OLD.version} → {NEW}" in text and "**gone**: `--cuda-graph-max-bs`" in text


def test_the_program_writes_its_report_and_its_status_is_the_verdict(tmp_path):
    try:
        printed.book(drift.ROOT)
    except printed.NoBook as why:
        pytest.fail(str(why))
    file = tmp_path / "report.md"
    done = subprocess.run(
        [sys.executable, Path(drift.__file__), "--report", file, f"SGLang=={OLD.version}"],
        capture_output=True,
        text=True,
    )
    text = file.read_text(encoding="utf-8")
    assert done.stdout.strip() == text.strip()
    # The book names a flag that came after the older release.
    assert done.returncode == 1 and f"## SGLang: {NEW} → {OLD.version}" in text
    assert "**gone**: `--attn-dp-size`" in text
    assert "refused" not in text, "the commands of the book run on both"


def test_the_reference_of_tensorrt_llm_is_watched_too(tmp_path, monkeypatch):
    file = tmp_path / "reference.yaml"
    monkeypatch.setattr(drift, "REFERENCE", file.as_uri())
    monkeypatch.setattr(drift, "course", lambda engine, programs: ([], ["--tp_size", "--max_seq_len", "--port"]))
    options = {
        option.key: {"flags": list(option.names), "default": option.default, "status": option.status}
        for option in trtllm_reference.read().options
    }
    file.write_text(yaml.safe_dump({"commands": {"serve": {"options": options}}}))
    assert drift.watch_reference().changes == ()
    options["tensor_parallel_size"]["flags"].remove("--tp_size")
    options["max_seq_len"]["status"] = "deprecated"
    file.write_text(yaml.safe_dump({"commands": {"serve": {"options": options}}}))
    watched = drift.watch_reference()
    assert [(change.kind, change.what) for change in watched.changes] == [
        ("gone", "--tp_size"),
        ("deprecated", "--max_seq_len"),
    ]
    assert watched.broke and "--tensor_parallel_size" in watched.changes[0].says
    file.write_text("commands: [")
    assert drift.watch_reference().broke and "ParserError" in drift.watch_reference().trouble


def test_an_engine_that_nobody_watches_is_refused():
    done = subprocess.run([sys.executable, Path(drift.__file__), "llama.cpp==1"], capture_output=True, text=True)
    assert done.returncode == 2 and "no engine llama.cpp; there are vLLM, SGLang" in done.stderr
