"""What counts as a change between two releases, and how the report says it."""

import pytest

from enginelab.drift import Answer, Change, Option, Said, Watched, abbreviates, compare, declared, report

PROGRAM = "sglang serve"


def option(*spellings, default="None", choices=None, deprecated=False):
    return Option(spellings, default, choices, deprecated)


def said(*options, **answers):
    return Said({(PROGRAM, name): answer for name, answer in answers.items()}, {PROGRAM: options})


def changes(before, after, *flags):
    return [(change.kind, change.what) for change in compare(said(*before), said(*after), flags)]


TP = option("--tensor-parallel-size", "--tp-size")


def test_nothing_changes_between_equal_releases():
    assert compare(said(TP), said(TP), ["--tp-size", "--never-there"]) == ()


def test_a_flag_that_is_gone_breaks_and_what_may_have_replaced_it_is_named():
    before, after = said(option("--graph-max-bs"), TP), said(option("--graph-max-bs-decode"), TP)
    longer = said(option("--graph-max-bs-decode"), option("--graph-max-bs-prefill"), TP)
    (change,) = compare(before, longer, ["--graph-max-bs", "--tp-size"])
    assert change.kind == "gone" and "--graph-max-bs-decode" in change.says and "--graph-max-bs-prefill" in change.says
    (change,) = compare(before, after, ["--graph-max-bs"])
    assert change.kind == "abbreviated" and change.says.endswith("--graph-max-bs-decode")
    (change,) = compare(before, said(TP), ["--graph-max-bs"])
    assert change.kind == "gone" and change.says == "is gone, nothing like it came"


def test_a_spelling_that_is_gone_is_told_the_one_that_stays():
    (change,) = compare(said(TP), said(option("--tp-size")), ["--tensor-parallel-size"])
    assert (change.kind, change.says) == ("gone", "is gone: perhaps --tp-size now")


def test_deprecation_defaults_and_choices_are_told_and_do_not_break():
    before = [option("--a"), option("--b", default="1"), option("--c", choices=("x", "y"))]
    after = [option("--a", deprecated=True), option("--b", default="2"), option("--c", choices=("y", "z"))]
    assert changes(before, after, "--a", "--b", "--c") == [
        ("choices", "--c"),
        ("default", "--b"),
        ("deprecated", "--a"),
    ]
    assert not Watched("x", "1", "2", compare(said(*before), said(*after), ["--a", "--b", "--c"])).broke
    assert changes([option("--d", deprecated=True)], [option("--d", deprecated=True)], "--d") == []


def test_only_what_the_course_uses_counts():
    assert changes([option("--a"), option("--b")], [option("--a")], "--a") == []


def test_a_command_that_is_refused_now_breaks_and_one_that_always_was_does_not():
    no, yes = Answer("unrecognized arguments: --x"), Answer(None)
    before, after = said(one=yes, two=no, three=no), said(one=no, two=no, three=yes)
    assert compare(before, after, []) == (Change("refused", f"{PROGRAM} one", "unrecognized arguments: --x"),)
    warned = compare(said(one=yes), said(one=Answer(None, ("--x is deprecated",))), [])
    assert [change.kind for change in warned] == ["deprecated"]


@pytest.mark.parametrize(
    "spelling, longer",
    [("--tp", "--tp-size"), ("--tens", "--tensor-parallel-size"), ("--t", None), ("-t", None), ("--x", None)],
)
def test_an_abbreviation_is_one_only_where_it_means_one_option(spelling, longer):
    options = [option("--tp-size"), option("--tensor-parallel-size"), option("-t-x")]
    assert abbreviates(options, spelling) == longer
    assert declared(options, spelling) is None


def test_the_report_says_what_broke_first_and_stays_readable():
    odd = Change("default", "--b", "is " + "x" * 900 + "\nwhen not given")
    watched = [
        Watched("A", "1", "2", (Change("gone", "--a", "is gone"), odd)),
        Watched("B", "1", "1"),
        Watched("C", "1", "2"),
        Watched("D", "1", "newest", trouble="no network"),
    ]
    text = report(watched, "1 December 2026")
    assert "Needs work: A, D." in text
    assert "- **gone**: `--a` is gone" in text
    assert "## B: 1 → 1\n\nThe course is at the newest release." in text
    assert "## C: 1 → 2\n\nNo change" in text
    assert "Could not be asked: no network" in text
    assert max(map(len, text.splitlines())) < 400
    assert "Nothing that the course prints broke." in report(watched[1:3], "today")
