"""The question bank as pages: `{cards}` for flash cards, `{quiz}` for a quiz.

Both write all questions as headings and paragraphs, each with its answer folded, so the page can be read, printed and
searched as it is. A script, loaded on such pages only, reads that markup and puts the cards or the quiz above it.
"""

import shutil
from itertools import groupby
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

from enginelab import questions
from enginelab.questions import Question

FILES = Path(__file__).with_name("quiz")
LETTERS = "ABCDEFGHIJ"


class Place(nodes.General, nodes.Element):
    """Where the script puts the cards or the quiz, `name`. Empty and hidden without it."""


class Asked(nodes.General, nodes.Element):
    """One question with all that belongs to it."""


class Folded(nodes.General, nodes.Element):
    """The answer, which a reader opens."""


def inline(text: str) -> list[nodes.Node]:
    """A text of the bank as nodes: what stands between backquotes is code."""
    return [
        nodes.literal(part, part) if index % 2 else nodes.Text(part)
        for index, part in enumerate(text.split("`"))
        if part
    ]


def _paragraph(*parts: str | nodes.Node, classes: str = "") -> nodes.paragraph:
    children = [child for part in parts for child in (inline(part) if isinstance(part, str) else [part])]
    return nodes.paragraph("", "", *children, classes=classes.split())


def _reason(label: str, why: str, right: bool) -> nodes.list_item:
    return nodes.list_item("", _paragraph(nodes.strong("", "", *inline(label)), f" {why}"), classes=[_mark(right)])


def _mark(right: bool) -> str:
    return "right" if right else "wrong"


def reasons(question: Question) -> nodes.bullet_list:
    """Every option, marked in words as right or wrong, with its reason."""
    items = []
    for letter, option in zip(LETTERS, question.options, strict=False):
        name = f"{option.text} {question.unit}" if question.kind == "number" else letter
        items.append(_reason(f"{name}: {_mark(option.right)}.", option.why, option.right))
    return nodes.bullet_list("", *items, classes=["reasons"])


def answer(question: Question) -> nodes.bullet_list:
    """The right options alone, each with its reason: the back of a card."""
    items = []
    for option in question.right:
        text = f"{option.text} {question.unit}" if question.kind == "number" else option.text
        items.append(_reason(text + ("" if text.endswith((".", "?")) else "."), option.why, True))
    return nodes.bullet_list("", *items, classes=["reasons"])


class Questions(SphinxDirective):
    """All questions of the bank, a section a topic."""

    def run(self):
        self.env.note_dependency(str(questions.BANK))
        place = Place(name=self.name)
        return [place, *(self._topic(*group) for group in groupby(questions.read(), lambda q: q.topic))]

    def _topic(self, topic, asked):
        made = nodes.section("", nodes.title(topic, topic), classes=["questions"], ids=[nodes.make_id(topic)])
        made["names"] = [nodes.fully_normalize_name(topic)]
        made.extend(self._asked(question) for question in asked)
        return made

    def _asked(self, question: Question) -> Asked:
        made = Asked(ids=[question.id], kind=question.kind, topic=question.topic, within=question.within)
        made["numbers"] = [str(option.number) for option in question.options if question.kind == "number"]
        made += _paragraph(question.ask, classes="ask")
        folded = Folded()
        if self.name == "cards":
            folded += answer(question)
        else:
            if question.kind == "number":
                made += _paragraph(f"A number, in {question.unit}.", classes="hint")
            else:
                if question.kind == "several":
                    made += _paragraph("Several are right.", classes="hint")
                options = (nodes.list_item("", _paragraph(option.text)) for option in question.options)
                made += nodes.enumerated_list("", *options, enumtype="upperalpha", classes=["options"])
            folded += reasons(question)
        folded += [_paragraph(change, classes="today") for change in question.today]
        link = addnodes.pending_xref(
            "", nodes.inline(), reftype="doc", refdomain="std", reftarget=f"/{question.chapter}", refexplicit=False
        )
        link["refdoc"], link["refwarn"] = self.env.docname, True
        folded += _paragraph("More: ", link, classes="more")
        made += folded
        return made


# --- HTML, and every other format, where the children speak for themselves ------------------------------------------


def _visit_place(self, node):
    # A book reader runs no script.
    if self.builder.name != "epub":
        self.body.append(f'<div class="question-app" data-app="{node["name"]}" hidden></div>\n')
    raise nodes.SkipNode


def _visit_asked(self, node):
    data = {
        "kind": node["kind"],
        "topic": node["topic"],
        "within": node["within"],
        "numbers": " ".join(node["numbers"]),
    }
    named = {f"data-{key}": str(value) for key, value in data.items()}
    self.body.append(self.starttag(node, "div", CLASS="question", **named))


def _depart_asked(self, node):
    self.body.append("</div>\n")


def _visit_folded(self, node):
    # A book reader may have no way to open it.
    opened = ' open="open"' if self.builder.name == "epub" else ""
    self.body.append(f'<details class="answer"{opened}><summary>Answer</summary>\n')


def _depart_folded(self, node):
    self.body.append("</details>\n")


def _skip(self, node):
    raise nodes.SkipNode


def _pass(self, node):
    pass


def _copy_files(app):
    if app.builder.name == "html":
        shutil.copytree(FILES, Path(app.outdir, "_static", "quiz"), dirs_exist_ok=True)


def _load_script(app, page, template, context, doctree):
    if app.builder.name == "html" and doctree is not None:
        for place in doctree.findall(Place):
            app.add_js_file(f"quiz/{place['name']}.js", type="module")
            app.add_css_file("quiz/questions.css")


def setup(app):
    plain = {"latex": (_pass, _pass), "text": (_pass, _pass), "man": (_pass, _pass), "texinfo": (_pass, _pass)}
    app.add_node(Place, html=(_visit_place, None), **{name: (_skip, None) for name in plain})
    app.add_node(Asked, html=(_visit_asked, _depart_asked), **plain)
    app.add_node(Folded, html=(_visit_folded, _depart_folded), **plain)
    app.add_directive("cards", Questions)
    app.add_directive("quiz", Questions)
    app.connect("builder-inited", _copy_files)
    app.connect("html-page-context", _load_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
