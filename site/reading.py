"""The line under a page's title: which part of the course it belongs to, where it stands there, how long it takes.

A page that is used and not read through, such as a lab or the glossary, has no reading time: `_config.yml` names those.

A script adds what only the reader's browser knows: which pages have been read to their end. It tells nobody.
"""

import re
from fnmatch import fnmatch
from pathlib import Path

from docutils import nodes
from sphinx_external_toc.parsing import parse_toc_yaml

WORDS_PER_MINUTE = 200
"""Silent reading of English non-fiction: 238 words a minute on average (Brysbaert, J. Memory and Language 109, 2019,
a review of 190 studies). Text with numbers to follow is slower, so this is rounded down to the next hundred."""

MINUTES_PER_FIGURE = 0.5
"""To look at a figure and read its caption: an estimate of ours."""


def minutes(doctree: nodes.document) -> int:
    """Minutes to read a page: its words, code and folded answers among them, and its figures; at least 1."""
    # A computed figure is raw text to docutils, and thousands of words long.
    texts = (node for node in doctree.findall(nodes.Text) if not isinstance(node.parent, nodes.raw))
    words = sum(len(text.split()) for text in texts)
    figures = sum(1 for _ in doctree.findall(nodes.figure))
    return max(1, round(words / WORDS_PER_MINUTE + figures * MINUTES_PER_FIGURE))


def places(toc: Path) -> dict[str, tuple[str, int, int]]:
    """For each page of `_toc.yml`: its part, its position in that part from 1, and how many pages the part has."""
    site = parse_toc_yaml(toc)

    def pages(name: str) -> list[str]:
        return [name, *(page for tree in site[name].subtrees for item in tree.items for page in pages(str(item)))]

    found = {}
    for part in site.root.subtrees:
        members = [page for item in part.items for page in pages(str(item))]
        found |= {page: (part.caption or "", position, len(members)) for position, page in enumerate(members, start=1)}
    return found


def _read_places(app):
    app.env.course_places = places(Path(app.config.external_toc_path))


def _add_line(app, page, template, context, doctree):
    place = app.env.course_places.get(page)
    if doctree is None or place is None or app.builder.format != "html":
        return
    part, position, count = place
    app.add_js_file("reading.js", loading_method="defer")
    used = any(fnmatch(page, pattern) for pattern in app.config.reading_without_time)
    takes = "" if used else f" <span>{minutes(doctree)} min to read</span>"
    line = f'<p class="reading-line" data-part="{part}"><span>{part}, {position} of {count}</span>{takes}</p>'
    context["body"] = re.sub(r"</h1>", lambda found: f"{found[0]}\n{line}", context["body"], count=1)


def setup(app):
    app.add_config_value("reading_without_time", [], "html", [list])
    app.connect("builder-inited", _read_places)
    app.connect("html-page-context", _add_line)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
