"""The theme's icons, reduced to those that a page shows.

The theme brings Font Awesome three times: a script of 1.5 MB that turns each icon's element into a drawing, three
fonts, and a rule for each of 1,900 icons in its style sheet. The fonts and the rules do what the script does, so it
goes; and what stays of them is the icons that a page, a script or a style sheet names.
"""

import hashlib
import logging
import re
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

# It tells of every table that it prunes.
logging.getLogger("fontTools").setLevel(logging.WARNING)

STYLE = Path("styles", "pydata-sphinx-theme.css")
SCRIPT = Path("scripts", "fontawesome.js")
SCRIPT_TAG = re.compile(r'[ \t]*<script [^>]*src="[^"]*_static/scripts/fontawesome\.js[^"]*"></script>\n?')
NAME = re.compile(r"\bfa-([a-z0-9-]+)")
RULE = re.compile(r'((?:\.fa-[a-z0-9-]+::?before,?)+)\{content:"([^"]+)"\}')
FACE = re.compile(r"@font-face\{[^}]*?url\(([^)]*/fa-[a-z]+-\d+)\.woff2\)[^}]*\}")
SOURCES = re.compile(r"src:url[^;}]*")
CODE = re.compile(r"\\([0-9a-fA-F]{1,6}) ?")
PRIVATE = re.compile("[\ue000-\uf8ff]")
WORDS_FOR_DRAWINGS = (
    # The script made an `svg` of each icon, and these rules count on it.
    (".search-button-field>:not(svg)", ".search-button-field>:not(.fa-solid)"),
    ("form.bd-search svg", "form.bd-search .fa-solid"),
)


def named(text: str) -> set[str]:
    """The icons that a page, a script or a style sheet names, as in `fa-sun`: without the `fa-`."""
    return set(NAME.findall(text))


def drawn(style: str) -> str:
    """The icons that a style sheet sets by themselves, as characters, apart from its rules for icons with names."""
    return "".join(sorted(set(PRIVATE.findall(_unescaped(RULE.sub("", style))))))


def reduced(style: str, names: set[str]) -> tuple[str, str]:
    """The theme's style sheet without the rules for icons other than `names`, and the characters that the rest draws.

    Raises `ValueError` if the theme's style sheet does not hold icons as it used to.
    """
    characters = set()

    def kept(rule: re.Match) -> str:
        if not names & named(rule[1]):
            return ""
        characters.add(_unescaped(rule[2]))
        return rule[0]

    shorter, found = RULE.subn(kept, style)
    if found < 1000 or not FACE.search(style):
        raise ValueError("the theme's style sheet does not hold its icons as site/icons.py expects: look at both")
    for drawing, icon in WORDS_FOR_DRAWINGS:
        shorter = shorter.replace(drawing, icon)
    return shorter, "".join(sorted(characters))


def reduce(html: Path) -> None:
    """Do it to the built pages in `html`."""
    static, pages = html / "_static", [page for page in html.rglob("*.html") if "_static" not in page.parts]
    style = (static / STYLE).read_text(encoding="utf-8")
    for script in (static / SCRIPT, static / f"{SCRIPT}.map", static / f"{SCRIPT}.LICENSE.txt"):
        script.unlink(missing_ok=True)
    names, characters = set(), set()
    for path in (*pages, *static.rglob("*.js")):
        text = path.read_text(encoding="utf-8")
        names |= named(text)
        characters |= set(PRIVATE.findall(text))
    for path in static.rglob("*.css"):
        characters |= set(drawn(path.read_text(encoding="utf-8")))
    shorter, more = reduced(style, names)
    shorter = _with_fonts(shorter, characters | set(more), (static / STYLE).parent)
    (static / STYLE).write_text(shorter, encoding="utf-8")
    digest = hashlib.sha256(shorter.encode()).hexdigest()[:20]
    for page in pages:
        text = SCRIPT_TAG.sub("", page.read_text(encoding="utf-8"))
        # The theme's own digest would let a browser keep the style sheet of an earlier build.
        text = re.sub(rf"({re.escape(STYLE.name)}\?digest=)[0-9a-f]+", rf"\g<1>{digest}", text)
        page.write_text(text, encoding="utf-8")


def _with_fonts(style: str, characters: set[str], folder: Path) -> str:
    """Leave `characters` in the fonts, and in the style sheet only the fonts that have one."""

    def face(rule: re.Match) -> str:
        stem = (folder / rule[1]).resolve()
        source, target = stem.with_suffix(".ttf"), stem.with_suffix(".woff")
        # Bytes that depend on nothing but the font: no time of writing in them.
        with TTFont(source, recalcTimestamp=False) as font:
            wanted = {ord(each) for each in characters} & font.getBestCmap().keys()
            options = Options(flavor="woff", layout_features=[], name_IDs=[0, 1, 2, 5, 13, 14], notdef_outline=True)
            subsetter = Subsetter(options)
            subsetter.populate(unicodes=wanted)
            subsetter.subset(font)
            if wanted:
                font.flavor = "woff"
                font.save(target)
        source.unlink()
        stem.with_suffix(".woff2").unlink()
        return SOURCES.sub(f'src:url({rule[1]}.woff) format("woff")', rule[0]) if wanted else ""

    return FACE.sub(face, style)


def _unescaped(text: str) -> str:
    """A style sheet's text with its escapes, as `\\f0c9`, turned into characters."""
    return CODE.sub(lambda found: chr(int(found[1], 16)), text)
