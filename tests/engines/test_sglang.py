"""The real SGLang: its argument parsers, of the build that the lab starts and of the release that the book describes,
and the trees of its drafts.

All run in the environments that `make engines` builds. Without these the tests fail: a pass here has to mean that
SGLang was asked. What the running engine does (cached tokens, passes, the front-end language) the lab itself asserts.
"""

import json
import os
import random
import subprocess
from pathlib import Path

import nbformat
import pytest

from enginelab import commands, environments, flags, speculation

ROOT = Path(__file__).parent.parent.parent
SERVES, DESCRIBED = (ROOT / "labs" / "envs" / f"sglang-{name}.txt" for name in ("cpu", "parser"))
LAB = nbformat.read(ROOT / "labs" / "02_sglang.ipynb", as_version=4)
INVENTED = [*commands.TODAY_SGLANG.argv[2:], "--invented-flag", "3"]


def shown(cell_id: str) -> commands.Command:
    """The command that a cell of the lab has printed."""
    text = next(cell.outputs[0].text for cell in LAB.cells if cell.get("id") == cell_id)
    return commands.parse(text[text.index("sglang serve") :].strip())


ASKED = {
    "lesson": commands.LESSON_SGLANG,
    "today": commands.TODAY_SGLANG,
    "lab": shown("command-show"),
    "eagle": shown("eagle-show"),
}


def environment(lock: Path) -> Path:
    folder = environments.path(lock)
    if not (folder / "bin" / "python").exists():
        pytest.fail(f"the environment for {lock.name} is missing: run `make engines`")
    return folder


def in_sglang(program: str, argument, packages: Path = SERVES) -> object:
    """What `program` in this folder answers to `argument`, both JSON; `packages`: the lock whose SGLang it imports."""
    [folder] = environment(packages).glob("lib/python*/site-packages")
    done = subprocess.run(
        [environment(SERVES) / "bin" / "python", Path(__file__).parent / program],
        env=os.environ | {"PYTHONPATH": str(folder), "SGLANG_USE_CPU_ENGINE": "1", "HF_HUB_OFFLINE": "1"},
        input=json.dumps(argument),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module", params=[SERVES, DESCRIBED], ids=["serves", "described"])
def parser(request):
    """A parser's version and spellings, what it makes of each command, and of an invented flag under "invented"."""
    argvs = [command.argv[len(command.program) :] for command in ASKED.values()]
    told = in_sglang("parse_sglang.py", [*argvs, INVENTED], request.param)
    [pin] = [line for line in request.param.read_text().splitlines() if line.startswith("sglang==")]
    assert f"sglang=={told['version']}" == pin
    return told | dict(zip([*ASKED, "invented"], told["parsed"], strict=True))


def test_the_book_describes_the_release_whose_parser_is_asked():
    assert f"sglang=={flags.SGLANG.version}" in DESCRIBED.read_text().splitlines()


def test_sglang_declares_every_flag_that_the_course_explains(parser):
    assert [fact.name for fact in flags.SGLANG.facts if fact.name not in parser["options"]] == []


def test_a_spelling_that_is_not_declared_is_said_to_be_an_abbreviation(parser):
    for fact in flags.SGLANG.facts:
        for spelling in fact.aliases:
            if spelling not in parser["options"]:
                assert f"`{spelling}`" in fact.changed and "abbreviation" in fact.changed, spelling


@pytest.mark.parametrize("name", ASKED)
def test_every_flag_of_a_command_arrives_with_the_value_that_the_data_gives(parser, name):
    values = parser[name]
    for flag in ASKED[name].flags:
        declared = flags.SGLANG.fact(flag.name).name.removeprefix("--").replace("-", "_")
        arrived = values[declared]
        assert arrived is True if flag.value is None else str(arrived) == flag.value, flag


def test_sglang_refuses_an_invented_flag(parser):
    assert "--invented-flag" in parser["invented"]["error"]


def test_the_lab_speculates_as_the_lesson_does():
    lesson, eagle = ({f.name: f.value for f in c.flags if "spec" in f.name} for c in (ASKED["lesson"], ASKED["eagle"]))
    assert eagle == lesson and len(lesson) == 4


def trees(count: int) -> list[tuple[list[float], int, int]]:
    """Chances of the draft's candidates, steps ahead, and nodes to check, no more than the draft makes."""
    draw, made = random.Random(0), []
    for _ in range(count):
        topk, steps = draw.randint(1, 4), draw.randint(1, 4)
        shares = [draw.random() for _ in range(topk)]
        chances = sorted((draw.random() * share / sum(shares) for share in shares), reverse=True)
        made.append((chances, steps, draw.randint(1, topk + (steps - 1) * topk**2)))
    return made


def test_a_tree_yields_what_the_nodes_promise_that_sglang_itself_would_check():
    cases = trees(60)
    for case, paths in zip(cases, in_sglang("draft_tree.py", cases), strict=True):
        assert speculation.tree_tokens(*case) == pytest.approx(1 + sum(paths)), case
