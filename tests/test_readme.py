"""The README: short, its example prints what it says, and every `make` target that it or CI names exists."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHECK = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_it_is_short():
    assert len(README.splitlines()) <= 100


def test_the_example_prints_what_it_says():
    block = re.search(r"^```\n\$ (PYTHONPATH=lib python3 -c .*?)^```$", README, re.DOTALL | re.MULTILINE)[1]
    command, _, printed = block.rstrip("\n").rpartition("\n")
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (printed + "\n", "")


def test_every_target_exists_and_help_lists_it():
    named = {target for text in (README, CHECK) for target in re.findall(r"\bmake ([a-z]+)\b", text)}
    helped = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert named >= {"book", "test", "engines", "labs"}
    assert {f"make {target}" for target in named} <= set(re.findall(r"^  (make [a-z]+)", helped, re.MULTILINE))


def test_the_paths_of_the_map_exist():
    for path in re.findall(r"`((?:lib|labs|chapters|tests|bench|site)/[\w./]*\w)`", README):
        assert (ROOT / path).exists() or "NN_" in path or "idea" in path, path
