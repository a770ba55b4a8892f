"""Every page of the built site in a real browser: light and dark, on a desk and on a phone."""

import os
from pathlib import Path

import pytest

from .conftest import PHONE, WIDE

ROOT = Path(__file__).parents[2]
SITE = Path(os.environ.get("BOOK_SITE") or ROOT / "_build" / "html")
OURS = {"_static", "_sources", "_images", "_downloads", "_vendored"}
PAGES = sorted(
    str(path.relative_to(SITE)) for path in SITE.rglob("*.html") if not OURS & set(path.relative_to(SITE).parts)
)
WORSE_THAN_MINOR = ["moderate", "serious", "critical"]

TOO_WIDE = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  return [...document.querySelectorAll("body *")]
    .filter((element) => element.getBoundingClientRect().right > width + 1)
    .slice(0, 5).map((element) => `${element.tagName}.${element.className}`);
}"""
CUT_FLAGS = """() => [...document.querySelectorAll(".bd-article :not(pre) > code > .pre:only-child")]
  .filter((word) => word.offsetParent && word.getClientRects().length).filter((word) => {
    const code = word.parentElement, line = code.parentElement;
    const tall = word.getBoundingClientRect().height > 1.5 * parseFloat(getComputedStyle(code).lineHeight);
    const room = (line.clientWidth ? line : line.closest("p, td, li")).clientWidth;
    for (const part of [code, word]) part.style.cssText = "max-width: none; white-space: nowrap";
    const fits = code.getBoundingClientRect().width <= room;
    for (const part of [code, word]) part.style.cssText = "";
    return tall && fits;
  }).map((word) => word.textContent)"""
FINDINGS = """async (impacts) => {
  const report = await axe.run(document, {resultTypes: ["violations"]});
  return report.violations.filter((found) => impacts.includes(found.impact))
    .map((found) => `${found.impact}: ${found.id}: ${found.nodes.slice(0, 3).map((node) => node.html).join(" | ")}`);
}"""


def test_there_are_pages(built_site):
    assert "index.html" in PAGES and len(PAGES) > 3


@pytest.mark.parametrize("name", PAGES)
def test_a_page_suits_everyone_and_asks_nobody_outside(name, visit, axe):
    for size in (WIDE, PHONE):
        seen = visit(name, size)
        seen.page.evaluate(axe)
        # Colours fade from one theme to the other, and a contrast measured on the way is nobody's.
        seen.page.add_style_tag(content="*, *::before, *::after { transition: none !important; }")
        for theme in ("light", "dark"):
            seen.page.emulate_media(color_scheme=theme)
            shown = f"{name}, {theme}, {size[0]} px"
            seen.page.locator(f'html[data-theme="{theme}"]').wait_for(state="attached")
            assert seen.page.evaluate(TOO_WIDE) == [], f"{shown}: wider than the screen"
            findings = seen.page.evaluate(FINDINGS, WORSE_THAN_MINOR)
            assert findings == [], f"{shown}:\n" + "\n".join(findings)
        assert seen.said == [] and seen.outside == []


@pytest.mark.parametrize("name", ["index.html", "chapters/02_continuous_batching.html"])
def test_a_page_can_be_read_without_scripts(name, visit):
    seen = visit(name, scripts=False)
    assert seen.page.locator(".bd-article h1").is_visible() and seen.page.locator("svg.computed-figure").count() > 0
    assert seen.outside == []


CLIPPED = """() => [...document.querySelectorAll(".bd-article table")].filter((table) => {
  let box = table;
  while (box && !/auto|scroll/.test(getComputedStyle(box).overflowX)) box = box.parentElement;
  return table.scrollWidth > (box ?? document.documentElement).clientWidth + 1;
}).map((table) => table.innerText.slice(0, 60))"""


@pytest.mark.parametrize(
    "name", ["chapters/01_three_engines.html", "chapters/07_dynamo.html", "chapters/09_summary.html"]
)
def test_tables_of_flags_and_of_engines_fit_a_phone(name, visit):
    seen = visit(name, PHONE)
    assert seen.said == []
    assert seen.page.evaluate(CLIPPED) == []


@pytest.mark.parametrize("size", [WIDE, PHONE])
@pytest.mark.parametrize("name", ["chapters/05_tensorrt_llm.html", "chapters/atlas.html", "labs/01_vllm.html"])
def test_a_flag_is_cut_only_where_it_is_longer_than_its_line(name, size, visit):
    seen = visit(name, size)
    assert seen.said == []
    assert seen.page.evaluate(CUT_FLAGS) == []
