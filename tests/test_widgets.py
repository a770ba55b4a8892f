"""The live figures in a notebook, in a real kernel and by setting the widgets' values as a browser would."""

import base64
import io
import re
import subprocess
import sys
from html import unescape

import nbformat
import pytest
from nbclient import NotebookClient
from PIL import Image

from enginelab import explorations, widgets
from enginelab.exploring import Choice, Complaint, Numbers

every_figure = pytest.mark.parametrize("name", explorations.NAMES)


def plain(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", html))


def other(control):
    """A value of the control's widget that is not the default."""
    if isinstance(control, Choice):
        return next(value for value, _ in control.options if value != control.default)
    if isinstance(control, Numbers):
        return control.write([control.maximum, control.minimum])
    return control.maximum if control.default != control.maximum else control.minimum


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A notebook that shows a figure, answers wrongly, and sets what cannot be: its cells' outputs, and its widgets."""
    cells = [
        "from enginelab import widgets\npanel = widgets.explore('slots')\npanel",
        "panel.controls['slots'].value = 2\nprint(panel.words.layout.display)\n"
        "panel.guess.value = '10'\npanel.show.click()\nprint(panel.said.value)\nprint(panel.words.value)",
        "panel.controls['lengths'].value = 'a million'\nprint(panel.complaint.value)",
        "import sys\nsys.modules['ipywidgets'] = None\nwidgets.explore('slots', slots=3)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path_factory.mktemp("notebook"))}},
    )
    client.execute()
    return [cell.outputs for cell in notebook.cells], notebook.metadata.widgets[
        "application/vnd.jupyter.widget-state+json"
    ]["state"]


def test_a_notebook_shows_the_controls_and_a_page_without_kernel_the_answer(ran):
    ((shown,), *_), state = ran
    assert state[shown.data["application/vnd.jupyter.widget-view+json"]["model_id"]]["model_name"] == "VBoxModel"
    picture = explorations.find("slots")()
    assert shown.data["text/plain"] == picture.words
    assert picture.words in plain(shown.data["text/html"])
    assert f'alt="{picture.words}"' in shown.data["text/html"]


def test_every_control_in_the_notebook_says_what_it_is(ran):
    _, state = ran
    inputs = [
        each["state"]["description"]
        for each in state.values()
        if each["model_name"] in ("IntTextModel", "FloatTextModel", "TextModel", "DropdownModel")
    ]
    assert sorted(inputs) == ["Arrivals, steps", "Output lengths, tokens", "Slots", "Your guess, steps"]


def test_the_answer_in_the_notebook_waits_for_a_guess(ran):
    (_, printed, *_), _ = ran
    hidden, said, words = "".join(output.text for output in printed).splitlines()
    answer = explorations.find("slots")({"slots": "2"})
    assert hidden == "none"
    assert plain(said) == f"You said 10; it is {answer.answer} steps."
    assert plain(words) == answer.words


def test_a_complaint_in_the_notebook_is_a_sentence(ran):
    (_, _, (printed,), _), _ = ran
    assert "Output lengths: “a” is not a number." in plain(printed.text)


def test_without_ipywidgets_a_sentence_says_what_to_install_and_the_answer_shows(ran):
    (*_, outputs), _ = ran
    text = "".join(output.get("text", "") for output in outputs)
    assert text.startswith(widgets.MISSING) and "enginelab[widgets]" in text
    assert explorations.find("slots")({"slots": "3"}).words in text
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not any(output.output_type == "error" for output in outputs)


@every_figure
def test_the_widgets_start_where_the_figure_does(name):
    exploration, panel = explorations.find(name), widgets.explore(name)
    assert exploration.read(panel.texts()) == exploration.read({})
    assert plain(panel.words.value) == exploration().words
    assert list(panel.controls) == [control.name for control in exploration.controls]
    for control in exploration.controls:
        assert panel.controls[control.name].description.startswith(control.label)


@every_figure
def test_each_control_leads_to_the_answer_of_the_exploration(name, monkeypatch):
    monkeypatch.setattr(widgets, "_figure", lambda picture: "")  # it is about words; the tests below draw
    exploration, panel = explorations.find(name), widgets.explore(name)
    for control in exploration.controls:
        panel.controls[control.name].value = other(control)
        try:
            expected = exploration(panel.texts())
        except Complaint as complaint:
            assert str(complaint) in plain(panel.complaint.value)
            panel.controls[control.name].value = control.write(control.default)
            continue
        if exploration.guess:
            panel.skip.click()
            assert panel.said.value == ""
        assert plain(panel.words.value) == expected.words, control.name
        assert panel.complaint.value == ""
        for cell in (cell for row in expected.rows for cell in row):
            assert cell in unescape(panel.table.value)


def drawn(panel):
    return Image.open(io.BytesIO(base64.b64decode(panel.figure.value.split("base64,")[1].split('"')[0])))


def test_the_picture_is_drawn_anew():
    panel = widgets.explore("slots")
    before = drawn(panel)
    panel.controls["slots"].value = 12
    assert drawn(panel).tobytes() == before.tobytes()  # until there is a guess
    panel.skip.click()
    assert drawn(panel).size != before.size


def test_an_answer_stays_hidden_until_there_is_a_guess_and_a_second_click_does_nothing():
    panel = widgets.explore("slots")
    parts = panel.words, panel.figure, panel.table
    assert {part.layout.display for part in parts} == {None}
    panel.controls["slots"].value = 1
    assert {part.layout.display for part in parts} == {"none"}
    for no_number in ("", "many", "nan", "1e999"):
        panel.guess.value = no_number
        panel.show.click()
        assert plain(panel.said.value) == "Type a number, or press “Show without guessing”."
        assert {part.layout.display for part in parts} == {"none"}
    panel.guess.value = "25"
    panel.show.click()
    assert {part.layout.display for part in parts} == {None}
    said = plain(panel.said.value)
    assert (
        said == "You said 25; it is 25 steps."
    )  # one after the other the six requests take as many as they have tokens
    panel.show.click()
    assert plain(panel.said.value) == said


def test_what_cannot_be_keeps_the_answer_before_and_is_forgotten_when_mended():
    panel = widgets.explore("slots")
    before = panel.words.value
    panel.controls["lengths"].value = "2, <b>8</b>"
    assert "“&lt;b&gt;8&lt;/b&gt;” is not a number" in panel.complaint.value
    assert panel.words.value == before and panel.words.layout.display is None
    panel.show.click()
    assert panel.words.value == before and panel.said.value == ""
    panel.controls["slots"].value = 1_000_000
    panel.controls["lengths"].value = "2, 8"
    assert "Slots: choose a number between 1 and 12; 1000000 is not." in panel.complaint.value
    panel.controls["slots"].value = 3
    assert panel.complaint.value == ""


def test_a_figure_begins_with_the_settings_given():
    panel = widgets.explore("slots", slots=2, lengths=(5, 7))
    assert plain(panel.words.value) == explorations.find("slots")({"slots": "2", "lengths": "5, 7"}).words
    assert panel.controls["lengths"].value == "5, 7"


@pytest.mark.parametrize(
    "settings, error, says",
    [
        ({"slots": 1_000_000}, Complaint, "Slots: choose a number between 1 and"),
        ({"slots": "many"}, Complaint, "not a number"),
        ({"slots": None}, Complaint, "None is of the wrong kind"),
        ({"lengths": 5}, Complaint, "5 is of the wrong kind"),
        ({"speed": 5}, LookupError, "slots has no control 'speed'; it has lengths, slots, arrivals"),
    ],
)
def test_settings_that_cannot_be_are_named(settings, error, says):
    with pytest.raises(error, match=re.escape(says)):
        widgets.explore("slots", **settings)


def test_an_unknown_figure_names_those_there_are():
    with pytest.raises(LookupError, match="no live figure is called 'slotz'.*slots"):
        widgets.explore("slotz")


def test_importing_the_module_needs_no_ipywidgets():
    code = "import sys\nsys.modules['ipywidgets'] = sys.modules['IPython'] = None\nimport enginelab.widgets"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
