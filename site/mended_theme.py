"""What the stock theme leaves without a name, or with one that its words contradict, gets one a screen reader can say.

Templates of ours (site/templates) mend what has a template; the rest is mended in the written pages. A pattern that no
page holds any more is a complaint, so that a newer theme which needs no mending is noticed.
"""

import re
from pathlib import Path

# The arrow that opens a chapter's sections in the side bar is an icon without words.
UNNAMED = re.compile(
    r'(<a class="(?:current )?reference internal" href="[^"]*">\s*([^<]+?)\s*</a>\s*<details[^>]*>\s*<summary)>'
)
# A folded cell says "Show the command", and its label says something else.
CONTRADICTED = '<summary aria-label="Toggle hidden content">'


def mended(page: str) -> str:
    """The page with its names."""
    named = UNNAMED.sub(lambda found: f'{found[1]} aria-label="Sections of {found[2]}">', page)
    return named.replace(CONTRADICTED, "<summary>")


def mend(html: Path) -> list[str]:
    """Mend the built pages in `html`; what was not found there to mend, as sentences."""
    pages = {path: path.read_text(encoding="utf-8") for path in html.rglob("*.html") if "_static" not in path.parts}
    for path, text in pages.items():
        if (better := mended(text)) != text:
            path.write_text(better, encoding="utf-8")
    sections = any('class="toctree-toggle"' in text for text in pages.values())
    if sections and not any(UNNAMED.search(text) for text in pages.values()):
        return ["the theme writes the side bar's arrows in another way now: see site/mended_theme.py"]
    return []
