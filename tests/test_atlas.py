"""The atlas: complete, consistent with the flags, honest about versions."""

import re

import pytest

from enginelab import atlas, flags

SETTINGS = [(each.name, setting) for each in atlas.TECHNIQUES for setting in each.settings]
VERSION = r"\d+(?:\.\d+)+(?:rc\d+)?"
SINCE = re.compile(rf"|{VERSION}|{VERSION} or earlier|after {VERSION}, by {VERSION}")


def test_every_technique_is_there_once_and_each_of_the_three_engines_has_it():
    names = [each.name for each in atlas.TECHNIQUES]
    assert len(names) == len(set(names)) >= 18
    assert [
        (each.name, engine) for each in atlas.TECHNIQUES for engine in atlas.ENGINES[:3] if not each.of(engine)
    ] == []


def test_the_techniques_that_the_lesson_names_are_all_there():
    lesson = {
        *("continuous batching", "quantization of weights", "speculative decoding", "prefix caching"),
        *("chunked prefill", "tensor parallelism", "expert parallelism", "disaggregation", "KV cache memory"),
    }
    assert lesson <= {each.name for each in atlas.TECHNIQUES}


@pytest.mark.parametrize("technique, setting", SETTINGS, ids=[f"{t}-{s.engine}-{s.name}" for t, s in SETTINGS])
def test_a_setting_says_what_it_does_and_since_when(technique, setting):
    assert setting.engine in atlas.ENGINES and setting.engine in atlas.SOURCES
    assert re.fullmatch(r"[A-Z].*\.", setting.says), setting
    assert SINCE.fullmatch(setting.since) and re.fullmatch(rf"(?:{VERSION})?", setting.until), setting
    if setting.until:
        assert "Became" in setting.says, "a setting that is gone says what took its place"
    if not setting.does:
        dialect = next(each for each in flags.DIALECTS if each.engine == setting.engine)
        assert dialect.fact(setting.name).name == setting.name, "the atlas uses the spelling to prefer"


def test_a_setting_that_is_gone_is_told_and_not_recommended():
    graphs = atlas.technique("CUDA graphs")
    assert "--cuda-graph-max-bs" in {setting.name for setting in graphs.settings}
    assert "--cuda-graph-max-bs" not in {setting.name for setting in graphs.of("SGLang")}
    cells = [row[2] for row in atlas.table().rows]
    assert "`--cuda-graph-max-bs`{.refused .by-sglang}" in cells and "`--cuda-graph-max-bs-decode`" in cells


def test_versions_are_said_in_words():
    said = {
        atlas.Setting("vLLM", "--x", *versions).versions for versions in [("1.2",), ("1.2", "1.5"), ("1 or earlier",)]
    }
    assert said == {"since 1.2", "since 1.2, until 1.5", "1 or earlier"}
    assert atlas.Setting("vLLM", "--x").versions == "not known"


def test_the_tables_of_the_chapters():
    assert len(atlas.table().rows) == len(SETTINGS)
    assert dict(atlas.column("SGLang").rows)["tensor parallelism"] == "`--tp-size`"
    assert [engine for engine, _ in atlas.row("disaggregation").rows] == list(atlas.ENGINES[:3])
    explained = atlas.explained("token budget", "sequence length").rows
    assert explained[0] == ("vLLM `--max-num-batched-tokens`", flags.VLLM.fact("--max-num-batched-tokens").says)
    assert len(explained) == 6
    assert len(atlas.spellings("LoRA", "metrics").rows) == 6
    assert len(atlas.spellings().rows) == 3 * len(atlas.TECHNIQUES)


def test_an_unknown_technique_is_refused_with_those_that_there_are():
    with pytest.raises(ValueError, match=r"no technique 'magic'; it has continuous batching, token budget"):
        atlas.technique("magic")
