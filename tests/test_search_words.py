"""The words that the site's search knows: flags and code words whole, in every spelling, and their parts."""

import pytest

import search_words


@pytest.mark.parametrize(
    "text, words",
    [
        ("Set --max-num-seqs 4", ["Set", "max", "num", "seqs", "max_num_seqs", "4"]),
        ("`max_num_seqs`=4", ["max", "num", "seqs", "max_num_seqs", "4"]),
        ("--tp 8, TP", ["tp", "__tp", "8", "TP"]),
        ("-O3", ["O3", "__O3"]),
        ("KV-aware routing", ["KV", "aware", "KV_aware", "routing"]),
        ("planner/core.py", ["planner", "core", "py"]),
        ("__init__ – or --", ["init", "or"]),
        ("then--so", ["then", "so", "__so"]),
        ("größe", ["größe"]),
    ],
)
def test_a_text_gives_its_words(text, words):
    assert search_words.words(text) == words


def test_a_code_word_keeps_its_ending_and_others_lose_theirs():
    english = search_words.EnglishWithFlags({})
    assert english.stem("Max_Num_Seqs") == "max_num_seqs"
    assert english.stem("engines") == english.stem("engine")
