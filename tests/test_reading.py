"""Reading time and place of a page."""

from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from docutils import nodes
from docutils.utils import new_document

import reading

ROOT = Path(__file__).resolve().parents[1]


def page(words, figures=0, drawing=0):
    document = new_document("page")
    document += nodes.paragraph("", "word " * words)
    document += nodes.raw("", "M 0 0 " * drawing, format="html")
    for _ in range(figures):
        document += nodes.figure()
    return document


def test_a_page_takes_as_long_as_its_words_and_figures_and_no_longer_for_how_a_figure_is_written():
    assert reading.minutes(page(words=2_000)) == 10
    assert reading.minutes(page(words=2_000, figures=4)) == 12
    assert reading.minutes(page(words=2_000, drawing=100_000)) == 10
    assert reading.minutes(page(words=3)) == 1


def test_a_place_counts_sections_as_pages_of_their_part(tmp_path):
    toc = tmp_path / "_toc.yml"
    toc.write_text(
        "format: jb-book\nroot: index\nparts:\n"
        "- caption: Read\n  chapters:\n  - file: a\n    sections:\n    - file: b\n  - file: c\n"
        "- caption: Run\n  chapters:\n  - file: d\n"
    )
    assert reading.places(toc) == {"a": ("Read", 1, 3), "b": ("Read", 2, 3), "c": ("Read", 3, 3), "d": ("Run", 1, 1)}


@pytest.mark.parametrize("page_name, timed", [("chapters/03_vllm", True), ("chapters/quiz", False), ("labs/01", False)])
def test_a_page_to_use_has_a_place_and_no_reading_time(page_name, timed):
    env = SimpleNamespace(course_places={page_name: ("Part", 2, 3)})
    config = SimpleNamespace(reading_without_time=["chapters/quiz", "labs/*"])
    app = SimpleNamespace(
        env=env, config=config, builder=SimpleNamespace(format="html"), add_js_file=lambda *_, **__: None
    )
    context = {"body": "<h1>Title</h1>"}
    reading._add_line(app, page_name, "page.html", context, page(words=2_000))
    assert "Part, 2 of 3" in context["body"]
    assert ("10 min to read" in context["body"]) == timed


def test_every_page_named_as_without_a_reading_time_is_in_the_book():
    patterns = yaml.safe_load((ROOT / "_config.yml").read_text())["sphinx"]["config"]["reading_without_time"]
    for pattern in patterns:
        assert any(fnmatch(name, pattern) for name in reading.places(ROOT / "_toc.yml")), pattern
