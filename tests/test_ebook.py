"""The EPUB: its check finds what can be wrong with one, and the one that was built has none of it."""

import zipfile
from pathlib import Path

import pytest

import ebook

ROOT = Path(__file__).parents[1]

PAGE = '<html xmlns="http://www.w3.org/1999/xhtml"><body>{}</body></html>'
GOOD = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": "<container/>",
    "content.opf": """\
<package xmlns="http://www.idpf.org/2007/opf"><manifest>
<item id="a" href="toc.ncx"/><item id="b" href="nav.xhtml"/><item id="c" href="in/one.xhtml"/>
<item id="d" href="in/two.xhtml"/><item id="e" href="_images/f.svg"/></manifest>
<spine><itemref idref="c"/><itemref idref="d"/></spine></package>""",
    "toc.ncx": "<ncx/>",
    "nav.xhtml": PAGE.format('<a href="in/one.xhtml#x">1</a>'),
    "in/one.xhtml": PAGE.format(
        '<h1 id="x">1</h1><a href="two.xhtml">2</a><img src="../_images/f.svg" alt="two bars"/>'
    ),
    "in/two.xhtml": PAGE.format('<a href="one.xhtml#x">1</a> <a href="https://example.org/">out</a>'),
    "_images/f.svg": '<svg xmlns="http://www.w3.org/2000/svg"/>',
}
BAD = {
    "not well-formed": {"in/two.xhtml": "<html><p></html>"},
    "one.xhtml#y leads to a place that is not there": {"in/two.xhtml": PAGE.format('<a href="one.xhtml#y">1</a>')},
    "three.xhtml leads nowhere": {"in/two.xhtml": PAGE.format('<a href="three.xhtml">1</a>')},
    "no alternative text": {"in/two.xhtml": PAGE.format('<img src="../_images/f.svg"/>')},
    "a book cannot hold <script>": {"in/two.xhtml": PAGE.format("<script>1</script>")},
    "the id z stands there twice": {"in/two.xhtml": PAGE.format('<p id="z"/><p id="z"/>')},
    "extra.css is not in the manifest": {"extra.css": "p {}"},
    "in/three.xhtml, which is not there": {
        "content.opf": GOOD["content.opf"].replace('<item id="a"', '<item id="z" href="in/three.xhtml"/><item id="a"')
    },
    "in/two.xhtml is not in the reading order": {
        "content.opf": GOOD["content.opf"].replace('<itemref idref="d"/>', "")
    },
    "names a page twice": {
        "content.opf": GOOD["content.opf"].replace('<itemref idref="d"/>', '<itemref idref="c"/>' * 2)
    },
}


def pack(path, files, kind=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w") as book:
        for name, text in files.items():
            book.writestr(name, text, kind if name == "mimetype" else zipfile.ZIP_DEFLATED)
    return path


def test_a_sound_book_has_no_faults(tmp_path):
    assert ebook.faults(pack(tmp_path / "good.epub", GOOD)) == []


@pytest.mark.parametrize("fault", BAD)
def test_each_fault_is_found_and_said(tmp_path, fault):
    found = ebook.faults(pack(tmp_path / "bad.epub", GOOD | BAD[fault]))
    assert any(fault in sentence for sentence in found), found


def test_a_book_whose_type_is_compressed_is_none(tmp_path):
    found = ebook.faults(pack(tmp_path / "bad.epub", GOOD, zipfile.ZIP_DEFLATED))
    assert found == ["its first entry is not the uncompressed type of an EPUB"]


def test_the_book_that_was_built_is_sound_and_whole():
    built = ROOT / "_build" / "html" / ebook.NAME
    if not built.is_file():
        pytest.skip("there is no EPUB to look at: `make book` makes it")
    assert ebook.faults(built) == []
    from sphinx_external_toc.parsing import parse_toc_yaml

    names = set(zipfile.ZipFile(built).namelist())
    assert {f"{page}.xhtml" for page in parse_toc_yaml(ROOT / "_toc.yml")} <= names
