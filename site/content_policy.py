"""What a page may do: a content security policy in each page, which a static host needs no setting for.

Everything comes from the site itself. The theme's own inline scripts may run, each by its hash; no other can, and no
handler in an attribute, so the theme's few handlers become names that a small file of ours listens to.
"""

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

DIRECTIVES = {
    "default-src": "'self'",
    # WebAssembly is what runs Python in the page.
    "script-src": "'self' 'wasm-unsafe-eval'",
    # Figures that stand in a page, and many of the theme's elements, have style attributes.
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data:",
    "font-src": "'self' data:",
    "connect-src": "'self'",
    "worker-src": "'self'",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
}
ACTIONS = {"window.print()": "print"}
"""The theme's inline handlers, and the name that page_actions.js knows each by."""
ACTIONS_FILE = "page_actions.js"

# Four fifths of all elements draw figures; to read them one by one would take the build seconds. One with a handler or
# an address is none of these.
FIGURE_PARTS = re.compile(
    r"</?(?:path|use|g|rect|text|tspan|defs|clipPath|line|circle|polygon)\b(?![^<>]*(?:\son|script:))[^<>]*>"
)
HANDLER = re.compile(r'\sonclick="([^"]*)"')
CHARSET = re.compile(r"<meta\s+charset=[^>]*>", re.IGNORECASE)
HEAD = re.compile(r"<head(?:\s[^>]*)?>", re.IGNORECASE)
DOCTYPE = re.compile(r"<!doctype[^>]*>", re.IGNORECASE)
CODE_TYPES = {"", "module", "text/javascript", "application/javascript", "importmap", "speculationrules"}


class _Page(HTMLParser):
    """The code that stands in a page: inline scripts, handlers in attributes, addresses that are code."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.scripts: list[str] = []
        self.handlers: list[str] = []
        self.inside = False

    def handle_starttag(self, tag, attributes):
        given = {name: value or "" for name, value in attributes}
        self.handlers += [f'{name}="{value}"' for name, value in given.items() if name.startswith("on")]
        self.handlers += [
            f'{name}="{given[name]}"'
            for name in ("href", "src", "action", "formaction")
            if given.get(name, "").strip().lower().startswith("javascript:")
        ]
        self.inside = tag == "script" and "src" not in given and given.get("type", "").lower() in CODE_TYPES
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = self.inside and tag != "script"

    def handle_data(self, text):
        if self.inside:
            self.scripts[-1] += text


def policy(scripts: list[str]) -> str:
    """The policy of a page with these inline scripts, as it stands in the page or in a host's header."""
    hashes = {base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts}
    allowed = DIRECTIVES | {
        "script-src": " ".join([DIRECTIVES["script-src"], *(f"'sha256-{each}'" for each in sorted(hashes))])
    }
    return "; ".join(f"{name} {value}" for name, value in allowed.items())


def held(page: str, static: str) -> str:
    """A page with its policy, and with the theme's handlers turned into names.

    static: the way from the page to the folder of static files, like `../_static`.

    Raises `ValueError` if code stands in the page that no policy can let through.
    """
    page, actions = HANDLER.subn(lambda found: _action(found[1]) or found[0], page)
    read = _Page()
    read.feed(FIGURE_PARTS.sub("", page))
    if read.handlers:
        raise ValueError(f"code in an attribute, which the page's policy forbids: {', '.join(read.handlers)}")
    tags = f'<meta http-equiv="Content-Security-Policy" content="{policy(read.scripts)}" />'
    if actions:
        tags += f'\n    <script defer src="{quote(static)}/{ACTIONS_FILE}"></script>'
    place = CHARSET.search(page) or HEAD.search(page) or DOCTYPE.search(page)
    end = place.end() if place else 0
    return f"{page[:end]}\n    {tags}{page[end:]}"


def hold(html: Path) -> list[str]:
    """Give each built page in `html` its policy; sentences on those that cannot have one."""
    complaints = []
    for path in sorted(html.rglob("*.html")):
        inside = path.relative_to(html)
        if inside.parts[0] in ("_static", "_vendored"):
            continue
        static = "/".join([*[".."] * (len(inside.parts) - 1), "_static"])
        try:
            path.write_text(held(path.read_text(encoding="utf-8"), static), encoding="utf-8")
        except ValueError as error:
            complaints.append(f"{inside.with_suffix('')}: {error}")
    return complaints


def _action(code: str) -> str:
    name = ACTIONS.get(code.strip().rstrip(";"))
    return f' data-page-action="{name}"' if name else ""
