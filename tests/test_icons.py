"""The theme's icons: each that is shown can still be drawn, and the rest is gone."""

import re
from pathlib import Path

import pydata_sphinx_theme
import pytest
from fontTools.ttLib import TTFont

import icons

THEME = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
PAGE = """<html><head>
  <script defer src="../_static/scripts/fontawesome.js?digest=55c26ed4"></script>
  <link href="../_static/styles/pydata-sphinx-theme.css?digest=55c26ed4" rel="stylesheet" />
</head><body><i class="fa-solid fa-sun fa-lg"></i><i class="fas fa-download"></i></body></html>"""


@pytest.fixture
def site(tmp_path):
    """A page and what the installed theme brings."""
    for name in ("styles/pydata-sphinx-theme.css", "scripts/fontawesome.js", "scripts/pydata-sphinx-theme.js"):
        target = tmp_path / "_static" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((THEME / name).read_bytes())
    fonts = tmp_path / "_static/vendor/fontawesome/webfonts"
    fonts.mkdir(parents=True)
    for font in (THEME / "vendor/fontawesome/webfonts").iterdir():
        (fonts / font.name).write_bytes(font.read_bytes())
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters/page.html").write_text(PAGE, encoding="utf-8")
    return tmp_path


def drawable(site) -> set[int]:
    return {
        point
        for font in (site / "_static/vendor/fontawesome/webfonts").iterdir()
        for point in TTFont(font).getBestCmap()
    }


def test_what_a_page_a_script_or_a_style_sheet_shows_can_be_drawn(site):
    icons.reduce(site)
    style = (site / "_static/styles/pydata-sphinx-theme.css").read_text(encoding="utf-8")
    for name, code in (("sun", 0xF185), ("download", 0xF019), ("xmark", 0xF00D)):  # the last is made by a script
        assert re.search(rf'\.fa-{name}:+before[^{{]*\{{content:"\\{code:x}"', style), name
        assert code in drawable(site), name
    admonition = re.search(r'--pst-icon-bell:"([^"]+)"', style)[1]
    assert {ord(icons._unescaped(admonition))} <= drawable(site)


def test_the_rest_is_gone_and_nothing_points_to_it(site):
    icons.reduce(site)
    assert ".fa-kiwi-bird" not in (
        style := (site / "_static/styles/pydata-sphinx-theme.css").read_text(encoding="utf-8")
    )
    fonts = {path.name for path in (site / "_static/vendor/fontawesome/webfonts").iterdir()}
    named = {Path(address).name for address in re.findall(r"url\(([^)]*fa-[^)]*)\)", style)}
    assert named == fonts and all(name.endswith(".woff") for name in fonts)
    assert sum(path.stat().st_size for path in (site / "_static/vendor/fontawesome/webfonts").iterdir()) < 20_000
    assert not (site / "_static/scripts/fontawesome.js").exists()
    page = (site / "chapters/page.html").read_text(encoding="utf-8")
    assert "fontawesome.js" not in page and "fa-sun" in page


def test_a_changed_style_sheet_gets_another_address(site):
    def digest():
        return re.search(r"theme\.css\?digest=(\w+)", (site / "chapters/page.html").read_text(encoding="utf-8"))[1]

    before = digest()
    icons.reduce(site)
    assert digest() != before


def test_a_theme_that_holds_its_icons_elsewhere_is_a_fault():
    with pytest.raises(ValueError, match="does not hold its icons"):
        icons.reduced(".fa-sun:before{content:'x'}", {"sun"})
