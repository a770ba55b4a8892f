"""The question bank: whole, exact, and about everything that the lesson says."""

import os
import re
import tomllib
from pathlib import Path

import pytest

from enginelab import commands, engines, flags, questions

FACTS = tomllib.loads(Path(__file__).with_name("lesson_facts.toml").read_text(encoding="utf-8"))
# Beside the folder of the public traces, like them not in the repository.
LESSON = Path(os.environ.get("ENGINELAB_DATA", Path(__file__).parents[2] / "shared" / "data")).parent / "lesson.txt"
BANK = {question.id: question for question in questions.read()}
SOURCE = questions.BANK.read_text(encoding="utf-8")
TYPED = tomllib.loads(SOURCE)["questions"]

every_question = pytest.mark.parametrize("question", BANK.values(), ids=BANK)


# --- the lesson ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sentences():
    """The lesson's sentences by line and place in the line, "3.1"; a line of a listing counts as a sentence."""
    if not LESSON.is_file():
        pytest.skip("the lesson is not here, so the facts were not compared with it")
    lines = enumerate(LESSON.read_text(encoding="utf-8").splitlines(), start=1)
    return {
        f"{number}.{place}": sentence
        for number, line in lines
        if line.strip()
        for place, sentence in enumerate(re.split(r'(?<=\.)\s+(?=[A-Z"-])', line.strip()), start=1)
    }


def test_every_sentence_of_the_lesson_is_a_fact_or_says_why_not(sentences):
    stated = {place for fact in FACTS["facts"].values() for place in fact["where"]}
    assert stated & FACTS["without"].keys() == set()
    assert sorted(sentences.keys() - stated - FACTS["without"].keys()) == []
    assert sorted((stated | FACTS["without"].keys()) - sentences.keys()) == []


def test_every_fact_stands_where_it_says(sentences):
    assert [
        name
        for name, fact in FACTS["facts"].items()
        if not any(fact["phrase"] in sentences.get(place, "") for place in fact["where"])
    ] == []


def test_every_fact_is_asked_and_every_question_asks_for_facts():
    asked = {fact for question in BANK.values() for fact in question.facts}
    assert sorted(FACTS["facts"].keys() - asked) == []
    assert sorted(asked - FACTS["facts"].keys()) == []
    assert all(question.facts for question in BANK.values())


def test_what_has_changed_since_the_lesson_is_said():
    said = " ".join(change.lower() for question in BANK.values() for change in question.today)
    for engine in engines.ENGINES:
        for claim in engine.claims:
            assert claim.today.lower().rstrip(".") in said, (engine.name, claim.topic)
    for command in (commands.LESSON_VLLM, commands.LESSON_SGLANG, commands.LESSON_TENSORRT_LLM):
        for flag in command.flags:
            assert flag.changed.lower().rstrip(".") in said, flag.name
    assert all(engines.READ in change for question in BANK.values() for change in question.today)


# --- the bank -----------------------------------------------------------------------------------------------------

# Reckoned by hand, as the lesson does.
NUMBERS = {
    "batching-first-static-batch": max(2, 8, 3, 5),
    "batching-static-steps": max(2, 8, 3, 5) + max(3, 4),
    "batching-slot-timeline": 2,
    "batching-continuous-steps": 8,
    "batching-useful": 2 + 8 + 3 + 5 + 3 + 4,
    "batching-static-utilization": 52,
    "batching-continuous-utilization": 78,
    "batching-speedup": 12 / 8,
    "trt-fraction": 0.8 * 50,
    "dynamo-routing-computed": 200,
    "dynamo-routing-saved": 83,
    "dynamo-prefill-demand": 30 * 2_000,
    "dynamo-decode-workers": 30 * 500 / 5_000,
    "dynamo-doubled": 6 + 6,
}
PICKS = {
    "choosing-top-performance": "TensorRT-LLM",
    "choosing-a100-moe": "SGLang",
    "choosing-small-gpu": "vLLM",
    "choosing-video": "SGLang",
    "choosing-not-worth-it": "vLLM",
    "dynamo-overhead": "the engine alone, without Dynamo",
    "field-model-support": "most, most, some",
}


def test_the_bank_is_large_and_of_every_kind():
    assert len(BANK) >= 60
    assert {question.kind for question in BANK.values()} == set(questions.KINDS)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", id) for id in BANK)


def test_numbers_are_those_that_one_reckons_by_hand():
    keys = {id: question.right[0].number for id, question in BANK.items() if question.kind == "number"}
    assert keys == pytest.approx(NUMBERS)


@pytest.mark.parametrize("id", PICKS)
def test_computed_verdicts(id):
    assert [option.text for option in BANK[id].right] == [PICKS[id]]


def test_results_are_computed_not_typed():
    # What tests/test_book.py asks of a page's prose, and no option that begins with a number.
    results = (
        r"\b(?:52|78|83) ?(?:%|per ?cent)|\b1\.5[ -]times|\b(?:60,000|15,000)\b|\b(?:25|48|32) (?:useful )?slot-steps"
    )
    assert re.findall(results, SOURCE) == []
    options = [text for entry in TYPED for text, _ in entry["right"] + entry["wrong"]]
    assert [text for text in options if text[0].isdigit()] == []
    used = set(questions.PLACE.findall(SOURCE))
    unused = questions.values().keys() - {name for name, _ in used}
    assert {name for name in unused if not re.match("vllm_|sglang_|tensorrt_llm_", name)} == set()


@every_question
def test_a_question_reads_well(question):
    texts = [question.ask, *question.today, *(t for option in question.options for t in (option.text, option.why))]
    for text in texts:
        assert text.count("`") % 2 == 0 and not re.search(r"[{}]", text), text
    assert question.ask.endswith("?")
    assert all(option.why.endswith((".", "”")) for option in question.options)
    assert (Path(__file__).parents[1] / f"{question.chapter}.md").is_file()
    assert bool(question.unit) == (question.kind == "number")


@every_question
def test_a_flag_that_a_question_names_exists(question):
    texts = [question.ask, *(option.text for option in question.options)]
    known = {name for dialect in flags.DIALECTS for fact in dialect.facts for name in (fact.name, *fact.aliases)}
    assert set(re.findall(r"`(--[\w-]+)", " ".join(texts))) <= known


def test_neither_length_nor_place_betrays_the_right_option():
    one = [question for question in BANK.values() if question.kind == "one"]
    longest = sum(max(q.options, key=lambda option: len(option.text)).right for q in one)
    first = sum(q.options[0].right for q in one)
    by_chance = sum(1 / len(q.options) for q in one)
    assert longest <= 1.4 * by_chance and first <= 1.4 * by_chance


def test_ticking_all_but_one_is_no_strategy():
    several = [question for question in BANK.values() if question.kind == "several"]
    assert [question.id for question in several if sum(not option.right for option in question.options) < 2] == []


# --- reading ------------------------------------------------------------------------------------------------------

ENTRY = {
    "id": '"a-b"',
    "topic": '"T"',
    "facts": '["f"]',
    "kind": '"one"',
    "ask": '"Why?"',
    "right": '[["Yes", "So."]]',
    "wrong": '[["No", "Not so."]]',
}


@pytest.fixture
def bank(tmp_path):
    """A function that writes a bank of entries, each with its changes to a good one, and reads it."""

    def read(*changes):
        entries = [ENTRY | change for change in changes]
        blocks = ("\n".join(f"{key} = {value}" for key, value in entry.items() if value) for entry in entries)
        path = tmp_path / "bank.toml"
        path.write_text('topics = {T = "chapters/x"}\n' + "".join(f"[[questions]]\n{block}\n" for block in blocks))
        return questions.read(path)

    return read


def test_a_good_entry(bank):
    (question,) = bank({"ask": '"{static_steps} or {static_used:.0f}?"', "today": '[["SGLang", "--tp"]]'})
    assert question.ask == "12 or 52?" and question.chapter == "chapters/x"
    (change,) = question.today
    assert "`--tp`, now `--tp-size`" in change and flags.SGLANG.version in change


def test_a_number_may_be_off_by_what_is_allowed(bank):
    number = {"kind": '"number"', "unit": '"%"', "within": "0.5"}
    (question,) = bank(
        number | {"right": '[["{static_used:.0f}", "So."]]', "wrong": '[["{continuous_used:.0f}", "Not so."]]'}
    )
    assert question.accepts(52) and question.accepts(52.08) and not question.accepts(53)
    with pytest.raises(ValueError, match="a slip would count as right"):
        bank(number | {"right": '[["{static_used:.0f}", "So."]]', "wrong": '[["{static_used:.1f}", "Not so."]]'})


FAULTS = {
    "typed number": ({"kind": '"number"', "right": '[["12", "So."]]'}, "the number '12' is typed"),
    "unknown value": ({"ask": '"{nothing}?"'}, "'nothing' is missing or unknown"),
    "attribute of a value": ({"ask": '"{static_steps.real}?"'}, None),
    "unknown kind": ({"kind": '"some"'}, "kind must be one of one, several, number, not 'some'"),
    "two right of one": ({"right": '[["Yes", "So."], ["Aye", "So."]]'}, "2 right of 3 options"),
    "nothing wrong": ({"wrong": "[]"}, "1 right of 1 options"),
    "option twice": ({"wrong": '[["Yes", "Not so."]]'}, "two options read alike"),
    "no reason": ({"wrong": '[["No", ""]]'}, "every option needs its reason"),
    "no facts": ({"facts": ""}, "'facts' is missing or unknown"),
    "unknown topic": ({"topic": '"U"'}, "'U' is missing or unknown"),
    "nothing changed": ({"today": '[["vLLM", "Hardware"]]'}, "nothing has changed about Hardware of vLLM"),
    "unknown field": ({"colour": '"red"'}, "colour"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_entry_is_named(name, bank):
    change, words = FAULTS[name]
    if words is None:
        # Not a place for a value: it stays as it is, and the test of every text finds it.
        assert bank(change)[0].ask == "{static_steps.real}?"
        return
    with pytest.raises(ValueError, match=f"^question 'a-b'.*{re.escape(words)}"):
        bank(change)


def test_an_id_stands_once(bank):
    with pytest.raises(ValueError, match="twice in bank.toml: a-b"):
        bank({}, {})
