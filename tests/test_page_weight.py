"""The weight of a page's first view: everything that it loads by itself counts once, as sent."""

import gzip
import random

import pytest

import page_weight

PAGE = """<!doctype html><html lang="en"><head><link rel="stylesheet" href="../_static/a.css?v=1" />
<link rel="preload" as="script" href="../_static/module.js" /><link rel="next" href="other.html" />
<script src="../_static/module.js" type="module"></script><script src="https://far.example/x.js"></script></head>
<body><p>plain words</p><img src="seen.png" alt=""/><img src="later.png" alt="" loading="lazy"/>
<img src="data:," alt="">
<a href="other.html">x</a><svg><path d="M 0 0"/></svg></body></html>"""
FILES = {
    "chapters/page.html": PAGE,
    "chapters/other.html": "<p>other</p>",
    "chapters/seen.png": "seen " * 50,
    "chapters/later.png": "later " * 50,
    "_static/a.css": """@import "b.css";
@font-face { font-family: F; src: url("f/latin.woff2"); unicode-range: U+0-FF; }
@font-face { font-family: F; src: url(f/greek.woff2) format("woff2"); unicode-range: U+0370-03FF, U+1F??; }
@font-face { font-family: Icons; src: url(f/icons.woff) }""",
    "_static/b.css": "p { color: red }" * 100,
    "_static/module.js": """import { one } from "./one.js";
export { two } from './deep/two.js';
const later = () => import("./later.js");""",
    "_static/one.js": "import './module.js';",
    "_static/deep/two.js": "export const two = 2;",
    "_static/later.js": "",
    "_static/f/latin.woff2": "latin",
    "_static/f/greek.woff2": "greek",
    "_static/f/icons.woff": "icons",
}


@pytest.fixture
def site(tmp_path):
    for name, text in FILES.items():
        tmp_path.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        tmp_path.joinpath(name).write_text(text, encoding="utf-8")
    return tmp_path


def test_what_a_page_loads_by_itself_counts_once(site):
    parts = page_weight.of_page(site, site / "chapters/page.html").parts
    assert set(parts) == FILES.keys() - {
        "chapters/other.html", "chapters/later.png", "_static/later.js", "_static/f/greek.woff2",
    }  # fmt: skip


def test_text_counts_as_it_is_sent_and_pictures_as_they_are(site):
    parts = page_weight.of_page(site, site / "chapters/page.html").parts
    assert parts["chapters/seen.png"] == len(FILES["chapters/seen.png"])
    style = FILES["_static/b.css"].encode()
    assert parts["_static/b.css"] < len(style) / 10 and parts["_static/b.css"] == pytest.approx(
        len(gzip.compress(style)), abs=10
    )


@pytest.mark.parametrize("letter", ["α", "&#945;", "ἀ"])
def test_a_font_counts_where_the_page_has_a_letter_of_its_range(site, letter):
    page = site / "chapters/page.html"
    page.write_text(PAGE.replace("plain", letter), encoding="utf-8")
    assert "_static/f/greek.woff2" in page_weight.of_page(site, page).parts


def test_a_file_that_is_not_there_is_a_fault(site):
    (site / "_static/deep/two.js").unlink()
    with pytest.raises(ValueError, match=r"_static/module\.js loads _static/deep/two\.js, which the site lacks"):
        page_weight.of_site(site)


def test_the_heaviest_pages_and_all_over_the_budget_are_told(site):
    noise = random.Random(1).randbytes(page_weight.BUDGET)
    site.joinpath("chapters/seen.png").write_bytes(noise)
    weights = page_weight.of_site(site)
    assert [weight.page for weight in weights] == ["chapters/page.html", "chapters/other.html"]
    first, *rest = page_weight.report(weights, heaviest=0)
    assert "500" in first and len(rest) == 1 and "chapters/page.html" in rest[0] and rest[0].endswith("OVER BUDGET")
    assert len(page_weight.report(weights, heaviest=2)) == 3
