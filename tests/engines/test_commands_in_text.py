"""Whatever command or flag the built book prints, the engine that it belongs to takes; so it does the whole atlas.

Needs the book (`make book`) and all environments (`make engines`): a pass here has to mean that the engines were asked.
"""

import re
from pathlib import Path

import checked_book
import pytest

from enginelab import atlas, flags, printed, trtllm
from enginelab.drift import declared

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pages():
    """Page -> what it prints."""
    try:
        return printed.book(ROOT)
    except printed.NoBook as why:
        pytest.fail(str(why))


@pytest.fixture(scope="module")
def checked(pages):
    """What the engines say to the whole book, and to what a page called "invented" gets wrong."""
    invented = [
        printed.Printed(("--invented-flag",)),
        printed.Printed(("vllm", "serve", "MODEL", "--invented-flag", "3")),
        printed.Printed(("--help",), "refused"),
        printed.Printed(("--invented-flag",), "refused", "nobody"),
    ]
    try:
        return checked_book.check(pages | {"invented": invented})
    except RuntimeError as why:
        pytest.fail(str(why))


def test_every_command_and_flag_in_the_book_is_taken_by_an_engine(checked):
    invented = [text for text in checked.refused if "--invented-flag" in text]
    assert len(invented) == 2, "the check lets pass what no engine knows"
    assert [text for text in checked.refused if text not in invented] == []


def test_no_engine_takes_what_the_book_marks_as_refused(checked):
    nobody = "--invented-flag (invented): there is no engine by-nobody"
    assert checked.alive == ["--help (invented)", nobody]


def test_the_book_was_really_read(pages, checked):
    commands = {each.program for page in pages.values() for each in page if each.is_command}
    assert {"vllm serve", "sglang serve", "python3 -m sglang.launch_server", "trtllm-serve"} <= commands
    assert checked.asked > 100


def test_a_page_says_so_where_a_command_uses_what_is_deprecated_or_abbreviated(checked, capsys):
    with capsys.disabled():
        print(
            "".join(f"\n  {flag} ({kind}): {says}; {', '.join(pages)}" for flag, kind, pages, says in checked.reported)
        )
    assert ("--tp", "abbreviation") in {(flag, kind) for flag, kind, _, _ in checked.reported}
    silent = []
    for flag, kind, where, says in checked.reported:
        for page in where if kind != "older" else ():
            html = (ROOT / "_build" / "html" / f"{page}.html").read_text(encoding="utf-8")
            if not re.search(kind, re.sub(r"<[^>]+>", "", html), re.IGNORECASE):
                silent.append(f"{page} uses {flag} and nowhere says {kind!r}: {says}")
    assert silent == []


@pytest.fixture(scope="module")
def engines(checked):
    """Engine -> the options of its newest release; Dynamo's include those of its worker with vLLM."""
    declares = dict(checked.declares)
    return declares | {"Dynamo": declares["Dynamo"] + declares["Dynamo with vLLM"]}


@pytest.mark.parametrize("engine", atlas.ENGINES)
def test_the_atlas_names_flags_that_the_engine_declares_and_none_that_it_has_dropped(engine, engines):
    options = engines[engine]
    settings = [setting for each in atlas.TECHNIQUES for setting in each.settings if setting.engine == engine]
    named = [setting for setting in settings if setting.name.startswith("--")]
    assert named
    for setting in named:
        assert (declared(options, setting.name) is None) == bool(setting.until), setting.name


def test_every_flag_that_the_course_explains_is_declared(engines):
    for dialect in flags.DIALECTS:
        for fact in dialect.facts:
            assert declared(engines[dialect.engine], fact.name), f"{dialect.engine} {fact.name}"


def test_the_keys_of_the_atlas_are_in_the_reference_of_tensorrt_llm():
    keys = [setting.name for each in atlas.TECHNIQUES for setting in each.of("TensorRT-LLM") if setting.name[0] != "-"]
    assert keys
    for key in [*keys, "invented_key"]:
        config = None
        for part in reversed(key.split(".")):
            config = {part: config}
        found = trtllm.check(["trtllm-serve", "MODEL", "--config", "config.yaml"], config)
        missing = [finding for finding in found if finding.about == key and "no key" in finding.says]
        assert bool(missing) == (key == "invented_key"), found
