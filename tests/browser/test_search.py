"""The search page in a real browser: flags and code words in any spelling, first where they are explained."""

import re
from urllib.parse import quote

import pytest

import search_words


def results(visit, query):
    """Addresses that the search page lists for a query, in its order, without their anchors."""
    seen = visit("search.html?q=" + quote(query))
    seen.page.locator(".search-summary", has_text=re.compile("finished|did not match")).wait_for()
    links = seen.page.locator("#search-results ul.search > li > a").evaluate_all("all => all.map((each) => each.href)")
    assert seen.outside == []
    return [link.removeprefix(seen.base).split("#")[0] for link in links], seen.page


@pytest.mark.parametrize(
    "query, first, also",
    [
        ("--max-num-seqs", ["chapters/glossary.html", "chapters/atlas.html"], "chapters/03_vllm.html"),
        ("max_num_seqs", ["chapters/glossary.html", "chapters/atlas.html"], "chapters/03_vllm.html"),
        ("--tp", ["chapters/glossary.html"], "chapters/04_sglang.html"),
        ("--tensor-parallel-size", ["chapters/glossary.html", "chapters/atlas.html"], "chapters/03_vllm.html"),
        ("--max_batch_size", ["chapters/glossary.html", "chapters/atlas.html"], "chapters/05_tensorrt_llm.html"),
        ("gpu_memory_utilization", ["chapters/glossary.html"], "chapters/03_vllm.html"),
        ("TTFT", ["chapters/glossary.html"], "chapters/02_continuous_batching.html"),
        (
            "continuous batching",
            ["chapters/glossary.html", "chapters/02_continuous_batching.html"],
            "labs/01_vllm.html",
        ),
    ],
)
def test_a_search_finds_the_right_pages_first(visit, query, first, also):
    found, _ = results(visit, query)
    assert list(dict.fromkeys(found))[: len(first)] == first
    assert also in found


def test_a_flag_of_one_word_is_not_that_word(visit):
    flagged, plain = results(visit, "--tp")[0], results(visit, "tp")[0]
    assert set(flagged) < set(plain)


def test_a_result_shows_where_the_flag_stands_in_whichever_spelling(visit):
    _, page = results(visit, "max_num_seqs")
    line = (
        page.locator("#search-results li", has=page.locator('a[href^="chapters/atlas.html"]')).locator(".context").first
    )
    line.wait_for()
    assert "--max-num-seqs" in line.inner_text()


def test_the_page_and_the_index_agree_on_what_a_code_word_is(visit):
    page = visit("search.html").page
    for text in ("--max-num-seqs", "max_num_seqs", "--tp", "-O3", "__init__", "größe", "max-num-seqs"):
        for word in page.evaluate("text => splitQuery(text)", text):
            assert word in search_words.words(text)


@pytest.mark.parametrize("size", [(1280, 900), (390, 844)])
def test_the_search_icon_stands_beside_the_query(visit, size):
    page = visit("search.html?q=--tp", size=size).page
    icon = page.locator(".bd-search-container form .fa-magnifying-glass").bounding_box()
    field = page.locator(".bd-search-container form input")
    padding = field.evaluate("(field) => parseFloat(getComputedStyle(field).paddingLeft)")
    assert icon["x"] + icon["width"] <= field.bounding_box()["x"] + padding


@pytest.mark.parametrize("query", ["toString", "__proto__", "<img src=x onerror=alert(1)>", "((("])
def test_any_words_may_be_looked_for(visit, query):
    found, page = results(visit, query)
    assert page.locator("#search-results img").count() == 0 and len(found) < 100
