"""Live figures before any browser: what a page, a book and a text hold, the wheel, and the program of the worker."""

import base64
import hashlib
import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
import zipfile
from itertools import accumulate
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

import precompiled
import wheel
from enginelab import explorations
from live import reader

ROOT = Path(__file__).parents[1]
SITE = ROOT / "site"
PAGE = """Book
====

.. live:: slots

.. live:: slots
   :set: slots=2 lengths=3, 4, 5; arrivals=0,1,2
"""


# --- pages ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """A function that builds a page with one of Sphinx's builders: the finished process and the folder."""

    def with_builder(builder: str, page: str = PAGE):
        source = tmp_path_factory.mktemp("book")
        # The files that a browser loads are another matter: here a word stands for them.
        (source / "conf.py").write_text(
            f"import sys\nsys.path.insert(0, {str(SITE)!r})\nimport live_figures\n"
            "def place(folder, root):\n"
            "    folder.mkdir(parents=True)\n"
            "    (folder / 'megabytes').write_text('14')\n"
            "live_figures.place = place\n"
            "extensions = ['live_figures']\nproject = 'P'\nversion = release = '1'\ncopyright = 'P'\n"
            "html_theme = 'basic'\nepub_show_urls = 'no'\n"
        )
        (source / "index.rst").write_text(page)
        command = [sys.executable, "-m", "sphinx", "-qW", "-b", builder, "-d", str(source / "trees"), str(source)]
        return subprocess.run([*command, str(source / "out")], capture_output=True, text=True), source / "out"

    return with_builder


@pytest.fixture(scope="module")
def page(build):
    run, folder = build("html")
    assert run.returncode == 0, run.stderr
    return BeautifulSoup((folder / "index.html").read_text(encoding="utf-8"), "html.parser")


def test_a_page_holds_picture_and_words_and_no_control_before_a_script_makes_them(page):
    first, second = page.select(".live-figure")
    for figure, settings in ((first, {}), (second, {"slots": "2", "lengths": "3,4,5", "arrivals": "0,1,2"})):
        picture = explorations.find("slots")(settings)
        assert figure.select_one(".live-words").text == picture.words
        assert figure.svg["aria-label"] == picture.words
        assert figure.svg["role"] == "img"
        assert "still" in figure.select_one(".live-note").text
        assert not figure.select("input, select, button, [onclick]")
    assert [figure["id"] for figure in (first, second)] == ["live-slots", "live-slots-2"]
    ids = [element["id"] for element in page.select("[id]")]
    assert len(ids) == len(set(ids))
    for figure in (first, second):
        assert page.find(id=figure["aria-labelledby"]).text == "Static and continuous batching"


def test_the_script_is_told_the_controls_with_this_places_settings(page):
    told = [json.loads(data.string) for data in page.select('.live-figure script[type="application/json"]')]
    assert [each["key"] for each in told] == ["slots", "slots-2"]
    assert {each["name"] for each in told} == {"slots"}
    assert all(each["megabytes"] == 14 for each in told)
    for each, expected in zip(told, (("2, 8, 3, 5, 3, 4", "4", ""), ("3, 4, 5", "2", "0, 1, 2")), strict=True):
        assert tuple(control["value"] for control in each["controls"]) == expected
    slots = told[0]["controls"][1]
    control = explorations.find("slots").controls[1]
    assert (slots["kind"], slots["minimum"], slots["maximum"]) == ("Number", control.minimum, control.maximum)
    assert all(control["label"] for control in told[0]["controls"])
    assert told[0]["guess"]["unit"] == "steps"


def test_scripts_are_loaded_as_files_and_only_where_there_is_a_figure(build, page):
    assert [script["src"] for script in page.select('script[type="module"]')] == ["_live/live_figures.js"]
    _, folder = build("html", "Book\n====\n\nWords.\n")
    assert "_live/" not in (folder / "index.html").read_text(encoding="utf-8")


def test_the_same_page_has_the_same_bytes(build):
    pages = [(build("html")[1] / "index.html").read_bytes() for _ in range(2)]
    stripped = [re.sub(rb"Created using .*", b"", page) for page in pages]
    assert stripped[0] == stripped[1]


def test_an_epub_has_the_picture_and_the_words_and_no_script(build):
    run, folder = build("epub")
    assert run.returncode == 0, run.stderr
    with zipfile.ZipFile(next(folder.glob("*.epub"))) as book:
        text = book.read("index.xhtml").decode()
        assert not [name for name in book.namelist() if "_live" in name]
    root = ET.fromstring(text)
    assert len(root.findall(".//{http://www.w3.org/2000/svg}svg[@role='img']")) == 2
    assert explorations.find("slots")({}).words in " ".join(root.itertext())
    assert not [element for element in root.iter() if str(element.tag).endswith("script")]
    assert "live-note" not in text


def test_a_text_has_the_words(build):
    run, folder = build("text")
    assert run.returncode == 0, run.stderr
    words = " ".join((folder / "index.txt").read_text(encoding="utf-8").split())
    assert words.count("Static and continuous batching") == 2
    assert explorations.find("slots")({}).words in words


@pytest.mark.parametrize(
    "directive, said",
    [
        (".. live:: sluts", "no live figure is called 'sluts'"),
        (".. live:: slots\n   :set: slits=3", "'slits=3' sets none of its controls"),
        (".. live:: slots\n   :set: slots=many", "“many” is not a number"),
        (".. live:: slots\n   :set: slots=1000000", "choose a number between"),
    ],
)
def test_a_figure_that_is_not_there_or_cannot_be_set_so_stops_the_build(build, directive, said):
    run, _ = build("html", f"Book\n====\n\n{directive}\n")
    assert run.returncode != 0
    assert said in run.stderr


# --- the wheel ------------------------------------------------------------------------------------------------------


def test_the_wheel_is_the_same_each_time_and_says_what_it_holds():
    held = wheel.build(ROOT)
    assert held == wheel.build(ROOT)
    with zipfile.ZipFile(io.BytesIO(held)) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        names = archive.namelist()
        record = archive.read("enginelab-0.1.0.dist-info/RECORD").decode().splitlines()
        assert [line.split(",")[0] for line in record] == names
        for line in record[:-1]:
            name, digest, size = line.split(",")
            content = archive.read(name)
            hashed = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert (digest, int(size)) == (f"sha256={hashed}", len(content))
    sources = {path.relative_to(ROOT / "lib").as_posix() for path in (ROOT / "lib").rglob("*.py")}
    assert sources <= set(names)


def test_every_exploration_answers_from_the_wheel_with_the_standard_library_alone(tmp_path):
    (tmp_path / "enginelab.whl").write_bytes(wheel.build(ROOT))
    with zipfile.ZipFile(tmp_path / "enginelab.whl") as archive:
        archive.extractall(tmp_path / "unpacked")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'unpacked')!r})\n"
        "from enginelab import explorations\n"
        "for name in explorations.NAMES: assert explorations.answer(name, '{}').startswith('{\"picture\"'), name"
    )
    run = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_without_node_python_starts_from_its_own_files(tmp_path, monkeypatch):
    monkeypatch.setenv("ENGINELAB_CACHE", str(tmp_path))
    monkeypatch.setattr(precompiled, "_node", lambda: None)
    assert precompiled.standard_library({"python_stdlib.zip": b"as it is", "pyodide.mjs": b""}) == b"as it is"
    assert not list(tmp_path.rglob("*.zip"))


# --- the program of the worker --------------------------------------------------------------------------------------


def run(cell: str, *earlier: str):
    """The pieces in which a cell prints, and how it ended."""
    pieces = []
    told = json.loads(reader.run(json.dumps([earlier, cell]), pieces.append))
    return pieces, told


def test_a_cell_prints_and_ends_with_its_value():
    pieces, told = run("for i in range(2):\n    print(i)\nx * 7", "x = 6")
    assert "".join(pieces) == "0\n1\n"
    assert (told["value"], told["error"], told["before"]) == ("42", "", "x = 6")


def test_each_cell_starts_anew():
    run("left_over = 1")
    assert run("left_over")[1]["error"] == "NameError: name 'left_over' is not defined"


def test_what_is_printed_is_there_before_an_endless_loop_and_comes_in_few_pieces():
    pieces, _ = run("print('a')\nprint('b', flush=True)\nprint('c')")
    assert pieces[0] == "a" and "a\nb\n" in accumulate(pieces)
    assert len(run("for i in range(2_000): print(i)")[0]) < 200


def test_a_figures_own_fault_is_told_as_one(monkeypatch):
    def broken(name, settings):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(explorations, "answer", broken)
    assert json.loads(reader.explore("slots", "{}")) == {
        "error": "This figure has a fault: ZeroDivisionError: division by zero"
    }
