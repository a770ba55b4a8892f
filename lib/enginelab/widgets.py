"""The live figures in a notebook: the same controls as on the site, as ipywidgets, for a kernel that runs. (All labs.)

    from enginelab import widgets
    widgets.explore("slots")

The answer comes from the same function as on the site, and the picture from `plot.picture`. What a control changes is
shown after the reader's guess, if the figure asks for one.
"""

from __future__ import annotations

import base64
import io
import math
from html import escape

import matplotlib.pyplot as plt

from . import plot
from .explorations import find
from .exploring import Choice, Complaint, Control, Exploration, Number, Picture, number_of

MISSING = "Controls in a notebook need ipywidgets: run `pip install enginelab[widgets]` and start the kernel again."
DOTS = 144  # an inch of the picture, twice what a plain screen shows


def explore(name: str, **settings: object) -> Panel | None:
    """The live figure `name` (one of `explorations.NAMES`) with its controls; let it end a cell, and it is shown.

    `settings` are other values to begin with, by control: `explore("slots", slots=8)`. Without ipywidgets a sentence
    says what to install, and the answer is shown without controls.

    Raises `LookupError` for an unknown figure or control, and `exploring.Complaint` for a value that cannot be used.
    """
    exploration = find(name)
    texts = {control.name: control.write(control.default) for control in exploration.controls}
    for control, value in settings.items():
        if control not in texts:
            raise LookupError(f"{name} has no control {control!r}; it has {', '.join(texts)}")
        texts[control] = _text(next(each for each in exploration.controls if each.name == control), value)
    picture = exploration(texts)
    try:
        import ipywidgets as kit
    except ImportError:
        print(MISSING, picture.words, sep="\n")
        plot.picture(picture)
        return None
    return Panel(exploration, texts, picture, kit)


def _text(control: Control, value: object) -> str:
    """What a reader would type to set a control to `value`."""
    if isinstance(value, str):
        return value
    try:
        return control.write(value)
    except (TypeError, ValueError):
        raise Complaint(control.name, f"{control.label}: {value!r} is of the wrong kind.") from None


class Panel:
    """Controls, what is wrong with them, the guess, and the answer; shown by a notebook as `box`.

    controls    the widget of each control, by its name
    complaint   what is wrong with the settings, if anything is
    question, guess, show, skip   what is asked before a new answer shows; None without a `Guess`
    said        how the guess compared
    words, figure, table          the answer
    """

    def __init__(self, exploration: Exploration, texts: dict[str, str], picture: Picture, kit):
        self._exploration, self._pending, self._shown = exploration, None, picture
        self.controls = {control.name: _widget(control, texts[control.name], kit) for control in exploration.controls}
        self.complaint, self.said, self.words, self.figure, self.table = (kit.HTML() for _ in range(5))
        self._asked = self.question = self.guess = self.show = self.skip = None
        if exploration.guess:
            self.question = kit.HTML(f"<b>Predict first.</b> {escape(exploration.guess.question)}")
            self.guess = kit.Text(description=f"Your guess, {exploration.guess.unit}", **_wide(kit))
            self.show = kit.Button(description="Show")
            self.skip = kit.Button(description="Show without guessing", layout=kit.Layout(width="auto"))
            self.show.on_click(lambda _: self._answer(guessed=True))
            self.skip.on_click(lambda _: self._answer(guessed=False))
            self._asked = kit.VBox([self.question, self.guess, kit.HBox([self.show, self.skip])])
        for widget in self.controls.values():
            widget.observe(lambda _: self._changed(), "value")
        title = kit.HTML(f"<strong>{escape(exploration.title)}</strong>")
        answer = [self.said, self.words, self.figure, self.table]
        asked = [self._asked] if self._asked else []
        self.box = kit.VBox([title, *self.controls.values(), self.complaint, *asked, *answer])
        self._show(picture)

    def texts(self) -> dict[str, str]:
        """The settings as a reader would type them, by control."""
        controls = {control.name: control for control in self._exploration.controls}
        values = {name: widget.value for name, widget in self.controls.items()}
        return {name: v if isinstance(v, str) else controls[name].write(v) for name, v in values.items()}

    def _changed(self) -> None:
        """A control has another value: complain, ask for a guess, or show the answer."""
        self.said.value = ""
        if self.guess:
            self.guess.value = ""
        try:
            self._pending = self._exploration(self.texts())
        except Complaint as complaint:
            self._pending = None
            # The last good answer stays below, and the sentence says that it does.
            self.complaint.value = f'<p role="alert">{escape(str(complaint))} Below is still the answer before.</p>'
            self._ask(False)
            return
        self.complaint.value = ""
        if self._asked:
            self._ask(True)
        else:
            self._show(self._pending)

    def _answer(self, guessed: bool) -> None:
        if self._pending is None:
            return
        if guessed:
            guess = number_of(self.guess.value)
            if not math.isfinite(guess):
                self.said.value = f'<p role="alert">Type a number, or press “{self.skip.description}”.</p>'
                return
            answer, unit = self._pending.answer, self._exploration.guess.unit
            found = "there is no such number" if answer is None else f"it is {answer:,.4g} {unit}"
            self.said.value = f'<p aria-live="polite">You said {guess:,.4g}; {escape(found)}.</p>'
        else:
            self.said.value = ""
        self._show(self._pending)

    def _ask(self, hidden: bool) -> None:
        """Ask for a guess, with the answer hidden; or show the answer, with nothing to ask."""
        if self._asked:
            self._asked.layout.display = None if hidden else "none"
        for part in (self.words, self.figure, self.table):
            part.layout.display = "none" if hidden else None

    def _show(self, picture: Picture) -> None:
        self._shown, self._pending = picture, None
        self.words.value, self.figure.value, self.table.value = _words(picture), _figure(picture), _table(picture)
        self._ask(False)

    def _repr_mimebundle_(self, **_) -> dict[str, object]:
        """The widgets, and the answer as it stands for a page that has no kernel to run them."""
        still = _words(self._shown) + _figure(self._shown) + _table(self._shown)
        # Written out, for ipywidgets 7, which some notebooks still bring, gives no bundle of its own.
        view = {"version_major": 2, "version_minor": 0, "model_id": self.box.model_id}
        return {
            "application/vnd.jupyter.widget-view+json": view,
            "text/html": still + "<p>Run this cell to change the settings.</p>",
            "text/plain": self._shown.words,
        }


def _wide(kit) -> dict:
    """A description that is not cut off, and a field that is no wider than a phone."""
    return {"style": {"description_width": "initial"}, "layout": kit.Layout(width="min(100% - 4px, 38em)")}


def _widget(control: Control, text: str, kit):
    """The widget of a control. Its value changes when the reader lets go of it, not on the way."""
    unit = getattr(control, "unit", "")
    look = {"description": f"{control.label}, {unit}" if unit else control.label, **_wide(kit)}
    if isinstance(control, Choice):
        return kit.Dropdown(options=[(words, value) for value, words in control.options], value=text, **look)
    if not isinstance(control, Number):
        return kit.Text(value=text, continuous_update=False, **look)
    # Not a slider: ipywidgets 8.1 gives its handle no name, so that a screen reader cannot say what it sets; and not a
    # field with bounds, which would change what was typed without a word.
    whole = control.step == int(control.step)
    kind, number = (kit.IntText, int) if whole else (kit.FloatText, float)
    return kind(value=number(float(text)), step=number(control.step), **look)


# --- the answer as HTML -----------------------------------------------------------------------------------------------


def _words(picture: Picture) -> str:
    return f'<p aria-live="polite">{escape(picture.words)}</p>'


def _figure(picture: Picture) -> str:
    """The charts as an image in the page; what it says stands beside it in words."""
    if not picture.charts:
        return ""
    figure = plot.picture(picture)[0].figure
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DOTS)
    plt.close(figure)  # or the notebook shows it once more below the cell
    size = f'width="{round(figure.get_figwidth() * 96)}" style="max-width: 100%; height: auto"'
    data = base64.b64encode(file.getvalue()).decode()
    return f'<img alt="{escape(picture.words)}" {size} src="data:image/png;base64,{data}">'


def _table(picture: Picture) -> str:
    if not picture.rows:
        return ""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in picture.header)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in picture.rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
