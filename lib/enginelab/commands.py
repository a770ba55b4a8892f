"""Commands: a launch command as data, rendered for a shell and parsed back. (Chapters 3 to 5; every lab.)

The commands of the lesson stand here as it gives them, and beside each what one would type today.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from . import dynamo_flags, image_flags
from .flags import DIALECTS as ENGINES
from .flags import Dialect
from .table import Table

# A dialect with a mark comes before the one without.
DIALECTS = (*image_flags.DIALECTS, *ENGINES, *dynamo_flags.DIALECTS)
VARIABLE = re.compile(r"\$\{[A-Z_][A-Z0-9_]*\}")


@dataclass(frozen=True)
class Flag:
    """One flag as it stands in a command: its spelling, its value (None for a switch), and what it does."""

    name: str
    value: str | None
    says: str
    changed: str = ""


@dataclass(frozen=True)
class Command:
    """One launch command.

    engine      "vLLM", "SGLang", "TensorRT-LLM", "vLLM Omni", "SGLang Diffusion" or "Dynamo"
    version     the engine's version that the flags were checked against
    program     the words before everything else
    positional  the model, where the engine takes it without a flag
    flags       in the order given
    """

    engine: str
    version: str
    program: tuple[str, ...]
    positional: str | None
    flags: tuple[Flag, ...]

    @property
    def model(self) -> str:
        """The model that is served: a name on the hub or a folder."""
        return self.positional or self.value("--model-path") or self.value("--model") or ""

    @property
    def argv(self) -> list[str]:
        """The command as a list of words, ready for `subprocess` without a shell."""
        return [word for line in self._lines() for word in line]

    def value(self, name: str) -> str | None:
        """The value of the flag spelled `name`, or None if it is absent or a switch."""
        return next((flag.value for flag in self.flags if flag.name == name), None)

    def shell(self) -> str:
        """The command for a POSIX shell, one flag a line; the shell hands back exactly `argv`, variables set aside."""
        return " \\\n  ".join(" ".join(map(_quoted, line)) for line in self._lines())

    def explained(self) -> Table:
        """Flag, what it does, and what has changed since the lesson, as a table."""
        rows = ((f"`{' '.join(_words(flag))}`", f"{flag.says} {flag.changed}".strip()) for flag in self.flags)
        return Table(("Flag", "What it does"), tuple(rows))

    def _lines(self):
        yield [*self.program, self.positional] if self.positional else list(self.program)
        yield from map(_words, self.flags)


def _words(flag: Flag) -> list[str]:
    return [flag.name] if flag.value is None else [flag.name, flag.value]


def _quoted(word: str) -> str:
    # A variable must stay bare, or the shell would not replace it.
    return word if VARIABLE.fullmatch(word) else shlex.quote(word)


def parse(command: str | Sequence[str]) -> Command:
    """The `Command` that a shell text or a list of words stands for.

    Raises `ValueError`, naming what is wrong, for an unknown program or flag, a flag without its value or a switch
    with one, a flag given twice, a missing or second model, and anything that only a shell could run (`;`, `|`, `$(`).
    """
    words = _shell_words(command) if isinstance(command, str) else list(command)
    dialect, program = _dialect(words)
    model, flags = None, []
    rest = iter(words[len(program) :])
    for word in rest:
        if not word.startswith("-"):
            if model or not dialect.model_is_positional:
                raise ValueError(f"{word!r} is neither a flag nor a flag's value")
            model = word
            continue
        name, given, value = word.partition("=")
        fact = dialect.fact(name)
        if not fact.takes_value:
            if given:
                raise ValueError(f"{name} is a switch: it takes no value, but was given {value!r}")
            value = None
        elif not given:
            value = next(rest, None)
            if value is None or value.startswith("--"):
                raise ValueError(f"{name} needs a value")
        if any(name == flag.name for flag in flags):
            raise ValueError(f"{name} is given twice")
        flags.append(Flag(name, value, fact.says, fact.changed))
    result = Command(dialect.engine, dialect.version, program, model, tuple(flags))
    if dialect.names_model and not result.model:
        raise ValueError(f"the command names no model for {dialect.engine} to serve")
    return result


def _shell_words(text: str) -> list[str]:
    text = text.replace("\\\n", " ")
    if "`" in text or "$(" in text or "\n" in text.strip():
        raise ValueError("the command must be a single one, without substitutions")
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";|&<>")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError as error:
        raise ValueError(f"the command cannot be split into words: {error}") from None
    if any(word and set(word) <= set(";|&<>") for word in words):
        raise ValueError("the command must be a single one, without ; | & < or >")
    return words


def _dialect(words: Sequence[str]) -> tuple[Dialect, tuple[str, ...]]:
    marks = {word.partition("=")[0] for word in words}
    for dialect in DIALECTS:
        for program in dialect.programs:
            if tuple(words[: len(program)]) == program and (not dialect.mark or dialect.mark in marks):
                return dialect, program
    known = ", ".join(dict.fromkeys(" ".join(program) for dialect in DIALECTS for program in dialect.programs))
    raise ValueError(f"the command must begin with one of: {known}; it begins with {' '.join(words[:3])!r}")


LESSON_VLLM = parse("""
vllm serve deepseek-ai/DeepSeek-V3.1 \\
  --enable-expert-parallel \\
  --tensor-parallel-size 8 \\
  --served-model-name ds31
""")

LESSON_SGLANG = parse("""
python3 -m sglang.launch_server \\
  --model-path deepseek-ai/DeepSeek-V3-0324 \\
  --speculative-algorithm EAGLE \\
  --speculative-num-steps 1 \\
  --speculative-eagle-topk 1 \\
  --speculative-num-draft-tokens 2 \\
  --trust-remote-code \\
  --tp 8
""")

TODAY_SGLANG = parse("""
sglang serve \\
  --model-path deepseek-ai/DeepSeek-V3-0324 \\
  --speculative-algorithm EAGLE \\
  --speculative-num-steps 1 \\
  --speculative-eagle-topk 1 \\
  --speculative-num-draft-tokens 2 \\
  --trust-remote-code \\
  --tp-size 8
""")

LESSON_TENSORRT_LLM = parse("""
trtllm-serve deepseek-ai/DeepSeek-R1-0528 \\
  --host 0.0.0.0 \\
  --port 8000 \\
  --backend pytorch \\
  --max_batch_size 1024 \\
  --max_num_tokens 3200 \\
  --max_seq_len 2048 \\
  --kv_cache_free_gpu_memory_fraction 0.8 \\
  --tp_size 8 \\
  --ep_size 8 \\
  --trust_remote_code \\
  --extra_llm_api_options ${EXTRA_LLM_API_FILE}
""")

TODAY_TENSORRT_LLM = parse("""
trtllm-serve deepseek-ai/DeepSeek-R1-0528 \\
  --host 127.0.0.1 \\
  --port 8000 \\
  --max_batch_size 1024 \\
  --max_num_tokens 3200 \\
  --max_seq_len 2048 \\
  --tensor_parallel_size 8 \\
  --moe_expert_parallel_size 8 \\
  --trust_remote_code \\
  --config config.yaml
""")

# What goes into the config.yaml that TODAY_TENSORRT_LLM names.
TODAY_TENSORRT_LLM_YAML = """\
kv_cache_config:
  free_gpu_memory_fraction: 0.8
"""
