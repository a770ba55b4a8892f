"""Code cells in a real browser: changed, run, put back, cut off; by keyboard, on a phone, and without scripts."""

import io
import json

import pytest

from enginelab import rerun

from .conftest import PHONE

PAGE = "chapters/04_sglang.html"
STARTED = 120_000  # milliseconds for Python to start on a busy machine


@pytest.fixture
def page(visit):
    return visit(PAGE)


def held(page):
    """The texts of the page's cells."""
    return json.loads(page.locator("#page-cells").text_content())["cells"]


def cell(page, number):
    return page.locator(f'.runnable-cell[data-cell="{number}"]')


def numbers(page):
    return [int(place.get_attribute("data-cell")) for place in page.locator(".runnable-cell").all()]


def change(page, number, text):
    place = cell(page, number)
    if place.get_by_role("button", name="Edit and run").is_visible():
        place.get_by_role("button", name="Edit and run").click()
    place.get_by_role("textbox").fill(text)


def run(page, number, within=STARTED):
    """Run a cell; its sentence and what it printed, once it has ended."""
    place = cell(page, number)
    place.get_by_role("textbox").press("Control+Enter")
    place.locator("[aria-disabled]").wait_for(state="detached", timeout=within)
    printed = place.locator(".cell-result pre")
    return place.get_by_role("status").inner_text(), printed.text_content() if printed.is_visible() else ""


def here(cells, text):
    """What this Python gives for the same cell, with the same cells before it."""
    screen = io.StringIO()
    ending = rerun.run(cells, text, screen)
    shown = "\n".join(f"{name} = {value}" for name, value in ending.names)
    return (screen.getvalue() + ending.value + shown).rstrip("\n")


def test_a_changed_cell_gives_what_python_gives_and_counts_for_those_below(page):
    view, cells = page.page, held(page.page)
    first, second = numbers(view)[:2]
    assert not [path for path in page.loaded if "pyodide" in path or "worker" in path], (
        "nobody has asked for Python yet"
    )
    changed = cells[first].replace("accepted = 0.7", "accepted = 0.5")
    assert changed != cells[first]
    change(view, first, changed)
    assert run(view, first) == ("It ran to its end. It sets:", here(cells[:first], changed))
    change(view, second, cells[second])
    below = [*cells[:first], changed, *cells[first + 1 : second]]
    assert run(view, second)[1] == here(below, cells[second]) != here(cells[:second], cells[second])
    # What had to run first is there to see, with the change in it.
    lines = cell(view, second).locator("details")
    lines.locator("summary").click()
    assert "accepted = 0.5" in lines.inner_text()
    assert page.said == [] and page.outside == []


def test_mistakes_are_said_by_line_and_an_endless_cell_is_cut_off_and_the_page_lives_on(page):
    view, number = page.page, numbers(page.page)[0]
    change(view, number, "x = 1\nx +")
    sentence, _ = run(view, number)
    assert sentence.startswith("Line 2: SyntaxError")
    change(view, number, "import matplotlib")
    assert "matplotlib is not to be had in this page" in run(view, number)[0]
    change(view, number, "print('so far')\nwhile True:\n    pass")
    assert run(view, number)[0].startswith("This took more than 5 seconds and was cut off.")
    change(view, number, "def f(): return f()\nf()")
    assert "RecursionError" in run(view, number)[0]
    change(view, number, "print(6 * 7)")
    assert run(view, number) == ("Your version gives:", "42")


def test_the_keyboard_is_enough_and_is_not_trapped(page):
    view, cells, number = page.page, held(page.page), numbers(page.page)[0]
    place = cell(view, number)
    place.get_by_role("button", name="Edit and run").focus()
    view.keyboard.press("Enter")
    text = place.get_by_role("textbox")
    assert text.evaluate("e => e === document.activeElement") and text.input_value() == cells[number]
    view.keyboard.press("Tab")
    assert place.get_by_role("button", name="Run", exact=True).evaluate("e => e === document.activeElement")
    view.keyboard.press("Shift+Tab")
    view.keyboard.type("# mine\n")
    view.keyboard.press("Escape")
    opener = place.get_by_role("button", name="Edit and run")
    assert opener.evaluate("e => e === document.activeElement")
    view.keyboard.press("Enter")
    assert text.input_value() == cells[number], "Escape puts the cell back"


def test_an_open_editor_suits_a_phone_and_a_screen_reader(visit, axe):
    seen = visit(PAGE, PHONE)
    number = numbers(seen.page)[0]
    change(seen.page, number, "print('a' * 500)\n" + "x = " + "1 + " * 200 + "1")
    run(seen.page, number)
    assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    seen.page.evaluate(axe)
    found = seen.page.evaluate("axe.run('.runnable-cell').then((report) => report.violations.map((each) => each.id))")
    assert found == []


def test_without_scripts_there_are_no_dead_controls(visit):
    view = visit(PAGE, scripts=False).page
    assert view.get_by_role("button", name="Edit and run").count() == 0
    assert view.locator(".cell-note").first.is_visible()
    assert view.locator(".cell-note a").first.get_attribute("href") == "../_sources/chapters/04_sglang.ipynb"
