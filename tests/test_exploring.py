"""What a reader sets is read within bounds or complained about in a sentence; what comes back is strict JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enginelab import explorations
from enginelab.exploring import Choice, Complaint, Exploration, Number, Numbers, Picture

BATCH = Number("batch", "Batch", 32, 1, 1024, unit="sequences")
SHARE = Number("share", "Share", 0.5, 0, 1, step=0.05)
LENGTHS = Numbers("lengths", "Output lengths", (2, 8), 1, 60, at_most=3)
ARRIVALS = Numbers("arrivals", "Arrivals", (), 0, 60, at_most=3, optional=True)
POLICY = Choice("policy", "Policy", "rr", (("rr", "round robin"), ("kv", "KV-aware")))


@given(value=st.integers(1, 1024))
def test_a_whole_number_is_read_as_written(value):
    assert BATCH.read(BATCH.write(value)) == value
    assert BATCH.read(f"  {value}.0 ") == value and isinstance(BATCH.read(f"{value}.0"), int)


@given(value=st.integers(0, 20).map(lambda part: part / 20))
def test_a_share_is_read_as_written(value):
    assert SHARE.read(SHARE.write(value)) == value


@given(values=st.lists(st.integers(1, 60), min_size=1, max_size=3), between=st.sampled_from([",", ", ", " ", "; "]))
def test_a_list_is_read_as_written_whatever_stands_between(values, between):
    assert LENGTHS.read(LENGTHS.write(values)) == tuple(values)
    assert LENGTHS.read(between.join(map(str, values))) == tuple(values)


def test_a_choice_is_one_of_its_values():
    assert [POLICY.read(value) for value in ("rr", "kv")] == ["rr", "kv"]


@pytest.mark.parametrize(
    "control, text, sentence",
    [
        (BATCH, "many", "Batch: “many” is not a number."),
        (BATCH, "", "Batch: “” is not a number."),
        (BATCH, "1.5", "Batch: “1.5” is not a whole number."),
        (BATCH, "nan", "Batch: “nan” is not a number."),
        (BATCH, "-inf", "Batch: “-inf” is not a number."),
        (BATCH, "0", "Batch: choose a number between 1 and 1,024 sequences; 0 is not."),
        (BATCH, "1000000", "Batch: choose a number between 1 and 1,024 sequences; 1000000 is not."),
        (BATCH, "9" * 400, "Batch: choose a number between 1 and 1,024 sequences; 99999999999999999999… is not."),
        (BATCH, "1e309", "Batch: choose a number between 1 and 1,024 sequences; 1e309 is not."),
        (BATCH, "1_000", "Batch: “1_000” is not a number."),
        (BATCH, "٣", "Batch: “٣” is not a number."),
        (BATCH, "0x10", "Batch: “0x10” is not a number."),
        (BATCH, "1,00", "Batch: “1,00” is not a number."),
        (SHARE, "nan", "Share: “nan” is not a number."),
        (SHARE, "1.01", "Share: choose a number between 0 and 1; 1.01 is not."),
        (LENGTHS, " ", "Output lengths: type a number, or several: 2, 8."),
        (LENGTHS, "9," * 10**6, "Output lengths: at most 3 numbers, and here are 1,000,000."),
        (LENGTHS, "1 2 3 4", "Output lengths: at most 3 numbers, and here are 4."),
        (LENGTHS, "1, two", "Output lengths: “two” is not a number."),
        (LENGTHS, "1, 61", "Output lengths: choose a number between 1 and 60; 61 is not."),
        (POLICY, "lifo", "Policy: choose one of rr, kv."),
    ],
)
def test_what_cannot_be_used_gets_a_sentence(control, text, sentence):
    with pytest.raises(Complaint) as caught:
        control.read(text)
    assert (caught.value.control, str(caught.value)) == (control.name, sentence)


def test_a_number_may_have_its_thousands_marked_and_no_zero_is_negative():
    assert BATCH.read("1,024") == 1024 and BATCH.read("+1e3") == 1000
    assert LENGTHS.read("1,24") == (1, 24)
    assert f"{SHARE.read('-0')}" == "0.0" and f"{ARRIVALS.read('-0')}" == "(0,)"


def test_an_optional_list_may_be_empty():
    assert ARRIVALS.read("") == ()


@given(text=st.text())
def test_no_text_gets_past_the_bounds(text):
    for control, good in (
        (BATCH, lambda value: isinstance(value, int) and 1 <= value <= 1024),
        (SHARE, lambda value: 0 <= value <= 1),
        (LENGTHS, lambda value: 1 <= len(value) <= 3 and all(1 <= each <= 60 for each in value)),
        (POLICY, lambda value: value in ("rr", "kv")),
    ):
        try:
            assert good(control.read(text))
        except Complaint as complaint:
            assert complaint.control == control.name and str(complaint).startswith(f"{control.label}: ")


def test_what_is_not_set_has_its_default():
    figure = Exploration("Sum", (BATCH, LENGTHS), lambda batch, lengths: Picture(f"{batch + sum(lengths)}", ()))
    assert figure().words == "42"
    assert figure({"batch": "1", "somebody": "else's"}).words == "11"


@pytest.mark.parametrize("controls", [(BATCH, BATCH), (Number("a b", "A", 1, 0, 2),)])
def test_controls_have_names_of_their_own(controls):
    with pytest.raises(ValueError, match="identifiers and differ"):
        Exploration("Twice", controls, Picture)


@pytest.mark.parametrize("name", explorations.NAMES)
def test_every_live_figure_answers_in_strict_json(name):
    answer = json.loads(
        explorations.answer(name, "{}"), parse_constant=lambda value: pytest.fail(f"{name}: {value} is not JSON")
    )
    assert answer["picture"]["words"].endswith((".", ")"))
    assert {chart["kind"] for chart in answer["picture"]["charts"]} <= {"Spans", "Lines", "Bars"}


def test_a_complaint_crosses_with_its_control():
    assert json.loads(explorations.answer("slots", '{"slots": "a million"}')) == {
        "complaint": {"control": "slots", "sentence": "Slots: “a million” is not a number."}
    }


def test_an_unknown_figure_is_named_with_those_there_are():
    with pytest.raises(LookupError, match="'slits'; there are slots, "):
        explorations.find("slits")


@pytest.mark.parametrize("name", explorations.NAMES)
def test_defaults_lie_within_the_bounds_and_have_a_name(name):
    for control in explorations.find(name).controls:
        assert control.read(control.write(control.default)) == control.default
        assert control.label
