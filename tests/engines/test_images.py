"""The real vLLM Omni and SGLang Diffusion, without a picture painted: their argument parsers, the CPU platform, and the
tiny image model. The labs themselves assert that the pictures are right.

All run in the engines' own environments, which `make engines` builds. Without them these tests fail: a pass here has to
mean that the engine was asked.
"""

import hashlib
import json
import subprocess
from pathlib import Path

import nbformat
import pytest

from enginelab import commands, environments, image_flags

ROOT = Path(__file__).parent.parent.parent
HERE = Path(__file__).parent
LOCKS = {"omni": "vllm-omni-cpu.txt", "sglang": "sglang-cpu.txt"}
LABS = {"omni": ("05_vllm_omni", "vllm serve"), "sglang": ("06_sglang_diffusion", "sglang serve")}
DIALECTS = {"omni": image_flags.VLLM_OMNI, "sglang": image_flags.SGLANG_DIFFUSION}
INVENTED = ["--invented-flag", "3"]

both = pytest.mark.parametrize("engine", LOCKS)


def engine_python(engine: str) -> Path:
    """The interpreter of the engine's environment."""
    python = environments.path(ROOT / "labs" / "envs" / LOCKS[engine]) / "bin" / "python"
    if not python.exists():
        pytest.fail(f"the environment for {LOCKS[engine]} is missing: run `make engines`")
    return python


def lab_command(engine: str) -> commands.Command:
    """The command that the lab's outputs show."""
    name, begins = LABS[engine]
    lab = nbformat.read(ROOT / "labs" / f"{name}.ipynb", as_version=4)
    shown = next(cell.outputs[0].text for cell in lab.cells if cell.get("id") == "command-show")
    return commands.parse(shown[shown.index(begins) :].strip())


def on_gpu(engine: str) -> list[str]:
    """Words that the lab adds on a GPU with little memory."""
    return ["--enable-cpu-offload"] if engine == "omni" else ["--dit-cpu-offload", "true"]


@pytest.fixture(scope="module")
def asked():
    """What each engine's parser makes of its lab's command, of that on a small GPU, and with an invented flag."""
    answers = {}
    for engine in LOCKS:
        words = lab_command(engine).argv[2:]
        argvs = [words, words + on_gpu(engine), words + INVENTED]
        program = [engine_python(engine), HERE / "parse_images.py", engine]
        done = subprocess.run(program, input=json.dumps(argvs), capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr[-3000:]
        answers[engine] = json.loads(done.stdout.splitlines()[-1])
    return answers


@both
def test_the_engine_knows_every_flag_that_the_course_explains(engine, asked):
    spellings = [spelling for fact in DIALECTS[engine].facts for spelling in (fact.name, *fact.aliases)]
    assert [spelling for spelling in spellings if spelling not in asked[engine]["options"]] == []


@both
def test_every_flag_arrives_with_the_value_that_the_lab_gives(engine, asked):
    command, values = lab_command(engine), asked[engine]["parsed"][0]
    assert command.engine == DIALECTS[engine].engine
    assert command.model in (values.get("model_tag"), values.get("model_path"))
    for flag in command.flags:
        arrived = values[flag.name.removeprefix("--").replace("-", "_")]
        arrived = arrived[0] if isinstance(arrived, list) else arrived
        assert arrived is True if flag.value is None else str(arrived) == flag.value, flag


@both
def test_what_a_gpu_with_little_memory_needs_arrives(engine, asked):
    name = on_gpu(engine)[0].removeprefix("--").replace("-", "_")
    assert asked[engine]["parsed"][1][name] is True
    assert asked[engine]["parsed"][0].get(name) is not True


@both
def test_the_engine_refuses_an_invented_flag(engine, asked):
    assert "--invented-flag" in asked[engine]["parsed"][2]["error"]


def test_vllm_omni_finds_the_courses_platform_and_its_attention():
    told = subprocess.run(
        [
            engine_python("omni"),
            "-c",
            "from vllm_omni.platforms import current_omni_platform as p\n"
            "from vllm.utils.import_utils import resolve_obj_by_qualname as find\n"
            "backend = find(p.get_diffusion_attn_backend_cls())\n"
            "print(type(p).__name__, p.device_type, backend.get_impl_cls().__name__)",
        ],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert told.stdout.splitlines()[-1:] == ["CpuOmniPlatform cpu CpuAttention"], told.stderr[-3000:]


def test_the_tiny_image_model_is_made_once_and_holds_the_same_weights_for_both_engines(tmp_path):
    def make(engine: str, name: str) -> dict[str, tuple[bytes, int]]:
        program = [engine_python(engine), ROOT / "labs" / "tiny_image_model.py", tmp_path / name]
        subprocess.run(program, check=True, capture_output=True, timeout=600)
        files = [file for file in (tmp_path / name).rglob("*") if file.is_file()]
        return {
            str(file.relative_to(tmp_path / name)): (
                hashlib.sha256(file.read_bytes()).digest(),
                file.stat().st_mtime_ns,
            )
            for file in files
        }

    first, again = make("omni", "a-Qwen-Image"), make("omni", "a-Qwen-Image")
    assert again == first
    other = make("sglang", "b-Qwen-Image")
    weights = [name for name in first if name.endswith(".safetensors")]
    assert len(weights) == 3 and first.keys() == other.keys()
    assert [first[name][0] for name in weights] == [other[name][0] for name in weights]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-Qwen-Image", "b-Qwen-Image"]
