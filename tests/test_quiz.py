"""The pages of the question bank: everything is in the page without scripts, and in a book without a browser."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from enginelab import questions

SITE = Path(__file__).parents[1] / "site"
BANK = questions.read()
XHTML = {"x": "http://www.w3.org/1999/xhtml"}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A book with both pages, as three of Sphinx's builders make it: the folder of each."""
    source = tmp_path_factory.mktemp("pages")
    settings = {
        "extensions": ["quiz"],
        "project": "P",
        "version": "1",
        "release": "1",
        "copyright": "P",
        "html_theme": "basic",
        "exclude_patterns": ["_build"],
        "epub_show_urls": "no",
    }
    lines = ["import sys", f"sys.path.insert(0, {str(SITE)!r})", *(f"{key} = {it!r}" for key, it in settings.items())]
    (source / "conf.py").write_text("\n".join(lines))
    chapters = {question.chapter for question in BANK}
    pages = {"cards": "Cards\n=====\n\n.. cards::\n", "quiz": "Quiz\n====\n\n.. quiz::\n"}
    pages |= {chapter: "Chapter\n=======\n\nWords.\n" for chapter in chapters}
    pages["index"] = "Book\n====\n\n.. toctree::\n\n   " + "\n   ".join(sorted(pages)) + "\n"
    for name, text in pages.items():
        (source / name).parent.mkdir(exist_ok=True)
        (source / f"{name}.rst").write_text(text)

    def build(builder):
        out = source / "_build" / builder
        command = [
            sys.executable,
            "-m",
            "sphinx",
            "-qW",
            "-b",
            builder,
            "-d",
            str(source / "_build" / "trees"),
            str(source),
        ]
        run = subprocess.run([*command, str(out)], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        return out

    return {builder: build(builder) for builder in ("html", "epub", "text")}


def parsed(page: Path) -> BeautifulSoup:
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


def letters(text: str) -> str:
    """A text of the bank, or of a page, without marks of code, quotation marks and spaces: what every format keeps."""
    return re.sub(r"[\s`'’\"“”]", "", text)


@pytest.mark.parametrize("page", ["cards", "quiz"])
def test_every_question_stands_in_the_page_with_its_answer_folded(built, page):
    asked = parsed(built["html"] / f"{page}.html").select("section.questions > div.question")
    assert [element["id"] for element in asked] == [question.id for question in BANK]
    for question, element in zip(BANK, asked, strict=True):
        answer = element.details
        assert not answer.has_attr("open") and answer.summary.string == "Answer"
        assert letters(element.select_one(".ask").get_text()) == letters(question.ask)
        options = question.options if page == "quiz" else question.right
        marks = [item["class"] for item in answer.select("ul > li")]
        assert marks == [["right" if option.right else "wrong"] for option in options]
        assert len(answer.select("p.today")) == len(question.today)
        for text in (*question.today, *(option.why for option in options)):
            assert letters(text) in letters(answer.get_text())
        assert [link["href"] for link in answer.select("a")] == [f"{question.chapter}.html"]


def test_the_quiz_shows_all_options_before_the_answer_and_keeps_numbers_for_the_script(built):
    page = parsed(built["html"] / "quiz.html")
    for question in BANK:
        element = page.find(id=question.id)
        options = [letters(item.get_text()) for item in element.select("ol.options > li")]
        if question.kind == "number":
            assert options == [] and question.unit in element.select_one(".hint").get_text()
            assert [float(number) for number in element["data-numbers"].split()] == [o.number for o in question.options]
            assert question.right[0] == question.options[0] and float(element["data-within"]) == question.within
        else:
            assert options == [letters(option.text) for option in question.options]


def test_scripts_are_loaded_where_they_are_needed_and_lie_in_files(built):
    html = built["html"]
    for page, other in (("cards", "quiz"), ("quiz", "cards")):
        text = (html / f"{page}.html").read_text(encoding="utf-8")
        assert f'<script type="module" src="_static/quiz/{page}.js' in text and f"quiz/{other}.js" not in text
        assert "quiz/questions.css" in text and f'data-app="{page}" hidden' in text
    assert "_static/quiz/" not in (html / "chapters/03_vllm.html").read_text(encoding="utf-8")
    assert {path.name for path in (html / "_static/quiz").iterdir()} == {
        path.name for path in (SITE / "quiz").iterdir()
    }


def test_scripts_ask_nobody_outside_and_write_no_markup():
    for path in (SITE / "quiz").glob("*.js"):
        text = path.read_text(encoding="utf-8")
        assert not any(word in text for word in ("http:", "https:", "fetch(", "innerHTML", "eval(", "XMLHttp")), (
            path.name
        )


def test_the_epub_shows_the_answers_and_has_no_script(built):
    (book,) = built["epub"].glob("*.epub")
    with zipfile.ZipFile(book) as held:
        assert not [name for name in held.namelist() if name.endswith(".js")]
        page = ET.fromstring(held.read("quiz.xhtml").decode().replace("&nbsp;", " "))
    folded = page.findall(".//x:details", XHTML)
    assert len(folded) == len(BANK) and all(details.get("open") for details in folded)
    assert not page.findall(".//x:script", XHTML)


def test_a_page_of_plain_text_has_every_question_and_reason(built):
    text = letters((built["text"] / "quiz.txt").read_text(encoding="utf-8"))
    for question in BANK:
        for part in (question.ask, *(option.why for option in question.options)):
            assert letters(part) in text
