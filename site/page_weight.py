"""What a reader's first view of each page costs: the page and all that it loads before a touch, as sent.

Read from the built files: scripts, style sheets, what those import, their fonts, and images that are not lazy. Text
counts compressed, as static hosts send it; fonts and pictures as they are. A font counts wherever the page's text has
a character of its range, so that the sum is rather too high than too low.
"""

import gzip
import posixpath
import re
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

BUDGET = 500_000
"""Bytes that the first view of a page may take over the wire."""
COMPRESSED = {".html", ".css", ".js", ".mjs", ".json", ".svg", ".txt"}
LEVEL = 6  # of gzip, as hosts have it

# Four fifths of all elements draw figures and load nothing; to read them one by one would take the build seconds.
FIGURE_PARTS = re.compile(r"</?(?:path|use|g|rect|text|tspan|defs|clipPath|line|circle|polygon)\b[^<>]*>")
CSS_IMPORT = re.compile(r"""@import\s+(?:url\()?["']?([^"')\s;]+)""")
FACE = re.compile(r"@font-face\s*\{([^}]*)\}")
FACE_SOURCE = re.compile(r"""url\(\s*["']?([^"')]+)""")
RANGE = re.compile(r"unicode-range:([^;}]+)", re.IGNORECASE)
# Of a module only what it imports as it loads; `import(…)` comes with a touch.
JS_IMPORT = re.compile(r"""^\s*(?:import|export)\s(?:[^"';]*?\sfrom\s+)?["']([^"']+)["']""", re.MULTILINE)


@dataclass(frozen=True)
class Weight:
    """One page's first view."""

    page: str
    parts: dict[str, int]
    """File, as a path below the site's folder → bytes over the wire; the page itself among them."""

    @property
    def total(self) -> int:
        """Bytes of all parts."""
        return sum(self.parts.values())


class _Loads(HTMLParser):
    """The addresses that a page loads, and the characters of its text."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.addresses: list[str] = []
        self.text: set[str] = set()

    def handle_starttag(self, tag, attributes):
        given = {name: value or "" for name, value in attributes}
        relation = set(given.get("rel", "").lower().split())
        if (tag == "link" and relation & {"stylesheet", "preload", "modulepreload", "icon"}) and "href" in given:
            self.addresses.append(given["href"])
        elif tag in ("script", "img", "source", "iframe", "embed") and given.get("loading") != "lazy":
            self.addresses.append(given.get("src", ""))
        elif tag == "object":
            self.addresses.append(given.get("data", ""))

    handle_startendtag = handle_starttag

    def handle_data(self, text):
        self.text.update(text)


def of_page(html: Path, page: Path) -> Weight:
    """Weigh the first view of `page`, a file in the site's folder `html`.

    Raises `ValueError` if the site lacks a file that the page loads.
    """
    read = _Loads()
    read.feed(FIGURE_PARTS.sub("", page.read_text(encoding="utf-8")))
    own = page.relative_to(html).as_posix()
    points = frozenset(map(ord, read.text))
    parts, waiting = {own: _sent(page)}, [(own, address) for address in read.addresses]
    while waiting:
        source, address = waiting.pop()
        target = _inside(source, address)
        if target is None or target in parts:
            continue
        path = html / target
        if not path.is_file():
            raise ValueError(f"{source} loads {target}, which the site lacks")
        parts[target] = _sent(path)
        waiting += [(target, more) for more, needs in _loaded_by(path) if needs is None or needs & points]
    return Weight(own, parts)


def of_site(html: Path) -> list[Weight]:
    """Weigh every page of the site in `html`, the heaviest first. Raises `ValueError` as `of_page` does."""
    pages = [path for path in html.rglob("*.html") if path.relative_to(html).parts[0] not in ("_static", "_vendored")]
    return sorted((of_page(html, page) for page in pages), key=lambda weight: (-weight.total, weight.page))


def report(weights: list[Weight], heaviest: int = 5) -> list[str]:
    """Lines on the heaviest pages and their largest parts, and on every page over the budget."""
    lines = [f"Heaviest first views, KB over the wire (budget {BUDGET / 1000:.0f}):"]
    for place, weight in enumerate(weights):
        over = weight.total > BUDGET
        if place < heaviest or over:
            largest = sorted(weight.parts.items(), key=lambda part: -part[1])[:3]
            told = ", ".join(f"{posixpath.basename(name)} {size / 1000:.0f}" for name, size in largest)
            lines.append(f"  {weight.total / 1000:5.0f}  {weight.page}: {told}{'  OVER BUDGET' if over else ''}")
    return lines


def _inside(source: str, address: str) -> str | None:
    """The file that an address in the file `source` means, or None for one outside the site or without a file."""
    parts = urlsplit(address.strip())
    if parts.scheme or parts.netloc or not parts.path:
        return None
    path = unquote(parts.path)
    target = posixpath.normpath(
        path.lstrip("/") if path.startswith("/") else posixpath.join(posixpath.dirname(source), path)
    )
    # 404.html looks for its script above the site as well.
    return None if target.startswith("../") else target


def _sent(path: Path) -> int:
    return _sent_now(path, path.stat().st_mtime_ns)


@cache
def _sent_now(path: Path, written: int) -> int:
    held = path.read_bytes()
    return len(gzip.compress(held, LEVEL)) if path.suffix in COMPRESSED else len(held)


def _loaded_by(path: Path) -> list[tuple[str, frozenset[int] | None]]:
    """What a style sheet or a module loads: addresses, each with the code points that ask for it (None: always)."""
    if path.suffix == ".css":
        style = path.read_text(encoding="utf-8")
        faces = [(FACE_SOURCE.search(face), RANGE.search(face)) for face in FACE.findall(style)]
        fonts = [(source[1], _points(span[1]) if span else None) for source, span in faces if source]
        return [(address, None) for address in CSS_IMPORT.findall(style)] + fonts
    if path.suffix in (".js", ".mjs"):
        return [
            (address, None) for address in JS_IMPORT.findall(path.read_text(encoding="utf-8")) if address[0] in "./"
        ]
    return []


def _points(span: str) -> frozenset[int]:
    points: set[int] = set()
    for part in span.split(","):
        first, _, last = part.strip().upper().removeprefix("U+").partition("-")
        points.update(range(int(first.replace("?", "0"), 16), int((last or first).replace("?", "F"), 16) + 1))
    return frozenset(points)
