"""Settings, their flags, what drafts would have come to, and what the simulator makes of it."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab import commands, scheduler, trtllm_server, tuning, workload
from enginelab.step_time import StepTime
from enginelab.tuning import Drafts, Setting

STEP = StepTime(0.008, 0.0003, 0.001, 2e-6)
BASE = Setting(16, 2048, prefix_caching=False)
LOAD = workload.shared_prefix(
    workload.build(workload.poisson(8, 40, seed=1), 40, workload.lognormal(30, 0.5, 40, seed=2)), 320, groups=3
)
texts = st.lists(st.integers(0, 3), min_size=1, max_size=60)


def launched(engine, setting):
    """The command with the setting's flags, parsed by the course as the labs do."""
    frame = {
        "vLLM": "vllm serve some/model",
        "SGLang": "sglang serve --model-path some/model",
        "TensorRT-LLM": "trtllm-serve some/model",
    }
    return commands.parse(f"{frame[engine]} {setting.flags(engine)}")


def test_a_setting_becomes_flags_of_each_engine():
    vllm = launched("vLLM", replace(BASE, guesses=3))
    assert vllm.value("--max-num-seqs") == "16" and vllm.value("--max-num-batched-tokens") == "2048"
    assert {flag.name for flag in vllm.flags} >= {"--no-enable-prefix-caching", "--enable-chunked-prefill"}
    assert '"num_speculative_tokens": 3' in vllm.value("--speculative-config")
    sglang = launched("SGLang", BASE)
    assert sglang.value("--chunked-prefill-size") == "2048" and "--disable-radix-cache" in sglang.argv
    assert launched("SGLang", replace(BASE, chunked_prefill=False)).value("--chunked-prefill-size") == "-1"
    assert "--disable-radix-cache" not in launched("SGLang", replace(BASE, prefix_caching=True)).argv
    trtllm = launched("TensorRT-LLM", BASE)
    assert trtllm.value("--extra_llm_api_options") == tuning.CONFIG and "--enable_chunked_prefill" in trtllm.argv
    assert "enable_block_reuse: false" in BASE.yaml()
    for release in ("1.2.1", "1.4.0rc0"):
        found = trtllm_server.check(trtllm, BASE.yaml(), release)
        assert not [each.says for each in found if each.level in ("error", "warning")]


@pytest.mark.parametrize("engine", ["SGLang", "TensorRT-LLM", "another"])
def test_an_engine_without_such_flags_is_an_error(engine):
    with pytest.raises(ValueError, match=engine):
        replace(BASE, guesses=3).flags(engine)


@pytest.mark.parametrize("wrong", [{"max_num_seqs": 0}, {"max_num_batched_tokens": 8}, {"guesses": -1}])
def test_an_impossible_setting_is_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        replace(BASE, **wrong)


def test_settings_tell_what_they_are_and_how_they_differ():
    other = replace(BASE, max_num_seqs=4, guesses=3, chunked_prefill=False)
    assert str(BASE) == "16 seqs, 2048 tokens, no cache"
    assert str(other) == "4 seqs, 2048 tokens, no cache, whole prompts, 3 guesses"
    assert (BASE.short, other.short) == ("16, 2048", "4, 2048, whole, guesses")
    assert replace(BASE, prefix_caching=True).short == "16, 2048, cache"
    assert BASE.changes(BASE) == 0 and BASE.changes(other) == other.changes(BASE) == 3


def played(prompt, answer, guesses):
    """Rounds and guesses of one answer, found the long way: position by position, occurrence by occurrence."""
    rounds = checked = 0
    place = 1
    while place < len(answer):
        text, draft = prompt + answer[:place], []
        for size in range(min(tuning.LONGEST, len(text) - 1), tuning.SHORTEST - 1, -1):
            starts = [i for i in range(len(text) - size) if text[i : i + size] == text[-size:]]
            if starts:
                draft = text[starts[0] + size :][:guesses]
                break
        draft = draft[: len(answer) - place - 1]
        right = 0
        while right < len(draft) and draft[right] == answer[place + right]:
            right += 1
        rounds, checked, place = rounds + 1, checked + len(draft), place + right + 1
    return rounds, checked


@given(prompt=texts, answer=st.lists(st.integers(0, 3), min_size=2, max_size=60), guesses=st.integers(0, 5))
def test_drafts_are_those_of_playing_the_answer_through(prompt, answer, guesses):
    rounds, checked = played(prompt, answer, guesses)
    found = tuning.drafts([prompt], [answer], guesses)
    assert found == pytest.approx(((len(answer) - 1) / rounds, checked / rounds))
    assert 1 <= found.tokens <= guesses + 1


def test_an_answer_that_repeats_itself_is_guessed_and_a_random_one_is_not():
    draw = random.Random(0)
    assert tuning.drafts([[1]], [[1, 2, 3] * 30], 3).tokens > 3
    assert tuning.drafts([[1]], [[draw.randrange(10**6) for _ in range(90)]], 3) == Drafts()
    with pytest.raises(ValueError, match="answers"):
        tuning.drafts([[1]], [[5]], 3)


def test_drafts_that_are_never_right_cost_and_certain_ones_pay():
    plain = STEP.seconds(sequences=4, kv_tokens=400)
    assert tuning.speculating(STEP, Drafts()) == STEP
    in_vain = tuning.speculating(STEP, Drafts(1.0, 3.0)).seconds(sequences=4, kv_tokens=400)
    assert in_vain == pytest.approx(plain + 4 * 3 * STEP.per_prefill_token)
    certain = tuning.speculating(STEP, Drafts(4.0, 3.0)).seconds(sequences=4, kv_tokens=400)
    assert certain == pytest.approx(in_vain / 4)


def test_a_setting_is_simulated_as_the_scheduler_would_run_it():
    config = scheduler.Config(max_num_seqs=16, max_num_batched_tokens=2048, step_time=STEP)
    assert tuning.predict(BASE, LOAD, STEP) == scheduler.simulate(LOAD, config)
    cached = tuning.predict(replace(BASE, prefix_caching=True), LOAD, STEP)
    assert sum(cached.cached_tokens) > 0 and cached.duration < tuning.predict(BASE, LOAD, STEP).duration
    few = tuning.predict(Setting(1, 2048), LOAD, STEP)
    assert all(b >= a for a, b in zip(few.last_token, few.scheduled[1:], strict=False))
    unused = tuning.predict(BASE, LOAD, STEP, Drafts(2.0, 3.0))
    assert unused == tuning.predict(BASE, LOAD, STEP)
    assert tuning.predict(replace(BASE, guesses=3), LOAD, STEP, Drafts(3.0, 1.0)).duration < unused.duration
