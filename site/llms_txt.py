"""llms.txt: the course in one short text, for programs that read it to someone. (The form is that of llmstxt.org.)

Every page with its link, relative to the site's root, and what it answers.
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx_external_toc.parsing import parse_toc_yaml

LONGEST = 200
"""Characters of a summary."""


def summary(doctree: nodes.document) -> str:
    """What a page is about, in a line: its first paragraph, which in a chapter is its question."""
    for paragraph in doctree.findall(nodes.paragraph):
        if text := " ".join(paragraph.astext().split()):
            return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0] + " …"
    return ""


def listing(toc: Path, titles: dict[str, str], summaries: dict[str, str]) -> str:
    """The text of llms.txt. Titles and summaries are by page."""
    site = parse_toc_yaml(toc)

    def lines(page: str, depth: int = 0):
        if page not in titles:  # named but not built, of which the build complains
            return
        about = f": {summaries[page]}" if summaries.get(page) else ""
        yield f"{'  ' * depth}- [{titles[page]}]({page}.html){about}"
        for tree in site[page].subtrees:
            for item in tree.items:
                yield from lines(str(item), depth + 1)

    start = site.root.docname
    parts = [f"# {titles[start]}\n\n> {summaries[start]}"]
    for part in site.root.subtrees:
        pages = (line for item in part.items for line in lines(str(item)))
        parts.append(f"## {part.caption or 'Pages'}\n\n" + "\n".join(pages))
    return "\n\n".join(parts) + "\n"


def _write(app, failure):
    if failure is not None or app.builder.name != "html":
        return
    titles = {page: re.sub(r"\s+", " ", title.astext()) for page, title in app.env.titles.items()}
    summaries = {page: summary(app.env.get_doctree(page)) for page in titles}
    text = listing(Path(app.config.external_toc_path), titles, summaries)
    Path(app.outdir, "llms.txt").write_text(text, encoding="utf-8")


def setup(app):
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
