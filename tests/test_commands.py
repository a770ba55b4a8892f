"""Launch commands: the lesson's own, their way to a shell and back, and everything that is not one command."""

import re
import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab import commands, flags

COMMANDS = {name: value for name, value in vars(commands).items() if isinstance(value, commands.Command)}
text = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20)
values = text.filter(lambda t: not t.startswith("-") and not t.isspace())


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_the_books_commands_survive_a_shell(command):
    assert commands.parse(command.shell()) == command
    assert commands.parse(command.argv) == command
    # A real shell sees the same words.
    script = f"set -- {command.shell()}\nprintf '%s\\0' \"$@\""
    seen = subprocess.run(
        ["sh", "-c", script],
        env={"EXTRA_LLM_API_FILE": "${EXTRA_LLM_API_FILE}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert seen.stdout.split("\0")[:-1] == command.argv


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_every_flag_of_the_book_is_explained(command):
    assert len(command.explained().rows) == len(command.flags) > 0
    assert all(flag.says for flag in command.flags)


def test_the_lessons_commands():
    vllm, sglang, trt = commands.LESSON_VLLM, commands.LESSON_SGLANG, commands.LESSON_TENSORRT_LLM
    assert [c.engine for c in (vllm, sglang, trt)] == ["vLLM", "SGLang", "TensorRT-LLM"]
    assert [c.model for c in (vllm, sglang, trt)] == [
        "deepseek-ai/DeepSeek-V3.1", "deepseek-ai/DeepSeek-V3-0324", "deepseek-ai/DeepSeek-R1-0528",
    ]  # fmt: skip
    assert vllm.value("--tensor-parallel-size") == sglang.value("--tp") == trt.value("--tp_size") == "8"
    assert trt.value("--kv_cache_free_gpu_memory_fraction") == "0.8"
    assert trt.argv[-1] == "${EXTRA_LLM_API_FILE}"
    assert any(flag.name == "--backend" and "eprecated" in flag.changed for flag in trt.flags)


def test_today_means_the_same_as_the_lesson():
    """The commands of today differ from the lesson's in spelling, in the host, and in what moved to the YAML."""

    def settings(command):
        dialect = next(d for d in flags.DIALECTS if d.engine == command.engine)
        return {dialect.fact(flag.name).name: flag.value for flag in command.flags}

    assert settings(commands.TODAY_SGLANG) == settings(commands.LESSON_SGLANG)
    lesson, today = settings(commands.LESSON_TENSORRT_LLM), settings(commands.TODAY_TENSORRT_LLM)
    fraction = lesson.pop("--free_gpu_memory_fraction")
    assert f"free_gpu_memory_fraction: {fraction}" in commands.TODAY_TENSORRT_LLM_YAML
    assert lesson.pop("--backend") == "pytorch"
    assert (lesson.pop("--host"), today.pop("--host")) == ("0.0.0.0", "127.0.0.1")
    assert (lesson.pop("--config"), today.pop("--config")) == ("${EXTRA_LLM_API_FILE}", "config.yaml")
    assert lesson == today


@given(model=values, name=values, eager=st.booleans())
def test_any_value_survives_a_shell(model, name, eager):
    argv = ["vllm", "serve", model, "--served-model-name", name, *(["--enforce-eager"] if eager else [])]
    command = commands.parse(argv)
    assert command.argv == argv and command.model == model
    if not commands.VARIABLE.fullmatch(name) and not commands.VARIABLE.fullmatch(model):
        assert shlex.split(command.shell().replace("\\\n", "")) == argv


def test_an_equals_sign_gives_a_value():
    assert commands.parse("vllm serve m --port=80") == commands.parse("vllm serve m --port 80")
    config = '{"method": "ngram", "num_speculative_tokens": 3}'
    command = commands.parse(["vllm", "serve", "m", f"--speculative-config={config}"])
    assert command.value("--speculative-config") == config
    assert commands.parse(command.shell()) == command


@pytest.mark.parametrize(
    "line, named",
    [
        ("", "the command must begin with one of"),
        ("ls -l", "the command must begin with one of"),
        ("vllm chat m", "the command must begin with one of"),
        ("vllm serve", "the command names no model for vLLM"),
        ("sglang serve --tp 2", "the command names no model for SGLang"),
        ("vllm serve m --no-such-flag 3", "vLLM has no flag '--no-such-flag'"),
        ("vllm serve m --tp_size 3", "vLLM has no flag '--tp_size'"),
        ("vllm serve m --port", "--port needs a value"),
        ("vllm serve m --port --host", "--port needs a value"),
        ("vllm serve m --enforce-eager=yes", "--enforce-eager is a switch"),
        ("vllm serve m --port 1 --port 2", "--port is given twice"),
        ("vllm serve m n", "'n' is neither a flag nor a flag's value"),
        ("sglang serve m", "'m' is neither a flag nor a flag's value"),
        ("vllm serve 'm", "the command cannot be split into words"),
        ("vllm serve m; rm -rf x", "the command must be a single one"),
        ("vllm serve m && ls", "the command must be a single one"),
        ("vllm serve m | tee log", "the command must be a single one"),
        ("vllm serve m > log", "the command must be a single one"),
        ("vllm serve m&", "the command must be a single one"),
        ("vllm serve $(ls)", "the command must be a single one"),
        ("vllm serve `ls`", "the command must be a single one"),
        ("vllm serve m\nls", "the command must be a single one"),
    ],
)
def test_what_is_not_one_command_is_refused(line, named):
    with pytest.raises(ValueError, match=f"^{re.escape(named)}"):
        commands.parse(line)


@pytest.mark.parametrize(
    "line, engine",
    [
        ("vllm serve m --dtype half", "vLLM"),
        ("vllm serve m --dtype half --omni", "vLLM Omni"),
        ("vllm-omni serve m --omni", "vLLM Omni"),
        ("sglang serve --model-path m", "SGLang"),
        ("sglang serve --model-path m --model-type diffusion --output-path ''", "SGLang Diffusion"),
        ("sglang serve --model-path m --model-type=diffusion", "SGLang Diffusion"),
    ],
)
def test_one_program_serves_two_engines_and_a_flag_says_which(line, engine):
    command = commands.parse(line)
    assert (command.engine, command.model) == (engine, "m")
    assert commands.parse(command.shell()) == command


class TestFlags:
    def test_no_spelling_is_given_twice(self):
        for dialect in commands.DIALECTS:
            spellings = [s for fact in dialect.facts for s in (fact.name, *fact.aliases)]
            assert len(spellings) == len(set(spellings)), dialect.engine
