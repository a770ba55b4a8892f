"""Every link of the built site leads somewhere: to a file that is there, and to a place in it that is there."""

import os
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from bs4 import BeautifulSoup

ROOT = Path(__file__).parents[1]
SITE = Path(os.environ.get("BOOK_SITE") or ROOT / "_build" / "html").resolve()
# The page for what is missing looks for the site from any depth: tests/browser/test_not_found.py.
PAGES = sorted(
    path for path in SITE.rglob("*.html") if "_static" not in path.relative_to(SITE).parts and path.name != "404.html"
)


@cache
def parsed(page: Path) -> BeautifulSoup:
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


@cache
def anchors(page: Path) -> set[str]:
    return {element[key] for key in ("id", "name") for element in parsed(page).find_all(attrs={key: True})}


def test_there_is_a_site():
    if not PAGES:
        pytest.skip("there are no built pages whose links could be followed: `make book` first")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(SITE)))
def test_links_and_anchors_are_whole(page):
    broken = []
    for key in ("href", "src"):
        for element in parsed(page).find_all(attrs={key: True}):
            address, anchor = urldefrag(element[key])
            parts = urlsplit(address)
            if parts.scheme or parts.netloc or element.name == "base":
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if target.is_dir():
                target /= "index.html"
            inside = target.suffix != ".html" or anchor in ("", *anchors(target)) if target.is_file() else False
            if not inside:
                broken.append(element[key])
    assert broken == []
